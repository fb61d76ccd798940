"""The machine's network, as the task runner sees it: its own address there, and its peers'."""
