"""``capacity up`` and ``down``: machines of a rack that are agents of a cluster, for anybody."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster_faults import FaultyCluster
from cluster_faults.door import make_server
from dcos_tensorflow.cli.main import run_command_line
from embedded_mesos import AgentConfig, Timing
from jobs.machine_rack import PORTS, Rack

#: Ports of a place of this process' own.
FIRST_PORT = 24000 + os.getpid() % 16 * 500
NODE = {
    "instance_type": "node",
    "zone": "row-1",
    "market": "on-demand",
    "price": 0.5,
    "resources": {"cpus": 2.0, "mem": 4096.0, "disk": 50_000.0},
    "available": 3,
}
Asked = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[FaultyCluster]:
    first = AgentConfig(cpus=0.05, mem=64, ports=(FIRST_PORT, FIRST_PORT + PORTS - 1))
    timing = Timing(agent_ping=0.2, agent_ping_timeouts=3, update_retry=0.5, heartbeat=0.5)
    with FaultyCluster([first], tmp_path / "mesos", timing=timing) as cluster:
        yield cluster


@pytest.fixture
def rack(cluster: FaultyCluster, tmp_path: Path) -> Iterator[Rack]:
    door = make_server(("127.0.0.1", 0), cluster.faults)
    door.start()
    yield Rack(tmp_path, f"127.0.0.1:{door.server_address[1]}", [dict(NODE)], FIRST_PORT)
    door.stop()


@pytest.fixture
def asked(
    cluster: FaultyCluster,
    rack: Rack,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Asked:
    """Run a command about the cluster's machines; return its exit code and its answer."""
    monkeypatch.setenv("DCOS_TENSORFLOW_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("dcos_tensorflow.deploy.cluster_machines.LOOK_SECONDS", 0.2)
    options = tmp_path / "cluster.json"
    capacity = {"provider": "command", "command": {"cmd": rack.command}, "max_instances": 3}
    options.write_text(json.dumps({"service": {"name": "rack"}, "capacity": capacity}))

    def ask(verb: str, *flags: str, cluster_flag: bool = False) -> tuple[int, dict[str, Any]]:
        named = ["--cluster", str(options)] if cluster_flag else [str(options)]
        where = [] if verb == "plan" else ["--master", cluster.master]
        code = run_command_line(["capacity", verb, *named, *where, *flags, "--json"])
        out = capsys.readouterr().out
        return code, json.loads(out) if out else {}

    return ask


def on(rack: Rack) -> list[str]:
    return [m["machine_id"] for m in rack.machines if m["state"] == "running"]


def test_machines_come_as_agents_and_go_again(asked: Asked, rack: Rack) -> None:
    code, found = asked("up", "--machines", "2")
    assert (code, [m["state"] for m in found["machines"]]) == (0, ["idle", "idle"])
    assert len(on(rack)) == 2
    # Asked once more, there is nothing to do.
    assert asked("up", "--machines", "2")[0] == 0
    assert len(rack.machines) == 2
    _, shown = asked("status", cluster_flag=True)
    assert (len(shown["machines"]), shown["price_per_hour"]) == (2, 1.0)
    code, found = asked("down")
    assert (code, found["machines"], on(rack)) == (0, [], [])
    assert len(asked("status", cluster_flag=True)[1]["ended"]) == 2


def test_what_cannot_be_had_is_told(asked: Asked, rack: Rack) -> None:
    code, _ = asked("up", "--machines", "4", "--wait", "0")
    assert (code, rack.machines) == (1, [])


def test_a_plan_says_what_would_come(asked: Asked, rack: Rack) -> None:
    _, found = asked("plan", "--machines", "2")
    assert [(each["count"], each["instance_type"]) for each in found["wanted"]] == [(2, "node")]
    assert rack.machines == []


def test_a_release_leaves_those_on_which_tasks_run(asked: Asked, rack: Rack) -> None:
    asked("up", "--machines", "1")
    _, found = asked("release", cluster_flag=True)
    assert on(rack) == []
    assert all(m["state"] == "ending" for m in found["machines"])
