"""Tasks that wait for others while the job runs, since when, and the event that ends it. Pure.

Shown by ``why`` and beside the progress of a job. ``core.advance`` calls ``check`` while every
member is wanted to run: it ends a gang that waits in vain, once it is sure of that, for a server
may end a moment before the job does, and a silent process may compute. Waits for a place or for a
start are no part of this: the job's phase and the plan show them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.cluster.launch import COMMAND_WAIT_SECONDS, WAIT_SECONDS
from dcos_tensorflow.core.counted import listed
from dcos_tensorflow.core.draft import GangDraft
from dcos_tensorflow.core.failures import causes, incidents
from dcos_tensorflow.core.failures.causes import Cause
from dcos_tensorflow.core.failures.clean_ends import IDLE_SECONDS, EndedServer, ended_servers
from dcos_tensorflow.core.failures.failure import Failure
from dcos_tensorflow.core.model.job import BEGUN_PHASES, JobPhase
from dcos_tensorflow.core.model.report import idle_since, listens_since, unreachable, waited_for
from dcos_tensorflow.core.model.service_state import GangView
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.model.task_table import Fact
from dcos_tensorflow.core.restarts.gang_queries import knows_strategy, strategy_of
from dcos_tensorflow.core.restarts.restart_table import Loss
from dcos_tensorflow.core.spec.service_spec import Strategy
from dcos_tensorflow.records import dataclass

#: No start takes longer: importing TensorFlow and reaching the peers does not (measured, seconds).
START_SECONDS = 30.0
_WORDS_OF_ALL = "no step, no output and hardly any CPU time"
#: An agent sends an update again after 10 s: so long the end of the job may be later told than that
#: of a server which ended because of it.
HEARD_SECONDS = 15.0


@dataclass(frozen=True)
class Wait:
    """A task waits, for longer than a start takes."""

    #: The tasks that wait ...
    tasks: tuple[str, ...]
    #: ... and those that they wait for, as far as that is known.
    waits_for: tuple[str, ...]
    #: Unix seconds.
    since: float
    #: What is so, in a sentence that stays the same as long as it is.
    why: str
    #: What ends it, in half a sentence.
    ends: str

    def told(self, now: float) -> str:
        """Return all of it as a sentence. ``now`` is unix seconds."""
        seconds = max(round(now - self.since), 0)
        time = f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"
        return f"{self.why} (for {time}; {self.ends})"


@dataclass(frozen=True)
class Standstill:
    """A gang in which no task does anything, and none is known to wait for us."""

    idle: tuple[str, ...]
    #: Unix seconds.
    since: float

    @property
    def summary(self) -> str:
        """Return what is so, in one sentence."""
        return f"no task does anything ({_WORDS_OF_ALL}): {listed(self.idle)}"


def standstill(view: GangView) -> Standstill | None:
    """Return since when no task of the gang does anything; None while one does, or may.

    A task that has ended, or waits for a peer's port, does nothing either. Of a task whose runner
    says nothing, it is not known.
    """
    idle = view.tasks.having(Fact.IDLE) & view.roster.members
    if not idle or view.job.phase is not JobPhase.RUNNING:
        return None
    rest = view.roster.members - idle
    having = view.tasks.having
    if rest and not having(Fact.FINISHED) | having(Fact.DONE) | having(Fact.WAITS) >= rest:
        return None
    records = view.tasks.records_of(idle)
    times = [idle_since(view.report_of(record)) or 0.0 for record in records]
    since = max(*times, view.job.phase_since)
    return Standstill(tuple(record.name for record in records), since)


def is_a_failure(view: GangView) -> bool:
    """Say whether a standstill of this gang, if it lasts, is one that a new start may mend.

    A single task, or independent ones, may wait for anything in the world; and of code that was not
    recognised it is not known that its tasks wait for each other.
    """
    together = strategy_of(view) is not Strategy.INDEPENDENT and len(view.roster) > 1
    return together and knows_strategy(view) and view.spec.idle_seconds > 0


def waits(view: GangView, now: float) -> tuple[Wait, ...]:
    """Return the tasks that wait for others for longer than a start takes; ``now`` is unix time."""
    if view.job.is_over or view.job.phase not in BEGUN_PHASES:
        return ()
    grace = view.spec.outcome_grace_seconds
    servers = [s for s in ended_servers(view) if now - s.record.changed_at >= grace]
    unreached = tuple(_for_machines(view, now))
    told = {name for server in servers for name in server.waiting}
    told.update(name for wait in unreached for name in wait.tasks)
    return (
        *map(_for_a_server, servers),
        *unreached,
        *_for_peers(view, now, told),
        *_for_files(view, now),
        *_idle(view, decided=bool(servers)),
    )


def _for_a_server(server: EndedServer) -> Wait:
    name, whom = server.record.name, server.waiting or server.undecided
    ended = f"{name} has ended by itself with exit code 0"
    if server.waiting:
        why, ends = f"{listed(whom)} waits for {name}: {ended}", "the job ends with that"
    else:
        why = f"{ended}, before {listed(whom)} has"
        ends = f"the job ends with that once {listed(whom)} does nothing for {IDLE_SECONDS:g} s"
    return Wait(whom, (name,), server.record.changed_at, why, ends)


def _for_peers(view: GangView, now: float, told: set[str]) -> Iterator[Wait]:
    """Yield the tasks that wait for a port; of those in ``told`` something truer is said."""
    names = {address: name for name, address in _addresses(view).items()}
    for record in view.tasks.records_of(view.tasks.having(Fact.WAITS)):
        if record.name in told or now - record.began_at < START_SECONDS:
            continue
        addresses = waited_for(view.report_of(record))
        peers = tuple(names[a] for a in addresses if a in names)
        where = ", ".join(f"{names[a]} ({a})" if a in names else a for a in addresses)
        limit = COMMAND_WAIT_SECONDS if view.spec.job.command else WAIT_SECONDS
        yield Wait(
            (record.name,),
            peers,
            record.began_at,
            f"{record.name} waits for {where or 'its peers'} to listen",
            f"it starts without after {limit} s",
        )


#: What an operator can do, by the word of a runner.
_REMEDIES = {
    contract.UNREACHABLE_NAME: "every machine has to know the name (cluster_spec.dns_domain); with"
    ' cluster_spec.addressing "offer" peers need no names',
    contract.UNREACHABLE_SILENT: "a firewall between the two machines may drop packets to the"
    " agent's ports, or the machine is away",
    contract.UNREACHABLE_ROUTE: "name the network of the peers in cluster_spec.peer_network, or"
    " start each agent with --ip, the address by which the other machines reach it",
    contract.UNREACHABLE_REFUSED: "a firewall between the two machines may refuse connections to"
    " the agent's ports, or the server listens on 127.0.0.1 alone",
}


def _for_machines(view: GangView, now: float) -> Iterator[Wait]:
    """Yield the tasks that do not reach the machines of peers; those that are alike together.

    A port that refuses has no server yet, unless the task there says that its own listens.
    """
    names = {address: name for name, address in _addresses(view).items()}
    alike: dict[tuple[str, tuple[str, ...]], list[TaskRecord]] = {}
    listening = {
        address
        for address, name in names.items()
        if name in view.tasks
        and now - (listens_since(view.report_of(view.tasks[name])) or now) >= START_SECONDS
    }
    for record in _members_running(view.tasks.live):
        told = {
            address: why
            for address, why in unreachable(view.report_of(record)).items()
            if why != contract.UNREACHABLE_REFUSED or address in listening
        }
        for word in sorted(set(told.values())):
            addresses = tuple(address for address, why in told.items() if why == word)
            alike.setdefault((word, addresses), []).append(record)
    for (word, addresses), records in alike.items():
        where = listed([f"{names[a]} ({a})" if a in names else a for a in addresses])
        whose = [f"{r.name} on {r.hostname}" if r.hostname else r.name for r in records]
        yield Wait(
            tuple(record.name for record in records),
            tuple(names[a] for a in addresses if a in names),
            max(record.began_at for record in records),
            f"{listed(whose)}: no way to {where}: {word}",
            _REMEDIES.get(word, "the machines' networks are to be looked at"),
        )


def _addresses(view: GangView) -> dict[str, str]:
    return dict(view.epoch.addresses) if view.epoch is not None else {}


def _for_files(view: GangView, now: float) -> Iterator[Wait]:
    """Yield members whose process is not started yet: data and checkpoint are brought first."""
    told = view.tasks.having(Fact.TELLS_STARTED)
    for record in _members_running(view.tasks.records_of(view.tasks.having(Fact.LIVE) - told)):
        report = view.report_of(record)
        if report.get("state") != contract.RUNNER_PREPARING:
            continue
        if now - record.began_at >= START_SECONDS:
            doing = str(report.get("summary") or "prepares its start")
            why = f"{record.name} has not begun: {doing[:1].lower()}{doing[1:]}"
            yield Wait((record.name,), (), record.began_at, why, "it begins when that is done")


def _idle(view: GangView, *, decided: bool) -> Iterator[Wait]:
    """Yield the members that do nothing: all, or those that can only wait for the others."""
    found = standstill(view)
    if found is not None:
        limit = view.spec.idle_seconds
        if decided:
            # Of that the end of a task was said to be the cause.
            return
        if is_a_failure(view):
            ends = f"after {limit:g} s of that (service.idle_seconds) all tasks start again"
        else:
            ends = "this wait does not end by itself: the tasks' logs may show its reason"
        yield Wait(found.idle, (), found.since, found.summary, ends)
        return
    if strategy_of(view) is not Strategy.MULTI_WORKER or view.job.phase is not JobPhase.RUNNING:
        return
    names_of_idle = view.tasks.having(Fact.IDLE)
    if not names_of_idle:
        return
    running = _members_running(view.tasks.live)
    idle = [r for r in running if r.name in names_of_idle]
    busy = tuple(r.name for r in running if r.name not in names_of_idle)
    if idle:
        names = tuple(record.name for record in idle)
        since = max(idle_since(view.report_of(record)) or 0.0 for record in idle)
        why = f"{listed(names)} can only wait for {listed(busy)}: {_WORDS_OF_ALL}"
        yield Wait(names, busy, since, why, "every step takes all of them")


def _members_running(records: Iterable[TaskRecord]) -> list[TaskRecord]:
    """Return those that are members and whose containers run."""
    return [r for r in records if r.state is TaskState.RUNNING and r.role.is_in_gang]


def check(gang: GangDraft) -> None:
    """Open an incident for what has waited for nothing long enough, if anything has."""
    for server in ended_servers(gang.view):
        if incidents.add_server(gang, server.record):
            return
        if _is_waited_for(gang, server):
            failure = Failure.of(server.record)
            cause = Cause(causes.SERVER_ENDED, charged=True, permanent=True)
            incidents.begin(gang, replace(failure, cause=cause, summary=server.summary), {})
            return
    _look_for_a_standstill(gang)


def _is_waited_for(gang: GangDraft, server: EndedServer) -> bool:
    """Say whether others wait for a server that has ended, and not for a moment only.

    A server that ends because the job does may be heard of before the decider is; and a decider
    that does something (it evaluates, it exports) does not wait.
    """
    waited, since = gang.service.waited, server.record.changed_at
    if waited(since) < max(gang.spec.outcome_grace_seconds, HEARD_SECONDS):
        return False
    if server.waiting:
        return True
    return server.idle_since is not None and waited(max(since, server.idle_since)) >= IDLE_SECONDS


def _look_for_a_standstill(gang: GangDraft) -> None:
    found = standstill(gang.view)
    if found is None or not is_a_failure(gang.view):
        return
    limit = gang.spec.idle_seconds
    if gang.service.waited(found.since) < limit:
        return
    summary = f"for {limit:g} s {found.summary}; they wait for each other, or for something else"
    failure = Failure.of(gang.tasks[found.idle[0]])
    cause = Cause(causes.STANDSTILL, charged=True)
    losses = dict.fromkeys(found.idle, Loss.STALLED)
    incidents.begin(gang, replace(failure, cause=cause, summary=summary), losses)
