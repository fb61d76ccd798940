"""What the runner and the wrapper in the user's process agree on.

Apart from both, and importing nothing: each is a program of its own.
"""

from __future__ import annotations

#: The argument with which the runner starts its own program again, as the wrapper.
WRAPPER_FLAG = "--wrapper"
#: What a wrapper at its gate reads from its standard input when it may go on.
GO = b"go\n"
#: Names the file descriptor on which a process says that it has done a unit of work: the number of
#: its start, a line each.
WORDS_VARIABLE = "TASK_WRAPPER_WORDS"
