"""Tasks with addresses of their own: launched, heard of, told of each other, and started.

The embedded cluster has no container networks. What stands for one here are agents in network
namespaces, each with room for one task: the task has its namespace's address, which is what the
cluster tells of its container, and no other task shares its ports.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_faults import FaultyCluster
from dcos_tensorflow.core import contract
from dcos_tensorflow.core.cluster.addresses import RUNNER_PORT
from dcos_tensorflow.core.failures import waits
from dcos_tensorflow.core.model.events import PodCommand, PodVerb
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import ServiceSpec, VirtualNetwork
from dcos_tensorflow.mesos.wire import convert
from embedded_mesos import AgentConfig, Timing
from jobs.scheduled_jobs import command_job, done, running, wait_until
from waiting import eventually

#: Two networks of this process alone: several runs of the tests share a machine.
_PAIR = 2 * (os.getpid() % 120)
HOME, FABRIC = f"10.253.{_PAIR}", f"10.253.{_PAIR + 1}"
ADDRESSES = (f"{HOME}.2", f"{HOME}.3", f"{HOME}.4")
UNTIL_TOLD = 'while [ ! -e "{marks}/finish" ]; do sleep 0.05; done'


def in_fabric(address: str) -> str:
    """Return the other address of the same machine, in the network of the peers."""
    return address.replace(f"{HOME}.", f"{FABRIC}.")


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture
def namespaces() -> Iterator[list[str]]:
    """Return the paths of namespaces with an address each, joined by a bridge."""
    bridge, names = (
        f"tf{os.getpid()}",
        [f"tf-test-{os.getpid()}-{n}" for n in range(len(ADDRESSES))],
    )
    with ExitStack() as stack:
        try:
            ip("link", "add", bridge, "type", "bridge")
        except (FileNotFoundError, subprocess.CalledProcessError):
            pytest.skip("no networks can be made here: that takes root and iproute2")
        stack.callback(ip, "link", "delete", bridge)
        ip("addr", "add", f"{HOME}.1/24", "dev", bridge)
        ip("link", "set", bridge, "up")
        for number, (name, address) in enumerate(zip(names, ADDRESSES, strict=True)):
            ip("netns", "add", name)
            stack.callback(ip, "netns", "delete", name)
            link = f"tf{os.getpid()}-{number}"
            ip("link", "add", link, "type", "veth", "peer", "eth0", "netns", name)
            stack.callback(ip, "link", "delete", link)
            ip("link", "set", link, "master", bridge, "up")
            for own in (address, in_fabric(address)):
                ip("-n", name, "addr", "add", f"{own}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                ip("-n", name, "link", "set", device, "up")
        yield [f"/run/netns/{name}" for name in names]


@pytest.fixture
def cluster(namespaces: list[str], tmp_path: Path) -> Iterator[FaultyCluster]:
    agents = [AgentConfig(address=address, cpus=1, mem=512) for address in ADDRESSES]
    timing = Timing(agent_ping=0.2, agent_ping_timeouts=3, update_retry=0.5, heartbeat=0.5)
    with FaultyCluster(agents, tmp_path / "mesos", namespaces, timing=timing) as found:
        yield found


@pytest.fixture
def on_agents(marks: Path):
    """A job of two workers, each on an agent of its own, that write down what they were told."""
    told = f'echo "$TF_CONFIG" > "{marks}/$TASK_NAME.tmp"; '
    told += f'mv "{marks}/$TASK_NAME.tmp" "{marks}/$TASK_NAME"; '
    job = command_job(told + UNTIL_TOLD.format(marks=marks))
    larger = Resources(cpus=1.0, mem=64, disk=10)
    return replace(job, roles=tuple(replace(role, resources=larger) for role in job.roles))


@pytest.fixture
def spec(on_agents: ServiceSpec, monkeypatch: pytest.MonkeyPatch):
    """The same with an address of each task's own."""
    # The agents' namespaces are the network: none is to be joined by its name.
    monkeypatch.setattr(convert, "joined", lambda container, launch: container)
    return replace(on_agents, network=VirtualNetwork("overlay"))


