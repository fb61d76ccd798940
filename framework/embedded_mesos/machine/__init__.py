"""The processes of an agent on this machine: executors, their tasks, files, checks, limits."""
