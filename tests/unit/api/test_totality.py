"""Every view has an answer for every state that can be."""

import itertools
import json
from collections.abc import Iterator

import pytest

from dcos_tensorflow.api import verbs
from dcos_tensorflow.api.answers import json_answer
from dcos_tensorflow.api.counters import Measured
from dcos_tensorflow.api.metrics import dropwizard_body, prometheus_text
from dcos_tensorflow.api.views import cluster, configurations, debug, health, job, plans, pods
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model.controls import Controls
from dcos_tensorflow.core.model.job import JobPhase, Outcome, Verdict
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.plans.elements import Status, aggregate
from dcos_tensorflow.core.plans.plan import plans as all_plans
from dcos_tensorflow.core.spec.service_spec import UpdateStrategy
from samples.states import a_record, a_spec, a_state, an_incident

VERDICTS = [None, *(Verdict(outcome, 0, "because") for outcome in Outcome)]
SPEC = a_spec()

#: One state in so many is looked at, of which the soak leaves none out. Thirteen divides no count
#: of the parts, so every value still comes up with every other one.
EVERY = pytest.mark.parametrize("every", [13, pytest.param(1, marks=pytest.mark.soak)])
PHASES = pytest.mark.parametrize("phase", list(JobPhase))


def states(phase: JobPhase, every: int) -> Iterator[ServiceState]:
    """Yield states of ``phase``: each task state, deployed or not, with each verdict."""
    product = itertools.product(
        [None, *TaskState], [False, True], VERDICTS, [False, True], [False, True]
    )
    for state, deployed, verdict, misfit, registered in itertools.islice(product, 0, None, every):
        names = ("ps-0", "worker-1", "tensorboard-0") if state is not None else ()
        yield a_state(
            phase,
            [a_record(name, state or TaskState.RUNNING, failures=3) for name in names],
            job={"deployed": deployed, "verdict": verdict, "incidents": (an_incident(),)},
            misfits={"worker-0": "no offers"} if misfit else {},
            spec=SPEC,
            registered=registered,
        )


def steered(phase: JobPhase, every: int) -> Iterator[ServiceState]:
    """Yield states of ``phase`` that an operator steers: paused, updating, scaled in, uninstalled.

    Each phase begins with another state: of one in seven, all phases together still see every one.
    """
    every = min(every, 7)
    names = ("ps-0", "worker-0", "worker-1", "worker-7", "tensorboard-0")
    held = Controls(
        paused=("deploy/worker", "recovery", "update", "decommission"),
        completed=("deploy/tensorboard/tensorboard-0:[node]",),
        paused_tasks=("worker-0",),
    )
    spec = a_spec(update_strategy=UpdateStrategy.CANARY)
    product = itertools.product(TaskState, [Controls(), held], [False, True])
    first = list(JobPhase).index(phase) % every
    for state, controls, uninstalling in itertools.islice(product, first, None, every):
        records = [a_record(n, state, fingerprint="of-before", killed_at=1.0) for n in names]
        job = {
            "deployed": True,
            "restarting": ("worker-0",),
            "replacing": ("worker-1",),
            "absent": ("worker-1",),
            "uninstalling": uninstalling,
            "given_up": ("ps-0 on node1",) if uninstalling else (),
            "canary": configuration_id(spec),
        }
        yield a_state(phase, records, job=job, spec=spec, controls=controls)


@EVERY
@PHASES
def test_every_view_answers_with_json(phase: JobPhase, every: int) -> None:
    for state in itertools.chain(states(phase, every), steered(phase, every)):
        bodies = [
            *(plans.plan_and_status(state, name)[0] for name in all_plans(state.view())),
            pods.pods_status(state),
            pods.pod_info(state, "worker-1"),
            cluster.endpoint(state, "worker"),
            configurations.target(state, {}, {}),
            configurations.properties(state),
            cluster.cluster(state),
            job.job(state),
            job.why(state),
            debug.offers(state),
            debug.debug_plans(state, None, None, None),
            debug.task_statuses(state, None, None, None),
            debug.reservations(state),
            health.health(state)[1],
            dropwizard_body(state, Measured()),
        ]
        for body in bodies:
            json.loads(bytes(json_answer(body).body))


@EVERY
@PHASES
def test_a_scrape_is_never_empty(phase: JobPhase, every: int) -> None:
    assert all(
        b"plan_status_deploy" in prometheus_text(state, Measured())
        for state in states(phase, every)
    )


@EVERY
@PHASES
def test_phases_add_up_and_every_step_says_something(phase: JobPhase, every: int) -> None:
    for state in itertools.chain(states(phase, every), steered(phase, every)):
        for plan in all_plans(state.view()).values():
            for part in plan.phases:
                assert part.status is aggregate(step.status for step in part.steps)
                assert all(step.message for step in part.steps)


@EVERY
@PHASES
def test_errors_and_the_error_status_go_together(phase: JobPhase, every: int) -> None:
    for state in states(phase, every):
        plan = all_plans(state.view())["deploy"]
        if plan.errors:
            assert plan.status is Status.ERROR


@EVERY
@PHASES
def test_marathon_never_takes_a_scheduler_with_a_state_for_unhealthy(
    phase: JobPhase, every: int
) -> None:
    known = itertools.chain(states(phase, every), steered(phase, every))
    assert all(200 <= health.health(state)[0] < 400 for state in known)


@EVERY
@PHASES
def test_every_verb_has_an_answer(phase: JobPhase, every: int) -> None:
    for state in steered(phase, every):
        for name, plan in all_plans(state.view()).items():
            part = plan.phases[0] if plan.phases else None
            for word in verbs.PLAN_VERBS:
                replies = [verbs.plan_verb(state, name, word, None, None)]
                if part is not None:
                    replies.append(verbs.plan_verb(state, name, word, part.id, None))
                    replies.append(verbs.plan_verb(state, name, word, part.id, part.steps[0].id))
                assert all(reply.status in (200, 208, 409) for reply in replies)
                assert all(reply.body["message"] for reply in replies)
