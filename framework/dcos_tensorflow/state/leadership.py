"""The leader of a service, and until when it leads.

Both backends hand out a :class:`Leadership` and describe its owner by a :class:`Holder`, which
others can read while they wait. It never decides about the lead; that is the backends' part.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
from collections.abc import Callable
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path

from dcos_tensorflow.records import dataclass
from untrusted_input.json_text import read_json
from untrusted_input.process_table import read_process

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Holder:
    """The process that leads, as it described itself when it asked to.

    ``machine`` (boot id and pid namespace) and ``process_start`` (clock ticks after boot) let a
    waiting process on the same machine tell a dead holder from a living one.
    """

    identity: str
    host: str
    pid: int
    since: str
    machine: str = ""
    process_start: str = ""

    def __str__(self) -> str:
        if not self.pid:
            return "a process that has not given its identity yet"
        return f"{self.identity} (pid {self.pid} on host {self.host}, since {self.since})"

    def to_bytes(self) -> bytes:
        """JSON, as kept in the lock."""
        return json.dumps(asdict(self), sort_keys=True).encode()

    @staticmethod
    def from_bytes(data: bytes) -> Holder:
        """Read what :meth:`to_bytes` wrote; anything else gives an unknown holder."""
        try:
            values = read_json(data)
            return Holder(**{item.name: values[item.name] for item in fields(Holder)})
        except (ValueError, KeyError, TypeError):
            return UNKNOWN_HOLDER

    @property
    def is_here(self) -> bool:
        """True only if the process ran on this machine, since this machine was started."""
        return self.machine != "" and self.machine == _machine()

    def surely_dead(self) -> bool:
        """True only if the process ran on this machine and is gone; False when in doubt."""
        if not self.is_here or not self.process_start:
            return False
        return _process_start(self.pid) not in {self.process_start, None}


UNKNOWN_HOLDER = Holder(identity="unknown", host="unknown", pid=0, since="unknown")


def this_process(identity: str) -> Holder:
    """Describe the calling process, from now on."""
    return Holder(
        identity=identity,
        host=socket.gethostname(),
        pid=os.getpid(),
        since=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=_machine(),
        process_start=_process_start(os.getpid()) or "",
    )


class Leadership:
    """The right to write, from ``store.lead(...)`` until it is released or lost.

    A context manager: leaving it releases. ``on_lost`` is called at most once, with a sentence
    that says why, from any thread, and never after a release; it must not block.
    """

    def __init__(
        self, holder: Holder, release: Callable[[], None], on_lost: Callable[[str], None]
    ) -> None:
        self.holder = holder
        self._release = release
        self._on_lost = on_lost
        self._guard = threading.Lock()
        self._held = True
        #: The service was there when this process began to wait for it, and was erased meanwhile.
        #: For the backends to set, before they hand it out.
        self.after_erase = False

    @property
    def held(self) -> bool:
        """False after a release, and as soon as the loss is known."""
        return self._held

    def release(self) -> None:
        """Let another process lead. Does nothing when it is not held any more."""
        if self._end():
            self._release()

    def lose(self, why: str) -> None:
        """For the backends: the leadership is gone; tells the owner once."""
        if not self._end():
            return
        try:
            self._on_lost(why)
        except Exception:
            logger.exception("The handler of the lost leadership failed")

    def end_silently(self) -> None:
        """For the backends: the lock goes on purpose, by an erase or with the connection."""
        self._end()

    def __enter__(self) -> Leadership:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _end(self) -> bool:
        with self._guard:
            was_held, self._held = self._held, False
            return was_held


def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def _process_start(pid: int) -> str | None:
    """Clock ticks after boot at which ``pid`` started, "" when it is no more, None if unknown."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass  # Alive, and another user's; it may be hidden in /proc all the same.
    process = read_process(pid)
    if process is None:
        return None
    return "" if process.ended else str(process.started)
