"""Import pymesos without its side effects.

Used by every module of this room that needs a name of pymesos. ``import pymesos`` replaces the
process's SIGINT handler (and therefore fails outside the main thread) and adds a handler of its
own to the ``pymesos`` logger, which doubles every log line of an application with a root handler.
Here it is imported with ``signal.signal`` answered for the importing thread alone, so that no
handler is ever replaced and the import works in any thread; the logger is put back as it was.

It never touches a signal handler or a logger that is not pymesos' own.
"""

from __future__ import annotations

import importlib
import logging
import signal
import sys
import threading
from types import ModuleType
from typing import Any

_import_lock = threading.Lock()


def import_pymesos() -> ModuleType:
    """Return the module ``pymesos``, imported without side effects.

    When another module imported it before, in the plain way, what that import left is undone: its
    log handler is removed, and in the main thread the SIGINT handler it replaced is put back.
    """
    with _import_lock:
        logger = logging.getLogger("pymesos")
        level = logging.NOTSET if "pymesos" in sys.modules else logger.level
        pymesos = _import_with_signals_left_alone()
        if pymesos.handler in logger.handlers:
            logger.removeHandler(pymesos.handler)
            logger.setLevel(level)
        _restore_interrupt_handler()
        return pymesos


def _import_with_signals_left_alone() -> ModuleType:
    install = signal.signal
    importing_thread = threading.get_ident()

    def answer(signum: Any, handler: Any) -> Any:
        if threading.get_ident() == importing_thread:
            return signal.getsignal(signum)
        return install(signum, handler)

    signal.signal = answer  # type: ignore[assignment]
    try:
        return importlib.import_module("pymesos")
    finally:
        signal.signal = install


def _restore_interrupt_handler() -> None:
    process = sys.modules["pymesos.process"]
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGINT) is process._handle_sigint:
        signal.signal(signal.SIGINT, process._prev_handler)
