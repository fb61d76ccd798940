"""The members of a gang change: who must know of it, who can be done without, who may join again.

Called by ``core.recovery.planned_changes``, ``core.offers.use`` and ``core.offers.launching``. A
strategy allows a changed membership where its restart sets do; the decider can never be done
without.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.spec import Strategy, TaskRole, split_task_name
from dcos_tensorflow.core.recovery.members import decider_of, members, strategy_of
from dcos_tensorflow.core.recovery.restart_table import Loss, restart_set


def who_must_know(
    state: ServiceState, before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the members that restart when the addresses ``before`` become those ``after``.

    ``after`` holds the members as they will be. Besides the rows for who has moved, joined or left,
    these are members whose index has changed: a process is known to its peers by job and index.
    """
    changed = {n for n in {*before, *after} if before.get(n) != after.get(n)}
    if not changed or not before:
        return ()
    strategy, everybody = strategy_of(state), tuple(n for n in members(state) if n in after)
    count_changed = any(_is_ps(n) and (n in before) != (n in after) for n in changed)
    if count_changed and strategy is not Strategy.INDEPENDENT:
        # Variables are laid out over the ps by their number: everybody must agree on it.
        return everybody
    losses = dict.fromkeys(changed, Loss.MOVED)
    chosen = set(restart_set(strategy, decider_of(state), everybody, losses))
    if strategy is not Strategy.INDEPENDENT:
        chosen |= _shifted(before, after)
    return tuple(name for name in everybody if name in chosen)


def _is_ps(name: str) -> bool:
    return split_task_name(name)[0] is TaskRole.PS


def _shifted(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    old, new = _positions(before), _positions(after)
    return {name for name, position in new.items() if name in old and old[name] != position}


def _positions(addresses: Mapping[str, str]) -> dict[str, tuple[str, int]]:
    """Return each member's place among its peers: workers and GPU workers are counted together."""
    by_role = ClusterSpec(0, addresses).names_by_role
    groups = {
        "chief": by_role.get(TaskRole.CHIEF, ()),
        "worker": (*by_role.get(TaskRole.WORKER, ()), *by_role.get(TaskRole.GPU_WORKER, ())),
        "ps": by_role.get(TaskRole.PS, ()),
    }
    return {name: (group, i) for group, names in groups.items() for i, name in enumerate(names)}


def can_do_without(state: ServiceState, names: Iterable[str]) -> bool:
    """Say whether the job may go on with all of these members missing."""
    lost = set(names)
    if not lost or decider_of(state) in lost:
        return False
    left = [name for name in members(state) if name not in lost]
    for role in {split_task_name(name)[0] for name in lost}:
        spec = state.spec.role(role)
        if spec is None or spec.min_count is None or role is TaskRole.PS:
            return False
        if sum(1 for name in left if split_task_name(name)[0] is role) < spec.min_count:
            return False
    workers = [n for n in left if split_task_name(n)[0] in (TaskRole.WORKER, TaskRole.GPU_WORKER)]
    # A ParameterServerStrategy without a single worker waits for one for ever.
    return bool(workers) or strategy_of(state) is not Strategy.PARAMETER_SERVER
