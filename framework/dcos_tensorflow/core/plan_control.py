"""What an operator's verb changes: pauses, forced completions, approvals, restarts of tasks.

Called by ``core.absorb`` with a PlanCommand or PodCommand, and by the API beforehand, to answer
what is going to happen. Nothing is carried out here: ``Controls`` says what is held back from now
on, ``Effects`` what is to happen to tasks once. The verbs and what they mean for a plan, a phase
and a step are the DC/OS SDK's (its ``PlansQueries`` and ``PodQueries``); each may come twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from dcos_tensorflow.core import update_order
from dcos_tensorflow.core.cluster_spec import decider
from dcos_tensorflow.core.controls import Controls
from dcos_tensorflow.core.events import PlanCommand, PlanVerb, PodCommand, PodVerb
from dcos_tensorflow.core.job import JobPhase
from dcos_tensorflow.core.plan import plans
from dcos_tensorflow.core.plan_elements import (
    DECOMMISSION,
    DEPLOY,
    RECOVERY,
    UPDATE,
    Phase,
    Plan,
    Status,
    Step,
    step_key,
    step_name,
)
from dcos_tensorflow.core.service_state import ServiceState, configuration_id
from dcos_tensorflow.core.spec import GANG_ROLES, split_task_name
from dcos_tensorflow.core.task import TaskState


@dataclass(frozen=True)
class Effects:
    """What is to happen to tasks, by name, once.

    ``restart``: a new start of the process in its container, with whoever must restart with it.
    ``replace``: a new container. ``give_up``: their end is not waited for any more.
    """

    restart: tuple[str, ...] = ()
    replace: tuple[str, ...] = ()
    give_up: tuple[str, ...] = ()


class Answer(StrEnum):
    """What becomes of a command; the API has a status for each."""

    RECEIVED = "received"
    #: It is so already: nothing changes.
    ALREADY = "already"
    #: There is no such plan, phase, step or task.
    UNKNOWN = "unknown"
    #: It cannot be done now, or never.
    REFUSED = "refused"


@dataclass(frozen=True)
class Ruling:
    """A command's whole answer: what holds from now on, what happens once, why in one sentence."""

    controls: Controls
    effects: Effects
    answer: Answer
    why: str


def controlled(
    state: ServiceState, command: PlanCommand | PodCommand
) -> tuple[Controls, Effects, str]:
    """Return the controls after ``command``, what is to happen to tasks, and why, or why not.

    What is refused, unknown or so already leaves the controls as they are and has no effects.
    """
    ruling = rule(state, command)
    return ruling.controls, ruling.effects, ruling.why


def rule(state: ServiceState, command: PlanCommand | PodCommand) -> Ruling:
    """Return everything about what ``command`` does in this state."""
    if isinstance(command, PodCommand):
        return _rule_pod(state, command)
    return _rule_plan(state, command)


class _Refused(Exception):
    """A command that cannot be done; the text says why."""


def _answer(state: ServiceState, answer: Answer, why: str) -> Ruling:
    return Ruling(state.controls, Effects(), answer, why)


# Plans.


@dataclass(frozen=True)
class _Target:
    """What a command names: a plan, perhaps one of its phases, and the steps that are meant."""

    plan: Plan
    phase: Phase | None
    steps: tuple[tuple[Phase, Step], ...]
    step: str

    @property
    def key(self) -> str:
        """Return what stands for it in ``Controls.paused``."""
        # There is one restart at a time: its phase is the plan.
        if self.phase is None or self.plan.name == RECOVERY:
            return self.plan.name
        return f"{self.plan.name}/{self.phase.name}"

    @property
    def title(self) -> str:
        """Return how a person calls it."""
        found = f'plan "{self.plan.name}"'
        if self.phase is not None:
            found += f', phase "{self.phase.name}"'
        return found + (f', step "{self.step}"' if self.step else "")

    @property
    def complete(self) -> bool:
        """Say whether nothing is left to do in it."""
        if self.step:
            return all(step.status is Status.COMPLETE for _, step in self.steps)
        part = self.phase if self.phase is not None else self.plan
        return part.status is Status.COMPLETE


def _target(state: ServiceState, command: PlanCommand) -> _Target | None:
    known = plans(state)
    name = command.plan
    if name == DEPLOY and UPDATE in known:
        # Users of the SDK's command line steer an update as the deploy plan: it shows the update.
        name = UPDATE
    plan = known.get(name)
    if plan is None:
        return None
    phases = [p for p in plan.phases if not command.phase or p.name == command.phase]
    steps = tuple(
        (phase, step)
        for phase in phases
        for step in phase.steps
        if not command.step or step.name == command.step
    )
    if (command.phase and not phases) or (command.step and not steps):
        return None
    return _Target(plan, phases[0] if command.phase else None, steps, command.step)


def _rule_plan(state: ServiceState, command: PlanCommand) -> Ruling:
    target = _target(state, command)
    if target is None:
        return _answer(state, Answer.UNKNOWN, "there is no such plan, phase or step")
    try:
        return _PLAN_VERBS[command.verb](state, target)
    except _Refused as refused:
        return _answer(state, Answer.REFUSED, str(refused))


