"""The embedded cluster as commands use it: which one a job goes to, and how large it is."""
