"""What an operator's verb changes for single tasks: restart, replace, pause, resume.

Called by ``core.operator.plan_control.rule``. A pod of the DC/OS SDK is a task here. Nothing is
carried out.
"""

from __future__ import annotations

from dataclasses import replace

from dcos_tensorflow.core.model.events import PodCommand, PodVerb
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.operator.rulings import (
    Answer,
    Effects,
    Refused,
    Ruling,
    check_goes_on,
    deploy_keys,
    restartable,
    unchanged,
    without_completed,
)


def rule_pod(state: ServiceState, command: PodCommand) -> Ruling:
    """Return everything about what a pod verb does in this state."""
    known = {*state.spec.task_names(), *state.tasks}
    unknown = [name for name in command.tasks if name not in known]
    if unknown or not command.tasks:
        return unchanged(state, Answer.UNKNOWN, f"there is no task {', '.join(unknown)}")
    try:
        return _POD_VERBS[command.verb](state, tuple(dict.fromkeys(command.tasks)))
    except Refused as refused:
        return unchanged(state, Answer.REFUSED, str(refused))


def _check_unfinished(state: ServiceState, names: tuple[str, ...]) -> None:
    check_goes_on(state)
    for name in names:
        record = state.tasks.get(name)
        if record is not None and record.state is TaskState.FINISHED:
            raise Refused(f"{name} has finished: it has done its part of the job")
        if name not in state.spec.task_names():
            raise Refused(f"{name} is being removed: the options do not ask for it any more")


def _restart_pod(state: ServiceState, names: tuple[str, ...]) -> Ruling:
    _check_unfinished(state, names)
    controls = without_completed(state.controls, deploy_keys(names))
    tasks = restartable(state, names)
    what = f"restarting {', '.join(tasks)}" if tasks else f"{', '.join(names)}: on the way already"
    return Ruling(controls, Effects(restart=tasks), Answer.RECEIVED, what)


def _replace_pod(state: ServiceState, names: tuple[str, ...]) -> Ruling:
    _check_unfinished(state, names)
    controls = without_completed(state.controls, deploy_keys(names))
    tasks = tuple(n for n in names if n in state.tasks and n not in state.job.replacing)
    what = f"replacing {', '.join(tasks)}" if tasks else f"{', '.join(names)}: on the way already"
    return Ruling(controls, Effects(replace=tasks), Answer.RECEIVED, what)


def _pause_pod(state: ServiceState, names: tuple[str, ...]) -> Ruling:
    _check_unfinished(state, names)
    paused = tuple(dict.fromkeys((*state.controls.paused_tasks, *names)))
    if paused == state.controls.paused_tasks:
        return unchanged(state, Answer.ALREADY, f"{', '.join(names)}: paused already")
    after = replace(state.controls, paused_tasks=paused)
    return Ruling(after, Effects(), Answer.RECEIVED, f"pausing {', '.join(names)}")


def _resume_pod(state: ServiceState, names: tuple[str, ...]) -> Ruling:
    paused = tuple(n for n in state.controls.paused_tasks if n not in names)
    if paused == state.controls.paused_tasks:
        return unchanged(state, Answer.ALREADY, f"{', '.join(names)}: not paused")
    after = replace(state.controls, paused_tasks=paused)
    return Ruling(after, Effects(), Answer.RECEIVED, f"resuming {', '.join(names)}")


_POD_VERBS = {
    PodVerb.RESTART: _restart_pod,
    PodVerb.REPLACE: _replace_pod,
    PodVerb.PAUSE: _pause_pod,
    PodVerb.RESUME: _resume_pod,
}

assert set(_POD_VERBS) == set(PodVerb)
