"""The whole state of one service, what of it is kept, and how it is read back after a crash.

``ServiceState`` is immutable; the one thread that owns the service replaces it as a whole, so every
other thread (API, CLI) may read the current one without a lock. ``writes_between`` says what a step
changed in terms of the state store: nothing that must survive can be forgotten by a branch of the
code, because the difference of the kept parts *is* the write.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from dcos_tensorflow.core.kept import codec
from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.model.controls import Controls
from dcos_tensorflow.core.model.job import JobState
from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.model.quota import Quota
from dcos_tensorflow.core.model.spec import ServiceSpec, Uri
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.model.volume_spec import Reservation
from dcos_tensorflow.core.placement.place import Misfit

T = TypeVar("T")

#: Fields of TaskRecord that change after the launch; they live in TaskStatus, the rest in TaskInfo.
STATUS_FIELDS = frozenset(
    {
        "state",
        "changed_at",
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
    }
)

FRAMEWORK_ID_PATH = "FrameworkID"
CONFIG_TARGET_PATH = "ConfigTarget"
EPOCH_PATH = "Epoch"
JOB_PATH = "Properties/job"
CONTROLS_PATH = "Plans"
ABANDONED_PATH = "Properties/abandoned"
INSTANCE_PATH = "Properties/instance"
TOKEN_KEY_PATH = "Properties/token-key"
RESERVATIONS = "Reservations"


@dataclass(frozen=True)
class LaunchSettings:
    """What every launch needs and no option says: where the runner is, which key signs tokens.

    ``storage_runner`` is the runner that brings boto3 along, for jobs that keep things in S3.
    ``token_key`` is hexadecimal; a task's token is derived from it and from its task id.
    """

    runner: Uri = field(default_factory=lambda: Uri("task-runner.pyz", extract=False))
    storage_runner: Uri = field(
        default_factory=lambda: Uri("task-runner-storage.pyz", extract=False)
    )
    job: Uri | None = None
    token_key: str = ""


@dataclass(frozen=True)
class Reconciliation:
    """Which tasks still owe an answer to explicit reconciliation, and when to ask again.

    ``unexplained`` are those that have failed, as an answer says (task id -> since when): the
    update that says how is still to come.
    """

    waiting: frozenset[str] = frozenset()
    unexplained: Mapping[str, float] = field(default_factory=dict)
    next_at: float = 0.0
    round: int = 0
    implicit_at: float = 0.0


@dataclass(frozen=True)
class OfferVerdict:
    """What became of one offer, for /v2/debug/offers and ``why``."""

    offer_id: str
    agent_id: str
    hostname: str
    at: float
    passed: bool
    tasks: tuple[str, ...]
    explanation: str


@dataclass(frozen=True)
class OfferLog:
    """Counts since the start, and the newest verdicts (at most 100), newest last."""

    accepted: int = 0
    rejected: int = 0
    verdicts: tuple[OfferVerdict, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """Why a task ended, as its sandbox tells."""

    summary: str
    last_lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class ServiceState:
    """Everything. The first block is kept in the state store, the second is a cache.

    ``abandoned`` are attempts (task id -> agent id) that were unreachable when they were given up:
    should their agent come back, they are killed before anything else is launched.
    ``reservations`` are what is reserved on agents, by resource id; of those in ``awaited_back``
    offers are asked for, to give them back.
    ``registered_at`` is when the subscription began, ``awake_since`` when we last went on after a
    pause of our own (a store that was away), ``stepped_at`` when we last looked: nobody is late who
    could not be heard before.
    ``former_options`` are configurations of before, by id, with which tasks may have been launched.
    ``suppressed`` is what we believe the master believes; None when unknown.
    ``gang_since`` is when the pool of held offers began to be held, 0 when none is.
    ``considered`` is the (offers_version, tasks wanted) that placement last looked at in vain.
    ``master_region`` is the master's own region, empty where it has none.
    ``disconnected`` is why there is no subscription, as far as that is known.
    ``strays`` are tasks of ours that should not exist (task id -> (agent id, last KILL)).
    ``inverse_offers`` maps the inverse offers in hand to their agents. ``erased`` says that the
    uninstall has let go of everything; TEARDOWN was sent at ``torn_down_at`` and is not sent again
    before ``tear_down_after``.
    ``refused_configuration`` is why the newest wish for other options was refused.
    ``evidence_wanted`` maps a task id to the time until which its evidence is waited for.
    """

    spec: ServiceSpec
    instance: str
    settings: LaunchSettings = LaunchSettings()
    framework_id: str = ""
    epoch: ClusterSpec | None = None
    tasks: Mapping[str, TaskRecord] = field(default_factory=dict)
    job: JobState = JobState()
    abandoned: Mapping[str, str] = field(default_factory=dict)
    controls: Controls = Controls()
    reservations: Mapping[str, Reservation] = field(default_factory=dict)
    former_options: Mapping[str, ServiceSpec] = field(default_factory=dict)

    registered: bool = False
    registered_at: float = 0.0
    awake_since: float = 0.0
    stepped_at: float = 0.0
    master: str = ""
    master_region: str = ""
    disconnected: str = ""
    offers: Mapping[str, Offer] = field(default_factory=dict)
    suppressed: bool | None = None
    revived_at: float = 0.0
    gang_since: float = 0.0
    gang_rounds: int = 0
    offers_version: int = 0
    considered: tuple[int, tuple[str, ...]] = (-1, ())
    misfits: tuple[Misfit, ...] = ()
    reconciliation: Reconciliation = Reconciliation()
    strays: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    reports: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    evidence_wanted: Mapping[str, float] = field(default_factory=dict)
    offer_log: OfferLog = OfferLog()
    inverse_offers: Mapping[str, str] = field(default_factory=dict)
    erased: bool = False
    torn_down_at: float = 0.0
    tear_down_after: float = 0.0
    refused_configuration: str = ""
    quota: Quota | None = None
    awaited_back: frozenset[str] = frozenset()

    def with_task(self, record: TaskRecord) -> ServiceState:
        """Return the state with ``record`` in place of the task's earlier one."""
        if self.tasks.get(record.name) is record:
            return self
        return replace(self, tasks={**self.tasks, record.name: record})

    def task_by_id(self, task_id: str) -> TaskRecord | None:
        """Return the record whose current attempt has this Mesos task id."""
        parts = task_id.rsplit("__", 2)
        record = self.tasks.get(parts[1]) if len(parts) == 3 else None
        return record if record is not None and record.task_id == task_id else None

    @property
    def live_tasks(self) -> tuple[TaskRecord, ...]:
        """Records whose attempt may still run."""
        return tuple(r for r in self.tasks.values() if not r.terminal)


