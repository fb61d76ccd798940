"""Access to tasks by the API: their files, an archive of these, and commands in them.

Used by ``api.app``. It reads and orders by agents and task runners, and keeps nothing.
"""
