"""``local up``, ``local status`` and ``local down``: an embedded cluster that lives on.

With ``local up --dcos`` a local DC/OS stands in front of it, for the ``dcos`` command line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import local_dcos
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.output import Page, say, say_lines, show_json
from dcos_tensorflow.client.wording import amounts, table
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.deploy.embedded import cluster as embedded
from dcos_tensorflow.deploy.embedded.interpreters import find_tensorflow, folders_near
from dcos_tensorflow.deploy.embedded.machine import AgentWishes, agents
from dcos_tensorflow.records import dataclass
from embedded_mesos import APPS_ROLE, AgentConfig, ClusterStatus, credential_file
from local_dcos import DcosConfig, DcosStatus, Login

#: What ``python -m`` is given.
_DCOS_PROGRAM = "dcos_tensorflow.deploy.embedded.dcos_integration"


@dataclass(frozen=True)
class DcosWishes:
    """How the local DC/OS is wanted; ``login`` asks for the user in ``environ``'s variables."""

    port: int = 0
    variant: str = "open"
    core_cli: Path | None = None
    login: bool = False

    def login_of(self, environ: Mapping[str, str]) -> Login | None:
        """Return the user who may come in, None for everybody. Raises UsageError."""
        if not self.login:
            return None
        # The dcos command line reads the same variables when it logs in.
        missing = [name for name in ("DCOS_USERNAME", "DCOS_PASSWORD") if not environ.get(name)]
        if missing:
            raise UsageError(f"--dcos-login takes the user from {' and '.join(missing)}: not set.")
        return Login(environ["DCOS_USERNAME"], environ["DCOS_PASSWORD"])


def up(
    work: WorkDirectory,
    wishes: AgentWishes,
    port: int,
    *,
    as_json: bool,
    dcos: DcosWishes | None = None,
    environ: Mapping[str, str] | None = None,
) -> int:
    """Start the cluster, and a local DC/OS in front of it if wanted. Raises CliError."""
    login = None if dcos is None else dcos.login_of(environ or {})
    found = embedded.running(work.local)
    already = found is not None
    embedded.keep_as_it_is(work.local)
    status = found or embedded.up(work.local, agents(wishes, work.local), port)
    with embedded.told_in_a_sentence():
        if dcos is not None:
            local_dcos.up(_dcos_config(work, status, dcos, login), _DCOS_PROGRAM)
        else:
            local_dcos.follow(_dcos_folder(work), status.master, _DCOS_PROGRAM)
    if as_json:
        show_json({**_document(status, work), "started": not already})
        return 0
    say("The embedded cluster runs already." if already else "The embedded cluster is up.")
    say_lines(_lines(status, work))
    return 0


def _dcos_config(
    work: WorkDirectory, status: ClusterStatus, wishes: DcosWishes, login: Login | None
) -> DcosConfig:
    return DcosConfig(
        folder=_dcos_folder(work),
        master=status.master,
        credential=credential_file(work.local) if status.credential.principal else None,
        port=wishes.port,
        variant=wishes.variant,
        core_cli=wishes.core_cli,
        login=login,
        pythons=_pythons(Path.cwd()),
    )


def _pythons(place: Path) -> dict[str, str]:
    """Return the Pythons with TensorFlow near a folder, by version; "" is any."""
    versions = {"": find_tensorflow([place])}
    for folder in folders_near([place]):
        for environment in folder.glob(".venvs/tensorflow-*"):
            version = environment.name.removeprefix("tensorflow-")
            versions.setdefault(version, find_tensorflow([folder], version))
    return {version: str(python) for version, python in versions.items() if python is not None}


def _dcos_folder(work: WorkDirectory) -> Path:
    return work.local / "dcos"


def _dcos_status(work: WorkDirectory) -> DcosStatus | None:
    return local_dcos.status(_dcos_folder(work))


def status(work: WorkDirectory, *, as_json: bool) -> int:
    """Show the cluster; exit code 1 when none runs."""
    found = embedded.running(work.local)
    if as_json:
        show_json({"running": False} if found is None else _document(found, work))
    elif found is None:
        say(f"No embedded cluster runs in {work.local}.")
    else:
        say("The embedded cluster runs.")
        say_lines(_lines(found, work))
    return 0 if found is not None else 1


def down(work: WorkDirectory, *, as_json: bool) -> int:
    """End the cluster and its tasks, the local DC/OS and its apps first. Raises CliError."""
    with embedded.told_in_a_sentence():
        local_dcos.down(_dcos_folder(work))
    ended = embedded.down(work.local)
    if as_json:
        show_json({"running": False, "ended": ended})
    else:
        say("The embedded cluster is down." if ended else "No embedded cluster was running.")
    return 0


def services_that_run(work: WorkDirectory) -> dict[str, int]:
    """Return how many tasks each service has on the cluster that lasts; empty where none runs."""
    found = embedded.running(work.local)
    if found is None:
        return {}
    return {name: tasks for name, tasks in running_services(found).items() if tasks}


def page(work: WorkDirectory, service: str = "") -> Page:
    """Return the page of the cluster that lasts, or of a service's own. Raises CliError."""
    directory = work.service(service).cluster if service else work.local
    found = embedded.running(directory)
    if found is None:
        raise CliError(f"No embedded cluster runs in {directory}.")
    return Page(f"http://{found.master}/", found.credential.secret, "the cluster's secret")


def running_services(cluster: ClusterStatus) -> dict[str, int]:
    """Return how many tasks each service has on the cluster; empty when the master is silent."""
    # Marathon is a part of the local DC/OS, and no service.
    frameworks = embedded.frameworks_of(cluster) or ()
    services = [one for one in frameworks if one.get("roles") != [APPS_ROLE]]
    return {service["name"]: len(service["tasks"]) for service in services}


def _document(status: ClusterStatus, work: WorkDirectory) -> dict[str, Any]:
    dcos = _dcos_status(work)
    return {
        **({} if dcos is None else {"dcos": {"url": dcos.url, "pid": dcos.pid}}),
        "running": True,
        "master": status.master,
        "pid": status.pid,
        "agents": [asdict(agent) for agent in status.agents],
        "services": running_services(status),
        "directory": str(work.local),
    }


def _lines(status: ClusterStatus, work: WorkDirectory) -> list[str]:
    dcos = _dcos_status(work)
    return table(
        [
            ("master", f"{status.master} (pid {status.pid})"),
            (
                "page",
                f"http://{status.master}/ (its secret: dcos-tensorflow open --cluster --token)",
            ),
            *([] if dcos is None else [("DC/OS", f"dcos cluster setup {dcos.url}")]),
            *((f"agent {agent.address}", _agent(agent)) for agent in status.agents),
            *(
                (f"service {name}", counted(tasks, "task"))
                for name, tasks in running_services(status).items()
            ),
            ("folder", str(work.local)),
        ]
    )


def _agent(agent: AgentConfig) -> str:
    parts = [amounts(agent.cpus, agent.mem, agent.disk, agent.gpus)]
    parts += [f"{name}:{value}" for name, value in agent.attributes.items()]
    return ", ".join(parts)
