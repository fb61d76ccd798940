"""The class of failure of a task's end, and whether it costs a retry.

Asked by ``core.failures.incidents``. Kept as tables; the first row that fits decides. Mesos' own
reasons come before exit codes, because tasks of an agent that dies exit with any code.
"""

from __future__ import annotations

import re

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class Cause:
    """The class of a failure."""

    kind: str
    #: Whether it costs a retry.
    charged: bool
    #: It ends the job at once.
    permanent: bool = False
    #: It ends the job where that has never run: nothing is lost, and no other start fares better.
    ends_a_first_start: bool = False
    #: It may lie at the machine: where it repeats, the agent is avoided for a while.
    agents_fault: bool = False
    #: A signal ended the container, and nothing tells whose: where it repeats, the job's own.
    unexplained: bool = False


#: Mesos reasons without a fault of the job (mesos.proto, TaskStatus.Reason).
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
#: A launch of this end never ran, and its agent is there as before.
INVALID_OFFERS_REASON = "REASON_INVALID_OFFERS"
#: A TaskInfo that Mesos does not take (its master's validation).
INVALID_TASK_REASON = "REASON_TASK_INVALID"
#: In Mesos' words about resources that are not, or no more, in the offer (recorded).
_SHORT = "more than available"

#: A failure that another choice of ports mends.
PORT_TAKEN = "port taken"
#: A process that ended because another one had: never the cause of anything.
PEER_LOST = "peer lost"
OUT_OF_MEMORY = "out of memory"
UNREACHABLE = "agent unreachable"
START_TIMED_OUT = "start timed out"
#: A process that ended with 0 while others needed it: the cause of their end.
ENDED_BEFORE_PEERS = "ended before its peers"
#: A parameter server that ended with 0 while others wait for it.
SERVER_ENDED = "server ended"
#: A gang in which no task does anything.
STANDSTILL = "standstill"

#: An end that Mesos or a machine tells of, or by a signal of which nothing tells.
INTERRUPTED = "interrupted"

#: Every word that an incident is classed by.
KINDS = (
    *("failed", PORT_TAKEN, PEER_LOST, OUT_OF_MEMORY, UNREACHABLE, START_TIMED_OUT),
    *(ENDED_BEFORE_PEERS, SERVER_ENDED, STANDSTILL, INTERRUPTED, "checkpointed and left"),
    *("frozen", "stalled", "checkpoints differ", "storage", "job unusable", "launch refused"),
    "lost",
)

#: Classes of the task runner's verdict on a process (``task.exits.exit_analysis``).
EXIT_CLASSES: dict[str, Cause] = {
    contract.EXIT_CLASS_PEER_LOST: Cause(PEER_LOST, charged=False),
    contract.EXIT_CLASS_OUT_OF_MEMORY: Cause(OUT_OF_MEMORY, charged=True),
    contract.EXIT_CLASS_INTERRUPTED: Cause(INTERRUPTED, charged=False, agents_fault=True),
    contract.EXIT_CLASS_CHECKPOINTED: Cause("checkpointed and left", charged=False),
    contract.EXIT_CLASS_FROZEN: Cause("frozen", charged=False, agents_fault=True),
    contract.EXIT_CLASS_STALLED: Cause("stalled", charged=True),
    contract.EXIT_CLASS_CHECKPOINT_MISMATCH: Cause("checkpoints differ", charged=True),
    contract.EXIT_CLASS_STORAGE: Cause("storage", charged=False),
    contract.EXIT_CLASS_STORAGE_REFUSED: Cause("storage", charged=False, ends_a_first_start=True),
}

#: Exit codes of the task runner and of TensorFlow that have a meaning of their own.
EXIT_CODES: dict[int, Cause] = {
    contract.EXIT_JOB_UNUSABLE: Cause("job unusable", charged=True, permanent=True),
    contract.EXIT_PORT_TAKEN: Cause(PORT_TAKEN, charged=False),
    contract.EXIT_CHECKPOINTED: Cause("checkpointed and left", charged=False),
    contract.EXIT_STORAGE: Cause("storage", charged=False),
}

_EXIT_STATUS = re.compile(r"exited with status (\d+)")
_SIGNAL = re.compile(r"terminated with signal (.+)")


def exit_code(message: str) -> int | None:
    """Return the exit code in a command executor's message; None when it names none."""
    found = _EXIT_STATUS.search(message)
    return int(found.group(1)) if found else None


#: Signals and exit codes from outside the job: SIGINT, SIGUSR1, SIGKILL without a word of
#: memory, SIGTERM (reference: what preempted processes exit with).
INTERRUPTED_CODES = frozenset({130, 137, 138, 143})


def cause_of(record: TaskRecord) -> Cause:
    """Return the class of the failure that ended this attempt, or the start in it."""
    if record.state is TaskState.UNREACHABLE:
        return Cause(UNREACHABLE, charged=False, agents_fault=True)
    if record.process_failed:
        return cause_of_start(record)
    if record.reason == OUT_OF_MEMORY_REASON:
        return Cause(OUT_OF_MEMORY, charged=True)
    if record.reason in UNCHARGED_REASONS or record.state is TaskState.KILLED:
        return Cause(INTERRUPTED, charged=False)
    if record.state is TaskState.LOST:
        # Mesos found the launch itself wrong (TASK_ERROR).
        wrong = record.reason.startswith("REASON_TASK_") or record.reason.startswith(
            "REASON_RESOURC"
        )
        return Cause(
            "launch refused" if wrong else "lost",
            charged=wrong,
            permanent=_never_launched(record),
            agents_fault=not wrong,
        )
    if _SIGNAL.search(record.message):
        # The runner itself was killed. A job does that rarely: ``charges`` looks at how often.
        return Cause(INTERRUPTED, charged=False, agents_fault=True, unexplained=True)
    return _cause_of_process("", exit_code(record.message))


def _never_launched(record: TaskRecord) -> bool:
    """Say whether Mesos would refuse the same launch again: what was short may be there then."""
    return record.reason == INVALID_TASK_REASON and _SHORT not in record.message


def cause_of_start(record: TaskRecord) -> Cause:
    """Return the class of the failure of the start that failed last in this attempt."""
    return _cause_of_process(record.exit_class, record.exit_code)


def _cause_of_process(exit_class: str, code: int | None) -> Cause:
    if exit_class in EXIT_CLASSES:
        return EXIT_CLASSES[exit_class]
    if code is not None and code in EXIT_CODES:
        return EXIT_CODES[code]
    if code in INTERRUPTED_CODES:
        return Cause(INTERRUPTED, charged=False, agents_fault=True)
    return Cause("failed", charged=True)


def describe(record: TaskRecord) -> str:
    """Return one sentence that says how this attempt, or the start in it, ended."""
    if record.process_failed:
        return describe_start(record)
    detail = record.message or record.reason or "no reason given"
    return f"{record.name} {record.state}{_where(record)}: {detail}"


def describe_start(record: TaskRecord) -> str:
    """Return one sentence that says how the start ended that failed last in this attempt."""
    detail = f": {record.exit_summary}" if record.exit_summary else ""
    return f"{record.name} failed{_where(record)} with exit code {record.exit_code}{detail}"


def _where(record: TaskRecord) -> str:
    return f" on {record.hostname}" if record.hostname else ""
