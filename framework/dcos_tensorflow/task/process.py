"""One start of the user's process: started, listened to, signalled, and cleaned up after.

``runner`` makes one per start. The process leads a session and group of its own, so that a signal
reaches all of it; when it has ended, nothing that it had started is left.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import threading
from typing import IO, Callable, List, Mapping, Optional, Set, Tuple

from dcos_tensorflow.task import process_table
from dcos_tensorflow.task.logs import BoundedOutput, LineScanner

READ_BYTES = 64 * 1024
DRAIN_SECONDS = 5.0
#: What a process at its gate reads from its standard input when it may go on.
GO = b"go\n"
#: prctl(2).
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36


def shield_runner() -> List[str]:
    """Make this process the parent of orphans below it, and unreadable to the user's code.

    The second keeps the token in ``/proc/<pid>/environ`` from processes of the same user. Returns
    what could not be done, as lines for the log: not every kernel or sandbox allows it.
    """
    wishes = (
        (PR_SET_CHILD_SUBREAPER, 1, "adopt orphaned processes"),
        (PR_SET_DUMPABLE, 0, "hide its environment from the user's process"),
    )
    try:
        prctl = ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return [f"cannot {wish}: there is no prctl here" for _, _, wish in wishes]
    failed = []
    for option, value, wish in wishes:
        if prctl(option, value, 0, 0, 0) != 0:
            failed.append(f"cannot {wish}: {os.strerror(ctypes.get_errno())}")
    return failed


class UserProcess:
    """The user's process of one start.

    ``on_line`` gets every line of its output, from the threads that read it. ``on_end`` gets the
    return code, and whether a signal of ours came before its end, once the process and all that it
    started are gone and its output is read. A process that is ``gated`` has a pipe as its standard
    input, and ``release`` writes ``GO`` into it.
    ``spared`` returns the pids of our own other children, which are not the user's.
    """

    def __init__(
        self,
        command: List[str],
        *,
        environment: Mapping[str, str],
        directory: str,
        stdout: BoundedOutput,
        stderr: BoundedOutput,
        on_line: Callable[[str], None],
        on_end: Callable[[int, bool], None],
        spared: Callable[[], Set[int]],
        gated: bool = False,
    ) -> None:
        self._on_line = on_line
        self._on_end = on_end
        self._spared = spared
        self._signalled = False
        self._process = subprocess.Popen(
            command,
            env=dict(environment),
            cwd=directory,
            stdin=subprocess.PIPE if gated else subprocess.DEVNULL,
            bufsize=0,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.pid = self._process.pid
        self._readers = [
            threading.Thread(target=self._read, args=pair, name="output", daemon=True)
            for pair in ((self._process.stdout, stdout), (self._process.stderr, stderr))
        ]
        self._waiter = threading.Thread(target=self._wait, name="process-end", daemon=True)

    def begin(self) -> None:
        """Listen to the process and wait for its end; until then it is heard of by nobody."""
        for thread in (*self._readers, self._waiter):
            thread.start()

    def release(self) -> None:
        """Let a process at its gate go on."""
        gate = self._process.stdin
        if gate is None or gate.closed:
            return
        # A broken pipe means that it ended by itself in between; the waiter tells so.
        with contextlib.suppress(BrokenPipeError):
            gate.write(GO)
        gate.close()

    def close(self) -> None:
        """Close our end of the gate; called by the thread that calls ``release``."""
        if self._process.stdin:
            self._process.stdin.close()

    def signal_group(self, number: int) -> None:
        """Send a signal to the user's process and all of its group; SIGKILL reaches everyone."""
        self._signalled = self._signalled or not self._has_ended()
        if number == signal.SIGKILL:
            process_table.kill_all(self.members)
            return
        try:
            os.killpg(self.pid, number)
            if number == signal.SIGTERM:
                # A frozen process could not even save.
                os.killpg(self.pid, signal.SIGCONT)
        except ProcessLookupError:
            # It ended by itself in between; the waiter tells so.
            return

    def reap_orphans(self) -> None:
        """Take the exit status of orphans that were handed to us, so that no zombie stays."""
        ours = self._spared() | {self.pid}
        me = os.getpid()
        for process in process_table.read_processes():
            if process.parent == me and process.state == "Z" and process.pid not in ours:
                try:
                    os.waitpid(process.pid, os.WNOHANG)
                except ChildProcessError:
                    continue

    def _has_ended(self) -> bool:
        try:
            options = os.WEXITED | os.WNOWAIT | os.WNOHANG
            return os.waitid(os.P_PID, self.pid, options) is not None
        except ChildProcessError:
            # Its exit status was taken already.
            return True

    def members(self) -> "Tuple[process_table.Process, ...]":
        """Return the user's process and all that it has started, zombies left out."""
        processes = process_table.read_processes()
        spared = self._spared()
        me = os.getpid()
        first = {p.pid for p in processes if p.parent == me and p.pid not in spared} | {self.pid}
        return process_table.belonging(processes, first, spared | {me})

    def _wait(self) -> None:
        # Left a zombie until all is clean: its pid, which is also the group's, cannot be re-used.
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        process_table.kill_all(self.members)
        return_code = self._process.wait()
        self.reap_orphans()
        for reader in self._readers:
            reader.join(DRAIN_SECONDS)
        self._on_end(return_code, self._signalled)

    def _read(self, stream: Optional[IO[bytes]], output: BoundedOutput) -> None:
        if stream is None:
            return
        scanner = LineScanner()
        with stream:
            while True:
                data = os.read(stream.fileno(), READ_BYTES)
                if not data:
                    break
                output.write(data)
                for line in scanner.feed(data):
                    self._on_line(line)
        for line in scanner.close():
            self._on_line(line)
