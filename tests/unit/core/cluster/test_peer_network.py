"""Machines with several addresses: peers use that in a named network, as each runner finds it."""

from dataclasses import replace

import pytest

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from simulated.mesos import Cluster
from simulated.scheduler import Scheduler, begun, fail, recover, small_job, started, with_evaluator


def on_fabric(**changes: object) -> ServiceSpec:
    return small_job(peer_network="10.1.0.0/16", **changes)


def hosts(scheduler: Scheduler) -> list[str]:
    assert scheduler.state.epoch is not None
    return sorted(one.rpartition(":")[0] for one in scheduler.state.epoch.addresses.values())


def test_the_cluster_spec_holds_the_addresses_that_runners_have_found():
    scheduler = started(on_fabric())
    assert all(host.startswith("10.1.0.") for host in hosts(scheduler))
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_no_process_starts_before_all_runners_have_told_theirs():
    scheduler = begun(on_fabric(), Cluster())
    scheduler.cluster.runner("worker-1").peer_address = ""
    scheduler.cluster.run_everything()
    scheduler.run(5)
    names = ("ps-0", "worker-0", "worker-1")
    assert not any(scheduler.cluster.runner(name).starts for name in names)
    scheduler.cluster.runner("worker-1").peer_address = "10.1.0.77"
    scheduler.run(10)
    assert "10.1.0.77" in hosts(scheduler)


def test_the_scheduler_asks_runners_by_the_address_of_their_agent():
    scheduler = started(on_fabric())
    assert not any(r.address.startswith("10.1.0.") for r in scheduler.state.tasks.values())


def test_what_was_found_outlives_the_scheduler():
    scheduler = started(on_fabric())
    before = hosts(scheduler)
    scheduler.restart()
    assert hosts(scheduler) == before
    assert all(record.peer_address for record in scheduler.state.tasks.values())


def test_a_task_that_is_launched_again_tells_its_address_again_and_the_job_goes_on():
    scheduler = started(on_fabric())
    fail(scheduler, "worker-1")
    recover(scheduler)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert all(host.startswith("10.1.0.") for host in hosts(scheduler))


def test_an_evaluator_is_launched_once_the_addresses_are_known():
    scheduler = begun(replace(with_evaluator(), peer_network="ib0"), Cluster())
    assert "evaluator-0" not in scheduler.state.tasks
    scheduler.cluster.run_everything()
    scheduler.run(10)
    assert "evaluator-0" in scheduler.state.tasks


@pytest.mark.parametrize("told", ["", "ib0", "10.1.0.1:80", 7, None])
def test_what_is_no_address_is_none(told: object):
    scheduler = begun(on_fabric(), Cluster())
    record = scheduler.state.tasks["worker-0"]
    scheduler.handle(events.RunnerReported(record.task_id, {"peer_address": told}))
    assert scheduler.state.tasks["worker-0"].peer_address == ""
