"""The scheduler as the API sees it: the source of its answers, and the receiver of its orders.

Implemented by ``scheduler.scheduler`` and by the tests; ``api.app`` knows nothing else of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from dcos_tensorflow.core.kept.recording import Recording
from dcos_tensorflow.core.model.events import Event
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.mesos.agent_files import FileEntry, FilePart

#: What each live task uses now, by task id (``core.model.report.usage_of``).
Usages = Mapping[str, Mapping[str, Any]]


class StateSource(Protocol):
    """The service as the API sees it. All methods are called from any thread.

    None blocks but what asks an agent or a task runner, and ``submit``, for a moment.
    """

    def state(self) -> ServiceState | None:
        """Return the newest state; None while it is not loaded or another scheduler leads."""

    def usages(self) -> Usages:
        """Return what each live task uses now."""

    def leader(self) -> str:
        """Return who leads the service while this scheduler is a standby; empty otherwise."""

    def submit(self, event: Event) -> None:
        """Hand an event to the thread that owns the state, and wait until the state shows it.

        Where that takes longer than a moment the event is still carried out.
        """

    def configuration(self) -> Mapping[str, Any]:
        """Return the options in force as the user gave them; empty when they are not known."""

    def refused_options(self) -> Mapping[str, Any]:
        """Return newer ones that the service was started with and cannot have; empty for none."""

    def options_in_force(self) -> Mapping[str, Any] | None:
        """Return the target's options as they were given, to lay others over; None: not known.

        They are not to be shown: secrets are in them as users wrote them.
        """

    def change_configuration(
        self, options: Mapping[str, Any], *, restarted: bool = False
    ) -> ServiceSpec:
        """Return what the service would be with these options, as a whole. Nothing changes yet.

        The caller submits ``ConfigurationChanged`` with it; or, with ``restarted``, a scheduler is
        started with these options. Raises ``options.OptionsError``.
        """

    def secret_texts(self) -> frozenset[str]:
        """Return the secrets of tasks that this process has read: they are in nothing it shows."""

    def configurations(self) -> Mapping[str, ServiceSpec]:
        """Return every configuration that the state store holds, by id."""

    def recording(self) -> Recording | None:
        """Return the last turns of the event loop, with their secrets; None before the first."""

    def artifact(self, name: str) -> Path | None:
        """Return the file that tasks fetch under ``name``; None when there is none."""

    def read_file(
        self, agent_id: str, task_id: str, file: str, offset: int, length: int
    ) -> FilePart:
        """Return a part of a file of a task's sandbox. Raises ``mesos.agent_files`` errors."""

    def browse(self, agent_id: str, task_id: str, folder: str) -> Sequence[FileEntry]:
        """Return what is in a folder of a task's sandbox. Raises ``mesos.agent_files`` errors."""

    def content(self, agent_id: str, task_id: str, file: str, size: int) -> Iterator[bytes]:
        """Yield a file of a sandbox, of a known size. Raises ``mesos.agent_files`` errors."""

    def ask_runner(
        self, record: TaskRecord, method: str, path: str, body: bytes = b"", held_back: float = 0.0
    ) -> Mapping[str, Any]:
        """Return what a live task's runner answers. Raises ``RunnerSilent``, ``RunnerRefused``."""
