"""The request for a run, and the prepared run before anything of it is served: plain values.

``deploy.run`` makes them of options; ``foreground`` and ``background`` serve them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from dcos_tensorflow.client.work_directory import ServiceDirectory, WorkDirectory
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.spec.service_spec import ServiceSpec, TaskRole
from dcos_tensorflow.deploy.embedded.machine import AgentWishes
from dcos_tensorflow.deploy.job.given_options import GivenOptions
from dcos_tensorflow.deploy.settings import Settings
from dcos_tensorflow.job_code.facts import Facts
from dcos_tensorflow.records import dataclass

if TYPE_CHECKING:
    from dcos_tensorflow.mesos.service_account import ServiceAccount


@dataclass(frozen=True)
class SeenCode:
    """How a job's code is called, and what it says of its training; nothing where it is elsewhere.

    ``strategy`` is what was recognised in it, empty where that is not sure; ``notes`` is what may
    not be meant. ``tensorflow`` is the version that its requirements name exactly, if they do.
    """

    contract: str
    strategy: str = ""
    facts: Facts = Facts()
    notes: tuple[str, ...] = ()
    tensorflow: str = ""


@dataclass(frozen=True)
class LocalData:
    """A file or folder of this machine, where tasks find it, and the option that says so."""

    source: Path
    path: str
    option: str


@dataclass(frozen=True)
class PreparedJob:
    """What a scheduler is to run. ``archive`` is the packed local code, None for a URL or none.

    ``code`` is what can be seen of it from here; ``tensorflow`` is the version that each role runs
    with, empty where that cannot be seen. ``data`` is packed input data, None for none;
    ``local_data`` is what of it lies on this machine.
    """

    spec: ServiceSpec
    archive: Path | None
    code: SeenCode
    notes: tuple[str, ...]
    tensorflow: Mapping[TaskRole, str] = field(default_factory=dict)
    data: Path | None = None
    local_data: tuple[LocalData, ...] = ()


@dataclass(frozen=True)
class Deployment:
    """What was made ready of a run."""

    #: What was asked for, with the options as they are read.
    request: RunRequest
    directory: ServiceDirectory
    #: Where the job of the service stands that is stored; None where none is.
    phase: JobPhase | None
    #: Where that is stored.
    url: str
    prepared: PreparedJob
    #: The account that the scheduler logs in as, if any.
    account: ServiceAccount | None
    #: What of its log is written, and how.
    log: tuple[str, str]
    #: The options as they are shown, and as they were given, with secrets.
    shown: Mapping[str, Any]
    as_given: Mapping[str, Any]
    #: Where relative paths in them start.
    folder: Path | None
    #: What to say of tasks that the options do not name, with whatever is refused.
    unasked: str

    @property
    def is_done(self) -> bool:
        """Say whether there is no job that has not ended."""
        return self.phase in (None, JobPhase.DONE)


@dataclass(frozen=True)
class RunRequest:
    """What was asked of ``run``. ``settings`` are those that a scheduler has too.

    Without a master the job runs on the embedded cluster, which ``strict`` lets claim no more than
    this machine has. ``resume`` leaves out what of a batch is there. ``update`` takes a job that
    has not ended over to these options. ``logs`` shows what the tasks print beside the progress.
    """

    given: GivenOptions
    settings: Settings
    wishes: AgentWishes
    work: WorkDirectory
    detach: bool = False
    resume: bool = False
    fresh: bool = False
    update: bool = False
    strict: bool = False
    yes: bool = False
    logs: bool = False
    json: bool = False
    #: The words of the command line, as far as they are known.
    typed: tuple[str, ...] = ()

    @property
    def local(self) -> bool:
        """Say whether the job runs on the embedded cluster."""
        return not self.settings["master"]

    @property
    def stream(self) -> TextIO:
        """Return where progress goes: with --json the document has standard output for itself."""
        return sys.stderr if self.json else sys.stdout
