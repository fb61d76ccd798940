"""Questions to a task runner's report about the order that its task is under.

A report is the answer to ``GET /v1/status`` (docs/task-runner.md), as plain data that any version
of the task runner may have sent: every question here is total. Asked by ``core.model.task_table``,
which keeps the answers, and by ``core.cluster.orders``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.model import bounds
from dcos_tensorflow.core.model.task import TaskRecord, TaskState

Report = Mapping[str, Any]
#: What is known of a runner that has not been heard of.
SILENT: Report = {}
#: No machine has as many bytes, and none makes as many steps a second.
_MOST = 1e18
#: No time of a report is later, in unix seconds: what is would be no number, or none of seconds.
_NEVER = 1e11


def is_under(record: TaskRecord, report: Report) -> bool:
    """Say whether a runner reports that it has taken the order that ``record`` stands for."""
    return report.get("start") == record.start and report.get("run") == (not record.held)


def takes_workers(record: TaskRecord, report: Report) -> bool:
    """Say whether a runner reports a process that takes other workers while it runs."""
    return (
        is_under(record, report)
        and report.get("state") == contract.RUNNER_RUNNING
        and report.get("takes_workers") is True
    )


def is_behind(record: TaskRecord, report: Report) -> bool:
    """Say whether a process runs with an older version of the cluster than it is wanted to."""
    version = report.get("epoch")
    runs = is_under(record, report) and report.get("state") == contract.RUNNER_RUNNING
    return runs and isinstance(version, int) and version < record.epoch


def needs_order(record: TaskRecord, report: Report) -> bool:
    """Say whether a runner is to be sent the order that ``record`` stands for."""
    is_to_tell = takes_workers(record, report) and is_behind(record, report)
    led = not record.data_service or report.get("data_service") == record.data_service
    return is_to_tell or not led or not is_under(record, report)


def tells_stopped(record: TaskRecord, report: Report) -> bool:
    """Say whether a runner reports that its process is stopped, as ordered."""
    return record.held and is_under(record, report) and report.get("state") == contract.RUNNER_HELD


def tells_started(record: TaskRecord, report: Report) -> bool:
    """Say whether a runner reports that the process of the wanted start runs."""
    return is_under(record, report) and report.get("state") in (
        contract.RUNNER_RUNNING,
        contract.RUNNER_EXITED,
        contract.RUNNER_DONE,
    )


def tells_done(record: TaskRecord, report: Report) -> bool:
    """Say whether a runner reports that the process of the wanted start has done its unit."""
    return is_under(record, report) and report.get("state") == contract.RUNNER_DONE


def unit_of(report: Report) -> tuple[int, int, Mapping[str, Any]] | None:
    """Return number, attempt and result of the unit that a report tells of; None for none.

    A result that is no small object is taken for none.
    """
    unit = report.get("unit")
    if not isinstance(unit, Mapping):
        return None
    number, attempt, result = unit.get("number"), unit.get("attempt"), unit.get("result")
    if not isinstance(number, int) or not isinstance(attempt, int):
        return None
    return number, attempt, bounds.small(result, contract.UNIT_RESULT_BYTES)


def is_started(record: TaskRecord, report: Report) -> bool:
    """Say whether the wanted start of a task runs, or is done, as far as can be known."""
    if record.state is TaskState.FINISHED:
        return True
    if record.state is not TaskState.RUNNING:
        return False
    if record.start == 1 and not record.ordered_at:
        # It was launched to run at once: that Mesos says RUNNING is all there is to know.
        return True
    return tells_started(record, report)


def is_waiting(report: Report) -> bool:
    """Say whether a runner reports that its process waits for peers to listen."""
    return report.get("state") == contract.RUNNER_WAITING


def waited_for(report: Report) -> tuple[str, ...]:
    """Return the addresses that a runner waits for, with its process or before it."""
    found = report.get("waiting_for")
    return tuple(map(str, found)) if is_waiting(report) and isinstance(found, list) else ()


def peer_address(report: Report) -> str:
    """Return the address of its machine that a runner has found in the peers' network, or none."""
    try:
        return str(ipaddress.ip_address(str(report.get("peer_address") or "")))
    except ValueError:
        return ""


