"""What the end of the user's process meant: its class, one sentence, and what to do about it.

``runner`` calls ``analyse`` at the end of each start. Pure: it sees how the process ended, what we
had asked of it, and the last lines it printed. The rules are a table; the first that fits wins.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from enum import Enum
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

from dcos_tensorflow.core import contract

#: How many lines the report carries; more are looked at, because tracebacks are long.
REPORTED_LINES = 40
ANALYSED_LINES = 1000


class ExitClass(str, Enum):
    """What kind of end it was; the scheduler's retry rules go by it."""

    SUCCESS = "success"
    USER_ERROR = contract.EXIT_CLASS_USER_ERROR
    JOB_UNUSABLE = "job_unusable"
    PORT_TAKEN = "port_taken"
    PEER_LOST = contract.EXIT_CLASS_PEER_LOST
    OUT_OF_MEMORY = contract.EXIT_CLASS_OUT_OF_MEMORY
    INTERRUPTED = contract.EXIT_CLASS_INTERRUPTED
    CHECKPOINTED = contract.EXIT_CLASS_CHECKPOINTED
    FROZEN = contract.EXIT_CLASS_FROZEN
    STALLED = contract.EXIT_CLASS_STALLED
    CHECKPOINT_MISMATCH = contract.EXIT_CLASS_CHECKPOINT_MISMATCH
    STORAGE = contract.EXIT_CLASS_STORAGE


@dataclass(frozen=True)
class Verdict:
    """Why the watchdog has ended a process."""

    exit_class: ExitClass
    summary: str
    hint: str = ""


@dataclass(frozen=True)
class Ending:
    """How the process ended. ``return_code`` is negative for a signal, as in ``subprocess``.

    ``stop_reason`` is why we stopped it, empty when it ended by itself; ``condemned`` is why the
    watchdog killed it. ``out_of_memory`` says that the kernel has killed for want of memory while
    it ran. ``contract`` is the one it ran by, empty when it never ran.
    """

    return_code: int
    stop_reason: str = ""
    condemned: Optional[Verdict] = None
    out_of_memory: bool = False
    contract: str = ""
    grpc_port: int = 0


@dataclass(frozen=True)
class ExitReport:
    """The verdict: ``exit_code`` is what the runner itself exits with.

    ``result`` is the last that the process reported as such (docs/job-contract.md).
    """

    exit_code: int
    exit_class: ExitClass
    summary: str
    hint: str = ""
    signal: Optional[int] = None
    last_lines: Tuple[str, ...] = ()
    result: Optional[Mapping[str, Any]] = None

    def as_json(self) -> Dict[str, Any]:
        """Return the document that goes to ``task-exit.json``."""
        return {
            "exit_code": self.exit_code,
            "signal": self.signal,
            "class": self.exit_class.value,
            "summary": self.summary,
            "hint": self.hint,
            "result": dict(self.result or {}),
            "last_lines": list(self.last_lines),
        }


@dataclass(frozen=True)
class Rule:
    """A failure text that is known: what it means and what helps.

    In ``summary``, ``{error}`` is the exception's line, ``{port}`` the gRPC port and ``{peer}`` the
    task that went away.
    """

    pattern: str
    exit_class: ExitClass
    summary: str
    hint: str
    exit_code: Optional[int] = None


