"""The embedded cluster as a background process: up, status, down.

A folder on disk, the *state dir*, holds ``cluster.json`` (process id, start time of the process,
address, agents), ``credential.json`` (the login that master and agents ask of every caller: a
caller of them runs programs as this user), the log and the sandboxes. The process itself is
``python -m embedded_mesos serve``.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedded_mesos import own_ports
from embedded_mesos.background_process import (
    BackgroundProcess,
    BackgroundProcessError,
    answers,
    read_json,
    stop_requested,
    write_json,
)
from embedded_mesos.configuration import AgentConfig, Credential, Page
from untrusted_input.shield import keep_memory_private

if TYPE_CHECKING:
    from embedded_mesos.cluster import EmbeddedCluster


#: Principal and secret as Mesos' own ``--credential`` files hold them.
_CREDENTIAL = "credential.json"
#: The principal that the cluster lets in where its starter names no other.
PRINCIPAL = "embedded-mesos"
_PROGRAM = "embedded_mesos"
#: How long ``up`` waits for an answer, and ``down`` for the end.
START_SECONDS = 20.0
STOP_SECONDS = 15.0


@dataclass(frozen=True)
class ClusterStatus:
    """A cluster that runs in the background."""

    pid: int
    master: str
    agents: tuple[AgentConfig, ...]
    answering: bool
    #: What its master and agents ask of a caller.
    credential: Credential = field(default_factory=Credential)


def up(
    state_dir: Path,
    agents: Sequence[AgentConfig],
    *,
    port: int = 0,
    page: Page | None = None,
    principal: str = PRINCIPAL,
    program: str = _PROGRAM,
) -> ClusterStatus:
    """Start a cluster in the background, or return the one that runs in ``state_dir`` already.

    Each agent has an address and ports of its own: where another cluster of this machine has them
    already, the next ones (``own_ports``). Port 0 of the master is a free one. Callers of the
    cluster name themselves ``principal``, with the secret that the folder keeps. ``program`` is
    what ``python -m`` is given, to serve another kind of cluster. Raises BackgroundProcessError
    when it did not answer in time or ended, with the end of its log.
    """
    state_dir = Path(state_dir).resolve()
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    background = background_of(state_dir, program)
    with background.locked():
        running = status(state_dir)
        if running is not None and not running.answering:
            raise BackgroundProcessError(
                f"process {running.pid} is there but does not answer; stop it first"
            )
        if running is not None:
            return running
        background.forget()
        _make_credential(state_dir, principal)
        shown = None if page is None else {"folder": str(page.folder), "index": page.index}
        description = {"agents": [asdict(one) for one in agents], "port": port, "page": shown}
        background.start(description, START_SECONDS)
        record = background.record()
    if record is None:
        raise BackgroundProcessError(f"the cluster has ended: {background.log_end()}")
    # It has just said that it serves: there is no need to ask.
    return _status_of(record, state_dir, answering=True)


def status(state_dir: Path) -> ClusterStatus | None:
    """Return the cluster of ``state_dir``, None when none runs. Stale files are no cluster."""
    state_dir = Path(state_dir).resolve()
    record = background_of(state_dir).record()
    if record is None:
        return None
    return _status_of(record, state_dir, answering=answers(record["master"], "/health"))


def _status_of(record: Mapping[str, Any], state_dir: Path, *, answering: bool) -> ClusterStatus:
    return ClusterStatus(
        pid=record["pid"],
        master=record["master"],
        agents=tuple(agent_of(one) for one in record["agents"]),
        answering=answering,
        credential=credential_of(state_dir),
    )


def credential_file(state_dir: Path) -> Path:
    """Return the file with principal and secret, as JSON that Mesos' ``--credential`` takes."""
    return Path(state_dir).resolve() / _CREDENTIAL


def _make_credential(state_dir: Path, principal: str) -> None:
    """Make the folder's secret. It stays: its bearers find the next cluster there, too."""
    path = credential_file(state_dir)
    if read_json(path) is None:
        write_json(path, {"principal": principal, "secret": secrets.token_urlsafe(32)})


def credential_of(state_dir: Path) -> Credential:
    """Return what callers send; nothing for a cluster that an older release has started."""
    stored = read_json(credential_file(state_dir))
    return Credential() if stored is None else Credential(stored["principal"], stored["secret"])


def running_master(state_dir: Path) -> str | None:
    """Return the master's address of the cluster that runs, without asking it; None when none does.

    Cheap enough to be called several times a second.
    """
    record = background_of(state_dir).record()
    return None if record is None else str(record["master"])


def down(state_dir: Path) -> bool:
    """End the cluster and all its tasks; say whether there was one.

    Raises BackgroundProcessError when it is still there.
    """
    return background_of(state_dir).down(STOP_SECONDS)


def agent_of(given: Mapping[str, Any]) -> AgentConfig:
    """Return an agent as JSON has it."""
    first, last = given["ports"]
    return AgentConfig(**{**given, "ports": (first, last)})


def page_of(given: Mapping[str, str] | None) -> Page | None:
    """Return a page as JSON has it."""
    return None if given is None else Page(Path(given["folder"]), given["index"])


def background_of(state_dir: Path, program: str = _PROGRAM) -> BackgroundProcess:
    """Return the process that belongs to a folder, whether it runs or not."""
    state_dir = Path(state_dir).resolve()
    return BackgroundProcess(
        folder=state_dir,
        title="the cluster",
        module=program,
        arguments=("serve", str(state_dir)),
        record_name="cluster.json",
        log_name="cluster.log",
    )


def serve(state_dir: Path, kind: Callable[..., EmbeddedCluster] | None = None) -> None:
    """Run the cluster of ``state_dir`` until SIGTERM or SIGINT, or until the folder is gone.

    Its description comes by standard input. Without one there is nothing to run: the starter of
    the process has gone away.
    """
    from embedded_mesos.cluster import EmbeddedCluster

    # It knows what its tasks are launched with, their secrets included.
    keep_memory_private()
    state_dir = Path(state_dir).resolve()
    background = background_of(state_dir)
    config = background.handed_over()
    if config is None:
        return
    stopping = stop_requested()
    given = credential_of(state_dir)
    known = {given.principal: given.secret} if given.principal else None
    work = state_dir / "work"
    page = page_of(config["page"])
    with ExitStack() as claims:
        agents = own_ports.claim([agent_of(one) for one in config["agents"]], claims)
        cluster = claims.enter_context(
            (kind or EmbeddedCluster)(
                agents, work, port=config["port"], credentials=known, page=page
            )
        )
        background.announce(master=cluster.master, agents=[asdict(one) for one in agents])
        background.await_end(stopping)
    if not background.is_lost():
        background.forget()
