"""What is kept of a service that runs for months grows neither with its months nor its tasks."""

from dataclasses import replace

import pytest

from dcos_tensorflow.core.kept import codec
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.job import COLLATERAL_NAMES, Incident
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.operator.requests import CONFIGURATIONS_KEPT
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import Strategy
from simulated.mesos import Cluster
from simulated.scheduler import fail, small_job, started, training

MEMBERS = 300


@pytest.fixture(scope="module")
def incidents() -> tuple[Incident, ...]:
    """Return what is kept when one of 300 MultiWorkerMirrored members ends, and all end of it."""
    spec = training(Strategy.MULTI_WORKER, ps=0, chief=0, worker=MEMBERS)
    scheduler = started(spec, Cluster(MEMBERS, Resources(cpus=1, mem=1024, disk=1000)))
    cluster = scheduler.cluster
    for number in range(MEMBERS):
        task_id = cluster.id_of(f"worker-{number}")
        reason = "REASON_CONTAINER_PREEMPTED" if number == 0 else ""
        cluster.report(task_id, TaskState.FAILED, "Command exited with status 1", reason)
    scheduler.handle(*cluster.outbox)
    return scheduler.state.job.incidents


def test_an_incident_keeps_the_first_names_of_its_collateral_and_their_number(incidents):
    (incident,) = incidents
    assert len(incident.collateral) == COLLATERAL_NAMES
    assert len(incident.collateral) + incident.more_collateral == MEMBERS - 1


def test_the_record_of_the_job_has_room_for_hours_of_preemptions(incidents):
    # ZooKeeper takes one MB; a preemption every ten seconds is 360 in the window of an hour.
    assert 360 * len(codec.encode(incidents)) < 500_000


def test_an_inverse_offer_is_forgotten_with_the_maintenance_that_it_spoke_of():
    scheduler = started()
    for number in range(50):
        soon = scheduler.cluster.now + 10_000
        asked = events.InverseOffer(f"I{number}", "S1", soon, None)
        scheduler.handle(events.InverseOffersReceived((asked,)))
        scheduler.run(1)
    assert scheduler.state.inverse_offers == {"S1": "I49"}
    scheduler.handle(events.InverseOfferRescinded("I49"))
    assert scheduler.state.inverse_offers == {}
    assert scheduler.state.maintenance.starts == {}


def test_an_agent_that_is_not_spoken_of_any_more_is_forgotten():
    scheduler = started()
    soon = scheduler.cluster.now + 10_000
    for agent in ("gone-1", "gone-2"):
        asked = events.InverseOffer(f"I-{agent}", agent, soon, None)
        scheduler.handle(events.InverseOffersReceived((asked,)))
        scheduler.cluster.now += 1000
    assert set(scheduler.state.maintenance.starts) == {"gone-2"}


def test_the_configurations_of_before_are_the_newest_and_those_in_use():
    scheduler = started()
    first = configuration_id(scheduler.state.spec)
    for number in range(3 * CONFIGURATIONS_KEPT):
        spec = replace(scheduler.state.spec, stall_seconds=1000.0 + number)
        spec = replace(spec, gang=replace(spec.gang, hold_seconds=11.0 + number))
        scheduler.handle(events.PlanCommand("update", events.PlanVerb.PAUSE))
        scheduler.handle(events.ConfigurationChanged(spec))
    stored = {p.split("/")[1] for p in scheduler.store if p.startswith("Configurations/")}
    assert stored == set(scheduler.state.configurations)
    in_use = {configuration_id(scheduler.state.spec), *scheduler.state.former_options}
    assert len(stored) <= CONFIGURATIONS_KEPT + len(in_use)
    assert in_use <= stored
    assert first in stored or first not in scheduler.state.former_options


def test_failures_of_an_agent_are_counted_as_far_as_they_matter():
    scheduler = started(small_job(retry=replace(small_job().retry, limit=50)))
    for _ in range(6):
        fail(scheduler, "worker-1", "Command terminated with signal Killed")
        scheduler.run(130)
        scheduler.cluster.run_everything()
        scheduler.run(5)
    assert all(len(times) <= 3 for times in scheduler.state.agent_failures.values())
