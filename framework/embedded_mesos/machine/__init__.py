"""What really runs on this machine for an agent: executors, their tasks, files, checks, limits."""
