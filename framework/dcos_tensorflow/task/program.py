"""Which of the three programs in this file is wanted: the runner, its guard, or its wrapper.

The first that runs, by ``task-runner.pyz`` and by ``python -m dcos_tensorflow.task``. It imports
the one that is wanted and nothing of the others: the guard stands beside every task of every user
for as long as that runs, and the wrapper is the beginning of the user's own process.
"""

from __future__ import annotations

import sys

#: The arguments with which the runner starts this program again.
GUARD_FLAG = "--guard"
WRAPPER_FLAG = "--wrapper"


def main(arguments: list[str]) -> int:
    """Run what ``arguments`` ask for and return its exit code."""
    # Each import where it is used: an archive is compiled anew at every start.
    if arguments[:1] == [GUARD_FLAG]:
        from dcos_tensorflow.task import guard

        return guard.main(arguments[1])
    if arguments[:1] == [WRAPPER_FLAG]:
        from dcos_tensorflow.task import wrapper

        return wrapper.main()
    from dcos_tensorflow.core import contract

    if arguments:
        sys.stderr.write("task-runner takes no arguments: it reads its environment\n")
        return contract.EXIT_RUNNER_FAILED
    from dcos_tensorflow.task import main as runner

    return runner.main()
