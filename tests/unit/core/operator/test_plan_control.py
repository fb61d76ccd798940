"""What an operator's verbs change, what they do to tasks, and what is refused with which reason."""

from dataclasses import replace
from typing import Any

import pytest

from dcos_tensorflow.core.kept import codec
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model.controls import Controls
from dcos_tensorflow.core.model.events import PlanCommand, PlanVerb, PodCommand, PodVerb
from dcos_tensorflow.core.model.job import JobPhase, Outcome, Verdict
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.operator.plan_control import CommandAnswer, Effects, Ruling, rule
from dcos_tensorflow.core.plans.plan import plans
from dcos_tensorflow.core.spec.service_spec import TaskRole, UpdateStrategy
from samples.states import a_record, a_role, a_spec, a_state, gang, running, with_job, with_records

NEVER_RUNNING = [
    (PlanVerb.START, CommandAnswer.RECEIVED),
    (PlanVerb.STOP, CommandAnswer.RECEIVED),
    (PlanVerb.PAUSE, CommandAnswer.RECEIVED),
    (PlanVerb.RESUME, CommandAnswer.ALREADY),
    (PlanVerb.FORCE_RESTART, CommandAnswer.RECEIVED),
    (PlanVerb.FORCE_COMPLETE, CommandAnswer.REFUSED),
]


def ask(
    state: ServiceState, verb: PlanVerb, plan: str = "deploy", phase: str = "", step: str = ""
) -> Ruling:
    return rule(state, PlanCommand(plan, verb, phase, step))


def ask_pod(state: ServiceState, verb: PodVerb, *tasks: str) -> Ruling:
    return rule(state, PodCommand(verb, tasks))


def after(state: ServiceState, ruling: Ruling) -> ServiceState:
    """Return the state with a ruling's controls, as a scheduler that restarted has them."""
    return replace(state, controls=codec.decode(Controls, codec.encode(ruling.controls)))


def updating(**changes: Any) -> ServiceState:
    """Return a running service with both workers outdated."""
    spec = a_spec(**changes)
    outdated = [a_record(f"worker-{i}", fingerprint="of-before") for i in (0, 1)]
    records_ = [a_record("ps-0"), a_record("tensorboard-0"), *outdated]
    return a_state(JobPhase.RUNNING, records_, job={"deployed": True}, spec=spec)


def elastic(min_count: int = 1, **job: Any) -> ServiceState:
    """Return a gang of a ps and 3 workers on its way to its first deployment."""
    roles = (a_role(TaskRole.WORKER, 3, min_count=min_count), a_role(TaskRole.PS, 1))
    return a_state(JobPhase.PLACING, spec=a_spec(roles=roles), job=job)


class TestEveryVerb:
    @pytest.mark.parametrize(("verb", "answer"), NEVER_RUNNING)
    def test_it_has_an_answer_before_anything_runs(
        self, verb: PlanVerb, answer: CommandAnswer
    ) -> None:
        assert ask(a_state(), verb).answer is answer

    @pytest.mark.parametrize("verb", list(PlanVerb))
    def test_an_unknown_plan_is_unknown(self, verb: PlanVerb) -> None:
        assert ask(running(), verb, "nosuch").answer is CommandAnswer.UNKNOWN

    @pytest.mark.parametrize(("phase", "step"), [("chief", ""), ("worker", "chief-0:[node]")])
    @pytest.mark.parametrize("verb", list(PlanVerb))
    def test_an_unknown_phase_or_step_is_unknown(
        self, verb: PlanVerb, phase: str, step: str
    ) -> None:
        assert ask(running(), verb, "deploy", phase, step).answer is CommandAnswer.UNKNOWN

    @pytest.mark.parametrize("verb", [PlanVerb.PAUSE, PlanVerb.RESUME])
    def test_a_single_step_is_neither_paused_nor_resumed(self, verb: PlanVerb) -> None:
        ruling = ask(a_state(), verb, "deploy", "worker", "worker-0:[node]")

        assert ruling.answer is CommandAnswer.REFUSED
        assert "the pod" in ruling.why

    @pytest.mark.parametrize("verb", list(PlanVerb))
    @pytest.mark.parametrize("job_phase", list(JobPhase))
    def test_twice_is_as_good_as_once(self, verb: PlanVerb, job_phase: JobPhase) -> None:
        state = a_state(job_phase, gang(), job={"deployed": True})
        for plan in plans(state.view()):
            once = ask(state, verb, plan)
            again = ask(after(state, once), verb, plan)
            assert again.controls == once.controls

    def test_what_is_not_received_changes_nothing(self) -> None:
        state = replace(running(), controls=Controls(paused=("recovery",)))

        ruling = rule(state, PlanCommand("nosuch", PlanVerb.STOP))
        assert (ruling.controls, ruling.effects) == (state.controls, Effects())
        assert "no such plan" in ruling.why


