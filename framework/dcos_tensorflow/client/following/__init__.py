"""Following a job on a terminal: its progress until it is done, and the output of its tasks."""
