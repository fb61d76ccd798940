"""The embedded cluster as a background process: up, status, down.

Called by the command line (``dcos-tensorflow local``). A folder on disk, the *state dir*, holds
``cluster.json`` (process id, start time of the process, address, agents), ``credential.json`` (what
master and agents ask of every caller: whoever may call them runs programs as this user), the log
and the sandboxes. The process itself is ``python -m dcos_tensorflow.local serve``.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dcos_tensorflow.local.background_process import (
    BackgroundProcess,
    BackgroundProcessError,
    answers,
    read_json,
    stop_requested,
    write_json,
)
from dcos_tensorflow.local.cluster import AgentConfig, EmbeddedCluster
from dcos_tensorflow.mesos.connection import Credentials

_CONFIG = "config.json"
#: Principal and secret as Mesos' own ``--credential`` files hold them.
_CREDENTIAL = "credential.json"
#: Whom the cluster lets in, frameworks and operators alike.
PRINCIPAL = "dcos-tensorflow"
_PROGRAM = "dcos_tensorflow.local"
#: How long ``up`` waits for an answer, and ``down`` for the end.
START_SECONDS = 20.0
STOP_SECONDS = 15.0
#: Ports that each agent gets, from the first that no other one has.
PORTS_PER_AGENT = 1000
FIRST_PORT = 31000
_LAST_PORT = 65535


@dataclass(frozen=True)
class ClusterStatus:
    """A cluster that runs in the background."""

    pid: int
    master: str
    agents: tuple[AgentConfig, ...]
    answering: bool
    #: What its master and agents ask of a caller.
    credentials: Credentials = field(default_factory=Credentials)


def spread(
    count: int,
    *,
    cpus: float = 2,
    mem: float = 4096,
    disk: float = 10000,
    gpus: int = 0,
    attributes: Mapping[str, str | float] | None = None,
) -> list[AgentConfig]:
    """Return ``count`` equal agents that can live on one machine.

    Every agent has its own address, so that placement sees different hosts, and its own ports:
    TensorFlow listens on all addresses, so a port can be had once on a machine, whatever agent
    offers it.

    Raises:
        ValueError: there are not enough ports or addresses for so many.
    """
    if not 1 <= count <= 250:
        raise ValueError(f"between 1 and 250 agents are possible, not {count}")
    width = min(PORTS_PER_AGENT, (_LAST_PORT - FIRST_PORT + 1) // count)
    agents = []
    for index in range(count):
        first = FIRST_PORT + index * width
        agents.append(
            AgentConfig(
                address=f"127.0.0.{index + 1}",
                cpus=cpus,
                mem=mem,
                disk=disk,
                gpus=gpus,
                ports=(first, first + width - 1),
                attributes=dict(attributes or {}),
            )
        )
    return agents


def up(
    state_dir: Path,
    agents: Sequence[AgentConfig],
    *,
    port: int = 0,
    program: str = _PROGRAM,
) -> ClusterStatus:
    """Start a cluster in the background, or return the one that runs there already.

    Args:
        state_dir: made when missing; one cluster for each.
        agents: ``spread`` makes a fitting list. Agents with equal port ranges, and no others,
            are given disjoint ones.
        port: of the master, 0 for a free one.
        program: what ``python -m`` is given, when it is to ``serve`` another kind of cluster.

    Raises:
        BackgroundProcessError: it did not answer in time or ended; the text has the end of its log.
    """
    state_dir = Path(state_dir).resolve()
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    background = _background(state_dir, program)
    with background.locked():
        running = status(state_dir)
        if running is not None and not running.answering:
            raise BackgroundProcessError(
                f"process {running.pid} is there but does not answer; stop it first"
            )
        if running is not None:
            return running
        background.forget()
        config = {
            "agents": [asdict(one) for one in disjoint(agents)],
            "port": port,
        }
        write_json(state_dir / _CONFIG, config)
        _make_credential(state_dir)
        return background.wait_for_answer(
            background.spawn(), lambda: _answering(state_dir), START_SECONDS
        )


def disjoint(agents: Sequence[AgentConfig]) -> list[AgentConfig]:
    """Return the agents with port ranges of their own where all have the same one.

    Raises:
        BackgroundProcessError: some ranges overlap, and not all are equal: then they are
            meant so, wrongly.
    """
    ranges = [one.ports for one in agents]
    if len(agents) > 1 and len(set(ranges)) == 1:
        own = spread(len(agents))
        return [replace(one, ports=other.ports) for one, other in zip(agents, own, strict=True)]
    for (_, last), (first, _) in zip(sorted(ranges), sorted(ranges)[1:], strict=False):
        if first <= last:
            raise BackgroundProcessError(
                f"port {first} is in the ranges of two agents; the machine has it only once"
            )
    return list(agents)


def status(state_dir: Path) -> ClusterStatus | None:
    """Return the cluster of ``state_dir``, None when none runs. Stale files are no cluster."""
    state_dir = Path(state_dir).resolve()
    record = _background(state_dir).record()
    if record is None:
        return None
    return ClusterStatus(
        pid=record["pid"],
        master=record["master"],
        agents=tuple(_agent(one) for one in record["agents"]),
        answering=answers(f"http://{record['master']}/health"),
        credentials=_credentials(state_dir),
    )


def credential_file(state_dir: Path) -> Path:
    """Return the file with principal and secret: JSON, as Mesos' ``--credential`` takes it."""
    return Path(state_dir).resolve() / _CREDENTIAL


