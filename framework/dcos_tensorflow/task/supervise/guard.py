"""A small process beside the runner that ends the user's processes when the runner is killed.

``program`` begins it before it imports the runner: it is a fork of a small process, and
shares its memory with the runner. It holds one end of a socket whose other end only the
runner holds. When the runner is gone, by SIGKILL too, the socket says so, and the guard kills
everything that carries the runner's mark, and removes the files of its secrets. It holds the
locks of the task's GPUs, too: while it kills, something may still compute on them. It never looks
at anything else.
"""

from __future__ import annotations

import array
import os
import select
import signal
import socket
from typing import Callable, Collection, Sequence, Tuple

from untrusted_input import process_table, shield

#: What the runner's processes have in their environment, with a value of each attempt's own.
MARK_VARIABLE = "TASK_RUNNER_MARK"
#: As which it is listed, where its command line is that of the runner.
NAME = "runner-guard"
_RECEIVED_BYTES = 4096
#: What comes with descriptors, and how many come at most: no machine has as many GPUs.
HELD, _MOST_HELD = "\0", 64


class Guard:
    """The runner's end of it, a context: it ends with that. Call it in the main thread."""

    def __init__(self) -> None:
        """Begin it. Raises OSError."""
        self.mark = os.urandom(16).hex()
        #: A folder of secrets, removed where the runner cannot do it any more.
        self._folder = ""
        #: Open files that it keeps open, beside us, until nothing of the task is left.
        self._held: Tuple[int, ...] = ()
        self._missing = False
        self._begin()

    def __enter__(self) -> Guard:
        return self

    def __exit__(self, *_: object) -> None:
        self._dismiss()

    def _begin(self) -> None:
        # One message at a time, however many were sent.
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                self.pid = os.fork()
            except OSError:
                self._socket.close()
                raise
            if self.pid == 0:
                _guard(theirs, f"{MARK_VARIABLE}={self.mark}", self._folder, self._held)

    def remove_at_end(self, folder: str) -> None:
        """Let it remove ``folder``, too, if the runner is killed."""
        self._folder = folder
        # Where a user has killed it, the next one knows.
        try:
            self._socket.sendall(os.fsencode(folder))
        except OSError:
            return

    def hold(self, descriptors: Sequence[int]) -> None:
        """Let it keep these open files open, too, for as long as it is there."""
        self._held = tuple(descriptors)
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
        # Where a user has killed it, the next one has them from us.
        try:
            self._socket.sendmsg([os.fsencode(HELD)], [rights])
        except OSError:
            return

    def keep(self, log: Callable[[str], None]) -> None:
        """Begin it again if someone has killed it; say once when that cannot be now."""
        if not self._missing and not self._has_ended(os.WNOHANG):
            return
        self._socket.close()
        try:
            self._begin()
            self._missing = False
        except OSError as error:
            if not self._missing:
                log(f"the guard is gone and cannot be started again now: {error}")
            self._missing = True

    def _dismiss(self) -> None:
        """Let it end; what still carries the mark ends with it."""
        if self._missing:
            return
        with self._socket as ours:
            ours.shutdown(socket.SHUT_WR)
            if not select.select([ours], [], [], process_table.END_SECONDS + 1)[0]:
                os.kill(self.pid, signal.SIGKILL)
        self._has_ended(0)

    def _has_ended(self, options: int) -> bool:
        """Say whether it has ended, and let its process id go then; 0 waits for that."""
        try:
            return os.waitpid(self.pid, options)[0] != 0
        except ChildProcessError:
            # Our parent ignores SIGCHLD: no child is waited for then.
            return True


def _guard(runner: socket.socket, mark: str, folder: str, held: Sequence[int]) -> None:
    """Wait for the end of the runner, or its word, and end with what is to be done then."""
    try:
        # Its own session: signals to the runner's group are not for it.
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        shield.call_this_process(NAME)
        _keep_alone({runner.fileno(), *held})
        told = folder or _received(runner)
        while told:
            if told != HELD:
                # Now: once the runner is gone, nothing may be left to load it from.
                from untrusted_input import trees

                folder = told
            told = _received(runner)
        process_table.kill_all(lambda: process_table.marked(mark, {os.getpid()}))
        if folder:
            trees.remove(folder)
    finally:
        os._exit(0)


def _received(runner: socket.socket) -> str:
    """Return what the runner says, empty when it says nothing any more.

    Descriptors that come with it are open from then on, to the end of this process.
    """
    try:
        data, *_ = runner.recvmsg(_RECEIVED_BYTES, socket.CMSG_SPACE(_MOST_HELD * 4))
        return os.fsdecode(data)
    except OSError:
        return ""


def _keep_alone(kept: Collection[int]) -> None:
    """Let go of all else that this process holds: its readers would wait for us."""
    os.chdir("/")
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    for number in map(int, os.listdir("/proc/self/fd")):
        if number > 2 and number not in kept:
            try:
                os.close(number)
            except OSError:
                # That of the list itself.
                continue
