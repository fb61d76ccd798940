"""The task runner: the process in a task's container that starts the user's process.

Standard library only, any Python from 3.8 on, packed as one file (``pack.build_zipapp``) and
started as ``python3 task-runner.pyz``. It imports nothing of the rest but ``core.contract``.
How it behaves is told in docs/task-runner.md.
"""
