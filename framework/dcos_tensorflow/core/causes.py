"""What a task's end means for the gang: is it a failure, whose, and does it cost a retry.

Called by ``core.service``. Kept as tables; the first row that fits decides. Mesos' own reasons come
before exit codes, because an agent that dies makes its tasks exit with anything.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.job import Incident, JobState
from dcos_tensorflow.core.spec import RetrySpec
from dcos_tensorflow.core.task import TaskRecord, TaskState


@dataclass(frozen=True)
class Cause:
    """The class of a failure. ``permanent`` ones end the job at once."""

    kind: str
    charged: bool
    permanent: bool = False


#: Mesos reasons that are nobody's fault in the job (mesos.proto, TaskStatus.Reason).
UNCHARGED_REASONS = frozenset(
    {
        "REASON_AGENT_DISCONNECTED",
        "REASON_AGENT_DRAINING",
        "REASON_AGENT_REMOVED",
        "REASON_AGENT_REMOVED_BY_OPERATOR",
        "REASON_AGENT_REREGISTERED",
        "REASON_AGENT_RESTARTED",
        "REASON_AGENT_UNKNOWN",
        "REASON_CONTAINER_PREEMPTED",
        "REASON_EXECUTOR_REGISTRATION_TIMEOUT",
        "REASON_EXECUTOR_REREGISTRATION_TIMEOUT",
        "REASON_EXECUTOR_TERMINATED",
        "REASON_GC_ERROR",
        "REASON_INVALID_OFFERS",
        "REASON_MASTER_DISCONNECTED",
        "REASON_RECONCILIATION",
        "REASON_SLAVE_DISCONNECTED",
        "REASON_SLAVE_DRAINING",
        "REASON_SLAVE_REMOVED",
        "REASON_SLAVE_REMOVED_BY_OPERATOR",
        "REASON_SLAVE_REREGISTERED",
        "REASON_SLAVE_RESTARTED",
        "REASON_SLAVE_UNKNOWN",
        "REASON_TASK_KILLED_DURING_LAUNCH",
    }
)

OUT_OF_MEMORY_REASON = "REASON_CONTAINER_LIMITATION_MEMORY"

#: A failure that another choice of ports mends.
PORT_TAKEN = "port taken"

#: Exit codes of the task runner and of TensorFlow that have a meaning of their own.
EXIT_CODES: dict[int, Cause] = {
    contract.EXIT_JOB_UNUSABLE: Cause("job unusable", charged=True, permanent=True),
    contract.EXIT_PORT_TAKEN: Cause(PORT_TAKEN, charged=False),
    contract.EXIT_CHECKPOINTED: Cause("checkpointed and left", charged=False),
}

_EXIT_STATUS = re.compile(r"exited with status (\d+)")
_SIGNAL = re.compile(r"terminated with signal (.+)")


def exit_code(message: str) -> int | None:
    """Return the exit code in a command executor's message; None when it names none."""
    found = _EXIT_STATUS.search(message)
    return int(found.group(1)) if found else None


def cause_of(record: TaskRecord) -> Cause:
    """Return the class of the failure that ended this attempt."""
    if record.state is TaskState.UNREACHABLE:
        return Cause("agent unreachable", charged=False)
    if record.reason == OUT_OF_MEMORY_REASON:
        return Cause("out of memory", charged=True)
    if record.reason in UNCHARGED_REASONS or record.state is TaskState.KILLED:
        return Cause("interrupted", charged=False)
    if record.state is TaskState.LOST:
        # Mesos found the launch itself wrong (TASK_ERROR): the same launch would be refused again.
        wrong = record.reason.startswith("REASON_TASK_") or record.reason.startswith(
            "REASON_RESOURC"
        )
        return Cause("launch refused" if wrong else "lost", charged=wrong)
    code = exit_code(record.message)
    if code is not None and code in EXIT_CODES:
        return EXIT_CODES[code]
    return Cause("failed", charged=True)


def describe(record: TaskRecord) -> str:
    """Return one sentence that says how this attempt ended."""
    detail = record.message or record.reason or "no reason given"
    where = f" on {record.hostname}" if record.hostname else ""
    return f"{record.name} {record.state}{where}: {detail}"


def incident_of(record: TaskRecord, now: float) -> tuple[Incident, Cause]:
    """Return the incident that this record's end opens, and its cause."""
    cause = cause_of(record)
    incident = Incident(
        task=record.name,
        task_id=record.task_id,
        at=now,
        kind=cause.kind,
        summary=describe(record),
        charged=cause.charged,
    )
    return incident, cause


def within_window(job: JobState, retry: RetrySpec, now: float) -> tuple[Incident, ...]:
    """Return the incidents that still count, oldest first."""
    return tuple(i for i in job.incidents if i.at > now - retry.window_seconds)


def retries_used(job: JobState, retry: RetrySpec, now: float) -> int:
    """Return how many of the incidents in the window were charged."""
    return sum(1 for i in within_window(job, retry, now) if i.charged)


def spread(seed: str) -> float:
    """Return a number in [0.75, 1.25) that depends on ``seed`` alone: jitter without randomness."""
    digest = hashlib.sha256(seed.encode()).digest()
    return 0.75 + int.from_bytes(digest[:4], "big") / 2**33


def backoff_seconds(job: JobState, retry: RetrySpec, now: float, seed: str) -> float:
    """Return how long to wait before the gang starts again: doubling per incident, with jitter."""
    earlier = max(len(within_window(job, retry, now)) - 1, 0)
    wait = retry.initial_backoff_seconds * retry.backoff_factor ** min(earlier, 32)
    return min(wait, retry.max_backoff_seconds) * spread(f"{seed}/{job.attempt}")
