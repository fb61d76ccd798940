"""The embedded cluster as a background process: up, status, down.

Called by the command line (``dcos-tensorflow local``). A folder on disk, the *state dir*, holds
``cluster.json`` (process id, start time of the process, address, agents), the log and the
sandboxes. The process itself is ``python -m dcos_tensorflow.local serve``.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dcos_tensorflow.local import http_faults
from dcos_tensorflow.local.cluster import AgentConfig, EmbeddedCluster
from dcos_tensorflow.local.process_tree import kill_tree, start_time

_RECORD = "cluster.json"
_CONFIG = "config.json"
_LOG = "cluster.log"
#: How long ``up`` waits for an answer, and ``down`` for the end.
START_SECONDS = 20.0
STOP_SECONDS = 15.0
#: Ports that each agent gets, from the first that no other one has.
PORTS_PER_AGENT = 1000
FIRST_PORT = 31000
_LAST_PORT = 65535


class DaemonError(Exception):
    """The cluster could not be started or stopped. The text says why."""


@dataclass(frozen=True)
class ClusterStatus:
    """A cluster that runs in the background."""

    pid: int
    master: str
    agents: tuple[AgentConfig, ...]
    answering: bool
    state_dir: Path
    #: ``host:port`` where faults are ordered (``http_faults``); empty where that is not wanted.
    faults: str = ""


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
    credentials: Mapping[str, str] | None = None,
    faults: bool = False,
) -> ClusterStatus:
    """Start a cluster in the background, or return the one that runs there already.

    Args:
        state_dir: made when missing; one cluster for each.
        agents: ``spread`` makes a fitting list. Agents with equal port ranges, and no others,
            are given disjoint ones.
        port: of the master, 0 for a free one.
        credentials: principal -> secret.
        faults: let faults be ordered over HTTP, by anybody on this machine: for tests.

    Raises:
        DaemonError: it did not answer in time or ended; the text has the end of its log.
    """
    state_dir = Path(state_dir).resolve()
    state_dir.mkdir(parents=True, exist_ok=True)
    with _locked(state_dir):
        running = status(state_dir)
        if running is not None and not running.answering:
            raise DaemonError(f"process {running.pid} is there but does not answer; stop it first")
        if running is not None:
            return running
        (state_dir / _RECORD).unlink(missing_ok=True)
        config = {
            "agents": [asdict(one) for one in disjoint(agents)],
            "port": port,
            "credentials": dict(credentials) if credentials is not None else None,
            "faults": faults,
        }
        _write(state_dir / _CONFIG, config)
        process = _spawn(state_dir)
        return _wait_for_answer(state_dir, process)


def disjoint(agents: Sequence[AgentConfig]) -> list[AgentConfig]:
    """Return the agents with port ranges of their own where all have the same one.

    Raises:
        DaemonError: some ranges overlap, and not all are equal: then they are meant so, wrongly.
    """
    ranges = [one.ports for one in agents]
    if len(agents) > 1 and len(set(ranges)) == 1:
        own = spread(len(agents))
        return [replace(one, ports=other.ports) for one, other in zip(agents, own, strict=True)]
    for (_, last), (first, _) in zip(sorted(ranges), sorted(ranges)[1:], strict=False):
        if first <= last:
            raise DaemonError(
                f"port {first} is in the ranges of two agents; the machine has it only once"
            )
    return list(agents)


def _spawn(state_dir: Path) -> subprocess.Popen[bytes]:
    root = str(Path(__file__).resolve().parents[2])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    with open(state_dir / _LOG, "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "dcos_tensorflow.local", "serve", str(state_dir)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=True,
        )


def _wait_for_answer(state_dir: Path, process: subprocess.Popen[bytes]) -> ClusterStatus:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        code = process.poll()
        if code is not None:
            raise DaemonError(f"the cluster ended with {code}: {_log_end(state_dir)}")
        found = status(state_dir)
        if found is not None and found.answering and found.pid == process.pid:
            # It goes on without us: nobody waits for it any more, and Popen need not complain.
            process.returncode = 0
            return found
        time.sleep(0.05)
    kill_tree(process.pid)
    process.wait()
    raise DaemonError(
        f"the cluster did not answer within {START_SECONDS:g} s: {_log_end(state_dir)}"
    )


def _log_end(state_dir: Path) -> str:
    with contextlib.suppress(FileNotFoundError):
        lines = (state_dir / _LOG).read_text(errors="replace").splitlines()
        if lines:
            return " / ".join(lines[-5:])
    return "its log is empty"


def status(state_dir: Path) -> ClusterStatus | None:
    """Return the cluster of ``state_dir``, None when none runs. Stale files are no cluster."""
    state_dir = Path(state_dir).resolve()
    record = _read(state_dir / _RECORD)
    if record is None or start_time(record["pid"]) != record["started"]:
        return None
    return ClusterStatus(
        pid=record["pid"],
        master=record["master"],
        agents=tuple(_agent(one) for one in record["agents"]),
        answering=_answers(record["master"]),
        state_dir=state_dir,
        faults=record.get("faults", ""),
    )


def running_master(state_dir: Path) -> str | None:
    """Return the master's address of the cluster that runs, without asking it; None when none does.

    Cheap enough to be called several times a second.
    """
    record = _read(Path(state_dir) / _RECORD)
    if record is None or start_time(record["pid"]) != record["started"]:
        return None
    return str(record["master"])


def _answers(master: str) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://{master}/health", timeout=2) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def down(state_dir: Path) -> bool:
    """End the cluster and all its tasks; say whether there was one.

    Raises:
        DaemonError: it is still there.
    """
    state_dir = Path(state_dir).resolve()
    if not state_dir.exists():
        return False
    with _locked(state_dir):
        running = status(state_dir)
        if running is None:
            (state_dir / _RECORD).unlink(missing_ok=True)
            return False
        started = start_time(running.pid)
        _signal(running.pid, signal.SIGTERM)
        if not _ended(running.pid, started, STOP_SECONDS):
            kill_tree(running.pid)
            if not _ended(running.pid, started, 5.0):
                raise DaemonError(f"process {running.pid} does not end")
        (state_dir / _RECORD).unlink(missing_ok=True)
        return True


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _ended(pid: int, started: int | None, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while start_time(pid) == started and started is not None:
        with contextlib.suppress(ChildProcessError):
            # When this process started the cluster, it is a zombie until it is waited for.
            os.waitpid(pid, os.WNOHANG)
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)
    return True


def serve(state_dir: Path) -> None:
    """Run the cluster of ``state_dir`` until SIGTERM or SIGINT: the background process."""
    state_dir = Path(state_dir).resolve()
    config = _read(state_dir / _CONFIG)
    if config is None:
        raise DaemonError(f"no {_CONFIG} in {state_dir}")
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    agents = [_agent(one) for one in config["agents"]]
    cluster = EmbeddedCluster(
        agents,
        state_dir / "work",
        port=config["port"],
        credentials=config["credentials"],
    )
    with cluster, _fault_door(cluster, bool(config.get("faults"))) as faults:
        record = {
            "pid": os.getpid(),
            "started": start_time(os.getpid()),
            "master": cluster.master,
            "agents": config["agents"],
            "faults": faults,
        }
        _write(state_dir / _RECORD, record)
        stopping.wait()
    (state_dir / _RECORD).unlink(missing_ok=True)


@contextlib.contextmanager
def _fault_door(cluster: EmbeddedCluster, wanted: bool) -> Iterator[str]:
    if not wanted:
        yield ""
        return
    server = http_faults.make_server(("127.0.0.1", 0), cluster.faults)
    server.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.stop()


def _agent(given: Mapping[str, Any]) -> AgentConfig:
    first, last = given["ports"]
    return AgentConfig(**{**given, "ports": (first, last)})


@contextlib.contextmanager
def _locked(state_dir: Path) -> Iterator[None]:
    # Two commands at a time must not start two clusters.
    with open(state_dir / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _write(path: Path, value: object) -> None:
    temporary = path.with_suffix(".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w") as file:
        json.dump(value, file)
    temporary.replace(path)


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
