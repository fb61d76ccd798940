"""A small process beside the runner that ends the user's processes when the runner is killed.

``guarding`` starts it with a pipe whose other end only the runner holds. When the runner is gone,
by SIGKILL too, the pipe closes, and the guard kills everything that carries the runner's mark, and
removes the files of its secrets. It never looks at anything else, and imports little: there is one
for every task.
"""

from __future__ import annotations

import os
import signal

from dcos_tensorflow.core import contract
from dcos_tensorflow.task import process_table


def main(mark: str) -> int:
    """Wait for the end of standard input, then kill what carries ``mark``."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    has_secrets = contract.RUNNER_SECRETS_DIRECTORY_VARIABLE in os.environ
    if has_secrets:
        # Now: the archive may be gone once the runner is.
        from dcos_tensorflow.task import secret_files
    while os.read(0, 4096):
        pass
    process_table.kill_all(lambda: process_table.marked(mark, {os.getpid()}))
    if has_secrets:
        secret_files.remove(os.environ)
    return 0