#: Measured on TensorFlow 2.15.1 and 2.21.0. The order matters: causes before what they entail.
RULES: Tuple[Rule, ...] = (
    Rule(
        r"Could not start gRPC server",
        ExitClass.PORT_TAKEN,
        "TensorFlow could not listen on port {port}: it is taken on this machine",
        "the task is started again on another port; nothing is to be done unless it repeats",
        contract.EXIT_PORT_TAKEN,
    ),
    Rule(
        r"No module named '?tensorflow'?(?!\w|\.)",
        ExitClass.JOB_UNUSABLE,
        "There is no TensorFlow in the Python that runs the task",
        "set service.python to a Python or virtual environment that has it, or service.tf_image "
        "(service.gpu_tf_image) to a container image that has it",
        contract.EXIT_JOB_UNUSABLE,
    ),
    Rule(
        r"No module named '?tensorboard'?(?!\w|\.)|TensorBoard is not installed",
        ExitClass.JOB_UNUSABLE,
        "There is no TensorBoard in the Python that runs the task; tf.summary needs it, and "
        "TensorFlow brings none from 2.21 on",
        "install tensorboard there; for the task tensorboard, tensorboard.python may name another "
        "environment that has it",
        contract.EXIT_JOB_UNUSABLE,
    ),
    Rule(
        r"No module named '?tensorflow\.contrib|has no attribute 'contrib'",
        ExitClass.USER_ERROR,
        "The job uses tf.contrib, which TensorFlow 2 does not have in any form",
        "replace what it takes from tf.contrib, or run it in a TensorFlow 1 image",
    ),
    Rule(
        r"tf\.device does not support functions",
        ExitClass.USER_ERROR,
        "The job passes replica_device_setter to TensorFlow 2's tf.device",
        "use tf.compat.v1.device, or set service.tf1_compat to run a TensorFlow 1 script unedited",
    ),
    Rule(
        r"is not available with Keras 3",
        ExitClass.USER_ERROR,
        "The job uses a part of TensorFlow that Keras 3 does not offer: {error}",
        "install tf_keras beside TensorFlow and set service.legacy_keras",
    ),
    Rule(
        r"module 'tensorflow[\w.]*' has no attribute '(?:placeholder\w*|Session|InteractiveSession"
        r"|app|flags|get_variable|variable_scope|global_variables_initializer|logging|gfile"
        r"|train_op|layers|ConfigProto|reset_default_graph|log|set_random_seed"
        r"|replica_device_setter|MonitoredTrainingSession|get_or_create_global_step|GPUOptions"
        r"|GradientDescentOptimizer|AdamOptimizer|Server|Saver|Supervisor|ClusterSpec"
        r"|SyncReplicasOptimizer|truncated_normal|to_float|summary\.FileWriter)'"
        r"|tf\.placeholder\(\) is not compatible with eager",
        ExitClass.USER_ERROR,
        "The job is written for TensorFlow 1: {error}",
        "set service.tf1_compat to run it unedited",
    ),
    Rule(
        r"PerReplica|create_per_worker_dataset|Cannot get the cardinality",
        ExitClass.USER_ERROR,
        "model.fit does not work under this tf.distribute strategy with Keras 3",
        "install tf_keras beside TensorFlow and set service.legacy_keras, or write the training "
        "loop yourself",
    ),
    Rule(
        r"TF_USE_LEGACY_KERAS|No module named '?tf_keras",
        ExitClass.USER_ERROR,
        "service.legacy_keras is set, but the Python that runs the task has no tf_keras",
        "install tf_keras of TensorFlow's version beside TensorFlow",
    ),
    Rule(
        r"scheme '?s3'? not implemented",
        ExitClass.USER_ERROR,
        "TensorFlow has no file system for s3://",
        "write to CHECKPOINT_DIR and LOG_DIR instead of s3://, or use gs:// or a mounted directory",
    ),
    Rule(
        r"(?:_temp/part-|part-\d{5}-of-\d{5}|\.data-\d{5}-of-\d{5}|_temp).*"
        r"(?:did not exist|No such file|not found)"
        r"|(?:did not exist|No such file|NotFoundError).*_temp"
        r"|MergeV2Checkpoints.*(?:did not exist|No such file)",
        ExitClass.USER_ERROR,
        "A checkpoint was written in parts to the private disks of several tasks",
        "save on the chief: "
        'tf.train.CheckpointOptions(experimental_io_device="/job:chief/replica:0/task:0/cpu:0") '
        "on save and restore, or with compat.v1 a Saver(sharded=False) made under "
        'tf.device("/job:chief/task:0/cpu:0") (worker, where there is no chief); or set '
        "service.shared_filesystem",
    ),
    Rule(
        r"Cannot assign a device for operation (?:Restore|Save|MergeV2)\w*:.*/task:[1-9]",
        ExitClass.USER_ERROR,
        "A checkpoint is to be read or written on a device that does not exist",
        'name the whole device: experimental_io_device="/job:chief/replica:0/task:0/cpu:0"; '
        "the job alone takes the task's number from the parameter server of each variable",
    ),
    Rule(
        r"ResourceExhaustedError|\bOOM when allocating|std::bad_alloc|^MemoryError\b",
        ExitClass.OUT_OF_MEMORY,
        "The job ran out of memory: {error}",
        "give the role more memory (worker.mem, gpu_worker.mem, parameter_server.mem), or use "
        "smaller batches",
    ),
    Rule(
        r"UnavailableError|PSUnavailable|\bUNAVAILABLE:|failed to connect to all addresses"
        r"|stopped sending heartbeats|Socket closed|Connection reset by peer"
        r"|task is already disconnected|unhealthy tasks|Collective ops is aborted by",
        ExitClass.PEER_LOST,
        "Another task of the cluster went away ({peer}): {error}",
        "look at the task that failed first; this one only noticed it",
    ),
    Rule(
        r"incarnation doesn't match|worker has restarted|Collective .*different incarnation",
        ExitClass.PEER_LOST,
        "Another task of the cluster was restarted without this one: {error}",
        "look at the task that failed first; this one only noticed it",
    ),
)

