"""Commands that an operator runs beside the user's process: one at a time, within a time.

``server`` hands over the request; ``starts`` spares a command while it cleans up after the user's
process. A command has the sandbox as its directory and the variables of the user's process, in
which the runner's own are not. Its output waits here until a client takes it: a command that
prints more than is taken waits. Nothing here touches the user's process.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import subprocess
import threading
import time
from typing import IO, Any, Callable, Dict, List, Mapping, Optional, Set, Tuple

from dcos_tensorflow.core import contract
from dcos_tensorflow.task.supervise.own_children import OwnChildren

#: So much of its output waits to be asked for, and goes into one answer at most.
WAITING_BYTES = 1 << 20
ANSWER_BYTES = 128 * 1024
#: A line is passed on whole, unless it is longer.
_LINE_BYTES = 16 * 1024
_READ_BYTES = 32 * 1024
_ID = re.compile(r"[0-9a-f]{32}\Z")
#: How long what holds a pipe of an ended command open may say more.
_LAST_SECONDS = 1.0


class CommandBusy(Exception):
    """A command runs already."""


class CommandUnknown(Exception):
    """No command has this id, or not any more."""


class OperatorCommands:
    """The commands of one task. ``environment`` returns the variables that the next one gets."""

    def __init__(
        self,
        directory: str,
        environment: Callable[[], Mapping[str, str]],
        children: OwnChildren,
        log: Callable[[str], None],
    ) -> None:
        self._directory = directory
        self._children = children
        self._environment = environment
        self._log = log
        self._lock = threading.Lock()
        self._newest: Optional[_Command] = None
        #: A request that is sent once more by a client that has recorded it runs nothing.
        self._known: Set[str] = set()
        self._closed = False

    def begin(self, identifier: str, words: List[str], seconds: float) -> None:
        """Start a command; it is killed after so long. Raises CommandBusy.

        ``identifier`` is the client's choice, by which the command is asked about.
        """
        with self._lock:
            if self._closed:
                raise CommandBusy("the task is ending")
            if identifier in self._known:
                raise CommandBusy("this command was run already")
            if self._newest is not None and not self._newest.ended:
                raise CommandBusy(f"a command runs already: {self._newest.words[0]}")
            # The words may hold what the log must not.
            self._log(f"an operator runs {words[0]}, for {seconds:g} s at most")
            self._known.add(identifier)
            self._newest = _Command(identifier, words, self._children, seconds)
            self._newest.begin(self._environment(), self._directory)

    def news(self, identifier: str, after: int, seconds: float) -> Dict[str, Any]:
        """Return what a command has printed behind part number ``after``, and how it has ended.

        Waits so long for either. What is in front of ``after`` is forgotten. Raises CommandUnknown.
        """
        return self._command(identifier).news(after, seconds)

    def end(self, identifier: str) -> None:
        """Kill a command. Raises CommandUnknown."""
        self._command(identifier).kill()

    def close(self) -> None:
        """Kill what runs, and begin nothing more."""
        with self._lock:
            self._closed = True
            if self._newest is not None:
                self._newest.kill()

    def _command(self, identifier: str) -> "_Command":
        newest = self._newest
        if newest is None or newest.id != identifier:
            raise CommandUnknown("there is no such command, or another one was run since")
        return newest


class _Command:
    """One command. What it prints is kept as parts, each of one stream, numbered from 0."""

    def __init__(
        self, identifier: str, words: List[str], children: OwnChildren, seconds: float
    ) -> None:
        self.id = identifier
        self._children = children
        self._seconds = seconds
        self.words = words
        #: 0 once there is no such process any more.
        self.pid = 0
        self.ended = False
        self._changed = threading.Condition()
        self._parts: List[Tuple[str, bytes]] = []
        self._first = 0
        self._waiting = 0
        self._streams = 0
        self._exit_code: Optional[int] = None
        self._timed_out = False

    def begin(self, environment: Mapping[str, str], directory: str) -> None:
        """Start the process, or tell as a shell does why there is none."""
        words = self.words
        try:
            process = self._children.begin(
                words,
                env=dict(environment),
                cwd=directory,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
            )
        except (OSError, ValueError) as error:
            told = error.strerror if isinstance(error, OSError) else error
            self._parts.append(("stderr", f"{words[0]}: {told}\n".encode("utf-8", "replace")))
            missing = isinstance(error, OSError) and error.errno == errno.ENOENT
            self._exit_code = 127 if missing else 126
            self.ended = True
            return
        self.pid = process.pid
        for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr)):
            if pipe is not None:
                self._streams += 1
                _thread(self._read, name, pipe)
        self._until = time.monotonic() + self._seconds
        self._limit = threading.Timer(self._seconds, self._give_up)
        self._limit.daemon = True
        self._limit.start()
        _thread(self._wait, process)

    def news(self, after: int, seconds: float) -> Dict[str, Any]:
        """Return the parts from ``after`` on, and the exit code once all of them are told."""
        with self._changed:
            gone = max(0, min(after - self._first, len(self._parts)))
            self._waiting -= sum(len(data) for _, data in self._parts[:gone])
            del self._parts[:gone]
            self._first += gone
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._parts or self.ended, seconds)
            told: List[List[str]] = []
            size = 0
            for name, data in self._parts:
                if told and size + len(data) > ANSWER_BYTES:
                    break
                size += len(data)
                told.append([name, data.decode("utf-8", "replace")])
            is_all = self.ended and len(told) == len(self._parts)
            return {
                "output": told,
                "next": self._first + len(told),
                "exit_code": self._exit_code if is_all else None,
                "timed_out": self._timed_out,
            }

    def kill(self) -> None:
        """Kill it and all of its group, unless it has ended."""
        with self._changed:
            if self.pid:
                # It may be a zombie by now: its number is its own as long as ``pid`` says it.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, signal.SIGKILL)

    def _give_up(self) -> None:
        self._timed_out = not self.ended
        self.kill()

    def _read(self, name: str, pipe: IO[bytes]) -> None:
        rest = b""
        with pipe:
            while data := os.read(pipe.fileno(), _READ_BYTES):
                whole, end, rest = (rest + data).rpartition(b"\n")
                if len(rest) > _LINE_BYTES:
                    whole, end, rest = whole + end + rest, b"", b""
                self._keep(name, whole + end)
        self._keep(name, rest)
        with self._changed:
            self._streams -= 1
            self._changed.notify_all()

    def _keep(self, name: str, data: bytes) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting < WAITING_BYTES or self.ended)
            if data and not self.ended:
                self._parts.append((name, data))
                self._waiting += len(data)
                self._changed.notify_all()

    def _wait(self, process: "subprocess.Popen[bytes]") -> None:
        self._children.wait(process)
        self.kill()
        self._limit.cancel()
        with self._changed:
            code = self._children.reap(process)
            self.pid = 0
        with self._changed:
            # What it has printed is told whole, also to a client that takes its time.
            while self._streams:
                full = self._waiting >= WAITING_BYTES
                left = max(0.0, self._until - time.monotonic()) if full else _LAST_SECONDS
                if not self._changed.wait(left):
                    break
            self._exit_code = code if code >= 0 else 128 - code
            self.ended = True
            self._changed.notify_all()


def _thread(target: Callable[..., None], *arguments: Any) -> None:
    threading.Thread(target=target, args=arguments, name="command", daemon=True).start()


def parse_command(document: Any) -> Tuple[str, List[str], float]:
    """Return the id, the words and the seconds of a request. Raises ValueError."""
    if not isinstance(document, dict):
        raise ValueError("the body must be an object with id, command and seconds")
    words, seconds, identifier = map(document.get, ("command", "seconds", "id"))
    if not (isinstance(identifier, str) and _ID.match(identifier)):
        raise ValueError("id must be 32 hexadecimal digits")
    if not (isinstance(words, list) and words and all(isinstance(word, str) for word in words)):
        raise ValueError("command must be a list of at least one text")
    if not words[0] or any("\0" in word for word in words):
        raise ValueError("command must name a program, without a zero byte in it")
    if not isinstance(seconds, (int, float)) or not 0 < seconds <= contract.COMMAND_SECONDS:
        raise ValueError(f"seconds must be a number up to {contract.COMMAND_SECONDS:g}")
    return identifier, words, float(seconds)
