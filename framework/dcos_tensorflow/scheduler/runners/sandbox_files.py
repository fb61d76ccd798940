"""Files of tasks for clients of the API: part by part, with the scheduler's own credentials.

A client that follows a log asks for its next part twice a second. The path of the sandbox, the
costly part of the answer, is therefore kept; nothing of a file is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dcos_tensorflow.mesos.agent_files import (
    AgentFiles,
    AgentUnreachable,
    FileEntry,
    FileNotFound,
    FilePart,
    Sandbox,
)

#: Sandboxes whose place is kept; the one that was asked for longest ago goes first.
_KEPT = 1000


class TaskFiles:
    """Reads the files of one framework's tasks. ``files`` answers None before the start."""

    def __init__(
        self, files: Callable[[], AgentFiles | None], framework_id: Callable[[], str]
    ) -> None:
        self._files = files
        self._framework_id = framework_id
        self._lock = threading.Lock()
        self._places: dict[tuple[str, str], Sandbox] = {}

    def read(self, agent_id: str, task_id: str, file: str, offset: int, length: int) -> FilePart:
        """Return a part of a file in a task's sandbox. Raises AgentFilesError."""
        with self._located(agent_id, task_id) as (files, sandbox):
            return files.read_part(sandbox, file, offset, length)

    def browse(self, agent_id: str, task_id: str, folder: str) -> list[FileEntry]:
        """Return what is in a folder of a task's sandbox. Raises AgentFilesError."""
        with self._located(agent_id, task_id) as (files, sandbox):
            return files.browse(sandbox, folder)

    def content(self, agent_id: str, task_id: str, file: str, size: int) -> Iterator[bytes]:
        """Yield a file's first ``size`` bytes. Raises AgentFilesError."""
        with self._located(agent_id, task_id) as (files, sandbox):
            yield from files.content(sandbox, file, size)

    @contextmanager
    def _located(self, agent_id: str, task_id: str) -> Iterator[tuple[AgentFiles, Sandbox]]:
        """Hand over where a sandbox is, and keep it for the next question.

        An agent that does not answer may be back under another address: it is not kept then.
        """
        files = self._files()
        if files is None:
            raise AgentUnreachable("the scheduler has not reached Mesos yet")
        with self._lock:
            known = self._places.pop((agent_id, task_id), None)
        sandbox = known or files.locate(agent_id, self._framework_id(), task_id)
        try:
            yield files, sandbox
        except FileNotFound:
            self._keep(agent_id, task_id, sandbox)
            raise
        self._keep(agent_id, task_id, sandbox)

    def _keep(self, agent_id: str, task_id: str, sandbox: Sandbox) -> None:
        with self._lock:
            self._places[agent_id, task_id] = sandbox
            while len(self._places) > _KEPT:
                self._places.pop(next(iter(self._places)))