def told(marks: Path, task: str) -> dict:
    def read() -> str:
        file = marks / task
        return file.read_text() if file.exists() else ""

    return json.loads(eventually(read, what=f"{task} to start") or "")


def test_processes_start_with_the_addresses_that_their_containers_have(schedule, spec, marks):
    scheduler = schedule(spec)
    state = wait_until(scheduler, running)
    assert {r.ports for r in state.tasks.values()} == {(2222, RUNNER_PORT)}
    configs = [told(marks, f"worker-{n}") for n in range(2)]
    workers = configs[0]["cluster"]["worker"]
    assert set(workers) < {f"{address}:2222" for address in ADDRESSES}
    assert (len(set(workers)), configs[1]["cluster"]) == (2, configs[0]["cluster"])
    (marks / "finish").touch()
    wait_until(scheduler, done)


def test_a_task_that_moves_is_told_to_the_others(schedule, spec, marks):
    scheduler = schedule(spec)
    before = wait_until(scheduler, running).epoch
    for task in ("worker-0", "worker-1"):
        told(marks, task)
        (marks / task).unlink()
    scheduler.submit(PodCommand(PodVerb.REPLACE, ("worker-1",)))
    after = wait_until(scheduler, lambda s: running(s) and s.epoch.epoch > before.epoch).epoch
    workers = told(marks, "worker-0")["cluster"]["worker"]
    assert workers == [after.addresses[f"worker-{n}"] for n in range(2)]
    assert workers[1] != before.addresses["worker-1"]
    (marks / "finish").touch()
    wait_until(scheduler, done)


def test_on_machines_with_several_addresses_peers_use_those_of_the_network_that_is_named(
    schedule, on_agents, marks
):
    scheduler = schedule(replace(on_agents, peer_network=f"{FABRIC}.0/24"))
    state = wait_until(scheduler, running)
    assert {r.address for r in state.tasks.values()} < set(ADDRESSES)
    workers = told(marks, "worker-0")["cluster"]["worker"]
    ports = {r.peer_address: r.ports[0] for r in state.tasks.values()}
    assert set(workers) == {f"{host}:{port}" for host, port in ports.items()}
    assert set(ports) < set(map(in_fabric, ADDRESSES))
    (marks / "finish").touch()
    wait_until(scheduler, done)


def test_a_machine_that_is_not_in_the_network_says_so(schedule, on_agents):
    scheduler = schedule(replace(on_agents, peer_network="10.99.0.0/16"))
    named = "cluster_spec.peer_network: "
    wait_until(scheduler, lambda s: any(named in one.evidence for one in s.job.incidents))


def test_a_server_that_its_peers_are_refused_by_is_told_with_its_name(
    schedule, on_agents, marks, tmp_path, monkeypatch
):
    monkeypatch.setattr(waits, "START_SECONDS", 1.0)
    server = tmp_path / "server.py"
    server.write_text(
        "import json, os, socket, time\n"
        "config = json.loads(os.environ['TF_CONFIG'])\n"
        "own = config['cluster']['worker'][config['task']['index']]\n"
        "host = '127.0.0.1' if config['task']['index'] else ''\n"
        "listener = socket.create_server((host, int(own.rpartition(':')[2])))\n"
        f"while not os.path.exists({str(marks / 'finish')!r}):\n"
        "    time.sleep(0.05)\n"
    )
    job = replace(on_agents.job, command=f"{sys.executable} {server}")
    scheduler = schedule(replace(on_agents, job=job))

    def told(state: ServiceState) -> bool:
        return any(
            # The machine itself is refused, too, and told once its runner has tried.
            "worker-0" in wait.tasks
            and wait.waits_for == ("worker-1",)
            and contract.UNREACHABLE_REFUSED in wait.why
            for wait in waits.waits(state.view(), time.time())
        )

    wait_until(scheduler, told)
    (marks / "finish").touch()
    wait_until(scheduler, done)
