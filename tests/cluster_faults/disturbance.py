"""What disturbs a cluster now: cut links, agents that stand still, late updates, bad answers.

The embedded cluster asks it wherever something can go wrong (``local.interference``); ``Faults``
sets it. Bookkeeping only: what becomes of agents, processes and masters is ordered elsewhere.
"""

import heapq
import itertools
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, TypeVar, cast

from cluster_faults.network_namespace import run_inside
from cluster_faults.processes import signal_tree
from embedded_mesos import EmbeddedCluster, messages
from embedded_mesos.interference import Interference
from embedded_mesos.master import offers
from embedded_mesos.master.calls.replies import TEXT, Reply

T = TypeVar("T")

#: Seconds of delay for each delivery of a message: () is lost, (0,) is as usual.
Fate = tuple[float, ...]
#: Seconds between looks whether an agent can be reached again.
_LOOK_SECONDS = 0.05


@dataclass
class UpdateRule:
    """What becomes of the next ``left`` updates that match; None matches everything."""

    task_id: str | None
    state: str | None
    left: int
    fate: Fate

    def matches(self, message: object) -> bool:
        """Say whether the rule is for this message."""
        return (
            self.left > 0
            and isinstance(message, messages.StatusUpdate)
            and self.task_id in (None, message.status["task_id"]["value"])
            and self.state in (None, message.status["state"])
        )


