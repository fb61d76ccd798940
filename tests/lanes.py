"""Which process of ``pytest --numprocesses N --dist loadfile`` tests which file next.

A training with TensorFlow keeps every core busy for as long as it lasts; nearly everything else
waits for processes most of its time. So one half of the processes begins with the files that train,
the other half with the rest, and a process that has nothing of its own left takes of the other's.
A file trains if its tests have the mark ``tensorflow``. For ``conftest``.
"""

import functools
from pathlib import Path
from typing import Any

from xdist.scheduler import LoadFileScheduling

_ROOT = Path(__file__).resolve().parents[1]
_MARK = "pytest.mark.tensorflow"
#: Its files share a package that takes long to build.
_PACKAGE = "tests/integration/package/"
#: Each is up to five processes of TensorFlow, and none of them is to starve.
_TRAININGS_AT_ONCE = 2


@functools.cache
def _trains(file: str) -> bool:
    """Say whether a file, or a folder whose files are tested together, has tests that train."""
    path = _ROOT / file
    return path.is_file() and _MARK in path.read_text(encoding="utf-8")


class Lanes(LoadFileScheduling):
    """See the module."""

    def _split_scope(self, nodeid: str) -> str:
        return _PACKAGE if nodeid.startswith(_PACKAGE) else super()._split_scope(nodeid)

    def _reschedule(self, node: Any) -> None:
        if self.workqueue and not node.shutting_down and self._next(node) is None:
            node.shutdown()
        else:
            super()._reschedule(node)

    def _assign_work_unit(self, node: Any) -> None:
        file = self._next(node)
        if file is not None:
            self.workqueue.move_to_end(file, last=False)
        super()._assign_work_unit(node)

    def _next(self, node: Any) -> str | None:
        """Return the file that this process tests next; None where it is not needed any more."""
        nodes = list(self.registered_collections)
        training = next((file for file in self.workqueue if _trains(file)), None)
        if sum(map(self._is_training, set(nodes) - {node})) >= _TRAININGS_AT_ONCE:
            training = None
        other = next((file for file in self.workqueue if not _trains(file)), None)
        begins_with_trainings = nodes.index(node) < (len(nodes) + 1) // 2
        return (training or other) if begins_with_trainings else (other or training)

    def _is_training(self, node: Any) -> bool:
        """Say whether a process is busy with trainings, or will be."""
        work = self.assigned_work.get(node, {})
        return any(_trains(file) and not all(tests.values()) for file, tests in work.items())
