"""What was asked of ``run``, as its command hands it on."""

from __future__ import annotations

import sys
from typing import TextIO

from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.deploy.embedded.machine import AgentWishes
from dcos_tensorflow.deploy.job.given_options import GivenOptions
from dcos_tensorflow.deploy.settings import Settings
from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class RunRequest:
    """What was asked of ``run``. ``settings`` are those that a scheduler has too.

    Without a master the job runs on the embedded cluster, which ``strict`` lets claim no more than
    this machine has. ``resume`` leaves out what of a batch is there. ``update`` takes a job that
    has not ended over to these options.
    """

    given: GivenOptions
    settings: Settings
    wishes: AgentWishes
    work: WorkDirectory
    detach: bool = False
    resume: bool = False
    fresh: bool = False
    update: bool = False
    strict: bool = False
    yes: bool = False
    json: bool = False
    #: The words of the command line, as far as they are known.
    typed: tuple[str, ...] = ()

    @property
    def local(self) -> bool:
        """Say whether the job runs on the embedded cluster."""
        return not self.settings["master"]

    @property
    def stream(self) -> TextIO:
        """Return where progress goes: with --json the document has standard output for itself."""
        return sys.stderr if self.json else sys.stdout
