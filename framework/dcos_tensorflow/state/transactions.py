"""Turn writes into ZooKeeper operations, and cut them into transactions. Pure.

Called by the ZooKeeper backend. It knows which nodes exist (:class:`Tree`), so that one commit is
one round trip: parents that are missing are created and parents that become empty are deleted in
the same transaction. Nothing here talks to a server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum

from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.state.layout import (
    check_path,
    check_value,
    is_a_folder,
    is_below_a_value,
    parents,
)

#: Bytes of one transaction: below jute.maxbuffer (1,048,575), with room for the guard.
MAX_TRANSACTION_BYTES = 900_000
MAX_TRANSACTION_OPERATIONS = 1_000

# Header, ACL and flags of one operation on the wire, rounded up; the root's name comes on top.
_OPERATION_OVERHEAD_BYTES = 160


class Verb(Enum):
    """What an operation does to its node."""

    CREATE = "create"
    SET = "set"
    DELETE = "delete"


@dataclass(frozen=True)
class TreeOperation:
    """One step of a transaction, on a path below the service's root."""

    verb: Verb
    path: str
    value: bytes = b""


@dataclass(frozen=True)
class PlannedWrite:
    """The operations of the write at ``index`` of its commit, and what they do to the tree.

    ``changes`` maps a path to its new number of children; None means that it is gone.
    """

    index: int
    operations: tuple[TreeOperation, ...]
    changes: Mapping[str, int | None]


class Tree:
    """Which nodes exist below the root, with their numbers of children. Values are not kept."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._children: dict[str, int] = {}
        for path in paths:
            self._add(path)

    def __iter__(self) -> Iterator[str]:
        return iter(self._children)

    def get(self, path: str) -> int | None:
        """The number of children of a node; None when there is no such node."""
        return self._children.get(path)

    def apply(self, changes: Mapping[str, int | None]) -> None:
        """Take over what a committed transaction did."""
        for path, children in changes.items():
            if children is None:
                self._children.pop(path, None)
            else:
                self._children[path] = children

    def _add(self, path: str) -> None:
        if path in self._children:
            return
        self._children[path] = 0
        parent = path.rpartition("/")[0]
        if parent:
            self._add(parent)
            self._children[parent] += 1


def plan(tree: Tree, writes: Sequence[Write]) -> list[PlannedWrite]:
    """The operations for each write, in order, as if the earlier ones had been applied.

    Raises BadStatePath or StateTooLarge before anything is sent, so a refused commit writes
    nothing at all.
    """
    overlay: dict[str, int | None] = {}
    planned = []
    for index, write in enumerate(writes):
        check_path(write.path)
        step = _Step(tree, overlay)
        if write.value is None:
            step.delete(write.path)
        else:
            check_value(write.path, write.value)
            step.put(write.path, write.value)
        overlay.update(step.changes)
        planned.append(PlannedWrite(index, tuple(step.operations), step.changes))
    return planned


def split(
    planned: Sequence[PlannedWrite],
    max_bytes: int = MAX_TRANSACTION_BYTES,
    max_operations: int = MAX_TRANSACTION_OPERATIONS,
) -> list[list[PlannedWrite]]:
    """Cut into transactions in the given order; the operations of one write stay together.

    A crash between two of them leaves the first writes done and the later ones not begun.
    """
    parts: list[list[PlannedWrite]] = []
    size = count = 0
    for item in planned:
        if not item.operations:
            continue
        item_size = sum(_size(operation) for operation in item.operations)
        item_count = len(item.operations)
        if not parts or size + item_size > max_bytes or count + item_count > max_operations:
            parts.append([])
            size = count = 0
        parts[-1].append(item)
        size += item_size
        count += item_count
    return parts


def _size(operation: TreeOperation) -> int:
    return len(operation.path.encode()) + len(operation.value) + _OPERATION_OVERHEAD_BYTES


class _Step:
    """Collects the operations of one write on top of the tree and of the writes before it."""

    def __init__(self, tree: Tree, overlay: Mapping[str, int | None]) -> None:
        self._tree = tree
        self._overlay = overlay
        self.operations: list[TreeOperation] = []
        self.changes: dict[str, int | None] = {}

    def put(self, path: str, value: bytes) -> None:
        children = self._get(path)
        if children is not None and children > 0:
            raise is_a_folder(path)
        if children == 0:
            self.operations.append(TreeOperation(Verb.SET, path, value))
            return
        missing = [path]
        for parent in parents(path):
            count = self._get(parent)
            if count is None:
                missing.append(parent)
                continue
            if count == 0:
                raise is_below_a_value(path, parent)
            break
        for created in reversed(missing):
            is_value = created == path
            self.operations.append(TreeOperation(Verb.CREATE, created, value if is_value else b""))
            self.changes[created] = 0 if is_value else 1
        above = missing[-1].rpartition("/")[0]
        if above:
            self.changes[above] = (self._get(above) or 0) + 1

    def delete(self, path: str) -> None:
        children = self._get(path)
        if children is None:
            return
        if children > 0:
            raise is_a_folder(path)
        self._remove(path)
        for parent in parents(path):
            remaining = (self._get(parent) or 1) - 1
            if remaining > 0:
                self.changes[parent] = remaining
                return
            self._remove(parent)

    def _remove(self, path: str) -> None:
        self.operations.append(TreeOperation(Verb.DELETE, path))
        self.changes[path] = None

    def _get(self, path: str) -> int | None:
        for known in (self.changes, self._overlay):
            if path in known:
                return known[path]
        return self._tree.get(path)
