"""The writes of a step: the difference of the stored parts of two states.

Called by ``core.step``, and by the scheduler for a new service. Nothing that must survive can be
forgotten by a branch of the code, because the difference *is* the write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, fields
from typing import TypeVar

from dcos_tensorflow.core.kept import codec, paths
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.core.model.gang import Gang
from dcos_tensorflow.core.model.service_state import Maintenance, ServiceState, Uninstall
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.records import dataclass

T = TypeVar("T")


#: Fields of TaskRecord that change after the launch; they live in TaskStatus, the rest in TaskInfo.
STATUS_FIELDS = frozenset(
    {
        "state",
        "changed_at",
        "peer_address",
        "source",
        "reason",
        "message",
        "kill_reason",
        "killed_at",
        "epoch",
        "start",
        "held",
        "ordered_at",
        "failed_start",
        "exit_class",
        "exit_code",
        "exit_summary",
        "error",
    }
)
INFO_FIELDS = frozenset(f.name for f in fields(TaskRecord)) - STATUS_FIELDS


@dataclass(frozen=True)
class KeptService:
    """What is kept of a service beside what has a place of its own."""

    attempt: int = 0
    configurations: tuple[str, ...] = ()
    maintenance: Maintenance = Maintenance()
    agent_failures: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    uninstall: Uninstall = Uninstall()
    run: int = 1
    #: No more units of work will come.
    last_unit_given: bool = False
    seeks_former_life: bool = False

    @classmethod
    def of(cls, state: ServiceState) -> KeptService:
        """Return what is to be kept of ``state``."""
        return cls(
            state.attempt,
            state.configurations,
            state.maintenance,
            state.agent_failures,
            state.uninstall,
            state.run,
            state.units.last,
            state.seeks_former_life,
        )


def first_writes(state: ServiceState) -> tuple[Write, ...]:
    """Return what a new service writes before anything else happens."""
    target = configuration_id(state.spec)
    return (
        Write(paths.configuration(target), codec.encode(state.spec)),
        Write(paths.INSTANCE, state.instance.encode()),
        Write(paths.TOKEN_KEY, state.settings.token_key.encode()),
        Write(paths.SERVICE, codec.encode(KeptService.of(state))),
        *(write for gang in state.gangs.values() for write in _epoch(None, gang)),
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
    writes += _by_key(before.reservations, after.reservations, paths.reservation)
    writes += _by_key(before.capacity, after.capacity, paths.capacity)
    changed = [(before.gangs.get(n), g) for n, g in after.gangs.items()]
    changed = [(old, gang) for old, gang in changed if old is not gang]
    for old, gang in changed:
        writes += _tasks(old, gang)
    for old, gang in changed:
        writes += _epoch(old, gang)
    # Before the gangs that run them: what became of a unit must not be lost with its run.
    writes += _units(before, after)
    for old, gang in changed:
        writes += _unit(old, gang)
    writes += abandoned(before.abandoned, after.abandoned)
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
    for old, gang in changed:
        if old is None or _differ(old.job, gang.job):
            writes.append(Write(paths.job(gang.name), codec.encode(gang.job)))
    for name, gang in before.gangs.items():
        if name not in after.gangs:
            writes += _gone(gang)
    return tuple(writes)


def _gone(gang: Gang) -> Iterator[Write]:
    for name in gang.tasks:
        yield Write(paths.task_info(name), None)
        yield Write(paths.task_status(name), None)
    if gang.epoch is not None:
        yield Write(paths.epoch(gang.name), None)
    if gang.unit is not None:
        yield Write(paths.unit(gang.name), None)
    yield Write(paths.job(gang.name), None)


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
    known = before.epoch if before is not None else None
    if known is not after.epoch:
        epoch = codec.encode(after.epoch) if after.epoch is not None else None
        yield Write(paths.epoch(after.name), epoch)


def _units(before: ServiceState, after: ServiceState) -> Iterator[Write]:
    old_pages, pages = before.units.pages, after.units.pages
    if old_pages is pages:
        return
    for number, page in enumerate(pages):
        old = old_pages[number] if number < len(old_pages) else None
        if old is page:
            continue
        if old is None or old.payloads is not page.payloads:
            yield Write(paths.units_given(number), codec.encode(page.payloads))
        yield Write(paths.units_state(number), codec.encode([unit.kept for unit in page.units]))
    for number in range(len(pages), len(old_pages)):
        yield Write(paths.units_given(number), None)
        yield Write(paths.units_state(number), None)


def _unit(before: Gang | None, after: Gang) -> Iterator[Write]:
    if after.unit is not (before.unit if before is not None else None):
        run = codec.encode(after.unit) if after.unit is not None else None
        yield Write(paths.unit(after.name), run)


def abandoned(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Write]:
    """Yield what is to be kept of attempts that were given up: the pages that differ."""
    if not _differ(before, after):
        return
    pages: dict[str, dict[str, str]] = {paths.abandoned(task_id): {} for task_id in before}
    for task_id, agent_id in after.items():
        pages.setdefault(paths.abandoned(task_id), {})[task_id] = agent_id
    changed = {
        paths.abandoned(task_id)
        for task_id in before.keys() | after.keys()
        if before.get(task_id) != after.get(task_id)
    }
    for path in sorted(changed):
        yield Write(path, codec.encode(pages[path]) if pages[path] else None)


def _configurations(before: ServiceState, after: ServiceState) -> Iterator[Write]:
    """Forget the configurations that the state knows no more."""
    if before.configurations is not after.configurations:
        for identifier in before.configurations:
            if identifier not in after.configurations:
                yield Write(paths.configuration(identifier), None)


def _by_key(
    before: Mapping[str, object], after: Mapping[str, object], path_of: Callable[[str], str]
) -> Iterator[Write]:
    if before is after:
        return
    for key, found in after.items():
        if before.get(key) != found:
            yield Write(path_of(key), codec.encode(found))
    for key in sorted(before.keys() - after.keys()):
        yield Write(path_of(key), None)
