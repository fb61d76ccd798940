"""The processes of this machine, as ``/proc`` shows them; those that end meanwhile are left out."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Process(NamedTuple):
    """A process: its command line, a blank for each NUL; its variables where some were wanted.

    Its name is what lists show, of at most 15 bytes.
    """

    pid: int
    name: str
    command: str
    variables: dict[str, str]

    @property
    def leads_a_session(self) -> bool:
        try:
            return os.getsid(self.pid) == self.pid
        except OSError:
            return False


def processes(command: str = "", **variables: str) -> Iterator[Process]:
    """Yield all whose command line has this text, and whose variables have these values."""
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (path / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
            if command in line:
                # Those of other users cannot be read, and are not asked for in vain.
                told = (path / "environ").read_text(errors="replace") if variables else ""
                found = dict(each.split("=", 1) for each in told.split("\0") if "=" in each)
                if variables.items() <= found.items():
                    name = (path / "comm").read_text(errors="replace").strip()
                    yield Process(int(path.name), name, line, found)


def alive(pid: int) -> bool:
    """Say whether ``pid`` runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"
