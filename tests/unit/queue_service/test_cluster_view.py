"""The cluster as a queue counts it: what others use is not there for its jobs."""

from __future__ import annotations

from typing import Any

from dcos_tensorflow.queue_service.cluster_view import GpuKinds, read_cluster


def agent(name: str, **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "hostname": f"host-of-{name}",
        "resources": {"cpus": 8.0, "mem": 16_000.0, "gpus": 4.0},
        "used_resources": {},
        "attributes": {"kind": "v100"},
        **more,
    }


def framework(name: str, *tasks: tuple[str, str, float]) -> dict[str, Any]:
    return {
        "name": name,
        "tasks": [
            {
                "name": task,
                "slave_id": agent_id,
                "state": "TASK_RUNNING",
                "resources": {"cpus": cpus, "mem": 100.0},
            }
            for task, agent_id, cpus in tasks
        ],
    }


def state(agents: list[dict[str, Any]], *frameworks: dict[str, Any]) -> dict[str, Any]:
    return {"slaves": agents, "frameworks": list(frameworks)}


def test_what_others_use_is_taken_off_and_what_jobs_of_the_queue_use_is_not() -> None:
    used = {"cpus": 5.0, "mem": 200.0}
    found = read_cluster(
        state(
            [agent("a", used_resources=used)],
            framework("ours", ("worker-0", "a", 2.0)),
            framework("theirs", ("web", "a", 3.0)),
        ),
        {"ours"},
        set(),
        GpuKinds(),
    )
    (host,) = found.hosts
    assert (host.cpu_milli, host.gpu_milli) == (5_000, 4_000)
    assert found.tasks == {"ours": {"worker-0": "a"}}


def test_a_machine_that_is_taken_down_has_nothing() -> None:
    agents = [
        agent("a", deactivated=True),
        agent("b", drain_info={"state": "DRAINING"}),
        agent("c", active=False),
        agent("d"),
    ]
    found = read_cluster(state(agents), set(), set(), GpuKinds())
    assert [host.name for host in found.hosts] == ["d"]


def test_what_is_reserved_for_others_is_not_the_teams() -> None:
    reserved = {"others": {"cpus": 3.0}, "red": {"cpus": 2.0}}
    found = read_cluster(
        state([agent("a", reserved_resources=reserved)]), set(), {"red"}, GpuKinds()
    )
    assert found.hosts[0].cpu_milli == 5_000


def test_a_gpu_counts_by_the_kind_of_its_machine() -> None:
    kinds = GpuKinds("kind", {"v100": 0.5})
    found = read_cluster(state([agent("a"), agent("b", attributes={})]), set(), set(), kinds)
    assert [host.gpu_weight for host in found.hosts] == [0.5, 1.0]
