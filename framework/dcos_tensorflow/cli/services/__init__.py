"""A service as this machine knows it: its scheduler, what that answers, how a job ended."""
