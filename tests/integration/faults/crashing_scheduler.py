"""A scheduler that is gone (SIGKILL) at one certain point between commit, act and acknowledge.

Usage: crashing_scheduler.py ACTION WHEN NUMBER COMMAND-LINE...: it dies ``before`` or ``after`` it
performs the NUMBERth action of this kind. An action is performed when what it is part of has been
committed.
"""

import os
import signal
import sys

from dcos_tensorflow.cli.main import run_command_line
from dcos_tensorflow.core.model.actions import Action
from dcos_tensorflow.mesos.gateway import MesosGateway

kind, when, left = sys.argv[1], sys.argv[2], int(sys.argv[3])
perform = MesosGateway.perform


def perform_and_die(gateway: MesosGateway, action: Action) -> None:
    global left
    fatal = type(action).__name__ == kind and (left := left - 1) == 0
    if fatal and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    perform(gateway, action)
    if fatal:
        os.kill(os.getpid(), signal.SIGKILL)


MesosGateway.perform = perform_and_die  # type: ignore[method-assign]
sys.exit(run_command_line(sys.argv[4:]))
