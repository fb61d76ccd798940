"""The plans tell where a job stands, in the words of the DC/OS SDK."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model.controls import Controls
from dcos_tensorflow.core.model.job import JobPhase, Outcome, Restart, Verdict
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.plans import plan as of_gang
from dcos_tensorflow.core.plans.elements import Phase, Plan, PlanStrategy, Status, Step, aggregate
from dcos_tensorflow.core.spec.service_spec import TaskRole, UpdateStrategy
from samples.states import (
    a_record,
    a_role,
    a_spec,
    a_state,
    an_incident,
    failed,
    gang,
    offered,
    played,
    registered,
    running,
    updated,
    with_job,
    with_records,
)


def deploy_plan(state: ServiceState) -> Plan:
    return plans(state)["deploy"]


def plans(state: ServiceState) -> Mapping[str, Plan]:
    found = of_gang.plans(state.view())
    assert of_gang.names(state.view()) == tuple(found)
    return found


def recovery_plan(state: ServiceState) -> Plan:
    return of_gang.recovery_plan(state.view())


def steps_of(plan: Plan) -> dict[str, Step]:
    return {step.task: step for phase in plan.phases for step in phase.steps}


def phases_of(plan: Plan) -> dict[str, Phase]:
    return {phase.name: phase for phase in plan.phases}


def statuses(plan: Plan) -> dict[str, Status]:
    return {name: step.status for name, step in steps_of(plan).items()}


class TestShape:
    def test_deploy_comes_before_recovery(self) -> None:
        assert list(plans(a_state())) == ["deploy", "recovery"]

    def test_phases_are_in_start_order_whatever_the_order_of_the_options(self) -> None:
        roles = tuple(a_role(role, 1) for role in reversed(list(TaskRole)))
        plan = deploy_plan(a_state(spec=a_spec(roles=roles)))
        assert [phase.name for phase in plan.phases] == [
            "ps",
            "chief",
            "worker",
            "gpu-worker",
            "evaluator",
            "tensorboard",
            "data-dispatcher",
            "data-worker",
        ]

    def test_a_role_with_no_tasks_has_no_phase(self) -> None:
        roles = (a_role(TaskRole.WORKER, 1), a_role(TaskRole.PS, 0))
        assert list(phases_of(deploy_plan(a_state(spec=a_spec(roles=roles))))) == ["worker"]

    def test_steps_are_named_as_the_sdk_names_them(self) -> None:
        steps = phases_of(deploy_plan(a_state()))["worker"].steps
        assert [step.name for step in steps] == ["worker-0:[node]", "worker-1:[node]"]

    def test_ids_outlive_every_change_of_the_state(self) -> None:
        early, late = deploy_plan(a_state()), deploy_plan(running())
        assert [(p.id, [s.id for s in p.steps]) for p in early.phases] == [
            (p.id, [s.id for s in p.steps]) for p in late.phases
        ]

    @pytest.mark.parametrize("updates", [False, True])
    def test_no_two_ids_are_the_same(self, updates: bool) -> None:
        restarting = a_state(JobPhase.STARTING, gang(), job={"deployed": True})
        ids = [
            identifier
            for plan in plans(updating() if updates else restarting).values()
            for phase in plan.phases
            for identifier in (phase.id, *(step.id for step in phase.steps))
        ]
        assert len(ids) == len(set(ids))

    def test_two_services_have_different_ids(self) -> None:
        one, other = (
            deploy_plan(a_state(spec=a_spec(name=name))).phases[0].id for name in ("one", "other")
        )
        assert one != other


@pytest.mark.parametrize(
    ("children", "parent"),
    [
        ([], Status.COMPLETE),
        ([Status.COMPLETE, Status.COMPLETE], Status.COMPLETE),
        ([Status.PENDING, Status.PENDING], Status.PENDING),
        ([Status.STARTING, Status.PENDING], Status.IN_PROGRESS),
        ([Status.PREPARED, Status.PENDING], Status.IN_PROGRESS),
        ([Status.COMPLETE, Status.PENDING], Status.IN_PROGRESS),
        ([Status.DELAYED, Status.COMPLETE], Status.DELAYED),
        ([Status.WAITING, Status.STARTED], Status.WAITING),
        ([Status.ERROR, Status.COMPLETE], Status.ERROR),
    ],
)
def test_a_parent_has_the_status_that_its_children_add_up_to(
    children: list[Status], parent: Status
) -> None:
    assert aggregate(children) is parent


class TestDeployBeforeItIsDone:
    def test_everything_is_pending_before_the_master_answers(self) -> None:
        plan = deploy_plan(a_state(registered=False))
        assert plan.status is Status.PENDING
        assert "not registered" in steps_of(plan)["ps-0"].message

    def test_a_task_that_fits_nowhere_is_pending_with_the_reason(self) -> None:
        reason = "needs 2 gpus, best agent a7 offers 1"
        plan = deploy_plan(a_state(misfits={"worker-1": reason}))
        assert steps_of(plan)["worker-1"].status is Status.PENDING
        assert steps_of(plan)["worker-1"].message == reason

    def test_a_task_that_fits_is_prepared_and_names_whom_it_waits_for(self) -> None:
        plan = deploy_plan(a_state(misfits={"worker-1": "no offers"}))
        assert steps_of(plan)["worker-0"].status is Status.PREPARED
        assert "worker-1" in steps_of(plan)["worker-0"].message

    def test_real_placement_reasons_reach_the_steps(self) -> None:
        plan = deploy_plan(played(registered(), offered(1)))
        waiting = [s for s in steps_of(plan).values() if s.status is Status.PENDING]
        assert plan.status is Status.IN_PROGRESS
        assert any("best agent a1 offers" in step.message for step in waiting)

    @pytest.mark.parametrize(
        ("state", "status"),
        [
            (TaskState.LAUNCHING, Status.STARTING),
            (TaskState.STAGING, Status.STARTING),
            (TaskState.STARTING, Status.STARTING),
            (TaskState.RUNNING, Status.STARTED),
            (TaskState.FINISHED, Status.COMPLETE),
            (TaskState.UNREACHABLE, Status.PENDING),
            (TaskState.FAILED, Status.PENDING),
            (TaskState.LOST, Status.PENDING),
            (TaskState.KILLED, Status.PENDING),
        ],
    )
    def test_a_launched_task_stands_where_mesos_says(
        self, state: TaskState, status: Status
    ) -> None:
        plan = deploy_plan(a_state(JobPhase.STARTING, [a_record("worker-0", state)]))
        assert statuses(plan)["worker-0"] is status

    def test_a_launched_task_says_where(self) -> None:
        plan = deploy_plan(a_state(JobPhase.STARTING, [a_record("worker-0", TaskState.STAGING)]))
        assert "on node1 at 127.0.0.11:31100" in steps_of(plan)["worker-0"].message

    def test_a_gang_that_is_stopped_before_it_was_deployed_says_why(self) -> None:
        why = "worker-1 failed; the gang is stopped and started again"
        records = [
            a_record("ps-0", kill_reason="the job is stopping"),
            a_record("worker-1", TaskState.FAILED),
        ]
        plan = deploy_plan(a_state(JobPhase.STOPPING, records, job={"why": why}))
        assert steps_of(plan)["worker-1"].message == why
        assert steps_of(plan)["ps-0"].message == "is being ended: the job is stopping"
        assert plan.status is Status.PENDING

    def test_a_gang_that_backs_off_is_delayed(self) -> None:
        state = a_state(JobPhase.BACKING_OFF, gang(TaskState.KILLED), job={"why": "in 2 s"})
        assert deploy_plan(state).status is Status.DELAYED


class TestDeployDone:
    def test_it_is_complete_once_the_whole_gang_runs(self) -> None:
        plan = deploy_plan(running())
        assert plan.status is Status.COMPLETE
        assert steps_of(plan)["worker-1"].message.startswith("runs on node1")

    def test_the_real_core_brings_it_there(self) -> None:
        state = played(registered(), offered(1, 2, 3, 4))
        for name in ("ps-0", "worker-0", "worker-1"):
            state = updated(state, name, TaskState.RUNNING)
        assert state.job.deployed
        assert deploy_plan(state).status is Status.COMPLETE

    @pytest.mark.parametrize("phase", list(JobPhase))
    def test_it_stays_complete_whatever_happens_later(self, phase: JobPhase) -> None:
        state = a_state(phase, gang(TaskState.KILLED), job={"deployed": True})
        plan = deploy_plan(state)
        assert plan.status is Status.COMPLETE
        assert phases_of(plan)["worker"].status is Status.COMPLETE

    def test_a_job_that_succeeds_before_all_of_it_ran_is_deployed(self) -> None:
        records = [a_record("worker-0", TaskState.FINISHED)]
        plan = deploy_plan(a_state(JobPhase.FINISHING, records))
        assert plan.status is Status.COMPLETE
        assert "without it" in steps_of(plan)["worker-1"].message

    def test_a_finished_task_is_complete(self) -> None:
        records = [*gang()[:2], a_record("worker-1", TaskState.FINISHED)]
        plan = deploy_plan(a_state(JobPhase.RUNNING, records, job={"deployed": True}))
        assert steps_of(plan)["worker-1"].message.startswith("finished on node1")


class TestVerdicts:
    def test_a_failed_job_is_an_error_of_the_plan_and_of_the_task_that_failed_it(self) -> None:
        plan = deploy_plan(failed())
        assert plan.status is Status.ERROR
        assert plan.errors == ("worker-1 failed: exit 3 (3 retries are used up)",)
        assert [n for n, s in statuses(plan).items() if s is Status.ERROR] == ["worker-1"]
        assert "exited with status 3" in steps_of(plan)["worker-1"].message

    def test_a_job_that_fails_after_it_was_deployed_is_an_error_too(self) -> None:
        plan = deploy_plan(failed(deployed=True))
        assert plan.status is Status.ERROR
        assert statuses(plan)["worker-1"] is Status.COMPLETE

    def test_a_job_that_was_stopped_on_its_way_waits_for_its_user(self) -> None:
        verdict = Verdict(Outcome.STOPPED, 130, "Ctrl-C")
        plan = deploy_plan(a_state(JobPhase.DONE, job={"verdict": verdict}))
        assert plan.status is Status.WAITING
        assert plan.errors == ()
        assert steps_of(plan)["ps-0"].message == "stopped: Ctrl-C"


class TestSidecars:
    def with_tensorboard(self, **changes: object) -> ServiceState:
        return with_records(running(), a_record("tensorboard-0", **changes))

    def test_one_that_fits_nowhere_does_not_hold_the_plan_up(self) -> None:
        state = a_state(JobPhase.RUNNING, gang(), job={"deployed": True})
        plan = deploy_plan(state)
        assert plan.status is Status.COMPLETE
        assert statuses(plan)["tensorboard-0"] is Status.PENDING

    def test_one_that_runs_is_complete(self) -> None:
        step = steps_of(deploy_plan(running()))["tensorboard-0"]
        assert step.status is Status.COMPLETE
        assert step.message.startswith("runs on node1")

    def test_one_that_failed_is_delayed_until_it_is_tried_again(self) -> None:
        state = self.with_tensorboard(state=TaskState.FAILED, message="exit 1", failures=1)
        step = steps_of(deploy_plan(state))["tensorboard-0"]
        assert step.status is Status.DELAYED
        assert "it is started again (failures in a row: 2)" in step.message

    def test_one_that_failed_too_often_is_an_error_with_its_reason(self) -> None:
        state = self.with_tensorboard(state=TaskState.FAILED, message="no module", failures=3)
        plan = deploy_plan(state)
        assert statuses(plan)["tensorboard-0"] is Status.ERROR
        assert "no module" in steps_of(plan)["tensorboard-0"].message
        assert plan.status is Status.COMPLETE
        assert plan.errors == ()

    def test_one_that_ended_with_the_job_is_complete(self) -> None:
        state = self.with_tensorboard(state=TaskState.KILLED, kill_reason="the job is ending")
        state = with_job(state, phase=JobPhase.DONE)
        assert statuses(deploy_plan(state))["tensorboard-0"] is Status.COMPLETE

    def test_one_that_was_never_started_says_so(self) -> None:
        state = a_state(JobPhase.DONE, gang(TaskState.FINISHED), job={"deployed": True})
        assert "never started" in steps_of(deploy_plan(state))["tensorboard-0"].message


class TestRecovery:
    def test_nothing_recovers_before_the_first_deployment(self) -> None:
        plan = recovery_plan(a_state(JobPhase.STOPPING, gang()))
        assert (plan.status, plan.phases) == (Status.COMPLETE, ())

    @pytest.mark.parametrize(
        "phase", [JobPhase.RUNNING, JobPhase.FINISHING, JobPhase.ENDING, JobPhase.DONE]
    )
    def test_nothing_recovers_while_the_gang_runs_or_has_ended(self, phase: JobPhase) -> None:
        plan = recovery_plan(a_state(phase, gang(), job={"deployed": True}))
        assert (plan.status, plan.phases) == (Status.COMPLETE, ())

    @pytest.mark.parametrize(
        ("phase", "task_state", "status"),
        [
            (JobPhase.STOPPING, TaskState.RUNNING, Status.PENDING),
            (JobPhase.BACKING_OFF, TaskState.KILLED, Status.DELAYED),
            (JobPhase.PLACING, TaskState.KILLED, Status.PENDING),
            (JobPhase.STARTING, TaskState.STAGING, Status.IN_PROGRESS),
            (JobPhase.STARTING, TaskState.RUNNING, Status.IN_PROGRESS),
        ],
    )
    def test_a_gang_on_its_way_back_is_followed(
        self, phase: JobPhase, task_state: TaskState, status: Status
    ) -> None:
        plan = recovery_plan(a_state(phase, gang(task_state), job={"deployed": True}))
        assert plan.status is status
        assert list(steps_of(plan)) == ["ps-0", "worker-0", "worker-1"]

    def test_the_reason_of_the_wait_is_in_its_steps(self) -> None:
        state = a_state(
            JobPhase.PLACING,
            gang(TaskState.KILLED),
            job={"deployed": True, "incidents": (an_incident(),)},
            misfits={"ps-0": "no offers"},
        )
        assert steps_of(recovery_plan(state))["ps-0"].message == "no offers"


class TestRecoverySteps:
    def test_only_those_that_restart_have_steps(self) -> None:
        job = {"deployed": True, "restarting": ("worker-1",)}
        plan = recovery_plan(a_state(JobPhase.STARTING, gang(), job=job))
        assert list(steps_of(plan)) == ["worker-1"]

    def test_a_member_that_keeps_its_container_says_whom_it_waits_for(self) -> None:
        records = [*gang()[:2], a_record("worker-1", TaskState.FAILED)]
        state = a_state(
            JobPhase.PLACING, records, job={"deployed": True}, misfits={"worker-1": "no offers"}
        )
        step = steps_of(recovery_plan(state))["worker-0"]
        assert step.status is Status.PREPARED
        assert step.message.endswith("waits until worker-1 has a place")

    def test_a_member_whose_start_was_ordered_is_starting(self) -> None:
        records = gang(start=2, ordered_at=1.0)
        plan = recovery_plan(a_state(JobPhase.STARTING, records, job={"deployed": True}))
        assert set(statuses(plan).values()) == {Status.STARTING}

    def test_it_waits_for_its_operator_when_it_is_paused(self) -> None:
        state = a_state(
            JobPhase.BACKING_OFF,
            gang(TaskState.KILLED),
            job={"deployed": True},
            controls=Controls(paused=("recovery",)),
        )
        assert recovery_plan(state).status is Status.WAITING


class TestHeldBack:
    def test_a_paused_deployment_waits_for_its_operator(self) -> None:
        plan = deploy_plan(a_state(controls=Controls(paused=("deploy",))))
        assert plan.status is Status.WAITING
        assert "the plan deploy is paused" in steps_of(plan)["ps-0"].message

    def test_one_paused_phase_holds_the_whole_gang(self) -> None:
        plan = deploy_plan(a_state(controls=Controls(paused=("deploy/worker",))))
        assert statuses(plan)["ps-0"] is Status.WAITING
        assert statuses(plan)["tensorboard-0"] is Status.PENDING

    def test_a_paused_sidecar_does_not_hold_the_plan_up(self) -> None:
        state = a_state(
            JobPhase.RUNNING,
            gang(),
            job={"deployed": True},
            controls=Controls(paused=("deploy/tensorboard",)),
        )
        plan = deploy_plan(state)
        assert statuses(plan)["tensorboard-0"] is Status.WAITING
        assert plan.status is Status.COMPLETE

    def test_a_paused_task_says_how_it_is_resumed(self) -> None:
        state = replace(running(), controls=Controls(paused_tasks=("worker-1",)))
        assert "pod resume worker-1" in steps_of(deploy_plan(state))["worker-1"].message

    def test_a_member_that_is_done_without_says_so(self) -> None:
        state = a_state(
            JobPhase.RUNNING,
            gang()[:2],
            job={"deployed": True, "absent": ("worker-1",)},
            misfits={"worker-1": "no offers"},
        )
        step = steps_of(deploy_plan(state))["worker-1"]
        assert step.status is Status.PENDING
        assert "until there is room: no offers" in step.message


def test_a_step_that_was_shown_is_shown_anew_when_what_it_follows_from_has_changed() -> None:
    state = with_job(running(), deployed=True)
    shown = steps_of(deploy_plan(state))
    assert steps_of(deploy_plan(replace(state, attempt=9)))["worker-1"] is shown["worker-1"]
    paused = replace(state, controls=Controls(paused_tasks=("worker-1",)))
    assert "is paused" in steps_of(deploy_plan(paused))["worker-1"].message
    gone = with_job(state, absent=("worker-1",))
    assert "until there is room" in steps_of(deploy_plan(gone))["worker-1"].message
    ended = with_records(state, replace(state.tasks["worker-1"], state=TaskState.FAILED))
    assert "now it is failed" in steps_of(deploy_plan(ended))["worker-1"].message


def updating(**changes: Any) -> ServiceState:
    """Return a running service with both workers outdated."""
    records = [
        a_record("ps-0"),
        a_record("tensorboard-0"),
        *(a_record(f"worker-{i}", fingerprint="of-before") for i in (0, 1)),
    ]
    job = {"deployed": True, **changes.pop("job", {})}
    controls = changes.pop("controls", Controls())
    return a_state(JobPhase.RUNNING, records, job=job, spec=a_spec(**changes), controls=controls)


def of_update(
    state: ServiceState,
    members: tuple[str, ...] = ("worker-0", "worker-1"),
    plan: str = "update",
) -> ServiceState:
    """Return the state in which the restart under way is an update's, or another plan's."""
    main = state.only_gang
    restart = replace(main.job.restart, members=members, plan=plan)
    changed = replace(main, job=replace(main.job, restart=restart))
    return replace(state, gangs={**state.gangs, main.name: changed})


class TestUpdate:
    def test_there_is_none_while_everything_runs_as_it_should(self) -> None:
        assert "update" not in plans(running())

    def test_it_exists_while_tasks_run_with_other_options(self) -> None:
        plan = plans(updating())["update"]
        assert plan.status is Status.IN_PROGRESS
        assert [n for n, s in statuses(plan).items() if s is Status.PENDING] == [
            "worker-0",
            "worker-1",
        ]

    def test_the_deploy_plan_shows_it_to_the_clients_of_the_sdk(self) -> None:
        known = plans(updating())
        assert statuses(known["deploy"]) == statuses(known["update"])

    def test_it_goes_on_while_a_new_container_is_looked_for(self) -> None:
        state = updating(job={"planned": True, "replacing": ("worker-0", "worker-1")})
        ended = [replace(r, state=TaskState.KILLED) for r in state.tasks.values()]
        target = configuration_id(state.spec)
        state = with_job(with_records(state, *ended), phase=JobPhase.PLACING, canary=target)
        assert plans(of_update(state))["deploy"].status is not Status.COMPLETE

    def test_it_goes_on_until_what_was_launched_for_it_runs(self) -> None:
        launched = a_record("worker-1", TaskState.STAGING)
        state = a_state(JobPhase.STAGING, [*gang()[:2], launched], job={"deployed": True})
        assert plans(of_update(state))["deploy"].status is not Status.COMPLETE

    @pytest.mark.parametrize("plan", ["update", "deploy"])
    def test_it_goes_on_while_a_gang_that_was_launched_as_a_whole_starts(self, plan: str) -> None:
        launched = [a_record(f"worker-{i}", TaskState.LAUNCHING) for i in (0, 1)]
        state = a_state(JobPhase.STARTING, [*gang()[:1], *launched], job={"deployed": True})
        state = of_update(state, members=(), plan=plan)
        assert statuses(plans(state)["deploy"])["worker-1"] is Status.STARTING

    def test_before_the_first_deployment_deploy_shows_itself(self) -> None:
        state = updating(job={"deployed": False})
        assert plans(state)["deploy"].strategy is PlanStrategy.SERIAL

    @pytest.mark.parametrize("strategy", list(UpdateStrategy))
    def test_its_strategy_is_that_of_the_options(self, strategy: UpdateStrategy) -> None:
        assert plans(updating(update_strategy=strategy))["update"].strategy == strategy

    def test_paused_it_waits(self) -> None:
        plan = plans(updating(controls=Controls(paused=("update/worker",))))["update"]
        assert statuses(plan)["worker-0"] is Status.WAITING
        assert plan.status is Status.WAITING

    def test_behind_a_canary_it_waits(self) -> None:
        state = updating(update_strategy=UpdateStrategy.CANARY)
        state = with_job(state, canary=configuration_id(state.spec))
        step = steps_of(plans(state)["update"])["worker-1"]
        assert (step.status, "canary" in step.message) == (Status.WAITING, True)

    def test_a_task_that_is_being_replaced_is_starting(self) -> None:
        plan = plans(updating(job={"replacing": ("worker-0",)}))["update"]
        assert statuses(plan)["worker-0"] is Status.STARTING

    def test_a_step_that_was_forced_is_complete(self) -> None:
        controls = Controls(completed=("update/worker/worker-0:[node]",))
        plan = plans(updating(controls=controls))["update"]
        assert statuses(plan)["worker-0"] is Status.COMPLETE

    def test_it_exists_while_its_pause_keeps_a_member_from_joining(self) -> None:
        grown = a_state(
            JobPhase.RUNNING,
            gang(),
            spec=a_spec(roles=(a_role(TaskRole.PS, 1), a_role(TaskRole.WORKER, 3))),
            job={"deployed": True},
            controls=Controls(paused=("update",)),
            epoch=running().epoch,
        )
        assert statuses(plans(grown)["update"])["worker-2"] is Status.WAITING


class TestRestartOfThePlan:
    def restarted(self, plan: str) -> ServiceState:
        restart = Restart(members=("worker-1",), planned=True, plan=plan)
        state = a_state(JobPhase.STOPPING, gang(), job={"deployed": True})
        main = state.only_gang
        changed = replace(main, job=replace(main.job, restart=restart))
        return replace(state, gangs={**state.gangs, main.name: changed})

    def test_the_plan_that_an_operator_restarts_is_the_one_in_progress(self) -> None:
        found = plans(self.restarted("deploy"))
        assert statuses(found["deploy"])["worker-1"] is Status.PENDING
        assert statuses(found["deploy"])["worker-0"] is Status.COMPLETE
        assert found["deploy"].status is not Status.COMPLETE
        assert found["recovery"].status is Status.COMPLETE

    def test_any_other_restart_is_shown_as_a_recovery(self) -> None:
        found = plans(self.restarted(""))
        assert found["deploy"].status is Status.COMPLETE
        assert found["recovery"].status is not Status.COMPLETE


class TestDecommission:
    def scaled_in(self, **changes: Any) -> ServiceState:
        records = [*gang(), a_record("worker-2", **changes), a_record("worker-3", **changes)]
        return a_state(JobPhase.RUNNING, records, job={"deployed": True})

    def test_there_is_none_while_every_task_is_wanted(self) -> None:
        assert "decommission" not in plans(running())

    def test_each_task_that_is_not_has_a_phase_the_highest_index_first(self) -> None:
        plan = plans(self.scaled_in())["decommission"]
        assert [phase.name for phase in plan.phases] == ["worker-3", "worker-2"]
        assert [step.name for step in plan.phases[0].steps] == ["kill-worker-3", "erase-worker-3"]

    def test_a_task_that_was_told_to_end_is_on_its_way(self) -> None:
        plan = plans(self.scaled_in(killed_at=1.0))["decommission"]
        assert [step.status for step in plan.phases[0].steps] == [Status.STARTING, Status.PENDING]

    def test_held_back_it_waits(self) -> None:
        state = replace(self.scaled_in(), controls=Controls(paused=("decommission",)))
        assert plans(state)["decommission"].status is Status.WAITING


class TestUninstall:
    def uninstalling(
        self, phase: JobPhase, state: TaskState = TaskState.RUNNING, **changes: Any
    ) -> Plan:
        job = {"deployed": True, "uninstalling": True, **changes.pop("job", {})}
        return deploy_plan(a_state(phase, gang(state), job=job, **changes))

    def test_it_takes_the_place_of_the_deployment(self) -> None:
        plan = self.uninstalling(JobPhase.ENDING)
        assert [phase.name for phase in plan.phases] == [
            "kill-tasks",
            "unreserve-resources-node1",
            "deregister-service",
        ]

    def test_its_steps_are_named_as_the_sdk_names_them(self) -> None:
        kill = phases_of(self.uninstalling(JobPhase.ENDING))["kill-tasks"]
        assert kill.steps[0].name == f"kill-task-{a_record('ps-0').task_id}"

    def test_there_is_no_other_plan_of_changes(self) -> None:
        job = {"deployed": True, "uninstalling": True}
        state = a_state(JobPhase.ENDING, [a_record("worker-9")], job=job)
        assert list(plans(state)) == ["deploy", "recovery"]

    @pytest.mark.parametrize("erased", [False, True])
    def test_it_is_complete_only_when_the_state_is_erased(self, erased: bool) -> None:
        plan = self.uninstalling(JobPhase.DONE, TaskState.KILLED, erased=erased)
        assert (plan.status is Status.COMPLETE) is erased

    def test_what_was_given_up_is_named_and_does_not_block(self) -> None:
        plan = self.uninstalling(
            JobPhase.DONE,
            TaskState.UNREACHABLE,
            erased=True,
            job={"given_up": ("ps-0 on node1",)},
        )
        assert plan.status is Status.COMPLETE
        assert plan.errors == ()
        assert "ps-0 on node1" in phases_of(plan)["deregister-service"].steps[0].message

    def test_a_dead_agent_is_named_while_it_is_waited_for(self) -> None:
        plan = self.uninstalling(JobPhase.ENDING, TaskState.UNREACHABLE)
        assert "node1 does not answer" in phases_of(plan)["kill-tasks"].steps[0].message
