"""The process that executors come from: loads their modules once, and forks one for each task.

A fork takes a millisecond and shares the memory; a Python of its own took a tenth of a second of
CPU time for each task. ``ExecutorSource`` is the cluster's end, used by ``host``; ``main`` is the
other. It starts no thread and does nothing but fork, so that its forks begin clean. It
ends when the cluster is gone, or forgets it; its executors depend on the cluster alone. Linux.
Standard library only.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path

_ROOT = str(Path(__file__).resolve().parents[2])
# -I and -S: what the user set up for their own Python must not reach the executors.
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from embedded_mesos.machine.executor_source import main; main()"
)
#: A path and a few words; a longer message would be cut.
_MESSAGE_BYTES = 64 * 1024


class ExecutorSource:
    """Starts the process at once and waits for it at the first fork. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        # Each message is one packet.
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _BOOT, _ROOT],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._orders = ours

    def fork(self, directory: str, descriptors: Sequence[int]) -> int:
        """Start an executor in ``directory`` and return its process id.

        ``descriptors`` become its standard input, output and error. Raises OSError.
        """
        with self._lock:
            try:
                return self._fork(directory, descriptors)
            except (ConnectionError, EOFError):
                # The process was killed. What it had forked before lives on.
                self._end()
                self._begin()
            try:
                return self._fork(directory, descriptors)
            except EOFError:
                raise ConnectionError("executors cannot be started on this machine") from None

    def _fork(self, directory: str, descriptors: Sequence[int]) -> int:
        socket.send_fds(self._orders, [b"fork " + os.fsencode(directory)], descriptors)
        answer = self._orders.recv(_MESSAGE_BYTES)
        if not answer:
            raise EOFError
        pid = int(answer)
        if pid < 0:
            raise OSError(-pid, os.strerror(-pid))
        return pid

    def forget(self, pid: int) -> None:
        """Let the process id of an executor that has ended be used for another process."""
        with self._lock, contextlib.suppress(ConnectionError):
            self._orders.send(b"forget %d" % pid)

    def end(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        self._orders.close()
        self._process.wait()


def main() -> None:
    """Run as a process: its standard input is the socket on which it is told what to do."""
    # And what unpacks a job, which nearly every task has.
    import tarfile  # noqa: F401
    import zipfile  # noqa: F401

    from embedded_mesos.machine.executor import Executor
    from untrusted_input.shield import keep_memory_private

    # So are the executors, which know what their tasks are launched with; the tasks are not.
    keep_memory_private()
    # A Ctrl-C in the cluster's terminal is the cluster's to answer. Handlers, not SIG_IGN: an
    # ignored signal would stay ignored in the tasks.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    # What is there now is never looked through again, which would copy the pages of each executor.
    gc.freeze()
    orders = socket.socket(fileno=0)
    while True:
        message, descriptors, _, _ = socket.recv_fds(orders, _MESSAGE_BYTES, 3)
        word, _, what = message.partition(b" ")
        if word == b"forget":
            # Not that of a process before this one, which was killed.
            with contextlib.suppress(ChildProcessError):
                os.waitpid(int(what), 0)
            continue
        if word != b"fork":
            return
        try:
            pid = os.fork()
        except OSError as error:
            pid = -(error.errno or 1)
        if pid == 0:
            _become_executor(Executor, os.fsdecode(what), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        orders.send(b"%d" % pid)


def _become_executor(executor: type, directory: str, descriptors: Sequence[int]) -> None:
    """Go on as an executor, and end with it."""
    code = 1
    try:
        os.setsid()
        # The socket was descriptor 0.
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        for descriptor in descriptors:
            os.close(descriptor)
        os.chdir(directory)
        code = executor().run()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
