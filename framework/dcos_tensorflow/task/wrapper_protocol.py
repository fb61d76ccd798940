"""The protocol between the runner and the wrapper in the user's process.

Apart from both, and importing nothing: each is a program of its own.
"""

from __future__ import annotations

#: The argument with which the runner starts its own program again, as the wrapper.
WRAPPER_FLAG = "--wrapper"
#: What a wrapper at its gate reads from its standard input when it may go on.
GO = b"go\n"
#: Names the file descriptor on which a process says, a line each, that it has done a unit of work
#: (the number of its start), or which version of the cluster it trains with (0: it takes no other).
WORDS_VARIABLE = "TASK_WRAPPER_WORDS"
