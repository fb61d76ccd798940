"""The members of a gang change: which must know of it, and which can be done without.

Called by ``core.restarts.planned_changes`` and by ``core.offers``. A strategy allows a changed
membership where its restart sets do; the decider can never be done without.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.model.service_state import GangView
from dcos_tensorflow.core.model.task_table import Fact
from dcos_tensorflow.core.restarts.gang_queries import strategy_of
from dcos_tensorflow.core.restarts.restart_table import Loss, restart_set
from dcos_tensorflow.core.spec.service_spec import Strategy, TaskRole, split_task_name

_WORKERS = frozenset({TaskRole.WORKER, TaskRole.GPU_WORKER})


def members_to_tell(
    view: GangView, before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the members that restart when the addresses ``before`` become those ``after``.

    ``after`` holds the members as they will be. Besides the rows for members that moved,
    joined or left, these are members whose index has changed: a process is known to its peers by
    job and index. A decider that takes workers while it trains is not among them for these.
    """
    changed = {n for n in {*before, *after} if before.get(n) != after.get(n)}
    if not changed or not before:
        return ()
    strategy, members = strategy_of(view), tuple(n for n in view.roster.names if n in after)
    servers = {n for n in changed if split_task_name(n)[0] is TaskRole.PS}
    count_changed = any((n in before) != (n in after) for n in servers)
    if count_changed and strategy is not Strategy.INDEPENDENT:
        # Variables are laid out over the ps by their number: all members must agree on it.
        return members
    losses = dict.fromkeys(changed, Loss.MOVED)
    chosen = set(restart_set(strategy, view.roster.decider, members, losses))
    if strategy is not Strategy.INDEPENDENT:
        chosen |= _shifted(before, after)
    if _takes(view, before, after, changed):
        chosen.discard(view.roster.decider)
    return tuple(name for name in members if name in chosen)


def joins_alone(view: GangView, name: str) -> bool:
    """Say whether no other member starts again when ``name`` joins."""
    before = view.epoch.addresses if view.epoch is not None else {}
    return set(members_to_tell(view, before, {**before, name: "joins"})) <= {name}


def _takes(
    view: GangView, before: Mapping[str, str], after: Mapping[str, str], changed: Collection[str]
) -> bool:
    """Say whether the decider's process takes the change while it trains.

    It does where the last workers leave, or others join behind them. One that leaves does its last
    step first, so it must live.
    """
    if not view.tasks.has(view.roster.decider, Fact.TAKES_WORKERS):
        return False
    roles = {split_task_name(name)[0] for name in changed}
    moved = [name for name in changed if name in before and name in after]
    if not roles <= _WORKERS or moved or _shifted(before, after):
        return False
    live = view.tasks.having(Fact.TELLS_STARTED) & view.tasks.having(Fact.CONTAINED)
    return all(name in live for name in changed if name in before)


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


def can_do_without(view: GangView, names: Iterable[str], *, besides: Collection[str] = ()) -> bool:
    """Say whether the job may go on with all of these members missing, and ``besides`` too."""
    lost = set(names)
    if not lost or view.roster.decider in lost:
        return False
    gone = lost.union(besides)
    left = [name for name in view.roster.names if name not in gone]
    roles = {role: [n for n in left if split_task_name(n)[0] is role] for role in TaskRole}
    for role in {split_task_name(name)[0] for name in lost}:
        spec = view.spec.role(role)
        if spec is None or spec.min_count is None or role is TaskRole.PS:
            return False
        if len(roles[role]) < spec.min_count:
            return False
    # A ParameterServerStrategy without a single worker waits for one for ever.
    workers = roles[TaskRole.WORKER] or roles[TaskRole.GPU_WORKER]
    return bool(workers) or strategy_of(view) is not Strategy.PARAMETER_SERVER
