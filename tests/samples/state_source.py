"""A scheduler as its API sees it (``api.source.StateSource``): a test says what it answers."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dcos_tensorflow.core.kept.recording import Recording
from dcos_tensorflow.core.model.events import Event
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.mesos.agent_files import FileEntry, FileNotFound, FilePart
from dcos_tensorflow.options import load, service_spec


class Source:
    """A source whose state is set by the test and whose events are kept for it."""

    def __init__(self, directory: Path | None = None, state: ServiceState | None = None) -> None:
        """``directory`` holds the artifacts; without one there are none."""
        self.current = state
        self.events: list[Event] = []
        self.options: Mapping[str, Any] = {}
        self.stored: Mapping[str, ServiceSpec] = {}
        #: The last turns.
        self.recorded: Recording | None = None
        self.directory = directory
        self.failure: Exception | None = None
        #: Files of sandboxes by agent, task and name; an exception is raised in their place.
        self.files: dict[tuple[str, str, str], bytes | Exception] = {}
        #: What tasks use, by their ids.
        self.used: dict[str, Mapping[str, Any]] = {}
        #: What task runners were asked, and what they answer: an exception is raised instead, a
        #: function is asked.
        self.asked: list[tuple[str, str, str, bytes]] = []
        self.runner: Mapping[str, Any] | Exception | Callable[[], Mapping[str, Any]] = {}

    def state(self) -> ServiceState | None:
        if self.failure is not None:
            raise self.failure
        return self.current

    def submit(self, event: Event) -> None:
        self.events.append(event)

    def refused_options(self) -> Mapping[str, Any]:
        return {}

    def configuration(self) -> Mapping[str, Any]:
        return self.options

    def usages(self) -> Mapping[str, Mapping[str, Any]]:
        return self.used

    def leader(self) -> str:
        return ""

    def change_configuration(
        self, options: Mapping[str, Any], *, restarted: bool = False
    ) -> ServiceSpec:
        return service_spec(load(options))

    def options_in_force(self) -> Mapping[str, Any] | None:
        return self.options or None

    def secret_texts(self) -> frozenset[str]:
        return frozenset()

    def configurations(self) -> Mapping[str, ServiceSpec]:
        return self.stored

    def recording(self) -> Recording | None:
        return self.recorded

    def artifact(self, name: str) -> Path | None:
        # Like the scheduler's: what was published is known by its name, and nothing else is.
        found = self.directory.iterdir() if self.directory is not None else ()
        files = (path for path in found if path.is_file() and not path.is_symlink())
        return {path.name: path for path in files}.get(name)

    def read_file(
        self, agent_id: str, task_id: str, file: str, offset: int, length: int
    ) -> FilePart:
        found = self.files.get((agent_id, task_id, file), FileNotFound("there is no such file"))
        if isinstance(found, Exception):
            raise found
        return FilePart(offset, found[offset : offset + length], len(found))

    def browse(self, agent_id: str, task_id: str, folder: str) -> list[FileEntry]:
        below = f"{folder}/" if folder else ""
        found = {}
        for (agent, task, file), data in self.files.items():
            if (agent, task) == (agent_id, task_id) and file.startswith(below):
                name, slash, _ = file[len(below) :].partition("/")
                size = len(data) if isinstance(data, bytes) else 0
                kind = {"is_folder": True} if slash else {"is_file": True}
                found[name] = FileEntry(name, 0 if slash else size, 0o644, 1.0, **kind)
        if not found and folder:
            raise FileNotFound("there is no such folder")
        return list(found.values())

    def content(self, agent_id: str, task_id: str, file: str, size: int) -> Iterator[bytes]:
        whole = self.read_file(agent_id, task_id, file, 0, size).data
        yield from (whole[at : at + 7] for at in range(0, size, 7))

    def ask_runner(
        self, record: TaskRecord, method: str, path: str, body: bytes = b"", held_back: float = 0.0
    ) -> Mapping[str, Any]:
        self.asked.append((record.name, method, path, body))
        if isinstance(self.runner, Exception):
            raise self.runner
        return self.runner() if callable(self.runner) else self.runner
