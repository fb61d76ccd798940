"""Reading from an ended task's sandbox why it ended.

Used by ``scheduler.scheduler`` to carry out CollectEvidence. The task runner leaves a report
(``contract.EXIT_REPORT_FILE``); where it never started, the last lines of the sandbox's ``stderr``
tell (the fetcher writes there). All that ended on one agent is read after one look at its state.
Whatever happens, one EvidenceFound comes back for each task, and not later than
``LONGEST_SECONDS``: agents that do not answer must not keep hundreds of tasks waiting.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.model.actions import CollectEvidence
from dcos_tensorflow.core.model.events import EvidenceFound
from dcos_tensorflow.core.model.own_error import own_error_of
from dcos_tensorflow.mesos.agent_files import AgentFiles, Sandbox
from untrusted_input.json_text import read_json

log = logging.getLogger(__name__)

#: After so long a task whose sandbox was not read is told of as one that cannot be read.
LONGEST_SECONDS = 30.0

_LINES = 40
#: The report is JSON over many lines; a part of it would be useless.
_REPORT_LINES = 10_000

#: What a log of Mesos or TensorFlow says for information: "I1123 18:36:31.262882 ...", or the same
#: with the date spelled out. It may speak of errors, of rounding for one, and is why nothing ended.
_INFORMATION = re.compile(r"(I\d{4} |\d{4}-\d\d-\d\d [\d:.]+: I )")
#: A warning that speaks of no error is none either: TensorFlow warns all the time.
_WARNING = re.compile(r"(WARNING: |W\d{4} |\d{4}-\d\d-\d\d [\d:.]+: W )")


def read_evidence(files: AgentFiles, sandbox: Sandbox, task_id: str) -> EvidenceFound:
    """Return why the task ended, as far as its sandbox tells."""

    def tail(name: str, lines: int) -> list[str]:
        try:
            found = files.tail_in(sandbox, name, lines)
        except Exception as error:
            log.info("cannot read %s of %s: %s", name, task_id, error)
            return []
        return [line for line in found if line.strip()]

    report = _report("\n".join(tail(contract.EXIT_REPORT_FILE, _REPORT_LINES)))
    if report is not None:
        hint = str(report.get("hint") or "")
        summary = "; ".join(part for part in (str(report.get("summary") or ""), hint) if part)
        last = report.get("last_lines")
        lines = tuple(str(line) for line in last) if isinstance(last, list) else ()
        result, progress = report.get("result"), report.get("progress")
        return EvidenceFound(
            task_id,
            summary,
            lines,
            own_error_of(report.get("error")),
            result if isinstance(result, dict) else {},
            progress if isinstance(progress, dict) else {},
        )
    lines = tuple(tail("stderr", _LINES))
    return EvidenceFound(task_id, _telling(lines), lines)


def _report(text: str) -> dict[str, object] | None:
    try:
        report = read_json(text)
    except ValueError:
        return None
    return report if isinstance(report, dict) else None


def _telling(lines: tuple[str, ...]) -> str:
    """Return the line that says most: the last that speaks of an error, else the last."""
    said = [line.strip() for line in lines if not _INFORMATION.match(line)]
    errors = [line for line in said if "rror" in line or "ailed" in line]
    others = [line for line in said if not _WARNING.match(line)]
    return (errors or others or [""])[-1]


class EvidenceReader:
    """Reads evidence on ``pool``, so that the event loop never waits for an agent.

    ``collect`` and ``expire`` are called by the event loop. The agent that was asked for last is
    looked at first: what has just ended is what people want to know of.
    """

    def __init__(
        self,
        files: AgentFiles,
        framework_id: Callable[[], str],
        emit: Callable[[EvidenceFound], None],
        pool: Executor,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._files = files
        self._framework_id = framework_id
        self._emit = emit
        self._pool = pool
        self._clock = clock
        self._guard = threading.Lock()
        #: Until when each task's evidence is waited for, the oldest first.
        self._until: dict[str, float] = {}
        #: Which tasks are to be read on each agent that no thread has begun to look at.
        self._agents: dict[str, list[str]] = {}

    def collect(self, wanted: CollectEvidence) -> None:
        """Start reading; EvidenceFound follows."""
        with self._guard:
            self._until.pop(wanted.task_id, None)
            self._until[wanted.task_id] = self._clock() + LONGEST_SECONDS
            known = wanted.agent_id in self._agents
            self._agents.setdefault(wanted.agent_id, []).append(wanted.task_id)
        if not known:
            self._pool.submit(self._look_at_an_agent)

    def expire(self) -> None:
        """Tell of those that were not read in time."""
        with self._guard:
            now, late = self._clock(), []
            for task_id, until in self._until.items():
                if now < until:
                    break
                late.append(task_id)
        for task_id in late:
            log.info("the sandbox of %s was not read within %g s", task_id, LONGEST_SECONDS)
            self._tell(EvidenceFound(task_id, ""))

    def _look_at_an_agent(self) -> None:
        with self._guard:
            agent_id, wanted = self._agents.popitem()
            wanted = [task_id for task_id in wanted if task_id in self._until]
        if not wanted:
            return
        try:
            sandboxes = self._files.sandboxes(agent_id, self._framework_id(), wanted)
        except Exception as error:
            log.info("cannot read how %d tasks on %s ended: %s", len(wanted), agent_id, error)
            sandboxes = {}
        for task_id in wanted:
            sandbox = sandboxes.get(task_id)
            if sandbox is None or task_id not in self._until:
                self._tell(EvidenceFound(task_id, ""))
            else:
                self._tell(read_evidence(self._files, sandbox, task_id))

    def _tell(self, found: EvidenceFound) -> None:
        """Tell of a task once, by the first that finds it."""
        with self._guard:
            awaited = self._until.pop(found.task_id, None)
        if awaited is not None:
            self._emit(found)
