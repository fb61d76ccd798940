"""Tasks go over to a changed configuration in the order that the options name."""

from dataclasses import replace
from typing import Any

import pytest

from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model.controls import Controls
from dcos_tensorflow.core.model.job import JobPhase, Outcome, Verdict
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.restarts import update_order
from dcos_tensorflow.core.spec.service_spec import TaskRole, UpdateStrategy
from samples.states import a_record, a_role, a_spec, a_state, with_job, with_records


def a_service(*outdated: str, **changes: Any) -> ServiceState:
    """Return a running service of 1 ps and 2 workers with these tasks outdated."""
    job = {"deployed": True, **changes.pop("job", {})}
    spec = a_spec(**changes)
    names = ("ps-0", "worker-0", "worker-1", "tensorboard-0")
    records = []
    for name in names:
        record = a_record(name)
        current = "of-before" if name in outdated else spec.fingerprints[record.role]
        records.append(replace(record, fingerprint=current))
    return a_state(JobPhase.RUNNING, records, job=job, spec=spec)


def ended(state: ServiceState) -> ServiceState:
    verdict = Verdict(Outcome.STOPPED, 130, "Ctrl-C")
    return with_job(state, phase=JobPhase.ENDING, verdict=verdict)


class TestOutdated:
    def test_those_launched_with_other_options_are_in_start_order(self) -> None:
        state = a_service("worker-1", "ps-0")
        assert update_order.outdated(state.view()) == ("ps-0", "worker-1")

    def test_nothing_is_where_every_container_is_the_targets(self) -> None:
        assert update_order.outdated(a_service().view()) == ()

    def test_a_record_without_a_fingerprint_is_taken_for_current(self) -> None:
        state = a_service()
        assert update_order.outdated(with_records(state, a_record("worker-0")).view()) == ()

    def test_an_ended_task_is_not(self) -> None:
        state = a_service("worker-0")
        record = replace(state.tasks["worker-0"], state=TaskState.FAILED)
        assert update_order.outdated(with_records(state, record).view()) == ()

    def test_nothing_is_once_the_job_is_over(self) -> None:
        assert update_order.outdated(ended(a_service("worker-0")).view()) == ()

    def test_those_that_a_spec_would_make_so_are_known_beforehand(self) -> None:
        after = a_spec(
            roles=(
                a_role(TaskRole.WORKER, 2, env={"A": "1"}),
                a_role(TaskRole.PS, 1),
                a_role(TaskRole.TENSORBOARD, 1),
            )
        )
        assert update_order.outdated_for(a_service().view(), after) == ("worker-0", "worker-1")


class TestDue:
    def test_all_at_once(self) -> None:
        state = a_service("worker-0", "worker-1", update_strategy=UpdateStrategy.PARALLEL)
        assert update_order.due(state.view()) == ("worker-0", "worker-1")

    @pytest.mark.parametrize("phase", [JobPhase.STOPPING, JobPhase.PLACING, JobPhase.STARTING])
    def test_one_after_the_other_waits_until_the_one_before_runs(self, phase: JobPhase) -> None:
        state = a_service("worker-1", update_strategy=UpdateStrategy.SERIAL)
        assert update_order.due(with_job(state, phase=phase).view()) == ()

    def test_one_after_the_other_waits_for_a_sidecar_too(self) -> None:
        state = a_service("tensorboard-0", update_strategy=UpdateStrategy.SERIAL)
        staging = replace(state.tasks["tensorboard-0"], state=TaskState.STAGING)
        assert update_order.due(with_records(state, staging).view()) == ()

    def test_no_task_follows_the_canary_by_itself(self) -> None:
        state = a_service("worker-1", update_strategy=UpdateStrategy.CANARY)
        state = with_job(state, canary=configuration_id(state.spec))
        assert update_order.due(state.view()) == ()
        assert update_order.waits_for_approval(state.view())

    def test_the_others_follow_once_it_was_approved(self) -> None:
        state = a_service("ps-0", "worker-1", update_strategy=UpdateStrategy.CANARY)
        target = configuration_id(state.spec)
        state = with_job(state, canary=target)
        state = replace(state, controls=Controls(approved=target))
        assert update_order.due(state.view()) == ("ps-0", "worker-1")

    def test_an_approval_holds_for_its_configuration_only(self) -> None:
        state = a_service("worker-1", update_strategy=UpdateStrategy.CANARY)
        state = replace(state, controls=Controls(approved="of-another"))
        assert not update_order.is_approved(state.view())

    @pytest.mark.parametrize(
        "controls",
        [
            Controls(paused=("update",)),
            Controls(paused=("update/worker",)),
            Controls(completed=("update/worker/worker-0:[node]",)),
        ],
    )
    def test_whom_the_operator_holds_back_stays(self, controls: Controls) -> None:
        state = replace(a_service("ps-0", "worker-0"), controls=controls)
        assert "worker-0" not in update_order.due(state.view())


class TestReconfigured:
    def test_what_was_asked_of_the_update_before_ends_with_it(self) -> None:
        controls = Controls(
            paused=("update", "update/worker", "recovery"),
            completed=("update/worker/worker-0:[node]",),
            approved="of-before",
        )
        after = update_order.reconfigured(controls, a_service().spec)
        assert after == Controls(paused=("recovery",))

    def test_what_concerns_tasks_that_are_gone_is_dropped(self) -> None:
        controls = Controls(
            completed=("deploy/worker/worker-1:[node]", "deploy/worker/worker-0:[node]"),
            paused_tasks=("worker-0", "worker-1"),
        )
        smaller = a_spec(roles=(a_role(TaskRole.WORKER, 1),))
        after = update_order.reconfigured(controls, smaller)
        assert after.completed == ("deploy/worker/worker-0:[node]",)
        assert after.paused_tasks == ("worker-0",)

    def test_what_is_being_removed_stays_given_up(self) -> None:
        key = "decommission/worker-2/kill-worker-2"
        state = replace(a_service(), controls=Controls(completed=(key,)))
        assert update_order.reconfigured(state.controls, state.spec).completed == (key,)
