"""The meaning of the end of the user's process: its class, one sentence, and the remedy.

``runner`` calls ``analyse`` at the end of each start. Pure: it sees how the process ended, the
signal that we had sent, and the last lines that it printed. ``known_failures`` has the known texts.
"""

from __future__ import annotations

import re
import signal
from dataclasses import asdict
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

from dcos_tensorflow.core import contract
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.exits.exit_class import ExitClass
from dcos_tensorflow.task.exits.known_failures import (
    PORT_IS_TAKEN,
    Rule,
    first_match,
    is_of_other_process,
    is_passing,
    listened_port,
)
from dcos_tensorflow.task.output.left_files import LeftFiles
from dcos_tensorflow.task.output.tracebacks import (
    MAX_ERROR,
    Raised,
    causes_of,
    failure_of,
    header_of,
    raised,
)

#: How many lines the report carries; more are looked at, because tracebacks are long.
REPORTED_LINES = 40
ANALYSED_LINES = 1000
#: What was printed after an exception is reported as far as this, so that the exception is, too.
LINES_AFTER_EXCEPTION = 10
#: How much is told of the last line of a process that ended without an exception.
MAX_SAID = 120


@dataclass(frozen=True)
class ExitVerdict:
    """Why the watchdog has ended a process."""

    exit_class: ExitClass
    summary: str
    hint: str = ""


@dataclass(frozen=True)
class ProcessEnding:
    """How the process ended. ``return_code`` is negative for a signal, as in ``subprocess``.

    ``stop_reason`` is why we stopped it, empty when it ended by itself; ``condemned`` is why the
    watchdog killed it. ``out_of_memory`` says that the kernel has killed for want of memory while
    it ran. ``contract`` is the one it ran by, empty when it never ran. ``step`` is the newest that
    it has told. ``sandbox`` is where it ran, ``python`` the one that ran it, and ``tensorflow`` the
    version that is installed there, empty where none is known. ``tf_config_at`` is where the code
    assigns TF_CONFIG, empty where it leaves it as it is.
    """

    return_code: int
    stop_reason: str = ""
    condemned: Optional[ExitVerdict] = None
    out_of_memory: bool = False
    contract: str = ""
    grpc_port: int = 0
    step: Optional[int] = None
    sandbox: str = ""
    python: str = ""
    tensorflow: str = ""
    tf_config_at: str = ""


@dataclass(frozen=True)
class CodeError:
    """The exception of the user's code that ended a start, as data: by it the scheduler sees that
    two failures are the same (docs/task-runner.md).

    ``file`` and ``line`` are the place in the code; ``step`` is the newest that the start had told.
    """

    exception: str
    file: str
    line: int
    step: Optional[int]

    def as_json(self) -> Dict[str, Any]:
        """Return what the report has under ``error``."""
        return asdict(self)


@dataclass(frozen=True)
class ExitReport:
    """The verdict: ``exit_code`` is what the runner itself exits with.

    ``result`` is the last that the process reported as such (docs/job-contract.md). ``error`` is
    there where an exception of the user's code has ended the process, and nothing else is known
    that has. ``left`` is what the task has left in its sandbox, and ``progress`` the last that
    ``GET /v1/status`` would have shown under that name: both are known at its end only.
    """

    exit_code: int
    exit_class: ExitClass
    summary: str
    hint: str = ""
    signal: Optional[int] = None
    last_lines: Tuple[str, ...] = ()
    result: Optional[Mapping[str, Any]] = None
    error: Optional[CodeError] = None
    left: Optional[LeftFiles] = None
    progress: Optional[Mapping[str, Any]] = None

    def as_json(self) -> Dict[str, Any]:
        """Return the document that goes to ``task-exit.json``."""
        return {
            "exit_code": self.exit_code,
            "signal": self.signal,
            "class": self.exit_class.value,
            "summary": self.summary,
            "hint": self.hint,
            "error": self.error.as_json() if self.error else None,
            "result": dict(self.result or {}),
            "progress": self.progress,
            "left": self.left.as_json() if self.left else None,
            "last_lines": list(self.last_lines),
        }


_MAY_PASS = (
    "that may pass, and is no error of the code; where the tasks' machines have no network, bring"
    " the downloaded files with the job (data, service.job_uris)"
)
_LEAVE_TF_CONFIG = "leave TF_CONFIG as you find it: it has the task's own port"
_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)
_REMOTE = re.compile(r"remote target /job:(\w+)/replica:\d+/task:(\d+)")
#: What a parser of arguments says last; absl says what is wrong in the next line.
_REFUSES = re.compile(r"^(?:[^\s:]+: error: |Error: |FATAL Flags parsing error:)\s*(.*)$")
_IMPORTING = re.compile(r"^task-runner: importing (\S+) failed$")


