"""The changes that an operator's verb makes to single tasks: restart, replace, pause, resume.

Called by ``core.operator.plan_control.rule``. A pod of the DC/OS SDK is a task here. Nothing is
carried out. An old attempt of a task, or a task of ours that should not exist, goes by its Mesos
task id alone: ``replace`` lets go of it, so that the service no longer waits for its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from dcos_tensorflow.core.model.controls import Controls
from dcos_tensorflow.core.model.events import PodCommand, PodVerb
from dcos_tensorflow.core.model.service_state import GangView, ServiceState
from dcos_tensorflow.core.model.task import TaskState
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

Names = tuple[str, ...]


def rule_pod(state: ServiceState, command: PodCommand) -> Ruling:
    """Return everything about what a pod verb does in this state."""
    names = tuple(dict.fromkeys(command.tasks))
    old = tuple(name for name in names if name in state.strays or name in state.abandoned)
    if command.verb is PodVerb.REPLACE and old:
        return _let_go(state.controls, old)
    unknown = [name for name in names if state.gang_wanting(name) is None]
    if unknown or not names:
        why = f"there is no task {', '.join(unknown)}"
        return unchanged(state.controls, CommandAnswer.UNKNOWN, why)
    try:
        return _POD_VERBS[command.verb](state, names)
    except CommandRefused as refused:
        return unchanged(state.controls, CommandAnswer.REFUSED, str(refused))


def _let_go(controls: Controls, old: Names) -> Ruling:
    """Wait no more for attempts that were given up and may still run.

    By their ids alone: an operator who replaces a task by name does not mean to have two of it.
    """
    why = f"the scheduler no longer waits for the end of {', '.join(old)}"
    let_go = tuple(dict.fromkeys((*controls.let_go, *old)))
    if let_go == controls.let_go:
        return unchanged(controls, CommandAnswer.ALREADY, why)
    return Ruling(replace(controls, let_go=let_go), Effects(), CommandAnswer.RECEIVED, why)


def _views(state: ServiceState, names: Names) -> Iterable[tuple[GangView, Names]]:
    """Return the gangs that these tasks are of, each with its own of the names."""
    for view in state.views():
        mine = tuple(n for n in names if n in view.tasks or n in view.roster.wanted)
        if mine:
            yield view, mine


def _check_unfinished(state: ServiceState, names: Names) -> None:
    for view, mine in _views(state, names):
        check_goes_on(view)
        for name in mine:
            record = view.tasks.get(name)
            if record is not None and record.state is TaskState.FINISHED:
                raise CommandRefused(f"{name} has finished: it has done its part of the job")
            if name not in view.roster.wanted:
                raise CommandRefused(
                    f"{name} is being removed: the options do not ask for it any more"
                )


def _restart_pod(state: ServiceState, names: Names) -> Ruling:
    _check_unfinished(state, names)
    controls = state.controls.without_completed(deploy_keys(names))
    tasks = tuple(n for view, mine in _views(state, names) for n in restartable(view, mine))
    what = f"restarting {', '.join(tasks)}" if tasks else f"{', '.join(names)}: on the way already"
    return Ruling(controls, Effects(restart=tasks), CommandAnswer.RECEIVED, what)


def _replace_pod(state: ServiceState, names: Names) -> Ruling:
    _check_unfinished(state, names)
    controls = state.controls.without_completed(deploy_keys(names))
    tasks = tuple(
        name
        for view, mine in _views(state, names)
        for name in mine
        if name in view.tasks and name not in view.job.restart.replacing
    )
    what = f"replacing {', '.join(tasks)}" if tasks else f"{', '.join(names)}: on the way already"
    return Ruling(controls, Effects(replace=tasks), CommandAnswer.RECEIVED, what)


def _pause_pod(state: ServiceState, names: Names) -> Ruling:
    _check_unfinished(state, names)
    return _with_paused(
        state.controls,
        tuple(dict.fromkeys((*state.controls.paused_tasks, *names))),
        f"pausing {', '.join(names)}",
        f"{', '.join(names)}: paused already",
    )


def _resume_pod(state: ServiceState, names: Names) -> Ruling:
    return _with_paused(
        state.controls,
        tuple(n for n in state.controls.paused_tasks if n not in names),
        f"resuming {', '.join(names)}",
        f"{', '.join(names)}: not paused",
    )


def _with_paused(controls: Controls, paused: Names, why: str, already: str) -> Ruling:
    if paused == controls.paused_tasks:
        return unchanged(controls, CommandAnswer.ALREADY, already)
    after = replace(controls, paused_tasks=paused)
    return Ruling(after, Effects(), CommandAnswer.RECEIVED, why)


_POD_VERBS: dict[PodVerb, Callable[[ServiceState, Names], Ruling]] = {
    PodVerb.RESTART: _restart_pod,
    PodVerb.REPLACE: _replace_pod,
    PodVerb.PAUSE: _pause_pod,
    PodVerb.RESUME: _resume_pod,
}

assert set(_POD_VERBS) == set(PodVerb)
