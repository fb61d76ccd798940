"""A service whose state was lost: what Mesos still knows of it, so that it is not fought.

Used by ``scheduler.Scheduler`` before the first subscription of a service that has no framework id.
Every framework of ours carries a label that stands for its service's name and its place in the
state store. Only one scheduler leads at that place, so a framework with that label which another
process subscribed is this service's own former life: its id is taken over, and its tasks are given
up. They are killed before anything is launched (rule 5), and the job goes on from its checkpoint.

A framework without the label is never touched, whatever its name is. Nothing is changed here.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import queue
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPException
from typing import Any

from dcos_tensorflow.mesos.address import Address, parse_masters
from dcos_tensorflow.mesos.agent_files import AgentFilesError, AgentRefused, HttpAccess
from dcos_tensorflow.network.zookeeper_address import ZooKeeperAddress
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.state.urls import SqliteUrl, parse_state_url

log = logging.getLogger(__name__)

LABEL = "dcos-tensorflow-service"
#: For so long the masters are asked before it is told what is waited for: longer than it takes to
#: find that ZooKeeper does not answer.
_PATIENCE_SECONDS = 2.5
_RETRY_SECONDS = 0.2


@dataclass(frozen=True)
class FormerLife:
    """A framework of this service that Mesos still knows; ``tasks`` maps task ids to agent ids.

    Without a ``framework_id`` there is none.
    """

    framework_id: str
    tasks: Mapping[str, str]


#: For a service that Mesos has never seen.
NO_FORMER_LIFE = FormerLife("", {})


def labels(service: str, state_url: str) -> Mapping[str, str]:
    """Return the labels of a service's framework. Raises BadStateUrl."""
    place = parse_state_url(state_url)
    if isinstance(place, SqliteUrl):
        where = f"{socket.gethostname()}:{place.path.resolve()}"
    else:
        where = str(place)
    # A digest: whoever reads the master's state need not learn where ours is.
    return {LABEL: hashlib.sha256(f"{service}\n{where}".encode()).hexdigest()[:32]}


def find(
    masters: str,
    https: bool,
    access: HttpAccess,
    wanted: Mapping[str, str],
    waiting: Callable[[str], bool] = lambda why: True,
) -> FormerLife | None:
    """Return the newest framework with these labels, NO_FORMER_LIFE when there is none.

    The masters are asked until one answers: a service that begins without the answer may train
    beside its own former life. ``waiting`` is told now and then why there is none, and says whether
    to go on; None when it does not. A master that does not let us look, or answers with something
    else, is not asked again.
    """
    while True:
        trouble = ["no master is known"]
        answered = False
        until = time.monotonic() + _PATIENCE_SECONDS
        for master in leading_masters(masters, https, until, trouble.append):
            try:
                return _newest(access.get(master, "/frameworks"), wanted)
            except AgentRefused as error:
                log.warning("whether the service has run before cannot be told: %s", error)
                return NO_FORMER_LIFE
            except AgentFilesError as error:
                away = error.__cause__
                answered = not isinstance(away, OSError | HTTPException)
                said = (away.strerror or away) if isinstance(away, OSError) else error
                trouble.append(f"{master}: {said}")
        if answered:
            # One that answers, and not with that, will not.
            log.warning("whether the service has run before cannot be told: %s", trouble[-1])
            return NO_FORMER_LIFE
        if not waiting(trouble[-1]):
            return None


def leading_masters(
    masters: str,
    https: bool,
    deadline: float,
    on_trouble: Callable[[str], None] = lambda why: None,
) -> Iterator[Address]:
    """Yield the masters to ask, again and again, until the time is up.

    ``on_trouble`` is told why ZooKeeper names none.
    """
    where = parse_masters(masters, https)
    if not isinstance(where, ZooKeeperAddress):
        while time.monotonic() < deadline:
            yield from where
            time.sleep(_RETRY_SECONDS)
        return
    # kazoo comes with it, and most masters are named and not elected in ZooKeeper.
    from dcos_tensorflow.mesos.detector import ZooKeeperDetector

    leaders: queue.SimpleQueue[Address | None] = queue.SimpleQueue()
    detector = ZooKeeperDetector(where, leaders.put, https, on_trouble=on_trouble)
    detector.start()
    leader: Address | None = None
    try:
        while (left := deadline - time.monotonic()) > 0:
            with contextlib.suppress(queue.Empty):
                leader = leaders.get(timeout=left if leader is None else _RETRY_SECONDS)
            if leader is not None:
                yield leader
    finally:
        detector.stop()


def _newest(answer: Any, wanted: Mapping[str, str]) -> FormerLife:
    ours = [one for one in answer["frameworks"] if _labels_of(one).items() >= wanted.items()]
    if not ours:
        return NO_FORMER_LIFE
    newest = max(ours, key=lambda one: float(one.get("registered_time", 0.0)))
    for one in ours:
        if one is not newest:
            log.warning("the framework %s is of this service, too; it is left alone", one["id"])
    found = [*newest.get("tasks", ()), *newest.get("unreachable_tasks", ())]
    tasks = {str(task["id"]): str(task["slave_id"]) for task in found}
    log.warning(
        "the state store holds nothing of this service, but Mesos knows it as the framework %s"
        " with %d tasks: it is taken over, its tasks are ended",
        newest["id"],
        len(tasks),
    )
    return FormerLife(str(newest["id"]), tasks)


def _labels_of(framework: Mapping[str, Any]) -> dict[str, str]:
    return {one["key"]: one.get("value", "") for one in framework.get("labels", ())}
