"""Reads a job's code without running it: how it is called, and facts of its training.

The command line asks before the start, where the code is on its machine; the task runner asks in
the sandbox. Roots and the started module go in, facts come out. Code is parsed, never imported: a
module that fails on import, or trains on import, must not do so in the asking process. Standard
library only, any Python from 3.8 on: the room is packed with the task runner. It imports nothing of
the rest but ``core.contract``.
"""