class TestPauseAndResume:
    def test_a_plan_is_held(self) -> None:
        ruling = ask(a_state(), PlanVerb.PAUSE)

        assert ruling.controls.holds("deploy", "worker")

    def test_a_phase_alone_is_held(self) -> None:
        controls = ask(a_state(), PlanVerb.PAUSE, phase="tensorboard").controls

        assert controls.holds("deploy", "tensorboard")
        assert not controls.holds("deploy", "worker")

    def test_a_second_pause_is_already_so(self) -> None:
        state = after(a_state(), ask(a_state(), PlanVerb.PAUSE))

        assert ask(state, PlanVerb.PAUSE).answer is CommandAnswer.ALREADY

    def test_a_plan_that_is_complete_cannot_be_paused(self) -> None:
        assert ask(running(), PlanVerb.PAUSE).answer is CommandAnswer.ALREADY

    def test_recovery_can_be_held_back_before_anything_has_failed(self) -> None:
        ruling = ask(running(), PlanVerb.PAUSE, "recovery")

        assert ruling.answer is CommandAnswer.RECEIVED
        assert ruling.controls.holds("recovery")

    def test_the_one_phase_of_recovery_stands_for_the_plan(self) -> None:
        state = a_state(JobPhase.BACKING_OFF, gang(), job={"deployed": True, "restarts": 2})

        assert ask(state, PlanVerb.PAUSE, "recovery", "restart-2").controls.paused == ("recovery",)

    def test_resume_lets_go(self) -> None:
        paused = after(a_state(), ask(a_state(), PlanVerb.PAUSE))

        assert ask(paused, PlanVerb.RESUME).controls == Controls()

    def test_a_phase_stays_paused_when_its_plan_is_resumed(self) -> None:
        state = after(a_state(), ask(a_state(), PlanVerb.PAUSE, phase="worker"))
        ruling = ask(state, PlanVerb.RESUME)

        assert ruling.answer is CommandAnswer.ALREADY
        assert "paused in it: worker" in ruling.why

    def test_an_uninstall_cannot_be_paused(self) -> None:
        state = a_state(JobPhase.ENDING, gang(), job={"uninstalling": True})

        assert ask(state, PlanVerb.PAUSE).answer is CommandAnswer.REFUSED


class TestStopAndStart:
    def test_stop_pauses_and_forgets_what_was_forced(self) -> None:
        done = ask(a_state(), PlanVerb.FORCE_COMPLETE, phase="tensorboard")
        stopped = ask(after(a_state(), done), PlanVerb.STOP).controls

        assert stopped.holds("deploy")
        assert not stopped.forced("tensorboard-0")

    def test_start_resumes_what_was_stopped(self) -> None:
        stopped = after(a_state(), ask(a_state(), PlanVerb.STOP))

        assert not ask(stopped, PlanVerb.START).controls.holds("deploy")

    def test_start_of_a_complete_plan_restarts_its_tasks(self) -> None:
        ruling = ask(running(), PlanVerb.START)

        assert ruling.effects.restart == ("ps-0", "worker-0", "worker-1", "tensorboard-0")

    def test_start_of_a_plan_in_progress_does_nothing(self) -> None:
        ruling = ask(a_state(), PlanVerb.START)

        assert (ruling.answer, ruling.effects) == (CommandAnswer.RECEIVED, Effects())


class TestForceRestart:
    def test_a_step_restarts_its_task(self) -> None:
        ruling = ask(running(), PlanVerb.FORCE_RESTART, "deploy", "worker", "worker-1:[node]")

        assert ruling.effects == Effects(restart=("worker-1",), plan="deploy")

    def test_a_phase_restarts_its_tasks(self) -> None:
        ruling = ask(running(), PlanVerb.FORCE_RESTART, phase="worker")

        assert ruling.effects.restart == ("worker-0", "worker-1")

    def test_a_task_that_has_finished_is_left_alone(self) -> None:
        records_ = [*gang()[:2], a_record("worker-1", TaskState.FINISHED)]
        state = a_state(JobPhase.RUNNING, records_, job={"deployed": True})

        assert ask(state, PlanVerb.FORCE_RESTART, phase="worker").effects.restart == ("worker-0",)

    def test_a_task_that_restarts_already_is_not_restarted_again(self) -> None:
        job = {"deployed": True, "restarting": ("worker-0",)}
        state = a_state(JobPhase.STOPPING, gang(), job=job)

        assert ask(state, PlanVerb.FORCE_RESTART, phase="worker").effects.restart == ("worker-1",)

    def test_a_step_that_was_forced_complete_is_wanted_again(self) -> None:
        done = after(a_state(), ask(a_state(), PlanVerb.FORCE_COMPLETE, phase="tensorboard"))

        restarted = ask(done, PlanVerb.FORCE_RESTART, phase="tensorboard")
        assert not restarted.controls.forced("tensorboard-0")

    def test_nothing_restarts_once_the_job_is_over(self) -> None:
        verdict = Verdict(Outcome.SUCCEEDED, 0, "worker-0 finished")
        state = a_state(JobPhase.DONE, gang(TaskState.FINISHED), job={"verdict": verdict})

        assert ask(state, PlanVerb.FORCE_RESTART).answer is CommandAnswer.REFUSED


