"""Workers join and leave a ``ClusterCoordinator`` while it trains: its process does not restart.

``wrapper`` calls ``follow`` in the chief's process before the user's code begins; a thread then
reads from the task runner which workers there are now. TensorFlow has no public name for this, and
the parts that are used here are the same in 2.15 and 2.21 (docs/decisions/0054-live-workers.md).
Where anything is not as expected the thread says so and takes no more: the scheduler then starts
the process again. No step that was scheduled is lost: a worker that leaves does its last one.
"""

from __future__ import annotations

import copy
import gc
import json
import os
import socket
import sys
import threading
import time
from typing import Any, BinaryIO, Dict, List, Sequence

_COORDINATOR = "tensorflow.python.distribute.coordinator.cluster_coordinator"
#: How long the code may take to make its coordinator, a new worker to listen, and one that leaves
#: to do its last step (seconds); how often is looked.
WAIT_SECONDS = 120.0
_LOOK_SECONDS = 0.5
#: Between two looks for data that was made for all workers while one joined.
_SETTLE_SECONDS = 0.2


class CannotTake(Exception):
    """The workers cannot be taken while the process runs; the text says why."""


def follow(orders: BinaryIO, words: int, version: int) -> None:
    """Take the workers of each order that comes, in a thread of its own.

    An order is a line of JSON: ``{"version": 3, "cluster": {"worker": ["host:port", ...], ...}}``.
    On the descriptor ``words`` it says the version that the process trains with, first ``version``,
    and 0 when it takes no more.
    """
    os.write(words, b"%d\n" % version)
    arguments = (orders, words)
    threading.Thread(target=_follow, args=arguments, name="live-workers", daemon=True).start()


def _follow(orders: BinaryIO, words: int) -> None:
    for line in iter(orders.readline, b""):
        order = json.loads(line)
        try:
            count = _take(order["cluster"])
        except Exception as error:
            why = (
                str(error) if isinstance(error, CannotTake) else f"{type(error).__name__}: {error}"
            )
            print(f"task-runner: workers do not join or leave: {why}", file=sys.stderr, flush=True)
            os.write(words, b"0\n")
            return
        told = f"version {order['version']} of the cluster: {count} worker{'s' * (count != 1)}"
        print(f"task-runner: {told}, without a restart", file=sys.stderr, flush=True)
        os.write(words, b"%d\n" % order["version"])


def _take(cluster: Dict[str, List[str]]) -> int:
    coordinator = _coordinator()
    members = _Members(coordinator)
    wanted = list(cluster["worker"])
    known, same = members.addresses, min(len(members.addresses), len(wanted))
    if not wanted or known[:same] != wanted[:same]:
        raise CannotTake("a worker before the last has another address")
    if len(wanted) > same:
        for address in wanted[same:]:
            _wait_until_it_listens(address)
        members.join(wanted)
    elif len(known) > same:
        members.leave(wanted)
    return len(wanted)


def _coordinator() -> Any:
    """Return the process' coordinator, once it is made. Raises CannotTake."""
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        module = sys.modules.get(_COORDINATOR)
        wanted = getattr(module, "ClusterCoordinator", None)
        clusters = {id(one): one for one in _clusters()}.values() if wanted else ()
        found = [_holders(one, wanted) for one in clusters]
        made = [holders[0] for holders in found if holders]
        if len(made) > 1:
            raise CannotTake("the code has more than one ClusterCoordinator")
        if made:
            return made[0]
        time.sleep(_LOOK_SECONDS)
    raise CannotTake(f"the code has made no ClusterCoordinator within {WAIT_SECONDS:g} s")


def _clusters() -> List[Any]:
    """Return what the threads work for that hand a coordinator's steps to its workers."""
    targets = [getattr(thread, "_target", None) for thread in threading.enumerate()]
    owners = [getattr(target, "__self__", None) for target in targets]
    clusters = [getattr(owner, "_cluster", None) for owner in owners]
    return [cluster for cluster in clusters if hasattr(cluster, "resource_cancellation_mgr")]


def _holders(value: Any, wanted: Any) -> List[Any]:
    """Return the objects of a class that hold ``value`` in an attribute.

    Not by ``gc.get_objects``: a tuple that another thread is making, and that is held here, too,
    ends that thread with a SystemError.
    """
    found = []
    for holder in gc.get_referrers(value):
        # Before Python 3.11 it is the dictionary of the object's attributes.
        for one in gc.get_referrers(holder) if type(holder) is dict else [holder]:
            if issubclass(type(one), wanted):
                found.append(one)
    return found


def _wait_until_it_listens(address: str) -> None:
    host, _, port = address.rpartition(":")
    end = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=5.0).close()
            return
        except OSError as error:
            if time.monotonic() > end:
                raise CannotTake(f"the worker at {address} does not answer: {error}") from None
            time.sleep(_LOOK_SECONDS)