_EXCEPTION = re.compile(
    r"^(?P<name>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Unavailable)\w*)"
    r"(?::\s?(?P<text>.*))?$"
)
_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)
_TRACEBACK = "Traceback (most recent call last):"
_TENSORFLOW_ERRORS = "tensorflow.python.framework.errors_impl."
_LOCATION = re.compile(r"^$|Detected at node|File \"|<stack traces|\d+ root error")
_REMOTE = re.compile(r"remote target /job:(\w+)/replica:\d+/task:(\d+)")
_CHAINED = re.compile(r"^(During handling of the above exception|The above exception was the)")
_IMPORTING = re.compile(r"^task-runner: importing (\S+) failed$")


def analyse(ending: Ending, lines: Sequence[str]) -> ExitReport:
    """Return the verdict on ``ending``; ``lines`` are the last ones printed, oldest first."""
    code = ending.return_code
    exit_code = code if code >= 0 else 128 - code
    error = exception_line(lines)
    if ending.condemned:
        verdict = ending.condemned
        exit_class, summary, hint = verdict.exit_class, verdict.summary, verdict.hint
    elif ending.stop_reason and code != contract.EXIT_CHECKPOINTED:
        exit_class, summary, hint = (
            ExitClass.INTERRUPTED,
            f"Stopped: {ending.stop_reason}",
            "",
        )
    elif code == contract.EXIT_SUCCESS:
        exit_class, summary, hint = ExitClass.SUCCESS, "The job's process finished", ""
    elif code == contract.EXIT_CHECKPOINTED:
        exit_class = ExitClass.CHECKPOINTED
        summary, hint = "The job saved a checkpoint and left, to be started again", ""
    else:
        found = None if code in _KILLED else _first_match(_failure(lines))
        if found is not None:
            rule, line = found
            exit_code = exit_code if rule.exit_code is None else rule.exit_code
            exit_class = rule.exit_class
            values = {
                "error": error or line.strip()[:300],
                "port": ending.grpc_port or "of its own",
                "peer": lost_peer(_failure(lines)),
            }
            summary, hint = rule.summary.format(**values), rule.hint
        else:
            exit_class, summary, hint = _unknown_failure(ending, error, lines)
    return ExitReport(
        exit_code=exit_code,
        exit_class=exit_class,
        summary=summary,
        hint=hint,
        signal=-code if code < 0 else None,
        last_lines=tuple(lines[-REPORTED_LINES:]),
    )


def job_unusable(message: str, hint: str = "") -> ExitReport:
    """Return the report of a job that was never started because it cannot run."""
    return ExitReport(contract.EXIT_JOB_UNUSABLE, ExitClass.JOB_UNUSABLE, message, hint)


def runner_failed(message: str, hint: str = "") -> ExitReport:
    """Return the report of a runner that could not do its own work."""
    return ExitReport(contract.EXIT_RUNNER_FAILED, ExitClass.INTERRUPTED, message, hint)


def port_taken(message: str) -> ExitReport:
    """Return the report of a runner whose own port is taken: with another one it would work."""
    return ExitReport(contract.EXIT_PORT_TAKEN, ExitClass.PORT_TAKEN, message)