def configuration_id(spec: ServiceSpec) -> str:
    """Return the id of a configuration: the same options always have the same id.

    It is taken from what a reader of the store gets, so that 64 MB and 64.0 MB are the same.
    """
    stored = codec.decode(ServiceSpec, codec.encode(spec))
    return str(uuid.uuid5(uuid.NAMESPACE_OID, codec.encode(stored).decode()))


def _split(record: TaskRecord) -> tuple[bytes, bytes]:
    names = [f.name for f in fields(record)]
    info = {n: getattr(record, n) for n in names if n not in STATUS_FIELDS}
    status = {n: getattr(record, n) for n in names if n in STATUS_FIELDS}
    return codec.encode(info), codec.encode(status)


def first_writes(state: ServiceState) -> tuple[Write, ...]:
    """Return what a new service writes before anything else happens."""
    target = configuration_id(state.spec)
    return (
        Write(f"Configurations/{target}", codec.encode(state.spec)),
        Write(INSTANCE_PATH, state.instance.encode()),
        Write(TOKEN_KEY_PATH, state.settings.token_key.encode()),
        Write(JOB_PATH, codec.encode(state.job)),
        Write(CONFIG_TARGET_PATH, target.encode()),
    )


def writes_between(before: ServiceState, after: ServiceState) -> tuple[Write, ...]:
    """Return what must be committed when ``before`` becomes ``after``.

    The order matters where a store has to split a large commit: reservations and task records
    first, the job last. A prefix then shows launches that were never sent, which reconciliation
    clears.
    """
    writes: list[Write] = []
    if before.framework_id != after.framework_id:
        writes.append(Write(FRAMEWORK_ID_PATH, after.framework_id.encode() or None))
    writes += _reservation_writes(before, after)
    for name, record in after.tasks.items():
        old = before.tasks.get(name)
        if old is record:
            continue
        info, status = _split(record)
        old_info, old_status = _split(old) if old is not None else (None, None)
        if info != old_info:
            writes.append(Write(f"Tasks/{name}/TaskInfo", info))
        if status != old_status:
            writes.append(Write(f"Tasks/{name}/TaskStatus", status))
    for name in before.tasks.keys() - after.tasks.keys():
        writes.append(Write(f"Tasks/{name}/TaskInfo", None))
        writes.append(Write(f"Tasks/{name}/TaskStatus", None))
    if before.epoch is not after.epoch and after.epoch is not None:
        writes.append(Write(EPOCH_PATH, codec.encode(after.epoch)))
    if before.abandoned != after.abandoned:
        writes.append(Write(ABANDONED_PATH, codec.encode(after.abandoned)))
    if before.controls != after.controls:
        writes.append(Write(CONTROLS_PATH, codec.encode(after.controls)))
    if before.spec is not after.spec and before.spec != after.spec:
        target = configuration_id(after.spec)
        writes.append(Write(f"Configurations/{target}", codec.encode(after.spec)))
        writes.append(Write(CONFIG_TARGET_PATH, target.encode()))
    if before.job is not after.job and before.job != after.job:
        writes.append(Write(JOB_PATH, codec.encode(after.job)))
    return tuple(writes)


