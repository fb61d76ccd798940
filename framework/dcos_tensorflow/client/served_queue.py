"""How the queue of teams that this machine serves is found: a small file in the work directory.

The queue's process writes it once its API answers (``queue_service.process``). The commands, the
Python API and the window read it. A file that outlived its process is harmless: that is looked at.
"""

from __future__ import annotations

from dataclasses import field, fields
from pathlib import Path

from dcos_tensorflow.client.api_address import ApiAddress, registered
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.records import dataclass
from untrusted_input.json_text import read_json
from untrusted_input.process_table import start_time


@dataclass(frozen=True)
class ServedQueue:
    """Where a queue of this user listens; its file is readable by this user alone."""

    pid: int
    #: When the process began, in clock ticks since boot.
    started: int
    #: ``host:port``.
    api: str
    #: The operator's token.
    token: str = field(repr=False)
    name: str

    def lives(self) -> bool:
        """Say whether this process runs."""
        return start_time(self.pid) == self.started

    @property
    def address(self) -> ApiAddress:
        """Return where it is asked, with the operator's token."""
        return registered(self.api, self.token)


def served_queue(work: WorkDirectory) -> ServedQueue | None:
    """Return the queue that a process of this machine serves; None where none does."""
    try:
        values = read_json(registration_of(work).read_text(encoding="utf-8"))
        found = ServedQueue(**{each.name: values[each.name] for each in fields(ServedQueue)})
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if found.lives() else None


def registration_of(work: WorkDirectory) -> Path:
    """Return the file by which a queue is found."""
    return work.path / "queue.json"
