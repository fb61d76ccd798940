"""The exception of the user's code that ended a start: by it two failures are the same, or not.

Data that a task runner tells in its report and leaves in the sandbox (docs/task-runner.md), kept
with the task and with the incident. ``core.failures.own_errors`` compares it; the sentences that
people read are never compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.model.bounds import NAME_BYTES, cut
from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class OwnError:
    """An exception and its place."""

    #: The name of its type.
    exception: str
    #: The innermost place in the user's code; empty and 0 where none was printed.
    file: str
    line: int
    #: The newest training step that the start itself had told; None for none.
    step: int | None = None

    def is_like(self, other: OwnError | None) -> bool:
        """Say whether it is the same exception at the same line."""
        return other is not None and self._key == other._key

    @property
    def _key(self) -> tuple[str, str, int]:
        return self.exception, self.file, self.line


def own_error_of(told: Any) -> OwnError | None:
    """Return the error that a report has told of; None when it has not, or in no form of ours."""
    if not isinstance(told, Mapping):
        return None
    exception, file, line = told.get("exception"), told.get("file"), told.get("line")
    if not (isinstance(exception, str) and isinstance(file, str) and isinstance(line, int)):
        return None
    step = told.get("step")
    credible = isinstance(step, int) and step <= contract.MOST_STEPS
    if abs(line) > contract.MOST_STEPS:
        return None
    exception, file = cut(exception, NAME_BYTES), cut(file, NAME_BYTES)
    return OwnError(exception, file, line, step if credible else None)
