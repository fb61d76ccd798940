"""Where tasks with persistent volumes go, and what they say when they wait."""

from dataclasses import replace

from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.placement.place import place
from dcos_tensorflow.core.placement.request import Placement, TaskRequest
from dcos_tensorflow.core.spec.resources import PortRanges, Resources
from dcos_tensorflow.core.spec.service_spec import TaskRole


def offer(agent: str, cpus: float = 4, gpus: int = 0, mounts: tuple[float, ...] = ()) -> Offer:
    return Offer(
        offer_id=f"O-{agent}",
        agent_id=agent,
        hostname=f"h-{agent}",
        address=f"10.0.0.{agent[1:]}",
        mesos_role="svc-role",
        resources=Resources(cpus, 1024 * cpus, 1000, gpus),
        ports=PortRanges(((31000, 31099),)),
        mounts=mounts,
    )


def task(name: str, cpus: float = 1, **changes: object) -> TaskRequest:
    request = TaskRequest(name, TaskRole.WORKER, Resources(cpus, 100 * cpus), 2)
    return replace(request, **changes)  # type: ignore[arg-type]


def bound(name: str, agent: str, cpus: float = 1, **changes: object) -> TaskRequest:
    return task(name, cpus, agent_id=agent, bound_by=f"its volume is on agent {agent}", **changes)


def agents(placement: Placement) -> dict[str, str]:
    return {a.task: a.agent_id for a in placement.assignments}


def test_a_task_goes_to_the_agent_of_its_volume_and_nowhere_else() -> None:
    offers = [offer("a1", 1), offer("a2", 8), offer("a3", 1)]
    assert agents(place([bound("worker-0", "a2")], offers)) == {"worker-0": "a2"}


def test_who_can_go_to_one_agent_only_is_placed_before_the_others() -> None:
    requests = [task("worker-0"), bound("worker-1", "a1")]
    assert agents(place(requests, [offer("a1", 1), offer("a2", 4)])) == {
        "worker-0": "a2",
        "worker-1": "a1",
    }


def test_a_task_whose_agent_offers_nothing_says_that_alone() -> None:
    found = place([bound("worker-0", "a7")], [offer("a1"), offer("a2")])
    assert found.misfits[0].reason == "worker-0: its volume is on agent a7"
    assert set(found.useless_offers.values()) == {"not where its volume is"}


def test_without_any_offer_it_says_so_too() -> None:
    (misfit,) = place([bound("worker-0", "a7")], []).misfits
    assert misfit.reason == "worker-0: its volume is on agent a7"


def test_too_little_beside_the_volume_is_told_of_its_agent() -> None:
    (misfit,) = place([bound("worker-0", "a1", 5)], [offer("a1", 4), offer("a2", 8)]).misfits
    assert "needs 5 cpus, best agent a1 offers 4" in misfit.reason
    assert "1 offer not where its volume is" in misfit.reason


def test_who_has_everything_reserved_needs_no_headroom_for_gpus() -> None:
    full = replace(offer("a1", gpus=2), resources=Resources(gpus=2), ports=PortRanges())
    request = replace(bound("worker-0", "a1"), resources=Resources(), port_count=0)
    assert agents(place([request], [full])) == {"worker-0": "a1"}


def test_a_whole_disk_is_used_by_one_task_alone() -> None:
    requests = [task("worker-0", mount=100), task("worker-1", mount=100)]
    assert not place(requests, [offer("a1", mounts=(500,))]).complete
    assert place(requests, [offer("a1", mounts=(500, 400))]).complete


def test_the_smallest_whole_disk_that_will_do_is_taken() -> None:
    requests = [task("worker-0", mount=100), task("worker-1", mount=450)]
    assert place(requests, [offer("a1", mounts=(500, 120))]).complete


def test_a_disk_that_is_too_small_is_named() -> None:
    (misfit,) = place([task("worker-0", mount=100)], [offer("a1", mounts=(99,))]).misfits
    assert "no MOUNT disk of 100 MB" in misfit.reason


def test_agents_without_whole_disks_are_left_to_others() -> None:
    requests = [task("worker-0", mount=100), task("worker-1")]
    placed = agents(place(requests, [offer("a1", 1), offer("a2", 1, mounts=(200,))]))
    assert placed == {"worker-0": "a2", "worker-1": "a1"}