def _pause(state: ServiceState, target: _Target) -> Ruling:
    if target.step:
        raise _Refused("a step cannot be paused: pause its phase, or the pod")
    if state.job.uninstalling:
        raise _Refused("an uninstall cannot be paused: it cannot be taken back")
    controls = state.controls
    if target.key in controls.paused:
        return _answer(state, Answer.ALREADY, f"{target.title} is paused already")
    # Recovery can be held back before anything has failed; what is complete otherwise stays so.
    if target.complete and target.plan.name != RECOVERY:
        return _answer(state, Answer.ALREADY, f"{target.title} is complete")
    after = replace(controls, paused=(*controls.paused, target.key))
    return Ruling(after, Effects(), Answer.RECEIVED, f"{target.title} is paused")


def _resume(state: ServiceState, target: _Target) -> Ruling:
    if target.step:
        raise _Refused("a step cannot be resumed: resume its phase, or the pod")
    controls = state.controls
    after = replace(controls, paused=tuple(key for key in controls.paused if key != target.key))
    if target.plan.name == UPDATE and update_order.waits_for_approval(state):
        after = replace(after, approved=configuration_id(state.spec))
    if after == controls:
        held = [key for key in controls.paused if key.startswith(f"{target.key}/")]
        paused = f"; paused in it: {', '.join(key.partition('/')[2] for key in held)}"
        more = paused if held else ""
        return _answer(state, Answer.ALREADY, f"{target.title} is not paused{more}")
    return Ruling(after, Effects(), Answer.RECEIVED, f"{target.title} goes on")


def _start(state: ServiceState, target: _Target) -> Ruling:
    resumed = _resume(state, target)
    if resumed.answer is Answer.RECEIVED:
        return resumed
    if target.complete:
        return _force_restart(state, target)
    return _answer(state, Answer.RECEIVED, f"{target.title} is in progress")


def _stop(state: ServiceState, target: _Target) -> Ruling:
    if state.job.uninstalling:
        raise _Refused("an uninstall cannot be stopped: it cannot be taken back")
    controls = state.controls
    prefix = f"{target.plan.name}/"
    reset = replace(
        controls,
        paused=(*(key for key in controls.paused if key != target.key), target.key),
        completed=tuple(key for key in controls.completed if not key.startswith(prefix)),
        approved="" if target.plan.name == UPDATE else controls.approved,
    )
    return Ruling(reset, Effects(), Answer.RECEIVED, f"{target.title} is paused and reset")


def _force_restart(state: ServiceState, target: _Target) -> Ruling:
    if state.job.uninstalling or target.plan.name == DECOMMISSION:
        raise _Refused("what is being removed is not started again")
    _check_goes_on(state)
    keys = {step_key(target.plan.name, phase.name, step.name) for phase, step in target.steps}
    controls = _without(state.controls, keys)
    tasks = _restartable(state, (step.task for _, step in target.steps))
    what = f": {', '.join(tasks)}" if tasks else "; nothing of it runs that could be restarted"
    why = f"{target.title} is started again{what}"
    return Ruling(controls, Effects(restart=tasks), Answer.RECEIVED, why)


def _force_complete(state: ServiceState, target: _Target) -> Ruling:
    open_steps = [(p, s) for p, s in target.steps if s.status is not Status.COMPLETE]
    if not open_steps:
        return _answer(state, Answer.ALREADY, f"{target.title} is complete")
    after, given_up = state.controls, []
    for phase, step in open_steps:
        if target.plan.name == DECOMMISSION or state.job.uninstalling:
            if step.task not in state.tasks:
                raise _Refused(f"{step.name} is done last, by itself, and cannot be left out")
            given_up.append(step.task)
            after = _with(after, step_key(target.plan.name, phase.name, step.name))
        elif target.plan.name == UPDATE:
            after = _with(after, step_key(UPDATE, phase.name, step.name))
        else:
            _check_goes_on(state)
            role = split_task_name(step.task)[0]
            if role in GANG_ROLES:
                _check_can_do_without(replace(state, controls=after), step.task)
            after = _with(after, step_key(DEPLOY, str(role), step_name(step.task)))
    effects = Effects(give_up=tuple(dict.fromkeys(given_up)))
    return Ruling(after, effects, Answer.RECEIVED, f"{target.title} is taken for complete")


_PLAN_VERBS = {
    PlanVerb.START: _start,
    PlanVerb.STOP: _stop,
    PlanVerb.PAUSE: _pause,
    PlanVerb.RESUME: _resume,
    PlanVerb.FORCE_RESTART: _force_restart,
    PlanVerb.FORCE_COMPLETE: _force_complete,
}

assert set(_PLAN_VERBS) == set(PlanVerb)


def _with(controls: Controls, key: str) -> Controls:
    return replace(controls, completed=tuple(dict.fromkeys((*controls.completed, key))))


def _without(controls: Controls, keys: Iterable[str]) -> Controls:
    dropped = set(keys)
    left = tuple(key for key in controls.completed if key not in dropped)
    return replace(controls, completed=left)


