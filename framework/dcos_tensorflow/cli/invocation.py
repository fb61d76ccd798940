"""One call of the command line, as ``main`` hands it to a command: click's ``obj``."""

from __future__ import annotations

from typing import NamedTuple


class Invocation(NamedTuple):
    """What was typed, and whether this process is the command's own and runs nothing else."""

    typed: tuple[str, ...] = ()
    own_process: bool = False