def unreachable(report: Report) -> Mapping[str, str]:
    """Return the addresses of peers that a runner does not reach, with the word why.

    None once its process makes steps: then it has reached them.
    """
    found = report.get("unreachable")
    if not isinstance(found, Mapping) or step_of(report) is not None:
        return {}
    return {str(address): str(why) for address, why in found.items()}


def idle_since(report: Report) -> float | None:
    """Return since when a process does nothing, in unix seconds; None when it does something.

    Nothing is: no step, no line of output, and hardly any CPU time, for a minute at least.
    """
    return _since(report, "idle_since")


def listens_since(report: Report) -> float | None:
    """Return since when a process' own TensorFlow server listens, in unix seconds; None for not."""
    return _since(report, "listens_since")


def _since(report: Report, name: str) -> float | None:
    since = report.get(name)
    if report.get("state") != contract.RUNNER_RUNNING or not isinstance(since, int | float):
        return None
    return float(since) if 0 <= since < _NEVER else None


def taken_back_at(report: Report) -> float | None:
    """Return when the runner's machine is taken back, in unix seconds; None without a notice."""
    at = _notice(report).get("at")
    if _notice(report).get("kind") != contract.NOTICE_INTERRUPTION:
        return None
    return float(at) if isinstance(at, int | float) and 0 <= at < _NEVER else None


def may_be_taken_back(report: Report) -> bool:
    """Say whether the runner's machine is more likely than others to be taken back."""
    return _notice(report).get("kind") == contract.NOTICE_REBALANCE


def _notice(report: Report) -> Mapping[str, Any]:
    notice = report.get("notice")
    return notice if isinstance(notice, Mapping) else {}


def step_of(report: Report) -> int | None:
    """Return the training step that a runner has read last; None when it knows none."""
    return _step_in(report.get("progress"))


def told_of(report: Report) -> tuple[int | None, float | None]:
    """Return the step that a runner has read last, and when it read anything, in unix seconds."""
    progress = report.get("progress")
    at = progress.get("at") if isinstance(progress, Mapping) else None
    return step_of(report), float(at) if isinstance(at, int | float) and 0 <= at < _NEVER else None


def checkpoint_step_of(report: Report) -> int | None:
    """Return the step of the checkpoint that a task would restore; None when there is none."""
    return _step_in(report.get("checkpoint"))


def _step_in(part: Any) -> int | None:
    step = part.get("step") if isinstance(part, Mapping) else None
    return step if isinstance(step, int) else None


#: A task has no more GPUs than that, of which a report could tell.
_MOST_GPUS = 64


def usage_of(told: object) -> Mapping[str, Any] | None:
    """Return what a report tells of what a task uses now; None for what makes no sense.

    ``cpu_percent`` is of one processor, ``utilisation`` from 0 to 1, memory in bytes.
    """
    if not isinstance(told, Mapping):
        return None
    cpu, memory = _amount(told.get("cpu_percent")), _amount(told.get("mem_bytes"))
    gpus = told.get("gpus")
    if cpu is None or memory is None:
        return None
    found = [
        {"utilisation": min(1.0, busy), "mem_bytes": int(used)}
        for gpu in (gpus[:_MOST_GPUS] if isinstance(gpus, list) else ())
        if isinstance(gpu, Mapping)
        and (busy := _amount(gpu.get("utilisation"))) is not None
        and (used := _amount(gpu.get("mem_bytes"))) is not None
    ]
    return {
        "cpu_percent": cpu,
        "mem_bytes": int(memory),
        "gpus": found,
        "steps_per_second": _amount(told.get("steps_per_second")),
    }


def _amount(told: object) -> float | None:
    """Return a number from 0 on, no larger than what any machine has of anything."""
    if isinstance(told, bool) or not isinstance(told, int | float):
        return None
    return float(told) if 0 <= told <= _MOST else None