class _Members:
    """The workers of one coordinator, as TensorFlow keeps them."""

    def __init__(self, coordinator: Any) -> None:
        self._strategy = coordinator.strategy
        self._cluster = coordinator._cluster
        self._module = sys.modules[_COORDINATOR]
        self._context = sys.modules["tensorflow.python.eager.context"].context()
        jobs = {job.name: job for job in self._context._server_def.cluster.job}
        #: The address of each worker, by its index.
        self.addresses = [jobs["worker"].tasks[i] for i in range(len(self._cluster.workers))]

    def join(self, wanted: Sequence[str]) -> None:
        """Add the workers behind those that there are, at the addresses ``wanted``."""
        self._tell_tensorflow(wanted)
        joined = _joined_class(self._module.Worker)
        first = len(self._cluster.workers)
        added = [
            joined(index, f"/job:worker/replica:0/task:{index}", self._cluster)
            for index in range(first, len(wanted))
        ]
        # In place: data that is made just now is made for these, too.
        self._cluster.workers.extend(added)
        for _ in range(2):
            for worker in added:
                self._give_data(worker)
            time.sleep(_SETTLE_SECONDS)
        self._count(len(wanted))
        for worker in added:
            worker.joined.set()

    def leave(self, wanted: Sequence[str]) -> None:
        """Let the last workers do the step that they are at, and go on without them."""
        going = self._cluster.workers[len(wanted) :]
        self._count(len(wanted))
        del self._cluster.workers[len(wanted) :]
        last_class = _last_closure_class(self._module.ResourceClosure)
        last = [last_class(worker.worker_index) for worker in going]
        for closure in last:
            self._cluster.closure_queue.put(closure, tag=closure.tag)
        end = time.monotonic() + WAIT_SECONDS
        for closure in last:
            if not closure.done.wait(max(0.0, end - time.monotonic())):
                raise CannotTake(f"worker {closure.index} has not ended its step")
        for values in self._data():
            values._values = tuple(values._values)[: len(wanted)]
        self._tell_tensorflow(wanted)

    def _tell_tensorflow(self, wanted: Sequence[str]) -> None:
        """Let the runtime connect to these workers, also after a worker's failure."""
        handler = self._cluster.failure_handler
        definition = type(self._context._server_def)()
        definition.CopyFrom(self._context._server_def)
        for job in definition.cluster.job:
            if job.name == "worker":
                job.tasks.clear()
                job.tasks.update(enumerate(wanted))
        with handler._cluster_update_lock:
            self._context.update_server_def(definition)
            handler._server_def = definition

    def _data(self) -> List[Any]:
        """Return what has a value for each worker, in the order in which it was made."""
        values = sys.modules["tensorflow.python.distribute.coordinator.values"]
        found: List[Any] = []
        for reference in tuple(self._cluster.workers[0]._resource_remote_value_refs):
            value = reference()
            for held in gc.get_referrers(value) if value is not None else ():
                if type(held) in (tuple, list) and held and held[0] is value:
                    found += _holders(held, values.PerWorkerValues)
        return list({id(one): one for one in found if one._values}.values())

    def _give_data(self, worker: Any) -> None:
        """Make on a worker what the others have, as the others made it."""
        for values in self._data():
            if len(values._values) == worker.worker_index:
                closure = copy.copy(values._values[0]._closure)
                closure._output_remote_value_ref = closure.tag = None
                made = worker._register_and_schedule_resource_closure(closure)
                values._values = (*values._values, made)

    def _count(self, number: int) -> None:
        for keeper in (self._cluster, self._strategy, self._strategy.extended):
            keeper._num_workers = number


def _joined_class(worker_class: Any) -> Any:
    class Joined(worker_class):  # type: ignore[misc]
        """A worker whose thread takes no step before ``joined`` is set."""

        def __init__(self, *arguments: Any) -> None:
            # Before the thread, which the base class starts.
            self.joined = threading.Event()
            super().__init__(*arguments)

        def _process_queue(self) -> None:
            self.joined.wait()
            super()._process_queue()

    return Joined


def _last_closure_class(closure_class: Any) -> Any:
    class Last(closure_class):  # type: ignore[misc]
        """The last thing that a worker's thread takes: TensorFlow's own stop would lose a step."""

        def __init__(self, index: int) -> None:
            self.index = self.tag = index
            self.done = threading.Event()

        def execute_on(self, worker: Any) -> None:
            worker._should_worker_thread_run = False
            self.done.set()

        def mark_cancelled(self) -> None:
            """No value is waited for."""

        def maybe_call_with_output_remote_value(self, method: Any) -> None:
            """No value is waited for."""

    return Last