def _reservation_writes(before: ServiceState, after: ServiceState) -> list[Write]:
    if before.reservations is after.reservations:
        return []
    writes = [
        Write(f"{RESERVATIONS}/{key}", codec.encode(found))
        for key, found in after.reservations.items()
        if before.reservations.get(key) != found
    ]
    gone = before.reservations.keys() - after.reservations.keys()
    return writes + [Write(f"{RESERVATIONS}/{key}", None) for key in sorted(gone)]


class StateUnreadable(ValueError):
    """What the store holds is not a state of ours; the text names the path."""


def stored_spec(values: Mapping[str, bytes]) -> ServiceSpec | None:
    """Return the stored target configuration; None when the service is new."""
    target = values.get(CONFIG_TARGET_PATH)
    if target is None:
        return None
    path = f"Configurations/{target.decode()}"
    if path not in values:
        raise StateUnreadable(f"ConfigTarget names {path}, which is not there")
    return _decoded(ServiceSpec, values, path)


def restore(values: Mapping[str, bytes], settings: LaunchSettings) -> ServiceState | None:
    """Rebuild the state from what the store holds; None when the service is new.

    ``settings`` are this process's own; the token key comes from the store, so that runners that
    an earlier scheduler started still trust us. Raises StateUnreadable.
    """
    spec = stored_spec(values)
    if spec is None:
        return None
    tasks: dict[str, TaskRecord] = {}
    for path in sorted(values):
        parts = path.split("/")
        if len(parts) == 3 and parts[0] == "Tasks" and parts[2] == "TaskInfo":
            tasks[parts[1]] = _restored_task(values, parts[1])
    return ServiceState(
        spec=spec,
        instance=values.get(INSTANCE_PATH, b"").decode(),
        settings=replace(settings, token_key=values.get(TOKEN_KEY_PATH, b"").decode()),
        framework_id=values.get(FRAMEWORK_ID_PATH, b"").decode(),
        epoch=_decoded(ClusterSpec, values, EPOCH_PATH) if EPOCH_PATH in values else None,
        tasks=tasks,
        job=_decoded(JobState, values, JOB_PATH) if JOB_PATH in values else JobState(),
        abandoned=_plain(values, ABANDONED_PATH) if ABANDONED_PATH in values else {},
        controls=_decoded(Controls, values, CONTROLS_PATH)
        if CONTROLS_PATH in values
        else Controls(),
        former_options=_former_options(values),
        reservations={
            path.removeprefix(f"{RESERVATIONS}/"): _decoded(Reservation, values, path)
            for path in sorted(values)
            if path.startswith(f"{RESERVATIONS}/")
        },
    )


def _former_options(values: Mapping[str, bytes]) -> dict[str, ServiceSpec]:
    """Return every stored configuration but the target; one that nobody can read is of no use."""
    target = f"Configurations/{values[CONFIG_TARGET_PATH].decode()}"
    found = {}
    for path in sorted(values):
        if path.startswith("Configurations/") and path != target:
            with contextlib.suppress(codec.RecordError):
                key = path.removeprefix("Configurations/")
                found[key] = codec.decode(ServiceSpec, values[path])
    return found


def _decoded(kind: type[T], values: Mapping[str, bytes], path: str) -> T:
    try:
        return codec.decode(kind, values[path])
    except codec.RecordError as error:
        raise StateUnreadable(f"{path}: {error}") from error


def _restored_task(values: Mapping[str, bytes], name: str) -> TaskRecord:
    info_path, status_path = f"Tasks/{name}/TaskInfo", f"Tasks/{name}/TaskStatus"
    if status_path not in values:
        # A split commit ended between the two: the launch was not sent, which is what LOST says.
        status: dict[str, Any] = {
            "state": "lost",
            "changed_at": 0.0,
            "reason": "never launched",
            "epoch": 0,
        }
    else:
        status = _plain(values, status_path)
    return _record({**_plain(values, info_path), **status}, info_path)


def _plain(values: Mapping[str, bytes], path: str) -> dict[str, Any]:
    plain = _decoded(dict, values, path)
    return plain


def _record(plain: dict[str, Any], path: str) -> TaskRecord:
    try:
        record: TaskRecord = codec.from_plain(TaskRecord, plain, "TaskRecord")
    except codec.RecordError as error:
        raise StateUnreadable(f"{path}: {error}") from error
    return record