class TestForceComplete:
    def test_a_sidecar_is_given_up(self) -> None:
        ruling = ask(a_state(), PlanVerb.FORCE_COMPLETE, phase="tensorboard")

        assert ruling.controls.forced("tensorboard-0")
        assert ruling.effects == Effects()

    def test_a_step_that_is_complete_is_already_so(self) -> None:
        ruling = ask(running(), PlanVerb.FORCE_COMPLETE, "deploy", "worker", "worker-0:[node]")

        assert ruling.answer is CommandAnswer.ALREADY

    def test_a_member_that_the_job_can_do_without_is_done_without(self) -> None:
        ruling = ask(elastic(), PlanVerb.FORCE_COMPLETE, "deploy", "worker", "worker-2:[node]")

        assert ruling.controls.forced("worker-2")

    @pytest.mark.parametrize(
        ("state", "task", "why"),
        [
            pytest.param(a_state(), "worker-1", "no min_count", id="all are needed"),
            pytest.param(elastic(), "ps-0", "no min_count", id="a role without a lower limit"),
            pytest.param(elastic(), "worker-0", "decides", id="the decider"),
            pytest.param(elastic(3), "worker-2", "at least 3 of worker", id="too few left"),
            pytest.param(
                elastic(2, absent=("worker-1",)), "worker-2", "without already", id="one is gone"
            ),
        ],
    )
    def test_a_member_that_is_needed_is_not(self, state: ServiceState, task: str, why: str) -> None:
        phase = task.rpartition("-")[0]
        ruling = ask(state, PlanVerb.FORCE_COMPLETE, "deploy", phase, f"{task}:[node]")

        assert ruling.answer is CommandAnswer.REFUSED
        assert why in ruling.why

    def test_a_member_with_a_container_is_not(self) -> None:
        state = elastic()
        staging = a_record("worker-2", TaskState.STAGING)
        placed = with_job(with_records(state, staging), phase=JobPhase.STARTING)
        ruling = ask(placed, PlanVerb.FORCE_COMPLETE, "deploy", "worker", "worker-2:[node]")

        assert ruling.answer is CommandAnswer.REFUSED
        assert "has its place on node1" in ruling.why

    def test_the_plan_shows_it(self) -> None:
        ruling = ask(a_state(), PlanVerb.FORCE_COMPLETE, phase="tensorboard")
        plan = plans(after(a_state(), ruling).view())["deploy"]

        assert [p.status for p in plan.phases if p.name == "tensorboard"] == ["COMPLETE"]


class TestUpdates:
    def test_pausing_holds_those_back_that_have_not_gone_over(self) -> None:
        ruling = ask(updating(), PlanVerb.PAUSE, "update")

        assert ruling.controls.holds("update", "worker")

    def test_the_deploy_plan_stands_for_the_update(self) -> None:
        ruling = ask(updating(), PlanVerb.PAUSE, "deploy")

        assert ruling.controls.paused == ("update",)

    def test_the_deploy_plan_is_resumed_that_was_paused_before_there_was_an_update(self) -> None:
        state = replace(updating(), controls=Controls(paused=("deploy",)))

        assert ask(state, PlanVerb.RESUME, "deploy").controls.paused == ()

    def test_before_the_first_deployment_the_deploy_plan_stands_for_itself(self) -> None:
        state = updating()
        state = with_job(state, deployed=False, phase=JobPhase.STARTING)

        assert ask(state, PlanVerb.PAUSE, "deploy").controls.paused == ("deploy",)

    def test_a_canary_is_approved_by_resume(self) -> None:
        state = updating(update_strategy=UpdateStrategy.CANARY)
        target = configuration_id(state.spec)
        state = with_job(state, canary=target)

        assert ask(state, PlanVerb.RESUME, "update").controls.approved == target

    def test_there_is_nothing_to_approve_before_the_canary_went(self) -> None:
        state = updating(update_strategy=UpdateStrategy.CANARY)

        assert ask(state, PlanVerb.RESUME, "update").answer is CommandAnswer.ALREADY

    def test_stop_takes_the_approval_back(self) -> None:
        state = updating(update_strategy=UpdateStrategy.CANARY)
        state = replace(state, controls=Controls(approved=configuration_id(state.spec)))

        assert ask(state, PlanVerb.STOP, "update").controls.approved == ""

    def test_a_task_that_is_forced_complete_stays_as_it_is(self) -> None:
        ruling = ask(updating(), PlanVerb.FORCE_COMPLETE, "update", "worker", "worker-1:[node]")

        assert ruling.controls.completed == ("update/worker/worker-1:[node]",)
        assert not ruling.controls.forced("worker-1")


