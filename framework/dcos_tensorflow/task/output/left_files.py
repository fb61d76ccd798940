"""The files that the job's code has left in the sandbox, outside of its own directories.

``runner`` looks before the first start and at the end of the task; the report names new
files. Fetched files, the job's own files and those of the runner do not count. Nothing is opened.
"""

from __future__ import annotations

import os
import re
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from dcos_tensorflow.core import contract
from dcos_tensorflow.records import dataclass
from untrusted_input import trees

#: So many files are named, the others are counted.
NAMED = 20
#: A sandbox with more files and folders is not read any further.
_MOST_FILES = 50_000
_NUMBER = r"\d+"
_OURS = re.compile(
    rf"(?:stdout|stderr|{re.escape(contract.CONSOLE_FILE)}|{contract.UNIT_FILE.format(_NUMBER)})"
    + r"(?:\.\d+)?|progress\.jsonl|"
    + "|".join(re.escape(n) for n in (contract.EXIT_REPORT_FILE, contract.EXIT_HISTORY_FILE))
    + r"|.*\.pyc|core(?:\.\d+)?"
)


@dataclass(frozen=True)
class LeftFiles:
    """The files that are new, by their paths below the sandbox; ``count`` are all of them."""

    files: Tuple[str, ...] = ()
    count: int = 0
    size: int = 0

    def as_json(self) -> Dict[str, Any]:
        """Return what the report has under ``left``."""
        return {"files": list(self.files), "count": self.count, "size": self.size}


class SandboxBefore:
    """A sandbox as it is before the first start. ``told`` are directories that others tell of."""

    def __init__(self, path: str, told: Sequence[str]) -> None:
        self._path = path
        self._told = frozenset(map(os.path.normpath, told))
        self._before = frozenset(name for name, _ in self._files())

    def left(self) -> LeftFiles:
        """Return what is new since then."""
        new = [found for found in self._files() if found[0] not in self._before]
        names = sorted((name for name, _ in new), key=lambda name: (name.count(os.sep), name))
        return LeftFiles(tuple(names[:NAMED]), len(new), sum(size for _, size in new))

    def _files(self) -> Iterator[Tuple[str, int]]:
        """Yield the files that may be the job's, each with its size."""
        seen = 0
        for folder, folders, names in trees.walk(self._path):
            folders[:] = self._its_own(folder, folders)
            seen += len(folders)
            for name in names:
                if name.startswith(".") or _OURS.fullmatch(name):
                    continue
                seen += 1
                if seen > _MOST_FILES:
                    return
                file = os.path.join(folder, name)
                try:
                    size = os.lstat(file).st_size
                except OSError:
                    # It has gone meanwhile.
                    continue
                yield os.path.relpath(file, self._path), size

    def _its_own(self, folder: str, names: List[str]) -> List[str]:
        return sorted(
            name
            for name in names
            if not name.startswith(".")
            and name != "__pycache__"
            and os.path.join(folder, name) not in self._told
        )
