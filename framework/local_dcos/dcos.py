"""The local DC/OS as a whole: wires its parts, and starts and stops them in order.

``background_dcos`` runs one in the background, tests run one in their process.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from embedded_mesos import Credential, read_json, write_json
from local_dcos import core_cli
from local_dcos.application import Application
from local_dcos.cluster_calls import ClusterCalls, Guard, Identity, Login
from local_dcos.cosmos.cosmos import Cosmos
from local_dcos.cosmos.cosmos_calls import CosmosCalls
from local_dcos.cosmos.repositories import Repositories
from local_dcos.cosmos.service_changes import ServiceChanges
from local_dcos.cosmos.uninstall import Uninstaller
from local_dcos.download_cache import DownloadCache
from local_dcos.integration import Integration, Place
from local_dcos.marathon.app_definition import App
from local_dcos.marathon.app_task import Machine, is_free
from local_dcos.marathon.marathon import Marathon
from local_dcos.marathon.marathon_calls import MarathonCalls
from local_dcos.mesos.mesos_calls import MesosCalls
from local_dcos.mesos.mesos_client import MesosClient
from local_dcos.services import Services
from local_dcos.state_file import StateFile
from untrusted_input.asgi_server import AsgiServer

VARIANTS = ("open", "enterprise", "old-open")
_HOST = "127.0.0.1"
_API_TOKEN = "api-token.json"
#: How long requests under way may take to end when the server stops.
_GRACE_SECONDS = 1


@dataclass(frozen=True)
class DcosConfig:
    """What a local DC/OS in front of the ``master`` is made of; all of it lies in ``folder``."""

    folder: Path
    master: str
    #: The file with what the master asks for, principal and secret; None for nothing.
    credential: Path | None = None
    #: On 127.0.0.1; 0 takes the one of the last time, else a free one.
    port: int = 0
    #: Of DC/OS, as clients are told.
    version: str = "2.1.0"
    #: enterprise allows updates to other versions; old-open is an open cluster of before Cosmos
    #: could update services: it has no /cosmos/service.
    variant: str = "open"
    #: The user that must log in; None lets in the owner of the local DC/OS, and no other user.
    login: Login | None = None
    #: The plugin archive to serve as ``dcos-core-cli``.
    core_cli: Path | None = None
    #: The Python interpreters of this machine for apps, by the version that they ask for.
    pythons: Mapping[str, str] = field(default_factory=dict)
    #: Seconds between two looks at an uninstall; Cosmos has 10.
    uninstall_interval: float = 1.0


class LocalDcos:
    """One local DC/OS. A context manager: starts on entry, stops on exit."""

    def __init__(self, config: DcosConfig, integration: Integration) -> None:
        """Describe it; nothing runs yet. Raises ValueError when there is no such variant."""
        if config.variant not in VARIANTS:
            raise ValueError(f"the variant is one of {', '.join(VARIANTS)}, not {config.variant}")
        self._config = config
        self._integration = integration
        self.address = ""

    def __enter__(self) -> LocalDcos:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything; return when requests are answered.

        Raises OSError when the port cannot be had or the plugin not be read, and StateFileError.
        """
        config = self._config
        folder = config.folder
        for name in ("cache", "secrets", "services"):
            (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        state = StateFile(folder / "dcos.json")
        plugin = core_cli.archive(config.core_cli)
        port = config.port or _last_port(state)
        self._server = AsgiServer("it", _HOST, port, grace_seconds=_GRACE_SECONDS)
        self.address = self._server.bind()
        state.put("address", self.address)
        cluster_id = state.get("cluster_id", None) or str(uuid.uuid4())
        state.put("cluster_id", cluster_id)
        cache = DownloadCache(folder / "cache")
        identity = Identity(cluster_id, config.version, config.variant.replace("old-", ""))
        built_in = core_cli.package(plugin, self.address, config.version)
        machine = Machine(self._overrides, folder / "secrets", cache)
        credential = _credential(config.credential)
        self.marathon = Marathon(
            state,
            machine,
            config.master,
            cluster_id,
            credential=credential,
            integration=self._integration,
        )
        mesos = MesosClient(config.master, credential)
        services = Services(self.marathon, _api_token(folder / _API_TOKEN))
        cosmos = Cosmos(state, Repositories(cache, [built_in]), self.marathon)
        interval = config.uninstall_interval
        self._uninstaller = Uninstaller(
            state, cosmos.installed, self.marathon, services, mesos, interval=interval
        )
        upgrades = config.variant == "enterprise"
        changes = ServiceChanges(
            cosmos, self.marathon, services, self._integration, upgrades=upgrades
        )
        guard = Guard(config.login)
        tables = (
            ClusterCalls(identity, guard, plugin, services.all).table(),
            CosmosCalls(
                cosmos, None if config.variant == "old-open" else changes, self._uninstaller, cache
            ).table(),
            MarathonCalls(self.marathon, self.address).table(),
            MesosCalls(mesos, cluster_id).table(),
        )
        self.marathon.start()
        self._uninstaller.start()
        self._server.serve(Application(guard, tables, services), "http")

    def stop(self) -> None:
        """End every app's tasks, then everything else; the apps are started again next time."""
        self._uninstaller.stop()
        self.marathon.stop()
        self._server.stop()

    def _overrides(self, app: App) -> Mapping[str, str]:
        config = self._config
        folder = config.folder / "services" / app.app_id.strip("/").replace("/", "__")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = Place(
            master=config.master,
            folder=folder,
            secrets=config.folder / "secrets",
            pythons=config.pythons,
            principal=_credential(config.credential).principal,
            credential=config.credential,
            api_token=config.folder / _API_TOKEN,
        )
        return self._integration.variables(app, place)


def _credential(file: Path | None) -> Credential:
    """Return what the master asks for, nothing where no file says."""
    stored = None if file is None else read_json(file)
    return Credential() if stored is None else Credential(stored["principal"], stored["secret"])


def _api_token(file: Path) -> str:
    """Return what our services' APIs ask for; it is kept, for apps outlive the local DC/OS."""
    stored = read_json(file)
    if stored is None:
        stored = {"secret": secrets.token_urlsafe(24)}
        write_json(file, stored)
    return str(stored["secret"])


def _last_port(state: StateFile) -> int:
    """Return the port of the last time if it is free: an attached CLI finds it again. Else 0."""
    address = str(state.get("address", ""))
    port = address.rpartition(":")[2]
    return int(port) if port.isdigit() and is_free(int(port)) else 0