def analyse(ending: ProcessEnding, lines: Sequence[str]) -> ExitReport:
    """Return the verdict on ``ending``; ``lines`` are the last ones printed, oldest first."""
    code = ending.return_code
    exit_code = code if code >= 0 else 128 - code
    known = raised(lines, ending.sandbox)
    if ending.condemned:
        verdict = ending.condemned
        exit_class, summary, hint = verdict.exit_class, verdict.summary, verdict.hint
    elif ending.stop_reason and code != contract.EXIT_CHECKPOINTED:
        exit_class, summary, hint = (ExitClass.INTERRUPTED, f"Stopped: {ending.stop_reason}", "")
    elif code == contract.EXIT_SUCCESS:
        exit_class, summary, hint = ExitClass.SUCCESS, "The job's process finished", ""
    elif code == contract.EXIT_CHECKPOINTED:
        exit_class = ExitClass.CHECKPOINTED
        summary, hint = "The job saved a checkpoint and left, to be started again", ""
    else:
        failure = failure_of(lines)
        found = None if code in _KILLED else first_match(failure, lines)
        other_port = _other_port(ending, lines) if found and found[0] is PORT_IS_TAKEN else ""
        if other_port:
            exit_class, summary, hint = ExitClass.USER_ERROR, other_port, _LEAVE_TF_CONFIG
        elif found is not None:
            rule, match = found
            exit_class, exit_code = _class_of(rule, known, exit_code)
            values = _values(ending, failure, rule, match, known)
            summary, hint = rule.summary.format(**values), rule.hint.format(**values)
        else:
            exit_class, summary, hint = _unknown_failure(ending, known, lines)
    return ExitReport(
        exit_code=exit_code,
        exit_class=exit_class,
        summary=summary,
        hint=hint,
        signal=-code if code < 0 else None,
        last_lines=_reported(lines),
        error=_own_error(ending, known, lines) if exit_class is ExitClass.USER_ERROR else None,
    )


def _class_of(rule: Rule, known: Optional[Raised], exit_code: int) -> Tuple[ExitClass, int]:
    if rule.permanent and (known is None or re.search(rule.pattern, known.error)):
        return ExitClass.JOB_UNUSABLE, contract.EXIT_JOB_UNUSABLE
    return rule.exit_class, exit_code if rule.exit_code is None else rule.exit_code


def _other_port(ending: ProcessEnding, lines: Sequence[str]) -> str:
    """Return what is told of a taken port that is none of the task's; empty for the task's own.

    Another port for the task would not mend that: the code has chosen the one that is taken.
    """
    port, own = listened_port(lines), ending.grpc_port
    if port == own != 0 or not (ending.tf_config_at or (port and own)):
        return ""
    listened = f"port {port}" if port else "a port"
    why = f"{ending.tf_config_at} assigns TF_CONFIG" if ending.tf_config_at else "the code chose it"
    return (
        f"TensorFlow could not listen on {listened}, which is taken on this machine and is not the"
        f" task's own{f', {own}' if own else ''}: {why}"
    )


def _values(
    ending: ProcessEnding,
    failure: Sequence[str],
    rule: Rule,
    match: "re.Match[str]",
    known: Optional[Raised],
) -> Dict[str, Any]:
    """Return what a rule's sentences may name."""
    error = match.string.strip()[:MAX_ERROR]
    if known:
        error = known.told if rule.exit_class is ExitClass.USER_ERROR else known.error
    version = ".".join(ending.tensorflow.split(".")[:2])
    return {
        "error": error,
        "port": ending.grpc_port or "of its own",
        "peer": lost_peer(failure),
        "python": ending.python or "python3",
        # Another version of it would pull another TensorFlow in.
        "tf_keras": f"tf_keras=={version}.*" if version else "tf_keras of TensorFlow's version",
        **match.groupdict(),
    }


def _may_pass(known: Raised, lines: Sequence[str]) -> bool:
    """Say whether an exception tells of something not reached: itself, or what it was raised from.

    One that was met while another was handled may have been passed.
    """
    return any(map(is_passing, (known.error, *causes_of(lines))))


