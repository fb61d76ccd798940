"""Tasks on a virtual network: their addresses are their containers', known once launched."""

from dataclasses import replace

import pytest

from dcos_tensorflow.core.cluster import addresses
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.plans.plan import plans
from dcos_tensorflow.core.spec.resources import PortRanges, Resources
from dcos_tensorflow.core.spec.service_spec import (
    Addressing,
    NetworkAddresses,
    RoleSpec,
    ServiceSpec,
    TaskRole,
    UpdateStrategy,
    VirtualNetwork,
)
from simulated.mesos import Cluster
from simulated.scheduler import Scheduler, begun, fail, recover, small_job, started, with_evaluator

OVERLAY = VirtualNetwork("dcos", {"team": "vision"})


def on_overlay(**changes: object) -> ServiceSpec:
    return small_job(network=OVERLAY, **changes)


def launched(spec: ServiceSpec) -> Scheduler:
    """Return a scheduler whose tasks are launched and have not been heard of."""
    return begun(spec, Cluster())


def test_no_port_of_an_agent_is_taken():
    cluster = Cluster()
    for agent in cluster.agents.values():
        agent.ports = PortRanges()
    assert started(on_overlay(), cluster).state.job.phase is JobPhase.RUNNING


def test_tasks_of_one_agent_listen_on_the_same_port():
    cluster = Cluster(agents=1, resources=Resources(cpus=8, mem=16384, disk=10000))
    scheduler = started(on_overlay(), cluster)
    assert {r.ports for r in scheduler.state.tasks.values()} == {(2222, addresses.RUNNER_PORT)}


def test_a_configured_port_is_listened_on():
    role = RoleSpec(TaskRole.WORKER, 1, Resources(cpus=1, mem=512), port=4444)
    assert addresses.own_ports(role)[0] == 4444


def test_the_runners_port_is_never_that_of_tensorflow():
    role = RoleSpec(TaskRole.WORKER, 1, Resources(cpus=1, mem=512), port=addresses.RUNNER_PORT)
    assert len(set(addresses.own_ports(role))) == 2


def test_the_cluster_spec_holds_the_addresses_that_mesos_has_told():
    scheduler = started(on_overlay())
    assert scheduler.state.epoch is not None
    assert sorted(scheduler.state.epoch.addresses.values()) == [
        "9.0.0.1:2222",
        "9.0.0.2:2222",
        "9.0.0.3:2222",
    ]


def test_no_process_starts_before_all_addresses_are_known():
    scheduler = launched(on_overlay())
    cluster = scheduler.cluster
    for task_id in [cluster.id_of("ps-0"), cluster.id_of("worker-0")]:
        cluster.report(task_id, TaskState.RUNNING)
    scheduler.run(5)
    assert [cluster.runner(name).starts for name in ("ps-0", "worker-0")] == [(), ()]


def test_every_process_starts_with_all_addresses():
    scheduler = started(on_overlay())
    for name in ("ps-0", "worker-0", "worker-1"):
        assert scheduler.cluster.runner(name).epoch == scheduler.state.epoch.epoch


def test_by_dns_name_processes_start_with_the_scheduler_away():
    roles = tuple(replace(role, port=2222) for role in small_job().roles)
    scheduler = launched(on_overlay(roles=roles, addressing=Addressing.DNS))
    assert not any(record.held for record in scheduler.state.tasks.values())


def test_by_dns_name_the_cluster_spec_is_known_before_the_launch():
    roles = tuple(replace(role, port=2222) for role in small_job().roles)
    scheduler = launched(on_overlay(roles=roles, addressing=Addressing.DNS))
    assert scheduler.state.epoch.addresses["ps-0"] == (
        "ps-0.mnist.autoip.dcos.thisdcos.directory:2222"
    )


def test_an_address_outlives_the_scheduler():
    scheduler = started(on_overlay())
    before = {name: record.address for name, record in scheduler.state.tasks.items()}
    scheduler.restart()
    assert {name: record.address for name, record in scheduler.state.tasks.items()} == before


def test_a_task_that_is_launched_again_has_another_address_and_the_job_goes_on():
    scheduler = started(on_overlay())
    before = scheduler.state.tasks["worker-1"].address
    fail(scheduler, "worker-1")
    recover(scheduler)
    after = scheduler.state.tasks["worker-1"].address
    assert after not in ("", before)
    assert scheduler.state.epoch.addresses["worker-1"] == f"{after}:2222"
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_an_evaluator_is_launched_once_the_addresses_are_known():
    spec = replace(with_evaluator(), network=OVERLAY)
    scheduler = launched(spec)
    assert "evaluator-0" not in scheduler.state.tasks
    scheduler.cluster.run_everything()
    scheduler.run(10)
    assert "evaluator-0" in scheduler.state.tasks


def test_a_task_without_an_address_says_so():
    scheduler = launched(on_overlay())
    deploy = plans(scheduler.state.view())["deploy"]
    messages = [step.message for phase in deploy.phases for step in phase.steps]
    assert "Mesos has not reported the container's address yet" in str(messages)


def test_with_the_agents_addresses_ports_are_taken_from_the_offer():
    network = replace(OVERLAY, addresses=NetworkAddresses.HOST)
    scheduler = started(small_job(network=network))
    assert all(r.ports[0] >= 31000 for r in scheduler.state.tasks.values())


def test_with_the_agents_addresses_the_cluster_spec_is_that_of_the_offers():
    network = replace(OVERLAY, addresses=NetworkAddresses.HOST)
    scheduler = started(small_job(network=network))
    assert not any(a.startswith("9.") for a in scheduler.state.epoch.addresses.values())


def given_up_on(scheduler: Scheduler) -> str:
    """Let the time for the start pass, and return why the first task is replaced."""
    scheduler.run(700, tick=5.0)
    return scheduler.state.job.incidents[0].summary


def test_a_task_whose_address_never_comes_is_replaced_for_that():
    scheduler = launched(on_overlay())
    for task in scheduler.cluster.tasks.values():
        task.state = TaskState.RUNNING
    assert given_up_on(scheduler).endswith("and Mesos has told no address of its container")


def test_a_task_runner_that_cannot_be_reached_is_replaced_for_that(
    monkeypatch: pytest.MonkeyPatch,
):
    scheduler = launched(on_overlay())
    monkeypatch.setattr(scheduler.cluster, "ask", lambda record: None)
    scheduler.cluster.run_everything()
    assert "its task runner was never heard at 9.0.0." in given_up_on(scheduler)


@pytest.mark.parametrize("strategy", list(UpdateStrategy))
@pytest.mark.parametrize(("before", "after"), [(None, OVERLAY), (OVERLAY, None)])
def test_a_service_can_go_over_to_another_network(before, after, strategy):
    spec = small_job(network=before, update_strategy=strategy)
    scheduler = started(spec)
    scheduler.handle(events.ConfigurationChanged(replace(spec, network=after)))
    for _ in range(8):
        scheduler.handle(events.PlanCommand("update", events.PlanVerb.RESUME))
        recover(scheduler, 20)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    own = [a.startswith("9.0.0.") for a in scheduler.state.epoch.addresses.values()]
    assert own == [after is not None] * 3