@dataclass
class Stream:
    """Writes the records of one subscription, as long as nothing is ordered."""

    connection: socket.socket
    out: BinaryIO
    half_open: bool = False
    cut: bool = False

    def write(self, chunk: bytes) -> int:
        """Write a record, or half of it and break, or nothing."""
        if self.half_open:
            return len(chunk)
        if self.cut:
            record = chunk.split(b"\r\n", 1)[1][:-2]
            half = record[: max(1, len(record) // 2)]
            self.out.write(b"%x\r\n%s\r\n" % (len(half), half))
            raise ConnectionAbortedError("cut in the middle of a record")
        return self.out.write(chunk)

    def abort(self) -> None:
        """Break the connection without an end, as a master that dies does."""
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            return


@dataclass
class Http:
    """How the master's server misbehaves at the moment. Read by every request."""

    #: Answer 503 until this time of ``time.monotonic``.
    refuse_until: float = 0.0
    refuse_text: str = "Master has not finished recovery"
    #: Wait this long before answering a call.
    answer_delay: float = 0.0
    #: "host:port" of the master that leads instead of this one.
    leader: str | None = None
    #: How many of the next ACCEPTs are thrown away unread, lose their offers just before they are
    #: looked at, or are carried out but not answered.
    drop_before_accept: int = 0
    rescind_at_accept: int = 0
    drop_after_accept: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, counter: str, body: bytes) -> bool:
        """Use up one of ``counter``, if there is one and the call is an ACCEPT."""
        if b'"ACCEPT"' not in body:
            return False
        with self.lock:
            left = int(getattr(self, counter))
            if left:
                setattr(self, counter, left - 1)
            return left > 0


class Disturbance(Interference):
    """See the module. Agents are named by their place in the cluster's configuration."""

    def __init__(self, agents: int, namespaces: Sequence[str] = ()) -> None:
        """``namespaces`` are the paths of those that the agents live in, if they do."""
        self.http = Http()
        self._namespaces = namespaces
        #: Whether a master leads; between ``stop_master`` and ``start_master`` none does.
        self.has_master = True
        #: Container id -> process id of its task's command, as the executor told.
        self.commands: dict[str, int] = {}
        self._streams: list[Stream] = []
        self._cut: list[bool] = []
        self._held: list[list[tuple[str, object]] | None] = []
        self._tasks_frozen: list[bool] = []
        self.make_room(agents - 1)
        self._rules: list[UpdateRule] = []
        self._later: list[tuple[float, int, int, object]] = []
        self._order = itertools.count()

    def attach(self, cluster: EmbeddedCluster) -> None:
        """Know the cluster that asks."""
        self._cluster = cluster

    # -- what is ordered -----------------------------------------------------------------------

    def make_room(self, link: int) -> None:
        """Know of an agent at ``link``, and of one more: that of apps may come."""
        while len(self._cut) < link + 2:
            self._cut.append(False)
            self._held.append(None)
            self._tasks_frozen.append(False)

    def reaches(self, link: int) -> bool:
        """Say whether messages pass between the master and an agent."""
        return not self._cut[link]

    def cut(self, link: int, cut: bool) -> None:
        """Let nothing pass, or let everything pass again."""
        self._cut[link] = cut

    def freeze(self, link: int, *, tasks: bool = False) -> None:
        """Let an agent stand still."""
        self._tasks_frozen[link] = self._tasks_frozen[link] or tasks
        if self._held[link] is None:
            self._held[link] = []

    def thaw(self, link: int) -> list[tuple[str, object]]:
        """Let it go on; return what came meanwhile."""
        held = self._held[link] or []
        self._held[link] = None
        self._tasks_frozen[link] = False
        return held

    def freeze_task(self, container_id: str) -> None:
        """Stop everything below an executor, whatever session or group it is in (SIGSTOP)."""
        # Not the executor itself: it has to end its task when the cluster is killed meanwhile.
        self._signal_below(container_id, signal.SIGSTOP)

    def thaw_task(self, container_id: str) -> None:
        """Let everything below an executor go on (SIGCONT)."""
        self._signal_below(container_id, signal.SIGCONT)

    def _signal_below(self, container_id: str, number: int) -> None:
        pid = self._cluster.host.executor_pids().get(container_id)
        if pid is not None:
            signal_tree(pid, number, itself=False)

    def add_rule(self, rule: UpdateRule) -> None:
        """Decide the fate of updates to come."""
        self._rules.append(rule)

    def streams(self) -> list[Stream]:
        """Return the subscriptions that are open."""
        self._streams = [one for one in self._streams if one.connection.fileno() >= 0]
        return self._streams

    # -- what the cluster asks -----------------------------------------------------------------

    def on_machine(self, link: int, action: Callable[[], T]) -> T:
        """Act in the agent's network namespace."""
        inside = link < len(self._namespaces)
        return run_inside(self._namespaces[link], action) if inside else action()

    def reaches_agent(self, link: int, message: object) -> bool:
        """Lose what a link is cut for, and keep what is for a frozen agent."""
        return not self._cut[link] and not self._hold(link, ("master", message))

    def executor_reaches_agent(self, link: int, container_id: str, message: object) -> bool:
        """Keep what is for a frozen agent."""
        if isinstance(message, messages.ExecutorReport) and "pid" in message.report:
            self.commands[container_id] = message.report["pid"]
        if self._tasks_frozen[link]:
            # It was about to start when the machine was frozen.
            self.freeze_task(container_id)
        return not self._hold(link, ("executor", message))

    def _hold(self, link: int, item: tuple[str, object]) -> bool:
        held = self._held[link]
        if held is not None:
            held.append(item)
        return held is not None

    def reaches_master(self, link: int, message: object) -> bool:
        """Lose what a link is cut for, delay or repeat what a rule says."""
        if self._cut[link] or not self.has_master:
            return False
        rule = next((one for one in self._rules if one.matches(message)), None)
        if rule is None:
            return True
        rule.left -= 1
        now = self._cluster.now()
        for delay in rule.fate:
            if delay:
                entry = (now + delay, next(self._order), link, message)
                heapq.heappush(self._later, entry)
            else:
                self._cluster.core.agent_message(link, message, now)
        return False

    def agent_runs(self, link: int) -> bool:
        """Say whether an agent does not stand still."""
        return self._held[link] is None

    def deadline(self) -> float:
        """Return when the next delayed message is due."""
        return self._later[0][0] if self._later else float("inf")

    def tick(self, now: float) -> None:
        """Deliver the delayed messages whose time has come."""
        while self._later and self._later[0][0] <= now:
            _, _, link, message = heapq.heappop(self._later)
            if self.has_master and not self._cut[link]:
                self._cluster.core.agent_message(link, message, now)

    def master_asked(self, path: str, body: bytes) -> Reply | None:
        """Answer late, refuse, send elsewhere, or break the connection of an ACCEPT."""
        http = self.http
        time.sleep(http.answer_delay)
        if path == "/health":
            return None
        if http.leader is not None and path == "/redirect":
            return Reply(307, headers={"Location": f"//{http.leader}"})
        if time.monotonic() < http.refuse_until and path != "/redirect":
            return Reply(503, http.refuse_text, TEXT)
        if http.leader is not None:
            return Reply(307, headers={"Location": f"//{http.leader}/master{path}"})
        if http.take("drop_before_accept", body):
            raise ConnectionAbortedError("this ACCEPT is not read")
        return None

    def call_begins(self, body: bytes) -> None:
        """Break a connection whose request was read before the master died; rescind offers."""
        if not self.has_master:
            raise ConnectionAbortedError("there is no master")
        if self.http.take("rescind_at_accept", body):
            self._rescind_offers()

    def _rescind_offers(self) -> None:
        desk = self._cluster.core.desk
        for offer in list(desk.state.offers.values()):
            offers.rescind(desk, offer)
        self._cluster.settle()

    def call_ends(self, body: bytes) -> None:
        """Break the connection of an ACCEPT that was carried out."""
        if self.http.take("drop_after_accept", body):
            raise ConnectionAbortedError("this ACCEPT is not answered")

    def records_out(self, connection: socket.socket, out: BinaryIO) -> BinaryIO:
        """Return a writer that can be told to break."""
        stream = Stream(connection, out)
        self._streams.append(stream)
        return cast(BinaryIO, stream)

    def agent_asked(self, link: int, connection: socket.socket) -> None:
        """Wait while nothing gets through to the agent, or it stands still."""
        agent = self._cluster.agents[link]
        while self._cut[link] or (self._held[link] is not None and agent.running):
            gone, _, _ = select.select([connection], [], [], _LOOK_SECONDS)
            if gone and not connection.recv(1, socket.MSG_PEEK):
                raise ConnectionAbortedError("the client went away")