def _make_credential(state_dir: Path) -> None:
    """Make the folder's secret. It stays: whoever was told it finds the next cluster there, too."""
    path = credential_file(state_dir)
    if read_json(path) is None:
        write_json(path, {"principal": PRINCIPAL, "secret": secrets.token_urlsafe(32)})


def _credentials(state_dir: Path) -> Credentials:
    """Return what callers send; nothing for a cluster that an older release has started."""
    stored = read_json(credential_file(state_dir))
    return Credentials() if stored is None else Credentials(stored["principal"], stored["secret"])


def _answering(state_dir: Path) -> ClusterStatus | None:
    found = status(state_dir)
    return found if found is not None and found.answering else None


def running_master(state_dir: Path) -> str | None:
    """Return the master's address of the cluster that runs, without asking it; None when none does.

    Cheap enough to be called several times a second.
    """
    record = _background(Path(state_dir)).record()
    return None if record is None else str(record["master"])


def down(state_dir: Path) -> bool:
    """End the cluster and all its tasks; say whether there was one.

    Raises:
        BackgroundProcessError: it is still there.
    """
    return _background(Path(state_dir).resolve()).down(STOP_SECONDS)


def serve(state_dir: Path, kind: Callable[..., EmbeddedCluster] = EmbeddedCluster) -> None:
    """Run the cluster of ``state_dir`` until SIGTERM or SIGINT: the background process."""
    state_dir = Path(state_dir).resolve()
    config = read_json(state_dir / _CONFIG)
    if config is None:
        raise BackgroundProcessError(f"no {_CONFIG} in {state_dir}")
    stopping = stop_requested()
    background = _background(state_dir)
    agents = [_agent(one) for one in config["agents"]]
    given = _credentials(state_dir)
    known = {given.principal: given.secret} if given.principal else None
    work = state_dir / "work"
    with kind(agents, work, port=config["port"], credentials=known) as cluster:
        background.announce(master=cluster.master, agents=config["agents"])
        stopping.wait()
    background.forget()


def _agent(given: Mapping[str, Any]) -> AgentConfig:
    first, last = given["ports"]
    return AgentConfig(**{**given, "ports": (first, last)})


def _background(state_dir: Path, program: str = _PROGRAM) -> BackgroundProcess:
    return BackgroundProcess(
        folder=state_dir,
        title="the cluster",
        module=program,
        arguments=("serve", str(state_dir)),
        record_name="cluster.json",
        log_name="cluster.log",
    )
