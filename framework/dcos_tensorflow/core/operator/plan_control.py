"""The changes that an operator's verb makes: pauses, completions, approvals, restarts of tasks.

Called by ``core.operator.requests`` with a PlanCommand or PodCommand, and by the API beforehand, to
announce the effect. Nothing is carried out here: ``Controls`` names the steps that are held back
from now on, ``Effects`` the tasks to restart or replace once. The verbs and their meaning for a
plan, a phase and a step are the DC/OS SDK's (its ``PlansQueries`` and ``PodQueries``); each may
come twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model.controls import (
    DECOMMISSION,
    DEPLOY,
    RECOVERY,
    UPDATE,
    Controls,
    step_key,
)
from dcos_tensorflow.core.model.events import PlanCommand, PlanVerb, PodCommand
from dcos_tensorflow.core.model.service_state import GangView, ServiceState
from dcos_tensorflow.core.operator.pod_control import rule_pod
from dcos_tensorflow.core.operator.rulings import (
    CommandAnswer,
    CommandRefused,
    Effects,
    Ruling,
    check_goes_on,
    deploy_keys,
    restartable,
    unchanged,
)
from dcos_tensorflow.core.plans.elements import Phase, Plan, Status, Step
from dcos_tensorflow.core.plans.plan import shows_update, work
from dcos_tensorflow.core.restarts import update_order
from dcos_tensorflow.core.restarts.gang_queries import has_container
from dcos_tensorflow.core.restarts.membership import can_do_without
from dcos_tensorflow.core.spec.service_spec import GANG_ROLES, split_task_name
from dcos_tensorflow.records import dataclass

__all__ = ["CommandAnswer", "Effects", "Ruling", "rule"]


def rule(state: ServiceState, command: PlanCommand | PodCommand) -> Ruling:
    """Return everything about what ``command`` does in this state.

    What is refused, unknown or so already leaves the controls as they are and has no effects.
    """
    if isinstance(command, PodCommand):
        return rule_pod(state, command)
    return _rule_plan(state.view(command.gang), command)


@dataclass(frozen=True)
class _Target:
    """What a command names: a plan, perhaps one of its phases, and the steps that are meant.

    Verbs go by the plan views on purpose: the SDK defines what they do by what its plans show (a
    complete step is started again, or not forced once more), and people steer what they see.
    """

    plan: Plan
    phase: Phase | None
    steps: tuple[tuple[Phase, Step], ...]
    step: str
    #: The plan that its pauses are those of.
    pauses: str
    #: The plan by the name that the person gave.
    asked: str

    @property
    def key(self) -> str:
        """Return what stands for it in ``Controls.paused``."""
        return self._in(self.pauses)

    @property
    def resumed(self) -> frozenset[str]:
        """Return what no longer stands in ``Controls.paused`` once it is resumed.

        Pauses of the deploy plan from before an update showed as that plan are among them.
        """
        return frozenset({self.key, self._in(self.asked)})

    def _in(self, plan: str) -> str:
        # There is one restart at a time: its phase is the plan.
        if self.phase is None or self.plan.name == RECOVERY:
            return plan
        return f"{plan}/{self.phase.name}"

    @property
    def title(self) -> str:
        """Return how a person calls it."""
        found = f'plan "{self.plan.name}"'
        if self.phase is not None:
            found += f', phase "{self.phase.name}"'
        return found + (f', step "{self.step}"' if self.step else "")

    @property
    def complete(self) -> bool:
        if self.step:
            return all(step.status is Status.COMPLETE for _, step in self.steps)
        part = self.phase if self.phase is not None else self.plan
        return part.status is Status.COMPLETE


def _target(view: GangView, command: PlanCommand) -> _Target | None:
    known = work(view)
    name = command.plan
    if name == DEPLOY and shows_update(view):
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
    # What is left to deploy of a gang that was deployed are members to join, as in an update.
    pauses = (
        UPDATE if name == DEPLOY and command.phase in GANG_ROLES and view.job.deployed else name
    )
    phase = phases[0] if command.phase else None
    return _Target(plan, phase, steps, command.step, pauses, command.plan)


def _rule_plan(view: GangView, command: PlanCommand) -> Ruling:
    target = _target(view, command)
    if target is None:
        return unchanged(
            view.controls, CommandAnswer.UNKNOWN, "there is no such plan, phase or step"
        )
    try:
        return _PLAN_VERBS[command.verb](view, target)
    except CommandRefused as refused:
        return unchanged(view.controls, CommandAnswer.REFUSED, str(refused))


def _pause(view: GangView, target: _Target) -> Ruling:
    if target.step:
        raise CommandRefused("a step cannot be paused: pause its phase, or the pod")
    if view.service.uninstall.asked:
        raise CommandRefused("an uninstall cannot be paused: it cannot be taken back")
    controls = view.controls
    if target.key in controls.paused:
        return unchanged(view.controls, CommandAnswer.ALREADY, f"{target.title} is paused already")
    # Recovery can be held back before anything has failed, and units as long as any are left; what
    # is complete otherwise stays so.
    goes_on = view.spec.units is not None and not view.job.is_over
    if target.complete and target.plan.name != RECOVERY and not goes_on:
        return unchanged(view.controls, CommandAnswer.ALREADY, f"{target.title} is complete")
    after = replace(controls, paused=(*controls.paused, target.key))
    return Ruling(after, Effects(), CommandAnswer.RECEIVED, f"{target.title} is paused")


def _resume(view: GangView, target: _Target) -> Ruling:
    if target.step:
        raise CommandRefused("a step cannot be resumed: resume its phase, or the pod")
    controls = view.controls
    left = tuple(key for key in controls.paused if key not in target.resumed)
    after = replace(controls, paused=left)
    if target.plan.name == UPDATE and update_order.waits_for_approval(view):
        after = replace(after, approved=configuration_id(view.service.spec))
    if after == controls:
        held = [key for key in controls.paused if key.startswith(f"{target.key}/")]
        paused = f"; paused in it: {', '.join(key.partition('/')[2] for key in held)}"
        more = paused if held else ""
        return unchanged(
            view.controls, CommandAnswer.ALREADY, f"{target.title} is not paused{more}"
        )
    return Ruling(after, Effects(), CommandAnswer.RECEIVED, f"{target.title} goes on")


def _start(view: GangView, target: _Target) -> Ruling:
    resumed = _resume(view, target)
    if resumed.answer is CommandAnswer.RECEIVED:
        return resumed
    if target.complete:
        return _force_restart(view, target)
    return unchanged(view.controls, CommandAnswer.RECEIVED, f"{target.title} is in progress")


def _stop(view: GangView, target: _Target) -> Ruling:
    if view.service.uninstall.asked:
        raise CommandRefused("an uninstall cannot be stopped: it cannot be taken back")
    controls = view.controls
    prefix = f"{target.plan.name}/"
    reset = replace(
        controls,
        paused=(*(key for key in controls.paused if key != target.key), target.key),
        completed=tuple(key for key in controls.completed if not key.startswith(prefix)),
        approved="" if target.plan.name == UPDATE else controls.approved,
    )
    return Ruling(reset, Effects(), CommandAnswer.RECEIVED, f"{target.title} is paused and reset")


def _force_restart(view: GangView, target: _Target) -> Ruling:
    if view.service.uninstall.asked or target.plan.name == DECOMMISSION:
        raise CommandRefused("a task that is being removed does not start again")
    check_goes_on(view)
    keys = [step_key(target.plan.name, phase.name, step.name) for phase, step in target.steps]
    keys += deploy_keys(step.task for _, step in target.steps)
    controls = view.controls.without_completed(keys)
    tasks = restartable(view, (step.task for _, step in target.steps))
    what = f": {', '.join(tasks)}" if tasks else "; nothing of it runs that could be restarted"
    why = f"{target.title} is started again{what}"
    effects = Effects(restart=tasks, plan=target.plan.name)
    return Ruling(controls, effects, CommandAnswer.RECEIVED, why)


def _force_complete(view: GangView, target: _Target) -> Ruling:
    open_steps = [(p, s) for p, s in target.steps if s.status is not Status.COMPLETE]
    if not open_steps:
        return unchanged(view.controls, CommandAnswer.ALREADY, f"{target.title} is complete")
    if view.service.uninstall.asked or target.plan.name == DECOMMISSION:
        after, effects = _give_up(view, target.plan.name, open_steps)
    elif target.plan.name == UPDATE:
        keys = (step_key(UPDATE, phase.name, step.name) for phase, step in open_steps)
        after, effects = view.controls.with_completed(keys), Effects()
    else:
        names = tuple(step.task for _, step in open_steps)
        after, effects = _do_without(view, names), Effects()
    return Ruling(after, effects, CommandAnswer.RECEIVED, f"{target.title} is taken for complete")


def _give_up(
    view: GangView, plan: str, steps: Iterable[tuple[Phase, Step]]
) -> tuple[Controls, Effects]:
    keys, tasks = [], []
    for phase, step in steps:
        if not step.task:
            raise CommandRefused(f"{step.name} is done last, by itself, and cannot be left out")
        keys.append(step_key(plan, phase.name, step.name))
        tasks.append(step.task)
    given_up = tuple(dict.fromkeys(tasks))
    return view.controls.with_completed(keys), Effects(give_up=given_up)


def _do_without(view: GangView, names: tuple[str, ...]) -> Controls:
    check_goes_on(view)
    gang = tuple(n for n in names if split_task_name(n)[0].is_in_gang)
    for name in gang:
        _check_can_do_without(view, name, gang)
    return view.controls.with_completed(deploy_keys(names))


_PLAN_VERBS = {
    PlanVerb.START: _start,
    PlanVerb.STOP: _stop,
    PlanVerb.PAUSE: _pause,
    PlanVerb.RESUME: _resume,
    PlanVerb.FORCE_RESTART: _force_restart,
    PlanVerb.FORCE_COMPLETE: _force_complete,
}

assert set(_PLAN_VERBS) == set(PlanVerb)


def _check_can_do_without(view: GangView, name: str, gang: tuple[str, ...]) -> None:
    """Raise unless the job may go on without ``name`` and the others of ``gang``."""
    role, _ = split_task_name(name)
    spec = view.spec.role(role)
    record = view.tasks.get(name)
    if record is not None and has_container(record):
        raise CommandRefused(
            f"{name} has its place on {record.hostname}: only a member that has none can be done"
            " without"
        )
    if name == view.roster.decider:
        raise CommandRefused(f"{name} decides about the job's end: the job cannot go on without it")
    if spec is None or spec.min_count is None:
        raise CommandRefused(
            f"the job needs every {role}: it has no min_count that allows doing without"
        )
    forced = tuple(n for n in view.roster.every if view.controls.forced(n))
    absent = tuple(dict.fromkeys((*view.job.membership.absent, *forced)))
    more = {*gang} - {*absent}
    if more and not can_do_without(view, more, besides=absent):
        gone = f"; {', '.join(absent)} is done without already" if absent else ""
        raise CommandRefused(
            f"the job needs at least {spec.min_count} of {role} ({name} asked){gone}"
        )
