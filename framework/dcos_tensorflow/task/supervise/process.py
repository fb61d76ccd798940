"""One start of the user's process: started, listened to, signalled, and cleaned up after.

``runner`` makes one per start. The process leads a session and group of its own, so that a signal
reaches all of it; when it has ended, nothing that it had started is left.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import select
import signal
import subprocess
import threading
import time
from typing import IO, Any, Callable, List, Mapping, Optional, Set, Tuple

from dcos_tensorflow.task.output.logs import BoundedOutput, LineScanner, lines_of
from dcos_tensorflow.task.supervise.own_children import reaping
from dcos_tensorflow.task.wrapper_protocol import GO, WORDS_VARIABLE
from untrusted_input import process_table
from untrusted_input.shield import adopts_orphans

READ_BYTES = 1 << 20
#: A job that prints little at a time is read so often at most: each look takes a core from it.
GATHER_SECONDS = 0.1
#: linux/fcntl.h, F_SETPIPE_SZ: Python names it since 3.10. What a pipe has else.
_SET_PIPE_SIZE, _SMALLEST_PIPE = 1031, 4096
DRAIN_SECONDS = 5.0
#: What a process says; it may write anything there.
_NUMBER = re.compile(r"[0-9]{1,18}")


class UserProcess:
    """The user's process of one start.

    ``on_block`` gets its output, whole lines at a time, from the threads that read it. ``on_end``
    gets the return code, and whether a signal of ours came before its end, once the process and all
    that it started are gone and its output is read. A process that is ``gated`` has a pipe as its
    standard input, and ``release`` writes ``GO`` into it. With ``on_word`` the process is handed
    orders there, by ``hand``; ``on_word`` gets each number that it says, once all that was printed
    before is read.
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
        on_block: Callable[[bytes], None],
        on_end: Callable[[int, bool], None],
        spared: Callable[[], Set[int]],
        gated: bool = False,
        on_word: Optional[Callable[[int], None]] = None,
    ) -> None:
        self._on_end = on_end
        self._spared = spared
        self._signalled = False
        self._ended = threading.Event()
        variables, words = dict(environment), (-1, -1)
        if on_word is not None:
            words = os.pipe()
            variables[WORDS_VARIABLE] = str(words[1])
        try:
            self._process = subprocess.Popen(
                command,
                env=variables,
                cwd=directory,
                stdin=subprocess.PIPE if gated or on_word else subprocess.DEVNULL,
                bufsize=0,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                pass_fds=words[1:] if on_word else (),
            )
        except BaseException:
            if on_word is not None:
                os.close(words[0])
            raise
        finally:
            if on_word is not None:
                os.close(words[1])
        self.pid = self._process.pid
        self._outputs = [
            Stream(stream, output.write, on_block, self._ended)
            for stream, output in ((self._process.stdout, stdout), (self._process.stderr, stderr))
            if stream is not None
        ]
        streams = list(self._outputs)
        if on_word is not None:
            hear = on_word
            said = os.fdopen(words[0], "rb", 0)
            streams.append(Stream(said, lambda data: None, lambda block: self._heard(block, hear)))
        self._readers = [
            threading.Thread(target=stream.read, name="output", daemon=True) for stream in streams
        ]
        self._waiter = threading.Thread(target=self._wait, name="process-end", daemon=True)

    def begin(self) -> None:
        """Listen to the process and wait for its end; until then no other part hears of it."""
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

    def hand(self, order: Mapping[str, Any]) -> None:
        """Hand a unit of work, or a cluster, to the process."""
        pipe = self._process.stdin
        if pipe is None or pipe.closed:
            return
        # A broken pipe means that it ended by itself in between; the waiter tells so.
        with contextlib.suppress(BrokenPipeError):
            left = memoryview(json.dumps(order).encode() + b"\n")
            while left:
                left = left[pipe.write(left) :]

    def _heard(self, block: bytes, on_word: Callable[[int], None]) -> None:
        for line in lines_of(block):
            for output in self._outputs:
                output.drain()
            if _NUMBER.fullmatch(line):
                on_word(int(line))

    def close(self) -> None:
        """Close our end of the gate; called by the thread that calls ``release`` and ``hand``."""
        if self._process.stdin:
            self._process.stdin.close()

    def signal_group(self, number: int) -> None:
        """Send a signal to the user's process and all of its group; SIGKILL reaches everyone."""
        self._signalled = self._signalled or not self._has_ended()
        if number == signal.SIGKILL:
            process_table.kill_all(self._all_members)
            return
        try:
            os.killpg(self.pid, number)
            if number == signal.SIGTERM:
                # A frozen process could not even save.
                os.killpg(self.pid, signal.SIGCONT)
        except ProcessLookupError:
            # It ended by itself in between; the waiter tells so.
            return

    def _has_left_nothing(self) -> bool:
        """Say whether it is known that nothing lives of what the ended process has started.

        All that it leaves is handed to us, who adopt orphans.
        """
        with reaping:
            children = process_table.children_of(os.getpid()) if adopts_orphans() else None
        return children is not None and children <= self._spared() | {self.pid}

    def reap_orphans(self) -> None:
        """Take the exit status of orphans that were handed to us, so that no zombie stays."""
        # The usual answer, and the table of the whole machine need not be read for it.
        try:
            if os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
                return
        except ChildProcessError:
            return
        ours = self._spared() | {self.pid}
        me = os.getpid()
        for process in process_table.read_processes():
            if process.parent == me and process.state == "Z" and process.pid not in ours:
                with reaping, contextlib.suppress(ChildProcessError):
                    # An operator's command may have begun, and ended, since then.
                    if process.pid not in self._spared():
                        os.waitpid(process.pid, os.WNOHANG)

    def _has_ended(self) -> bool:
        try:
            options = os.WEXITED | os.WNOWAIT | os.WNOHANG
            return os.waitid(os.P_PID, self.pid, options) is not None
        except ChildProcessError:
            # Its exit status was taken already.
            return True

    def members(self) -> "Tuple[process_table.Process, ...]":
        """Return the user's process and all that it has started, zombies left out.

        For looks: many runners share a machine, and each would read the table of all.
        """
        if not adopts_orphans():
            return self._all_members()
        found = process_table.descendants_of(os.getpid(), self._spared())
        return tuple(process for process in found if not process.ended)

    def _all_members(self) -> "Tuple[process_table.Process, ...]":
        """Return them by the table of the machine: to end them none may be missed in a race."""
        processes = process_table.read_processes()
        spared = self._spared()
        me = os.getpid()
        first = {p.pid for p in processes if p.parent == me and p.pid not in spared} | {self.pid}
        return process_table.belonging(processes, first, spared | {me})

    def _wait(self) -> None:
        # Left a zombie until all is clean: its pid, which is also the group's, cannot be re-used.
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        self._ended.set()
        if not self._has_left_nothing():
            process_table.kill_all(self._all_members)
        with reaping:
            return_code = self._process.wait()
        self.reap_orphans()
        for reader in self._readers:
            reader.join(DRAIN_SECONDS)
        self._on_end(return_code, self._signalled)


