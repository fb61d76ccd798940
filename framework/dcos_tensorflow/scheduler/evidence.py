"""Reading from an ended task's sandbox why it ended.

Used by ``scheduler.Scheduler`` to carry out CollectEvidence. The task runner leaves a report
(``contract.EXIT_REPORT_FILE``); where it never started, the last lines of the sandbox's ``stderr``
tell (the fetcher writes there). Whatever happens, one EvidenceFound comes back.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.model.actions import CollectEvidence
from dcos_tensorflow.core.model.events import EvidenceFound

log = logging.getLogger(__name__)

_LINES = 40
#: The report is JSON over many lines; a part of it would be useless.
_REPORT_LINES = 10_000


class SandboxFiles(Protocol):
    """The part of ``mesos.agent_files.AgentFiles`` that evidence needs."""

    def tail(
        self, agent_id: str, framework_id: str, task_id: str, name: str, lines: int = ...
    ) -> list[str]:
        """Return the last lines of a file in the task's sandbox; raises when it cannot."""


def read_evidence(files: SandboxFiles, framework_id: str, wanted: CollectEvidence) -> EvidenceFound:
    """Return why the task ended, as far as its sandbox tells."""

    def tail(name: str, lines: int) -> list[str]:
        try:
            found = files.tail(wanted.agent_id, framework_id, wanted.task_id, name, lines=lines)
        except Exception as error:
            log.info("cannot read %s of %s: %s", name, wanted.task_id, error)
            return []
        return [line for line in found if line.strip()]

    report = _report("\n".join(tail(contract.EXIT_REPORT_FILE, _REPORT_LINES)))
    if report is not None:
        hint = str(report.get("hint") or "")
        summary = "; ".join(part for part in (str(report.get("summary") or ""), hint) if part)
        last = report.get("last_lines")
        lines = tuple(str(line) for line in last) if isinstance(last, list) else ()
        result = report.get("result")
        return EvidenceFound(
            wanted.task_id, summary, lines, result if isinstance(result, dict) else {}
        )
    lines = tuple(tail("stderr", _LINES))
    return EvidenceFound(wanted.task_id, _telling(lines), lines)


def _report(text: str) -> dict[str, object] | None:
    try:
        report = json.loads(text)
    except ValueError:
        return None
    return report if isinstance(report, dict) else None


def _telling(lines: tuple[str, ...]) -> str:
    """Return the line that says most: the last that speaks of an error, else the last."""
    errors = [line for line in lines if "rror" in line or "ailed" in line]
    return (errors or list(lines) or [""])[-1].strip()


class EvidenceReader:
    """Reads evidence in the background, so that the event loop never waits for an agent."""

    def __init__(
        self,
        files: SandboxFiles,
        framework_id: Callable[[], str],
        emit: Callable[[EvidenceFound], None],
    ) -> None:
        self._files = files
        self._framework_id = framework_id
        self._emit = emit
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="evidence")

    def collect(self, wanted: CollectEvidence) -> None:
        """Start reading; EvidenceFound follows."""
        self._pool.submit(self._collect, wanted)

    def stop(self) -> None:
        """Wait for what is under way and start nothing more."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _collect(self, wanted: CollectEvidence) -> None:
        self._emit(read_evidence(self._files, self._framework_id(), wanted))
