"""Which process of ``pytest --numprocesses N --dist loadfile`` tests which file next.

A training with TensorFlow keeps every core busy for as long as it lasts; nearly everything else
waits for processes most of its time. So one half of the processes begins with the trainings, the
other one with the rest, and who has nothing of its own left takes of the other's. For ``conftest``.
"""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadFileScheduling

#: The longest first: what is begun last is what one process alone may still be busy with.
_TRAININGS = [
    f"tests/end_to_end/test_{name}.py"
    for name in (
        "jobs",
        "ps_checkpoints",
        "task_contracts",
        "everything_lost",
        "shared_filesystem_in_s3",
        "package",
        "evaluator_in_s3",
        "tensorboard",
        "tf_config_resolver",
    )
]
#: The same of the rest; what is not named is begun afterwards, as it was collected.
_LONG = [
    "tests/simulation/test_deliberate_bugs.py",
    "tests/simulation/test_histories.py",
    "tests/integration/faults/test_schedulers.py",
    "tests/integration/scheduler/test_volumes.py",
]
#: Its files share a package that takes long to build.
_PACKAGE = "tests/integration/package/"
#: Each is up to five processes of TensorFlow, and none of them is to starve.
_TRAININGS_AT_ONCE = 2


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
        training = next((file for file in _TRAININGS if file in self.workqueue), None)
        if sum(map(self._trains, set(nodes) - {node})) >= _TRAININGS_AT_ONCE:
            training = None
        others = [file for file in _LONG if file in self.workqueue] or self.workqueue
        other = next((file for file in others if file not in _TRAININGS), None)
        begins_with_trainings = nodes.index(node) < (len(nodes) + 1) // 2
        return (training or other) if begins_with_trainings else (other or training)

    def _trains(self, node: Any) -> bool:
        """Say whether a process is busy with trainings, or will be."""
        work = self.assigned_work.get(node, {})
        return any(file in _TRAININGS and not all(tests.values()) for file, tests in work.items())
