"""``local up``, ``local status`` and ``local down``: an embedded cluster that lives on."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import asdict
from typing import Any

from dcos_tensorflow.cli import embedded
from dcos_tensorflow.cli.machine import AgentWishes, agents
from dcos_tensorflow.cli.output import say, say_lines, show_json
from dcos_tensorflow.cli.wording import megabytes, table
from dcos_tensorflow.cli.work_directory import WorkDirectory
from dcos_tensorflow.local.cluster import AgentConfig
from dcos_tensorflow.local.daemon import ClusterStatus

_TIMEOUT = 5.0


def up(work: WorkDirectory, wishes: AgentWishes, port: int, *, as_json: bool) -> int:
    """Start the cluster."""
    found = embedded.running(work.local)
    already = found is not None
    status = found or embedded.up(work.local, agents(wishes, work.local), port)
    if as_json:
        show_json({**_document(status, work), "started": not already})
        return 0
    say("The embedded cluster runs already." if already else "The embedded cluster is up.")
    say_lines(_lines(status, work))
    return 0


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
    """End the cluster and its tasks."""
    ended = embedded.down(work.local)
    if as_json:
        show_json({"running": False, "ended": ended})
    else:
        say("The embedded cluster is down." if ended else "No embedded cluster was running.")
    return 0


def running_services(master: str) -> dict[str, int]:
    """Return how many tasks each service has on the cluster; empty when the master is silent."""
    try:
        with urllib.request.urlopen(f"http://{master}/state", timeout=_TIMEOUT) as answer:
            frameworks = json.load(answer)["frameworks"]
    except (OSError, ValueError, KeyError):
        return {}
    return {framework["name"]: len(framework["tasks"]) for framework in frameworks}


def _document(status: ClusterStatus, work: WorkDirectory) -> dict[str, Any]:
    return {
        "running": True,
        "master": status.master,
        "pid": status.pid,
        "agents": [asdict(agent) for agent in status.agents],
        "services": running_services(status.master),
        "directory": str(work.local),
    }


def _lines(status: ClusterStatus, work: WorkDirectory) -> list[str]:
    return table(
        [
            ("master", f"{status.master} (pid {status.pid})"),
            *((f"agent {agent.address}", _agent(agent)) for agent in status.agents),
            *(
                (f"service {name}", f"{tasks} task{'s' * (tasks != 1)}")
                for name, tasks in running_services(status.master).items()
            ),
            ("folder", str(work.local)),
        ]
    )


def _agent(agent: AgentConfig) -> str:
    parts = [f"{agent.cpus:g} cpus, {megabytes(agent.mem)} memory, {megabytes(agent.disk)} disk"]
    if agent.gpus:
        parts.append(f"{agent.gpus} gpu{'s' * (agent.gpus != 1)}")
    parts += [f"{name}:{value}" for name, value in agent.attributes.items()]
    return ", ".join(parts)
