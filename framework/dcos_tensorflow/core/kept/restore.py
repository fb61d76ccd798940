"""The state as the store holds it: how it is read back after a crash, or by another release.

Called by the scheduler before anything else happens, and by the command line for stored states.
Pure: bytes in, a value out. A stored time that lies ahead is taken for now: a clock that was wrong
must not hold up back-offs, kills and reconciliation for as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from dcos_tensorflow.core.contract import NOTICE_SECONDS
from dcos_tensorflow.core.kept import codec, former_formats, paths
from dcos_tensorflow.core.kept.writes import KeptService
from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.model.controls import Controls
from dcos_tensorflow.core.model.gang import MAIN, Gang
from dcos_tensorflow.core.model.job import JobState
from dcos_tensorflow.core.model.machine_records import CapacityRecord, CapacityRecords
from dcos_tensorflow.core.model.roster import Roster
from dcos_tensorflow.core.model.service_state import LaunchSettings, Maintenance, ServiceState
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.model.task_table import TaskTable
from dcos_tensorflow.core.model.units import Unit, UnitPage, UnitRun, UnitTable
from dcos_tensorflow.core.spec.service_spec import ServiceSpec, gang_named, split_task_name
from dcos_tensorflow.core.spec.volume_spec import Reservation

T = TypeVar("T")


class StateUnreadable(ValueError):
    """What the store holds is not a state of ours; the text names the path."""


def upgrade(values: Mapping[str, bytes]) -> tuple[Mapping[str, bytes], tuple[Write, ...]]:
    """Return what the store holds in the present format, and what makes it so.

    The writes are to be committed before anything else is; there are none for a store of the
    present format. Raises StateUnreadable.
    """
    try:
        writes = former_formats.changes(values)
    except codec.RecordError as error:
        raise StateUnreadable(str(error)) from error
    upgraded = dict(values)
    for write in writes:
        if write.value is None:
            upgraded.pop(write.path, None)
        else:
            upgraded[write.path] = write.value
    return upgraded, writes


def stored_spec(values: Mapping[str, bytes]) -> ServiceSpec | None:
    """Return the stored target configuration; None when the service is new."""
    target = values.get(paths.CONFIG_TARGET)
    if target is None:
        return None
    path = paths.configuration(target.decode())
    if path not in values:
        raise StateUnreadable(f"ConfigTarget names {path}, which is not there")
    return _decoded(ServiceSpec, values, path)


def without_service(values: Mapping[str, bytes]) -> str:
    """Return in words what is kept where no target configuration is; empty for a new service.

    A new service writes its target last (``kept.writes.first_writes``): a start that was cut short
    leaves what stands before it, and nothing else.
    """
    folders = (f"{folder}/" for folder in (paths.CONFIGURATIONS, paths.OPTIONS, paths.GANGS))
    begun = (*folders, paths.SERVICE, paths.INSTANCE, paths.TOKEN_KEY)
    found = sorted(path for path in values if not path.startswith(begun))
    if not found or paths.CONFIG_TARGET in values:
        return ""
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return (
        f"{', '.join(found[:3])}{more} are kept there, and no {paths.CONFIG_TARGET} that says what"
        " they belong to: it is the state of another program, or damaged"
    )


def configurations(values: Mapping[str, bytes]) -> tuple[dict[str, ServiceSpec], dict[str, str]]:
    """Return the stored configurations by id, and why others cannot be read.

    One that is not the target is of no use when it cannot be read, and harms nothing.
    """
    found, unreadable = {}, {}
    for identifier, path in _below(values, paths.CONFIGURATIONS).items():
        try:
            found[identifier] = codec.decode(ServiceSpec, values[path])
        except codec.RecordError as error:
            unreadable[identifier] = str(error)
    return found, unreadable


def capacity_records(values: Mapping[str, bytes]) -> CapacityRecords:
    """Return the ledger of machines by key. Raises StateUnreadable."""
    found = _below(values, paths.CAPACITY)
    return {key: _decoded(CapacityRecord, values, path) for key, path in found.items()}


def is_uninstalling(values: Mapping[str, bytes]) -> bool:
    """Say whether an uninstall has begun. Its erase leaves this record to the last."""
    upgraded, _ = upgrade(values)
    return _service(upgraded).uninstall.asked


def restore(
    values: Mapping[str, bytes], settings: LaunchSettings, now: float
) -> ServiceState | None:
    """Rebuild the state from what the store holds in any format; None when the service is new.

    ``settings`` are this process's own; the token key comes from the store, so that runners that
    an earlier scheduler started still trust us. ``now`` is unix seconds. Raises StateUnreadable.
    """
    values, _ = upgrade(values)
    spec = stored_spec(values)
    if spec is None:
        return None
    service = _service(values)
    stored, _ = configurations(values)
    target = values[paths.CONFIG_TARGET].decode()
    pages = _unit_pages(values)
    gangs = _gangs(values, spec, now, units=sum(len(page.units) for page in pages))
    runs = [(name, gang.unit) for name, gang in gangs.items() if gang.unit is not None]
    older = [key for key in stored if key not in service.configurations and key != target]
    return ServiceState(
        spec=spec,
        instance=values.get(paths.INSTANCE, b"").decode(),
        settings=replace(settings, token_key=values.get(paths.TOKEN_KEY, b"").decode()),
        framework_id=values.get(paths.FRAMEWORK_ID, b"").decode(),
        gangs=gangs,
        units=UnitTable.of(pages, service.last_unit_given, runs),
        attempt=service.attempt,
        abandoned={
            task_id: agent_id
            for path in _below(values, paths.ABANDONED).values()
            for task_id, agent_id in _decoded(dict, values, path).items()
        },
        controls=_kept(Controls, values, paths.CONTROLS) or Controls(),
        former_options={key: known for key, known in stored.items() if key != target},
        configurations=(*older, *(service.configurations or (target,))),
        reservations={
            key: _reservation(values, path, now)
            for key, path in _below(values, paths.RESERVATIONS).items()
        },
        capacity=capacity_records(values),
        maintenance=Maintenance(
            service.maintenance.starts,
            {agent: min(at, now) for agent, at in service.maintenance.told_at.items()},
            {
                agent: min(at, now + NOTICE_SECONDS)
                for agent, at in service.maintenance.noticed.items()
            },
            {agent: min(at, now) for agent, at in service.maintenance.advised.items()},
        ),
        agent_failures={
            agent: tuple(min(at, now) for at in times)
            for agent, times in service.agent_failures.items()
        },
        uninstall=service.uninstall,
        run=service.run,
        seeks_former_life=service.seeks_former_life,
    )


def roster_of(spec: ServiceSpec, job: JobState, gang: str) -> Roster:
    """Return the names of a gang whose job stands so."""
    return Roster.of(spec.shaped(job.shape), job.membership.absent, gang)


def _gangs(
    values: Mapping[str, bytes], spec: ServiceSpec, now: float, units: int
) -> dict[str, Gang]:
    names = {
        parts[1]
        for path in values
        if len(parts := path.split("/")) == 3 and parts[0] == paths.GANGS and parts[2] == "Job"
    }
    tasks: dict[str, list[TaskRecord]] = {}
    for path in sorted(values):
        parts = path.split("/")
        if len(parts) == 3 and parts[0] == paths.TASKS and parts[2] == "TaskInfo":
            tasks.setdefault(gang_named(parts[1]), []).append(_task(values, parts[1], now))
    found = {}
    # The jobs are committed last: where a split commit ended before, there is none yet.
    for name in sorted({MAIN, *names, *tasks}):
        job = _kept(JobState, values, paths.job(name)) or JobState()
        epoch = _epoch(values, paths.epoch(name))
        table = TaskTable(roster_of(spec, job, name), tasks.get(name, ()))
        unit = _unit_run(values, name, now, units)
        found[name] = Gang(name, table, epoch, _on_time(job, spec, now), unit=unit)
    return found


def _epoch(values: Mapping[str, bytes], path: str) -> ClusterSpec | None:
    found = _kept(ClusterSpec, values, path)
    try:
        for task in found.addresses if found is not None else ():
            split_task_name(task)
    except ValueError as error:
        raise StateUnreadable(f"{path}: {error}") from error
    return found


def _unit_run(values: Mapping[str, bytes], gang: str, now: float, units: int) -> UnitRun | None:
    """Return what a slot runs; None for nothing, and for an unknown unit."""
    run = _kept(UnitRun, values, paths.unit(gang))
    if run is None or run.number >= units:
        return None
    return replace(run, begun_at=min(run.begun_at, now))


def _unit_pages(values: Mapping[str, bytes]) -> list[UnitPage]:
    pages: list[UnitPage] = []
    # A page whose state a split commit did not reach was never asked for anything.
    while (path := paths.units_state(len(pages))) in values:
        given = _decoded(tuple[dict[str, Any], ...], values, paths.units_given(len(pages)))
        pages.append(UnitPage(_decoded(tuple[Unit, ...], values, path), given))
    return pages


def _on_time(job: JobState, spec: ServiceSpec, now: float) -> JobState:
    """Return the job with no time ahead that no clock of now can have meant."""
    latest_restart = now + 2 * spec.retry.max_backoff_seconds
    return replace(
        job,
        phase_since=min(job.phase_since, now),
        trained_until=min(job.trained_until, now),
        started_at=min(job.started_at, now),
        finished_at=min(job.finished_at, now),
        deadline=min(job.deadline, now + spec.outcome_grace_seconds),
        incidents=tuple(
            replace(i, at=min(i.at, now), began_at=min(i.began_at, now)) for i in job.incidents
        ),
        restart=replace(job.restart, due_at=min(job.restart.due_at, latest_restart)),
    )


def _service(values: Mapping[str, bytes]) -> KeptService:
    return _kept(KeptService, values, paths.SERVICE) or KeptService()


def _reservation(values: Mapping[str, bytes], path: str, now: float) -> Reservation:
    found = _decoded(Reservation, values, path)
    return replace(
        found, given_up_at=min(found.given_up_at, now), released_at=min(found.released_at, now)
    )


def _task(values: Mapping[str, bytes], name: str, now: float) -> TaskRecord:
    info = paths.task_info(name)
    changing = _kept(dict, values, paths.task_status(name))
    if changing is None:
        # A split commit ended between the two: the launch was not sent, which is what LOST says.
        changing = {"state": "lost", "changed_at": 0.0, "reason": "never launched", "epoch": 0}
    try:
        record: TaskRecord = codec.from_plain(
            TaskRecord, {**_decoded(dict, values, info), **changing}, "TaskRecord"
        )
        split_task_name(name)
    except ValueError as error:
        raise StateUnreadable(f"{info}: {error}") from error
    if record.name != name:
        raise StateUnreadable(f"{info}: it is the record of {record.name!r}")
    return replace(
        record,
        launched_at=min(record.launched_at, now),
        changed_at=min(record.changed_at, now),
        killed_at=min(record.killed_at, now),
        ordered_at=min(record.ordered_at, now),
    )


def _below(values: Mapping[str, bytes], folder: str) -> dict[str, str]:
    """Return the paths of what is kept in a folder, by what stands behind the folder's name."""
    start = f"{folder}/"
    return {path.removeprefix(start): path for path in sorted(values) if path.startswith(start)}


def _decoded(kind: type[T], values: Mapping[str, bytes], path: str) -> T:
    try:
        return codec.decode(kind, values[path])
    except codec.RecordError as error:
        raise StateUnreadable(f"{path}: {error}") from error


def _kept(kind: type[T], values: Mapping[str, bytes], path: str) -> T | None:
    """Return what is kept there; None when nothing is."""
    return _decoded(kind, values, path) if path in values else None
