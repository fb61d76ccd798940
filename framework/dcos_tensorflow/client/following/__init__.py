"""Following a job on a terminal: its progress until it is done, and what its tasks print."""