class Stream:
    """What comes out of one pipe: ``write`` gets the bytes, ``on_block`` whole lines. Two threads.

    One reads to the end, another may have all that is there already read at once. With ``ended``
    what comes is gathered for a moment, but not beyond the process's end, and not for so long that
    the pipe would fill and the process wait.
    """

    def __init__(
        self,
        pipe: IO[bytes],
        write: Callable[[bytes], None],
        on_block: Callable[[bytes], None],
        ended: Optional[threading.Event] = None,
    ) -> None:
        self._pipe = pipe
        self._write = write
        self._on_block = on_block
        self._ended = ended
        self._scanner = LineScanner()
        self._lock = threading.Lock()
        os.set_blocking(pipe.fileno(), False)
        self._room = _room_in(pipe)

    def read(self) -> None:
        """Read until every writer has closed it."""
        looks = select.poll()
        looks.register(self._pipe, select.POLLIN)
        with self._pipe:
            looked_at = time.monotonic()
            while (size := self._take()) is not None:
                now = time.monotonic()
                if self._ended is not None and 0 < size < self._room / 2:
                    # As fast as it has come since the last look, a part of the pipe fills.
                    self._ended.wait(min(GATHER_SECONDS, self._room / 4 * (now - looked_at) / size))
                looked_at = now
                looks.poll()
        self._pass_on(self._scanner.close())

    def drain(self) -> None:
        """Read what is there; what was printed last is a line, whether or not it ended one."""
        # One that has been read to its end is closed.
        with contextlib.suppress(ValueError):
            self._take()
        with self._lock:
            self._pass_on(self._scanner.close())

    def _take(self) -> Optional[int]:
        """Read what is there, and return how much that was; None at the end."""
        size = 0
        with self._lock:
            while True:
                try:
                    data = os.read(self._pipe.fileno(), READ_BYTES)
                except BlockingIOError:
                    return size
                if not data:
                    return None
                size += len(data)
                self._write(data)
                self._pass_on(self._scanner.feed(data))
                if len(data) < READ_BYTES:
                    return size

    def _pass_on(self, block: bytes) -> None:
        if block:
            self._on_block(block)


def _room_in(pipe: IO[bytes]) -> int:
    """Return how many bytes fit into a pipe, once it was made as large as the kernel lets us."""
    descriptor = pipe.fileno()
    with contextlib.suppress(OSError):
        return fcntl.fcntl(descriptor, _SET_PIPE_SIZE, READ_BYTES)
    return _SMALLEST_PIPE