def _check_goes_on(state: ServiceState) -> None:
    if state.job.uninstalling:
        raise _Refused("the service is being uninstalled")
    if state.job.verdict is not None or state.job.phase is JobPhase.FINISHING:
        raise _Refused(f"the job is over: {state.job.why}")


def _check_can_do_without(state: ServiceState, name: str) -> None:
    """Raise unless the gang may go on without a member that has no place."""
    role, _ = split_task_name(name)
    spec = state.spec.role(role)
    record = state.tasks.get(name)
    if record is not None and not record.terminal and record.state is not TaskState.UNREACHABLE:
        raise _Refused(
            f"{name} has its place on {record.hostname}: only a member that has none can be done"
            " without"
        )
    if spec is None or spec.min_count is None:
        raise _Refused(f"the job needs every {role}: no {role}.min_count allows doing without")
    if name == decider(state.spec):
        raise _Refused(f"{name} decides about the job's end: nobody can do without it")
    without = {n for n in state.spec.task_names() if state.controls.forced(n)}
    missing = [
        n for n in (without | set(state.job.absent)) - {name} if split_task_name(n)[0] is role
    ]
    if spec.count - len(missing) - 1 < spec.min_count:
        gone = f", and {', '.join(sorted(missing))} is done without already" if missing else ""
        raise _Refused(f"the job needs at least {spec.min_count} of {role}{gone}")


def _restartable(state: ServiceState, names: Iterable[str]) -> tuple[str, ...]:
    """Return those whose process can be started again and is not about to be.

    A process that has finished has done its part. A sidecar that has failed starts again at once.
    """
    found = []
    for name in dict.fromkeys(names):
        record = state.tasks.get(name)
        if record is None or record.state is TaskState.FINISHED or name in state.job.restarting:
            continue
        if not record.terminal or record.role not in GANG_ROLES:
            found.append(name)
    return tuple(found)


# Pods.


def _rule_pod(state: ServiceState, command: PodCommand) -> Ruling:
    known = {*state.spec.task_names(), *state.tasks}
    unknown = [name for name in command.tasks if name not in known]
    if unknown or not command.tasks:
        return _answer(state, Answer.UNKNOWN, f"there is no task {', '.join(unknown)}")
    try:
        return _POD_VERBS[command.verb](state, tuple(dict.fromkeys(command.tasks)))
    except _Refused as refused:
        return _answer(state, Answer.REFUSED, str(refused))


def _check_unfinished(state: ServiceState, names: tuple[str, ...]) -> None:
    _check_goes_on(state)
    for name in names:
        record = state.tasks.get(name)
        if record is not None and record.state is TaskState.FINISHED:
            raise _Refused(f"{name} has finished: it has done its part of the job")
        if name not in state.spec.task_names():
            raise _Refused(f"{name} is being removed: the options do not ask for it any more")


def _deploy_keys(names: Iterable[str]) -> set[str]:
    return {step_key(DEPLOY, str(split_task_name(n)[0]), step_name(n)) for n in names}


def _restart_pod(state: ServiceState, names: tuple[str, ...]) -> Ruling:
    _check_unfinished(state, names)
    controls = _without(state.controls, _deploy_keys(names))
    tasks = _restartable(state, names)
    what = f"restarting {', '.join(tasks)}" if tasks else f"{', '.join(names)}: on the way already"
    return Ruling(controls, Effects(restart=tasks), Answer.RECEIVED, what)


def _replace_pod(state: ServiceState, names: tuple[str, ...]) -> Ruling:
    _check_unfinished(state, names)
    controls = _without(state.controls, _deploy_keys(names))
    tasks = tuple(n for n in names if n in state.tasks and n not in state.job.replacing)
    what = f"replacing {', '.join(tasks)}" if tasks else f"{', '.join(names)}: on the way already"
    return Ruling(controls, Effects(replace=tasks), Answer.RECEIVED, what)


def _pause_pod(state: ServiceState, names: tuple[str, ...]) -> Ruling:
    _check_unfinished(state, names)
    paused = tuple(dict.fromkeys((*state.controls.paused_tasks, *names)))
    if paused == state.controls.paused_tasks:
        return _answer(state, Answer.ALREADY, f"{', '.join(names)}: paused already")
    after = replace(state.controls, paused_tasks=paused)
    return Ruling(after, Effects(), Answer.RECEIVED, f"pausing {', '.join(names)}")


def _resume_pod(state: ServiceState, names: tuple[str, ...]) -> Ruling:
    paused = tuple(n for n in state.controls.paused_tasks if n not in names)
    if paused == state.controls.paused_tasks:
        return _answer(state, Answer.ALREADY, f"{', '.join(names)}: not paused")
    after = replace(state.controls, paused_tasks=paused)
    return Ruling(after, Effects(), Answer.RECEIVED, f"resuming {', '.join(names)}")


_POD_VERBS = {
    PodVerb.RESTART: _restart_pod,
    PodVerb.REPLACE: _replace_pod,
    PodVerb.PAUSE: _pause_pod,
    PodVerb.RESUME: _resume_pod,
}

assert set(_POD_VERBS) == set(PodVerb)
