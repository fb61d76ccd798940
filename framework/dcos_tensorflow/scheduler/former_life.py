"""A service whose state was lost: its framework in Mesos, so that the scheduler takes it over.

Asked by ``scheduler.scheduler`` before it subscribes for a service of which the state store held
nothing, until it is answered: with an answer that is made up two gangs would train side by side.
Every framework of ours carries a label that stands for its service's name and its place in the
state store. Only one scheduler leads at that place, so a framework with that label which another
process subscribed is this service's own former life: its id is taken over, and its tasks are given
up. They are killed before anything is launched (rule 5), and the job goes on from its checkpoint.

A framework without the label is never touched, whatever its name is. Nothing is changed here.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import logging
import queue
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dcos_tensorflow.core.model.events import Disconnected, Event, FormerLifeKnown
from dcos_tensorflow.mesos.address import Address, parse_masters
from dcos_tensorflow.mesos.agent_files import (
    AgentFilesError,
    AgentRefused,
    AgentUnreachable,
    FileNotFound,
    HttpAccess,
)
from dcos_tensorflow.state.urls import SqliteUrl, parse_state_url
from dcos_tensorflow.zookeeper_address import ZooKeeperAddress

log = logging.getLogger(__name__)

LABEL = "dcos-tensorflow-service"
#: Seconds between two questions.
_RETRY_SECONDS = (0.2, 0.2, 0.2, 0.5, 1.0, 2.0)
#: So long ZooKeeper has to name a leader before it is told that there is none.
_FIRST_LEADER_SECONDS = 3.0
#: So often a master may know no such path before that is taken for its answer: one that has just
#: begun knows none yet, a proxy never will.
_MOST_ODD = 6


def labels(service: str, state_url: str) -> Mapping[str, str]:
    """Return the labels of a service's framework. Raises BadStateUrl."""
    place = parse_state_url(state_url)
    if isinstance(place, SqliteUrl):
        where = f"{socket.gethostname()}:{place.path.resolve()}"
    else:
        where = str(place)
    # A digest: a reader of the master's state need not learn where ours is.
    return {LABEL: hashlib.sha256(f"{service}\n{where}".encode()).hexdigest()[:32]}


def search(
    masters: str,
    https: bool,
    access: HttpAccess,
    wanted: Mapping[str, str],
    *,
    tell: Callable[[Event], None],
    goes_on: Callable[[float], bool],
) -> None:
    """Ask for the newest framework with these labels until a master answers, and tell the answer.

    What keeps it from being known is told as why there is no subscription yet: nothing is placed
    meanwhile. A master that does not let us look never will: that is told as an answer, with a
    warning. Ends without an answer when ``goes_on`` says no (``leading_masters``).
    """
    known, odd = "", 0
    trouble = ["no master is known"]
    for master in leading_masters(masters, https, goes_on, trouble.append):
        try:
            if master is None:
                raise AgentUnreachable(trouble[-1])
            tell(_newest(access.get(master, "/frameworks"), wanted))
            return
        except AgentRefused as error:
            log.warning("whether the service has run before cannot be told: %s", error)
            tell(FormerLifeKnown())
            return
        except (AgentFilesError, KeyError, TypeError, ValueError, AttributeError) as error:
            away = error.__cause__
            said = str(error) or type(error).__name__
            if isinstance(away, OSError):
                said = f"{master}: {away.strerror or away}"
            elif isinstance(error, FileNotFound):
                odd += 1
            if odd == _MOST_ODD:
                log.warning("whether the service has run before cannot be told: %s", said)
                tell(FormerLifeKnown())
                return
            if said != known:
                tell(Disconnected(said))
            known = said


def leading_masters(
    masters: str,
    https: bool,
    goes_on: Callable[[float], bool],
    on_trouble: Callable[[str], None] = lambda why: None,
) -> Iterator[Address | None]:
    """Yield the masters to ask, again and again, each time None where none leads.

    ``goes_on`` waits so many seconds, and says whether to go on; the waits grow. ``on_trouble`` is
    told why ZooKeeper names none.
    """
    where = parse_masters(masters, https)
    waits = itertools.chain(_RETRY_SECONDS, itertools.repeat(_RETRY_SECONDS[-1]))
    if not isinstance(where, ZooKeeperAddress):
        yield from where
        while goes_on(next(waits)):
            yield from where
        return
    # kazoo comes with it, and most masters are named and not elected in ZooKeeper.
    from dcos_tensorflow.mesos.detector import ZooKeeperDetector

    leaders: queue.SimpleQueue[Address | None] = queue.SimpleQueue()
    detector = ZooKeeperDetector(where, leaders.put, https, on_trouble=on_trouble)
    detector.start()
    leader: Address | None = None
    begun = time.monotonic()
    try:
        while goes_on(0.0):
            with contextlib.suppress(queue.Empty):
                leader = leaders.get(timeout=_RETRY_SECONDS[0])
            if leader is None and time.monotonic() - begun < _FIRST_LEADER_SECONDS:
                continue
            yield leader
            if not goes_on(next(waits)):
                return
    finally:
        detector.stop()


def _newest(answer: Any, wanted: Mapping[str, str]) -> FormerLifeKnown:
    ours = [one for one in answer["frameworks"] if _labels_of(one).items() >= wanted.items()]
    if not ours:
        return FormerLifeKnown()
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
    return FormerLifeKnown(str(newest["id"]), tasks)


def _labels_of(framework: Mapping[str, Any]) -> dict[str, str]:
    return {one["key"]: one.get("value", "") for one in framework.get("labels", ())}
