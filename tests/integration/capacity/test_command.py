"""Machines by an operator's command: what it is told, what it may answer, how it may fail."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_faults import FaultyCluster
from cluster_faults.door import make_server
from dcos_tensorflow.capacity.market import Market, Pool
from dcos_tensorflow.capacity.provider import (
    Denied,
    Machine,
    MachineState,
    ProviderError,
    PurchaseOrder,
    Throttled,
)
from dcos_tensorflow.capacity.providers.command import CommandProvider
from dcos_tensorflow.core.spec.resources import Resources
from document_commands import blocks
from embedded_mesos import AgentConfig
from jobs.machine_rack import PORTS, Rack
from waiting import eventually

POOL = Pool("node", "row-1", Market.ON_DEMAND, 0.5, Resources(cpus=1, mem=512, disk=1000))
ORDER = PurchaseOrder("purchase-1", "job", (POOL,), 2)
MACHINE = {
    "machine_id": "n1",
    "purchase_id": "purchase-1",
    "owner": "job",
    "instance_type": "node",
    "zone": "row-1",
    "market": "on-demand",
    "state": "running",
    "started_at": 1.5,
    "hostnames": ["n1.example.com"],
}
DOCUMENT = Path(__file__).parents[3] / "docs" / "machines.md"
#: Ports of a place of this process' own.
FIRST_PORT = 14000 + os.getpid() % 16 * 500


def provider(folder: Path, script: str, *, seconds: float = 30.0) -> CommandProvider:
    path = folder / "machines"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return CommandProvider([str(path)], "job", timeout_seconds=seconds)


def answering(folder: Path, **answers: object) -> CommandProvider:
    """Return a provider whose command answers so to each verb, and notes what it is asked."""
    for verb, answer in answers.items():
        (folder / f"{verb}.json").write_text(json.dumps(answer))
    return provider(folder, f'cd "{folder}"; cat >> asked-"$1"; cat "$1.json"')


def test_the_machines_of_others_are_not_ours(tmp_path: Path) -> None:
    asked = answering(tmp_path, list={"machines": [MACHINE, {**MACHINE, "owner": "other"}]})
    assert asked.machines() == [
        Machine(
            "n1",
            "purchase-1",
            "job",
            "node",
            "row-1",
            Market.ON_DEMAND,
            MachineState.RUNNING,
            1.5,
            ("n1.example.com",),
        )
    ]


def test_an_order_says_all_that_it_takes_to_carry_it_out(tmp_path: Path) -> None:
    asked = answering(tmp_path, list={}, up={"machines": [MACHINE]})
    bought = asked.buy(ORDER)
    assert [m.machine_id for m in bought.machines] == ["n1"]
    assert bought.missing == "1 of 2 machines could be had"
    assert json.loads((tmp_path / "asked-up").read_text()) == {
        "purchase_id": "purchase-1",
        "owner": "job",
        "count": 2,
        "max_price": None,
        "pools": [
            {
                "instance_type": "node",
                "zone": "row-1",
                "market": "on-demand",
                "price": 0.5,
                "resources": {"cpus": 1, "mem": 512, "disk": 1000, "gpus": 0},
                "available": None,
            }
        ],
    }


def test_what_a_purchase_has_already_is_not_bought_again(tmp_path: Path) -> None:
    asked = answering(tmp_path, list={"machines": [MACHINE]}, up={"machines": []})
    assert [m.machine_id for m in asked.buy(ORDER).machines] == ["n1"]
    assert not (tmp_path / "asked-up").exists()


def test_nothing_is_given_back_for_nothing(tmp_path: Path) -> None:
    asked = answering(tmp_path, down={})
    asked.give_back([])
    assert not (tmp_path / "asked-down").exists()
    asked.give_back(["n2", "n1"])
    told = json.loads((tmp_path / "asked-down").read_text())
    assert told == {"owner": "job", "machine_ids": ["n1", "n2"]}


@pytest.mark.parametrize(
    ("script", "kind", "why"),
    [
        ("echo no route to the BMC >&2; exit 1", ProviderError, "ended with 1: no route to the"),
        ("exit 75", Throttled, "ended with 75: it says nothing on standard error"),
        ("echo who are you >&2; exit 77", Denied, "ended with 77: who are you"),
        ("kill -9 $$", ProviderError, "was ended by signal 9"),
        ("echo hello", ProviderError, "it is no JSON: "),
        ("echo []", ProviderError, "it is no JSON object"),
        ("""echo '{"machines": [{}]}'""", ProviderError, r"machines\.0\.machine_id: Field req"),
        ("sleep 600 & sleep 600", ProviderError, "did not end within 1 s and was killed"),
    ],
)
def test_a_failure_of_the_command_is_told_in_its_words(
    tmp_path: Path, script: str, kind: type[ProviderError], why: str
) -> None:
    with pytest.raises(ProviderError, match=why) as caught:
        provider(tmp_path, script, seconds=1 if "sleep" in script else 30).machines()
    assert caught.type is kind
    assert caught.value.is_final is (kind is Denied)


def test_a_command_that_is_not_there_is_a_persons_business(tmp_path: Path) -> None:
    with pytest.raises(Denied, match="/nowhere list cannot be run: No such file"):
        CommandProvider(["/nowhere"], "job").machines()


def test_a_price_that_is_no_number_is_refused(tmp_path: Path) -> None:
    pool = {"instance_type": "node", "zone": "row-1", "market": "spot", "resources": {}}
    asked = answering(tmp_path, list={"pools": [{**pool, "price": float("nan")}]})
    with pytest.raises(ProviderError, match="node in row-1 costs nan"):
        asked.pools()


@pytest.mark.parametrize("time", ["started_at", "ended_at", "told_at"])
def test_a_time_that_no_clock_shows_is_refused(tmp_path: Path, time: str) -> None:
    asked = answering(tmp_path, list={"machines": [{**MACHINE, time: float("inf")}]})
    with pytest.raises(ProviderError, match="n1 has times that no clock shows"):
        asked.machines()


def test_machines_of_another_purchase_are_no_answer(tmp_path: Path) -> None:
    asked = answering(tmp_path, list={}, up={"machines": [{**MACHINE, "purchase_id": "other"}]})
    with pytest.raises(ProviderError, match="n1 is of purchase 'other'"):
        asked.buy(ORDER)


def test_what_the_command_leaves_running_does_not_hold_us_up(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    left = provider(tmp_path, f"sleep 600 & echo $! > {pid}; echo '{{}}'", seconds=20)
    assert left.machines() == []
    os.kill(int(pid.read_text()), 9)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[FaultyCluster]:
    """A cluster whose only agent has no room for anything."""
    agent = AgentConfig(cpus=0.1, mem=32, ports=(FIRST_PORT, FIRST_PORT + PORTS - 1))
    with FaultyCluster([agent], tmp_path / "mesos") as running:
        yield running


@pytest.fixture
def rack(tmp_path: Path, cluster: FaultyCluster) -> Iterator[Rack]:
    """Two machines that can be switched on."""
    door = make_server(("127.0.0.1", 0), cluster.faults)
    door.start()
    pool = {
        "instance_type": "node",
        "zone": "row-1",
        "market": "on-demand",
        "price": 0.5,
        "resources": {"cpus": 1, "mem": 512, "disk": 1000},
        "available": 2,
    }
    yield Rack(tmp_path, f"127.0.0.1:{door.server_address[1]}", [pool], FIRST_PORT)
    door.stop()


def test_a_rack_is_switched_on_and_off(rack: Rack, cluster: FaultyCluster) -> None:
    asked = CommandProvider(rack.command, "job")
    order = PurchaseOrder("purchase-1", "job", tuple(asked.pools()), 3)
    bought = asked.buy(order)
    assert [m.hostnames for m in bought.machines] == [("rack-1",), ("rack-2",)]
    assert bought.missing == "2 of 3 machines could be had"
    assert asked.buy(order) == bought
    assert asked.pools()[0].available == 0
    eventually(lambda: [a.registered for a in cluster.agents] == [True] * 3, what="their agents")
    assert cluster.agents[1].identity.hostname == "rack-1"
    asked.give_back(["rack-1"])
    asked.give_back(["rack-1", "rack-2"])
    assert [a.running for a in cluster.agents] == [True, False, False]
    assert {m.state for m in asked.machines()} == {MachineState.ENDED}
    assert asked.pools()[0].available == 2


def test_the_example_in_the_docs_switches_a_rack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Typed as it stands there; ``ipmitool`` notes what it is told."""
    program = tmp_path / "rack"
    program.write_text(blocks(DOCUMENT, "python")["By your own command"])
    (tmp_path / "ipmitool").write_text(f'#!/bin/sh\necho "$4 $*" >> {tmp_path}/switched\n')
    for path in (program, tmp_path / "ipmitool"):
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    pool = {**MACHINE, "price": 0.5, "resources": {"cpus": 8, "mem": 32_000}}
    pool = {name: pool[name] for name in ("instance_type", "zone", "market", "price", "resources")}
    nodes = [{"machine_id": f"node-{n}", "bmc": f"10.0.9.{n}"} for n in (1, 2)]
    (tmp_path / "rack.json").write_text(json.dumps({"pool": pool, "nodes": nodes}))
    asked = CommandProvider([str(program), str(tmp_path / "rack.json")], "job")
    (offered,) = asked.pools()
    assert offered.available == 2
    bought = asked.buy(PurchaseOrder("purchase-1", "job", (offered,), 3))
    assert [m.machine_id for m in bought.machines] == ["node-1", "node-2"]
    assert asked.machines() == list(bought.machines)
    asked.give_back(["node-1"])
    assert [m.machine_id for m in asked.machines()] == ["node-2"]
    switched = [line.split() for line in (tmp_path / "switched").read_text().splitlines()]
    assert [(words[0], words[-1]) for words in switched] == [
        ("10.0.9.1", "on"),
        ("10.0.9.2", "on"),
        ("10.0.9.1", "off"),
    ]