def checkpoint_mismatch(wanted: Optional[int], found: Optional[int], directory: str) -> ExitReport:
    """Return the report of a start that would have trained on from another step than its gang."""
    return ExitReport(
        contract.EXIT_CHECKPOINT_MISMATCH,
        ExitClass.CHECKPOINT_MISMATCH,
        f"{directory} holds {_checkpoint(found)}, but all tasks are to go on from "
        f"{_checkpoint(wanted)}",
        "share the checkpoints (service.shared_filesystem or checkpoints.uri): tasks that restore "
        "different ones would train on with different weights",
    )


def storage_failed(summary: str, hint: str = "") -> ExitReport:
    """Return the report of a start that could not get its data or its checkpoint."""
    return ExitReport(contract.EXIT_STORAGE, ExitClass.STORAGE, summary, hint)


def _checkpoint(step: Optional[int]) -> str:
    return "no checkpoint" if step is None else f"the checkpoint of step {step}"


def human_line(task: str, report: ExitReport) -> str:
    """Return the sentence for the log."""
    ending = f" ({report.hint})" if report.hint else ""
    return (
        f"{task} ended with {report.exit_code}, {report.exit_class.value}: {report.summary}{ending}"
    )


def exception_line(lines: Sequence[str]) -> str:
    """Return the line of the last Python exception, such as ``KeyError: 'x'``; empty if none.

    TensorFlow's "Graph execution error:" says nothing by itself: the first line below it that is
    no location is added.
    """
    for number in range(len(lines) - 1, -1, -1):
        if _EXCEPTION.match(lines[number]):
            error = lines[number].strip().replace(_TENSORFLOW_ERRORS, "")
            if error.endswith("Graph execution error:"):
                below = (line.strip() for line in lines[number + 1 :])
                error = f"{error} {next((x for x in below if not _LOCATION.match(x)), '')}"
            return error.strip()[:300]
    return ""


def lost_peer(lines: Sequence[str]) -> str:
    """Return the task that TensorFlow names as the one that failed, such as ``/job:ps/task:0``."""
    for line in lines:
        found = _REMOTE.search(line)
        if found:
            return f"/job:{found.group(1)}/task:{found.group(2)}"
    return "it is not said which"


def _failure(lines: Sequence[str]) -> Sequence[str]:
    """Return the lines from the last traceback on, with those it is chained to; else all lines.

    What was printed long before (a peer that was lost and came back) is not the cause of the end.
    """
    starts = [number for number, line in enumerate(lines) if line.endswith(_TRACEBACK)]
    if not starts:
        return lines
    start = starts.pop()
    while starts and any(map(_CHAINED.match, lines[starts[-1] : start])):
        start = starts.pop()
    return lines[start:]


def _first_match(lines: Sequence[str]) -> "Optional[Tuple[Rule, str]]":
    for rule in RULES:
        for line in reversed(lines):
            if re.search(rule.pattern, line):
                return rule, line
    return None


def _unknown_failure(
    ending: Ending, error: str, lines: Sequence[str]
) -> Tuple[ExitClass, str, str]:
    code = ending.return_code
    if code in _KILLED and ending.out_of_memory:
        return (
            ExitClass.OUT_OF_MEMORY,
            "The kernel killed the process because it used more memory than it has",
            "give the role more memory (worker.mem, gpu_worker.mem, parameter_server.mem)",
        )
    if code in _KILLED:
        return (
            ExitClass.INTERRUPTED,
            "The process was killed with SIGKILL by something else than the task runner, and not "
            "for want of memory",
            "",
        )
    if code in (-signal.SIGTERM, 128 + signal.SIGTERM, -signal.SIGINT, 128 + signal.SIGINT):
        return ExitClass.INTERRUPTED, "The process was ended from outside by a signal", ""
    if code < 0:
        return ExitClass.USER_ERROR, f"The process crashed with {_signal_name(-code)}", ""
    importing = next((m for m in map(_IMPORTING.match, reversed(lines)) if m), None)
    if importing and error:
        return ExitClass.USER_ERROR, f"{importing.group(1)} cannot be imported: {error}", ""
    if ending.contract == contract.CONTRACT_COMMAND and code in (126, 127):
        return (
            ExitClass.JOB_UNUSABLE,
            "The shell cannot run the command of service.job_cmd"
            + (f": {lines[-1]}" if lines else ""),
            "the command must exist in the sandbox or in the task's image",
        )
    if error:
        return ExitClass.USER_ERROR, error, ""
    return ExitClass.USER_ERROR, f"The process ended with exit code {code}", ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