def _own_error(
    ending: ProcessEnding, known: Optional[Raised], lines: Sequence[str]
) -> Optional[CodeError]:
    """Return the exception as data; None for one that tells of others, or did not end the process.

    Python ends with 1 of an exception. With another code it may have been printed and passed.
    Arguments that a script refuses are the exception that ends it then, whose place is not told.
    """
    if _refused_arguments(ending, lines):
        return CodeError("SystemExit", "", 0, ending.step)
    if known is None or ending.return_code != 1 or not known.exception:
        return None
    if is_of_other_process(known.exception) or _may_pass(known, lines):
        return None
    return CodeError(known.exception[:200], known.file, known.line, ending.step)


def _refused_arguments(ending: ProcessEnding, lines: Sequence[str]) -> str:
    """Return what a parser of arguments has said as it ended the process; empty for none.

    As argparse, click and absl end it, with the usage above what is wrong.
    """
    if ending.return_code not in (1, 2):
        return ""
    found = [(at, m) for at, line in enumerate(lines) if (m := _REFUSES.match(line))]
    if not found:
        return ""
    at, match = found[-1]
    told = match.group(1) or (lines[at + 1] if at + 1 < len(lines) else "")
    has_usage = any(line.lower().startswith("usage:") for line in lines[:at])
    return told.strip() if has_usage or "Flags parsing" in match.group(0) else ""


def _reported(lines: Sequence[str]) -> Tuple[str, ...]:
    """Return the last lines; an exception is among them whatever else was printed after it."""
    header = header_of(lines)
    end = len(lines) if header is None else min(len(lines), header + 1 + LINES_AFTER_EXCEPTION)
    return tuple(lines[max(end - REPORTED_LINES, 0) : end])


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


def storage_failed(summary: str, hint: str = "", refused: bool = False) -> ExitReport:
    """Return the report of a start that could not get its data or its checkpoint.

    With ``refused`` no machine would get it (``storage.errors.Problem``).
    """
    exit_class = ExitClass.STORAGE_REFUSED if refused else ExitClass.STORAGE
    return ExitReport(contract.EXIT_STORAGE, exit_class, summary, hint)


def _checkpoint(step: Optional[int]) -> str:
    return "no checkpoint" if step is None else f"the checkpoint of step {step}"


def human_line(task: str, report: ExitReport) -> str:
    """Return the sentence for the log."""
    ending = f" ({report.hint})" if report.hint else ""
    return (
        f"{task} ended with {report.exit_code}, {report.exit_class.value}: {report.summary}{ending}"
    )


def lost_peer(lines: Sequence[str]) -> str:
    """Return the task that TensorFlow names as the one that failed, such as ``/job:ps/task:0``."""
    for line in lines:
        found = _REMOTE.search(line)
        if found:
            return f"/job:{found.group(1)}/task:{found.group(2)}"
    return "it is not said which"


def _unknown_failure(
    ending: ProcessEnding, known: Optional[Raised], lines: Sequence[str]
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
            "SIGKILL has ended the process: the task runner did not send it, and the task's memory "
            "was not used up. It came from the script or the machine's memory killer",
            "",
        )
    if code in (-signal.SIGTERM, 128 + signal.SIGTERM, -signal.SIGINT, 128 + signal.SIGINT):
        return ExitClass.INTERRUPTED, "The process was ended from outside by a signal", ""
    if code < 0:
        return ExitClass.USER_ERROR, f"The process crashed with {_signal_name(-code)}", ""
    refused = _refused_arguments(ending, lines)
    if refused:
        return (
            ExitClass.USER_ERROR,
            f"The script refuses its arguments: {refused[:MAX_ERROR]}",
            "it gets those of service.job_args, of a sweep the trial's parameters, too",
        )
    importing = next((m for m in map(_IMPORTING.match, reversed(lines)) if m), None)
    if importing and known:
        return ExitClass.USER_ERROR, f"{importing.group(1)} cannot be imported: {known.told}", ""
    if ending.contract == contract.CONTRACT_COMMAND and code in (126, 127):
        return (
            ExitClass.JOB_UNUSABLE,
            "The shell cannot run the command of service.job_cmd"
            + (f": {lines[-1]}" if lines else ""),
            "the command must exist in the sandbox or in the task's image",
        )
    if known:
        return ExitClass.USER_ERROR, known.told, _MAY_PASS if _may_pass(known, lines) else ""
    said = next((line.strip() for line in reversed(lines) if line.strip()), "")
    last = f'; the last that it said: "{said[:MAX_SAID]}"' if said else ""
    return ExitClass.USER_ERROR, f"The process ended with exit code {code} by itself{last}", ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
