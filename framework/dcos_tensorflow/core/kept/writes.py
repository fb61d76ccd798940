"""What a step has to commit: the difference of the kept parts of two states.

Called by ``core.step``, and by the scheduler for a new service. Nothing that must survive can be
forgotten by a branch of the code, because the difference *is* the write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from dcos_tensorflow.core.kept import codec, paths
from dcos_tensorflow.core.kept.configuration import configuration_id
from dcos_tensorflow.core.kept.forms import INFO_FIELDS, STATUS_FIELDS, KeptService
from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.core.model.gang import Gang
from dcos_tensorflow.core.model.service_state import ServiceState

T = TypeVar("T")


def first_writes(state: ServiceState) -> tuple[Write, ...]:
    """Return what a new service writes before anything else happens."""
    target = configuration_id(state.spec)
    return (
        Write(paths.configuration(target), codec.encode(state.spec)),
        Write(paths.INSTANCE, state.instance.encode()),
        Write(paths.TOKEN_KEY, state.settings.token_key.encode()),
        Write(paths.SERVICE, codec.encode(KeptService.of(state))),
        *(Write(paths.job(name), codec.encode(gang.job)) for name, gang in state.gangs.items()),
        Write(paths.CONFIG_TARGET, target.encode()),
    )


def writes_between(before: ServiceState, after: ServiceState) -> tuple[Write, ...]:
    """Return what must be committed when ``before`` becomes ``after``.

    The order matters where a store has to split a large commit: reservations and task records
    first, the service and the jobs last. A prefix then shows launches that were never sent, which
    reconciliation clears.
    """
    writes: list[Write] = []
    if before.framework_id != after.framework_id:
        writes.append(Write(paths.FRAMEWORK_ID, after.framework_id.encode() or None))
    writes += _reservations(before, after)
    for name, gang in after.gangs.items():
        writes += _tasks(before.gangs.get(name), gang)
    for name, gang in after.gangs.items():
        writes += _epoch(before.gangs.get(name), gang)
    if _differ(before.abandoned, after.abandoned):
        writes.append(Write(paths.ABANDONED, codec.encode(after.abandoned)))
    if _differ(before.controls, after.controls):
        writes.append(Write(paths.CONTROLS, codec.encode(after.controls)))
    if _differ(before.spec, after.spec):
        target = configuration_id(after.spec)
        writes.append(Write(paths.configuration(target), codec.encode(after.spec)))
        writes.append(Write(paths.CONFIG_TARGET, target.encode()))
    writes += _configurations(before, after)
    kept = KeptService.of(after)
    if kept != KeptService.of(before):
        writes.append(Write(paths.SERVICE, codec.encode(kept)))
    for name, gang in after.gangs.items():
        old = before.gangs.get(name)
        if old is None or _differ(old.job, gang.job):
            writes.append(Write(paths.job(name), codec.encode(gang.job)))
    return tuple(writes)


def _differ(before: T, after: T) -> bool:
    return before is not after and before != after


def _tasks(before: Gang | None, after: Gang) -> Iterator[Write]:
    old_tasks = before.tasks if before is not None else {}
    changed = after.tasks.changed_since(before.tasks) if before is not None else after.tasks
    for name in changed:
        record, old = after.tasks.get(name), old_tasks.get(name)
        if record is old:
            continue
        if record is None:
            yield Write(paths.task_info(name), None)
            yield Write(paths.task_status(name), None)
            continue
        for path, part in (
            (paths.task_info(name), INFO_FIELDS),
            (paths.task_status(name), STATUS_FIELDS),
        ):
            if old is None or any(getattr(old, f) != getattr(record, f) for f in part):
                yield Write(path, codec.encode({f: getattr(record, f) for f in part}))


def _epoch(before: Gang | None, after: Gang) -> Iterator[Write]:
    if after.epoch is not None and (before is None or before.epoch is not after.epoch):
        yield Write(paths.epoch(after.name), codec.encode(after.epoch))


def _configurations(before: ServiceState, after: ServiceState) -> Iterator[Write]:
    """Forget the configurations that the state knows no more."""
    if before.configurations is not after.configurations:
        for identifier in before.configurations:
            if identifier not in after.configurations:
                yield Write(paths.configuration(identifier), None)


def _reservations(before: ServiceState, after: ServiceState) -> Iterator[Write]:
    known: Mapping[str, object] = before.reservations
    if known is after.reservations:
        return
    for key, found in after.reservations.items():
        if known.get(key) != found:
            yield Write(paths.reservation(key), codec.encode(found))
    for key in sorted(known.keys() - after.reservations.keys()):
        yield Write(paths.reservation(key), None)
