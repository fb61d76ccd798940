"""Which of the two programs in this file is wanted: the runner, or its wrapper.

The first that runs, by ``task-runner.pyz`` and by ``python -m dcos_tensorflow.task``. It imports
the one that is wanted and nothing of the other: the wrapper is the beginning of the user's own
process. The runner's guard is forked before the runner is imported: it stands beside every task of
every user for as long as that runs.
"""

from __future__ import annotations

import os
import sys

from dcos_tensorflow.task.wrapper_protocol import WRAPPER_FLAG


def main(arguments: list[str]) -> int:
    """Run what ``arguments`` ask for and return its exit code; the runner does not return."""
    # Each import where it is used: an archive may be compiled anew at every start.
    if arguments[:1] == [WRAPPER_FLAG]:
        from dcos_tensorflow.task.python import wrapper

        return wrapper.main()
    from dcos_tensorflow.core import contract

    if arguments:
        sys.stderr.write("task-runner takes no arguments: it reads its environment\n")
        return contract.EXIT_RUNNER_FAILED
    code = _run()
    sys.stderr.flush()
    # What has ended needs no order within the memory that it leaves.
    os._exit(code)


def _run() -> int:
    from dcos_tensorflow.core import contract
    from dcos_tensorflow.task.supervise import guard
    from untrusted_input import shield

    # First: what a guard inherits is as unreadable.
    for note in shield.shield_runner():
        sys.stderr.write(f"task-runner: {note}\n")
    try:
        beside = guard.Guard()
    except OSError as error:
        sys.stderr.write(f"task-runner: the guard cannot be started: {error}\n")
        return contract.EXIT_RUNNER_FAILED
    with beside:
        from dcos_tensorflow.task import main as runner

        return runner.main(beside)
