"""How a job is started: ``task.python.contracts`` finds out, and ``facts`` begins to read there."""

from __future__ import annotations

from typing import Optional, Tuple

from dcos_tensorflow.job_code.modules import Module
from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class Found:
    """How the job is started: one of the contracts of ``core.contract``, never ``auto``.

    ``guess`` is a sentence where the code leaves that open, with the option that decides it.
    """

    contract: str
    python_path: Tuple[str, ...]
    module: Optional[Module] = None
    command: str = ""
    guess: str = ""
