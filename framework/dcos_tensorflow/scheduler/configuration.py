"""How one scheduler process is set up: which master, which state store, how tasks fetch from it.

Made by the command line from file, environment and flags; read by ``scheduler.scheduler``. The
service that it runs is not here: that is the ServiceSpec.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.scheduler.gate import Allowed

if TYPE_CHECKING:
    from dcos_tensorflow.mesos.service_account import ServiceAccount


class ArtifactDelivery(StrEnum):
    """How the task runner and a packed local job reach the tasks.

    ``http``: Mesos' fetcher takes them from our API (any cluster). ``file``: it takes them from the
    disk (agents on this machine only), so that tasks can start while the scheduler is away.
    """

    HTTP = "http"
    FILE = "file"


@dataclass(frozen=True)
class DcosUsers:
    """Callers of the API with a token of DC/OS (``api.callers.dcos_tokens``)."""

    #: Where the cluster's keys are: ``https://...``, or a file.
    keys: str
    #: Users who may do everything, and who may only look.
    operators: frozenset[str] = frozenset()
    readers: frozenset[str] = frozenset()


@dataclass(frozen=True)
class SchedulerConfig:
    """One scheduler process.

    ``advertise`` is the host name or address under which the agents reach our API; empty means the
    address that the API binds to, or this machine's name when it binds to all.
    ``api_token`` may do everything there, ``api_read_token`` only look; with ``api_cert`` and
    ``api_key`` (PEM files) the API speaks TLS. From ``api_from`` (names, addresses) comes a proxy
    that has authenticated its user.
    ``leadership_timeout_seconds`` None waits for ever while another scheduler serves the same
    service, 0 gives up at once. ``standby`` waits for ever and serves the API meanwhile.
    ``session_seconds`` is how long ZooKeeper keeps the leadership of a scheduler that vanished.
    ``secrets_dir`` holds a file for each path of the secret store that options name; without it
    Mesos is asked for them, unless it has no ``secret_store``. ``task_secrets`` says which of this
    process' own variables and files may reach tasks.
    ``fresh`` replaces a job that is done by a new one, ``uninstall`` ends the service for good,
    ``finish_uninstall`` goes on with an uninstall that was begun before this process was.
    ``output_dir`` is where tasks that are all on this machine leave what the job makes;
    ``first_run`` is the number of a new service's first run.
    """

    master: str
    state: str
    artifacts_dir: Path
    principal: str = ""
    secret: str = field(default="", repr=False)
    service_account: ServiceAccount | None = None
    ca_file: str = ""
    client_cert: str = ""
    client_key: str = ""
    verify: bool = True
    api_host: str = "127.0.0.1"
    api_port: int = 0
    api_token: str = field(default="", repr=False)
    api_read_token: str = field(default="", repr=False)
    api_dcos: DcosUsers | None = None
    api_from: tuple[str, ...] = ()
    api_cert: str = ""
    api_key: str = ""
    advertise: str = ""
    artifacts: str = ArtifactDelivery.HTTP
    leadership_timeout_seconds: float | None = None
    standby: bool = False
    session_seconds: float = 10.0
    secrets_dir: Path | None = None
    secret_store: bool = True
    allowed: Allowed = Allowed()
    fresh: bool = False
    uninstall: bool = False
    finish_uninstall: bool = False
    output_dir: str = ""
    first_run: int = 1
    tick_seconds: float = 0.25
    #: How often it is looked whether machines are to be bought or given back.
    capacity_look_seconds: float = 5.0
