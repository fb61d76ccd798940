"""The end of a process of ours, by the command line and by the embedded cluster's process."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from typing import NoReturn


def end_process(code: int) -> NoReturn:
    """End this process with an exit code, after what was registered for its end.

    The interpreter would take all modules apart first, object by object: a tenth of a second and
    more, in which the user waits for a prompt and nothing happens that the system does not do as
    well. Where a thread is still to be waited for, that is left to the interpreter.
    """
    others = (one for one in threading.enumerate() if one is not threading.current_thread())
    if any(not one.daemon for one in others):
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)