class TestRemovals:
    def test_a_decommission_is_held_back_by_phase(self) -> None:
        records_ = [*gang(), a_record("worker-2")]
        state = a_state(JobPhase.RUNNING, records_, job={"deployed": True})
        ruling = ask(state, PlanVerb.PAUSE, "decommission", "worker-2")

        assert ruling.controls.holds("decommission", "worker-2")

    def test_what_is_being_removed_is_not_restarted(self) -> None:
        records_ = [*gang(), a_record("worker-2")]
        state = a_state(JobPhase.RUNNING, records_, job={"deployed": True})

        ruling = ask(state, PlanVerb.FORCE_RESTART, "decommission")
        assert ruling.answer is CommandAnswer.REFUSED

    def test_an_agent_that_never_answers_is_given_up_by_force(self) -> None:
        dead = a_record("worker-0", TaskState.UNREACHABLE)
        state = a_state(JobPhase.ENDING, [dead], job={"uninstalling": True})

        ruling = ask(
            state, PlanVerb.FORCE_COMPLETE, "deploy", "kill-tasks", f"kill-task-{dead.task_id}"
        )
        assert ruling.effects.give_up == ("worker-0",)

    def test_the_last_step_of_an_uninstall_cannot_be_left_out(self) -> None:
        state = a_state(JobPhase.ENDING, job={"uninstalling": True})

        ruling = ask(state, PlanVerb.FORCE_COMPLETE, "deploy", "deregister-service", "deregister")
        assert ruling.answer is CommandAnswer.REFUSED


class TestPods:
    @pytest.mark.parametrize("verb", list(PodVerb))
    def test_an_unknown_one_is_unknown(self, verb: PodVerb) -> None:
        ruling = ask_pod(running(), verb, "worker-7")

        assert ruling.answer is CommandAnswer.UNKNOWN
        assert "worker-7" in ruling.why

    @pytest.mark.parametrize("verb", [PodVerb.RESTART, PodVerb.REPLACE, PodVerb.PAUSE])
    def test_one_that_has_finished_has_done_its_part(self, verb: PodVerb) -> None:
        records_ = [*gang()[:2], a_record("worker-1", TaskState.FINISHED)]
        state = a_state(JobPhase.RUNNING, records_, job={"deployed": True})

        assert ask_pod(state, verb, "worker-1").answer is CommandAnswer.REFUSED

    def test_restart_is_an_effect(self) -> None:
        assert ask_pod(running(), PodVerb.RESTART, "ps-0").effects == Effects(restart=("ps-0",))

    def test_replace_is_an_effect(self) -> None:
        assert ask_pod(running(), PodVerb.REPLACE, "ps-0").effects == Effects(replace=("ps-0",))

    def test_one_that_is_being_replaced_is_not_replaced_again(self) -> None:
        state = running()
        state = with_job(state, replacing=("ps-0",))

        assert ask_pod(state, PodVerb.REPLACE, "ps-0").effects == Effects()

    def test_pause_and_resume_are_kept_in_the_controls(self) -> None:
        paused = ask_pod(running(), PodVerb.PAUSE, "worker-1")
        resumed = ask_pod(after(running(), paused), PodVerb.RESUME, "worker-1")

        assert paused.controls.paused_tasks == ("worker-1",)
        assert resumed.controls.paused_tasks == ()

    def test_a_task_that_was_forced_complete_is_wanted_again_when_restarted(self) -> None:
        done = after(a_state(), ask(a_state(), PlanVerb.FORCE_COMPLETE, phase="tensorboard"))

        assert not ask_pod(done, PodVerb.RESTART, "tensorboard-0").controls.forced("tensorboard-0")

    def test_one_that_is_not_wanted_any_more_is_not_restarted(self) -> None:
        state = a_state(JobPhase.RUNNING, [*gang(), a_record("worker-2")], job={"deployed": True})

        ruling = ask_pod(state, PodVerb.RESTART, "worker-2")
        assert ruling.answer is CommandAnswer.REFUSED
        assert "being removed" in ruling.why

    @pytest.mark.parametrize("verb", [PodVerb.RESTART, PodVerb.REPLACE, PodVerb.PAUSE])
    def test_nothing_is_asked_of_an_uninstall(self, verb: PodVerb) -> None:
        state = a_state(JobPhase.ENDING, gang(), job={"uninstalling": True})

        assert ask_pod(state, verb, "worker-1").answer is CommandAnswer.REFUSED
