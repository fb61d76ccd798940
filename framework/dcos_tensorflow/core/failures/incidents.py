"""Incidents: a first failure, the members that died of it, its cost, and the restarts after it.

Called by ``core.advance``. The first failure classifies an incident; members that end within
seconds of it, with a start that had begun before it, are collateral and cost nothing (a peer's
UnavailableError is exit code 1 like any error of the user's). ``charges`` says the cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dcos_tensorflow.core.agents import avoidance
from dcos_tensorflow.core.counted import they
from dcos_tensorflow.core.draft import GangDraft
from dcos_tensorflow.core.failures import causes, charges, clean_ends, evidence, own_errors
from dcos_tensorflow.core.failures.causes import Cause
from dcos_tensorflow.core.failures.failure import Failure, loss_of
from dcos_tensorflow.core.model import bounds
from dcos_tensorflow.core.model.job import COLLATERAL_NAMES, Incident, JobPhase, JobState
from dcos_tensorflow.core.model.own_error import OwnError
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.model.task_table import Fact
from dcos_tensorflow.core.restarts import restarts
from dcos_tensorflow.core.restarts.gang_queries import (
    known_step,
    newest_checkpoint,
    restart_set_of,
    strategy_of,
)
from dcos_tensorflow.core.restarts.restart_table import Loss, ends_with
from dcos_tensorflow.core.spec.service_spec import Strategy, TaskRole, split_task_name

#: Peers die of a failure within this time: MultiWorkerMirrored notices a silent loss after 6 to
#: 11 s, a process death after 0.7 to 10 s (measured).
COLLATERAL_SECONDS = 15.0
#: A parameter server keeps the variables of every chief it ever had (measured): with so much of
#: its memory in use it is restarted together with the chief.
PS_MEMORY_SHARE = 0.8


def handle(gang: GangDraft, down: Sequence[TaskRecord]) -> None:
    """Open an incident for members that are newly down, or add them to the one under way."""
    for record in down:
        if record.terminal:
            evidence.collect(gang.service, record)
    failures = [Failure.of(record) for record in down]
    failures.sort(key=lambda f: (f.is_effect, f.record.changed_at, f.record.name))
    for failure in failures:
        _count_against_agent(gang, failure)
    rest = _join(gang, failures)
    if rest:
        opened = _open(gang, _cause_among_the_finished(gang, rest) or rest[0])
        _join(gang, rest)
        if not opened:
            return
    _restart(gang, {failure.record.name: loss_of(failure.record) for failure in failures})


def _cause_among_the_finished(gang: GangDraft, effects: Sequence[Failure]) -> Failure | None:
    """Return the end with 0 of which the others failed; None when they failed of something else."""
    if not all(failure.is_effect for failure in effects):
        return None
    first = effects[0].record
    found = clean_ends.cause_of(gang.view, [failure.record for failure in effects])
    if found is None or _is_told_end(gang.job, found):
        return None
    return _failure_of_peers(found, first)


def _failure_of_peers(finished: TaskRecord, effect: TaskRecord) -> Failure:
    # Where nothing is gained between two of these, the code makes the same mistake again.
    error = OwnError(causes.ENDED_BEFORE_PEERS, "", 0)
    cause = Cause(causes.ENDED_BEFORE_PEERS, charged=True)
    summary = clean_ends.told(finished, effect)
    return Failure(finished, cause, summary, None, finished.began_at, error)


def begin(gang: GangDraft, failure: Failure, losses: dict[str, Loss]) -> None:
    """Open an incident for what no task has told of as its failure, and restart because of it."""
    if _open(gang, failure):
        _restart(gang, losses)


def add_server(gang: GangDraft, server: TaskRecord) -> bool:
    """Add a server that ended with 0 because of the newest incident to it, and restart it.

    Say whether it did end because of that: within seconds, or before the member that had failed
    started again; in a start of before. Some scripts of parameter servers look after the chief, and
    leave with it.
    """
    incident = gang.job.incidents[-1] if gang.job.incidents else None
    if incident is None or not server.began_at <= incident.at <= server.changed_at:
        return False
    if server.began_at == incident.at and server.name in (incident.task, *incident.collateral):
        # It was launched anew in the step that lost it.
        return False
    # While we heard of no task it may have ended at any time before we heard of it.
    known = gang.service.state.subscription
    began = (incident.at, known.registered_at, known.awake_since)
    heard_since = max(since for since in began if since <= server.changed_at)
    failed = gang.tasks.get(incident.task)
    was_down = failed is not None and server.changed_at <= failed.began_at
    # It ran when all of them did, or was heard when that member had started again long since. What
    # is told in the very moment in which we hear again is what was known before.
    outlived = gang.job.phase is JobPhase.RUNNING and gang.job.phase_since > heard_since
    if failed is not None and failed.began_at <= known.began_at:
        outlived = outlived or bool(gang.view.report_of(server))
    until = (incident.at if outlived else heard_since) + COLLATERAL_SECONDS
    if server.changed_at > until and not was_down:
        return False
    noted = _with_collateral(incident, server.name)
    gang.job = replace(gang.job, incidents=(*gang.job.incidents[:-1], noted))
    told = f"{server.name} ended with 0 after {incident.task} had failed; {{who}}"
    _begin_restart(gang, {server.name: Loss.PROCESS}, told, "")
    return True


def see_cause(gang: GangDraft) -> None:
    """Put an incident right whose effect was seen before its cause, in a member that is stopping.

    Its processes restart anyway; but what the cause costs, and what it says, must not be lost.
    """
    newest = gang.job.incidents[-1:]
    if not newest or newest[0].kind != causes.PEER_LOST:
        return
    effect = newest[0]
    if not _is_open(gang, effect):
        return
    known = {effect.task, *effect.collateral}
    tasks = gang.tasks
    finished = _ended_meanwhile(gang, effect)
    if finished is not None:
        begin(gang, finished, {finished.record.name: Loss.PROCESS})
        return
    suspects = tasks.having(Fact.HELD) | tasks.having(Fact.UNWELL)
    for record in tasks.records_of((suspects & gang.roster.members) - known):
        failure = None if _is_told(gang.job, record) else _seen_late(record)
        if failure is None or record.changed_at < effect.at or failure.is_effect:
            continue
        if failure.record.launched_at <= effect.at:
            _count_against_agent(gang, failure)
            _open(gang, failure)
            return


def _ended_meanwhile(gang: GangDraft, effect: Incident) -> Failure | None:
    """Return the end with 0 that an effect turns out to be of: it is told of after that."""
    record = gang.tasks.get(effect.task)
    if record is None or record.task_id != effect.task_id:
        return None
    found = clean_ends.cause_of(gang.view, [replace(record, changed_at=effect.at)])
    if found is None or _is_told_end(gang.job, found):
        return None
    return _failure_of_peers(found, record)


def _is_told_end(job: JobState, finished: TaskRecord) -> bool:
    """Say whether an incident tells already of this end with 0: it is one for all its effects."""
    return any(
        incident.task_id == finished.task_id and incident.kind == causes.ENDED_BEFORE_PEERS
        for incident in job.incidents
    )


def _is_told(job: JobState, record: TaskRecord) -> bool:
    """Say whether an incident tells already of the failure of a member that was told to stop.

    The order to stop is of the step that opened that incident, or of an earlier one when the
    failure was seen late. The member may change since, as when its agent becomes unreachable or
    its container dies: its process does not run, so it has not failed again.
    """
    return any(
        incident.at >= record.ordered_at
        and (incident.task_id == record.task_id or record.name in incident.collateral)
        for incident in job.incidents
    )


def _seen_late(record: TaskRecord) -> Failure | None:
    """Return how a member that is stopping had failed before; None when it had not."""
    # A task that we kill ends as KILLED.
    died = record.state is TaskState.FAILED
    if died:
        return replace(Failure.of(record), began_at=record.launched_at)
    if record.had_failed_when_held and not record.kill_reason:
        return Failure.before_it_was_held(record)
    return None


def time_out(gang: GangDraft, late: TaskRecord, seconds: float) -> None:
    """Open an incident for a member that does not come up."""
    summary = (
        f"{late.name} is still {late.state} {seconds:g} s after its launch"
        f"{_unheard(gang.service.state, late)}"
    )
    cause = Cause(causes.START_TIMED_OUT, charged=True)
    failure = replace(Failure.of(late), cause=cause, summary=summary)
    incident = Incident(late.name, late.task_id, gang.now, cause.kind, summary, charged=True)
    if not charges.note(gang, incident, failure):
        return
    gang.restart = replace(gang.restart, replacing=(*gang.restart.replacing, late.name))
    _begin_restart(gang, {late.name: Loss.STALLED}, "{summary}", summary)


def _unheard(state: ServiceState, late: TaskRecord) -> str:
    """Return what keeps us from hearing of a held process, which its runner alone can start."""
    if not late.address:
        return ", and Mesos has told no address of its container"
    if late.held and late.task_id not in state.told.reports:
        return f", and its task runner was never heard at {late.address}:{late.ports[-1]}"
    return ""


def see_own_error(gang: GangDraft) -> None:
    """End the job where it shows, after its restart has begun, that no start would mend it.

    The error was read from a sandbox, or the last of all members has failed of it, too.
    """
    if gang.restart.planned or not gang.job.incidents or gang.roster.is_of_slot:
        # What a slot's unit has failed of was judged as it failed.
        return
    evidence.ask_again(gang)
    why = own_errors.why_not_again(gang.view)
    if not why:
        return
    incident = gang.job.incidents[-1]
    charges.fail(gang, f"{incident.told} ({why})", _exit_code(gang, incident))


def _exit_code(gang: GangDraft, incident: Incident) -> int:
    record = gang.tasks.get(incident.task)
    if record is None or record.task_id != incident.task_id:
        return 1
    code = causes.exit_code(record.message) if record.terminal else record.exit_code
    return code or 1


def _join(gang: GangDraft, failures: Sequence[Failure]) -> list[Failure]:
    """Note the failures that belong to the newest incident there, and return the others."""
    return [failure for failure in failures if not _joins(gang, failure)]


def _joins(gang: GangDraft, failure: Failure) -> bool:
    """Say whether a failure belongs to the newest incident; note it there when it does."""
    if not gang.job.incidents:
        return False
    incident, record = gang.job.incidents[-1], failure.record
    if gang.now > incident.at + COLLATERAL_SECONDS or failure.began_at > incident.at:
        return False
    if incident.kind == causes.PEER_LOST and not failure.is_effect:
        return False
    if failure.cause.charged and not _may_be_effect(gang, incident, record):
        return False
    if record.name != incident.task and record.name not in incident.collateral:
        noted = _with_collateral(incident, record.name)
        gang.job = replace(gang.job, incidents=(*gang.job.incidents[:-1], noted))
        gang.say(f"{failure.summary}; it ended because {incident.task} had")
    return True


def _with_collateral(incident: Incident, *names: str, more: int = 0) -> Incident:
    """Return the incident with more that died of it: the first names, and how many others.

    A parameter server is always among the names: whether others end with it depends on its part
    (``restart_table.ENDS_WITH``).
    """
    every = (*incident.collateral, *names)
    kept, beyond = every[:COLLATERAL_NAMES], every[COLLATERAL_NAMES:]
    servers = [name for name in beyond if split_task_name(name)[0] is TaskRole.PS]
    if servers and not any(split_task_name(name)[0] is TaskRole.PS for name in kept):
        kept = (*kept[:-1], servers[0])
    number = incident.more_collateral + len(beyond) + more
    return replace(incident, collateral=kept, more_collateral=number)


def _may_be_effect(gang: GangDraft, incident: Incident, record: TaskRecord) -> bool:
    """Say whether a task in the incident takes this member along: else its error is its own."""
    strategy, decider = strategy_of(gang.view), gang.roster.decider
    return any(
        ends_with(strategy, decider, lost, record.name)
        for lost in (incident.task, *incident.collateral)
        if lost != record.name
    )


def _open(gang: GangDraft, failure: Failure) -> bool:
    """Note an incident; say whether the job goes on."""
    record, known = failure.record, gang.job.incidents
    incident = Incident(
        task=record.name,
        task_id=record.task_id,
        at=gang.now,
        kind=failure.cause.kind,
        summary=bounds.cut(failure.summary, bounds.TEXT_BYTES),
        charged=failure.cause.charged,
        step=charges.credible(known_step(gang.view)),
        unexplained=failure.cause.unexplained,
        error=failure.error if failure.cause.charged else None,
        began_at=failure.began_at,
        checkpoint=newest_checkpoint(gang.view),
    )
    if known and _is_effect_of(gang, known[-1], failure):
        # The effect was seen before its cause: it is one incident.
        effect = known[-1]
        incident = _with_collateral(
            incident, effect.task, *effect.collateral, more=effect.more_collateral
        )
        fruitless = max(gang.job.fruitless - 1, 0)
        gang.job = replace(gang.job, incidents=known[:-1], fruitless=fruitless)
    return charges.note(gang, incident, failure)


def _is_effect_of(gang: GangDraft, incident: Incident, failure: Failure) -> bool:
    """Say whether an incident that was seen before is the effect of this failure."""
    is_effect = incident.kind == causes.PEER_LOST and failure.began_at <= incident.at
    return is_effect and _is_open(gang, incident)


def _is_open(gang: GangDraft, incident: Incident) -> bool:
    """Say whether a failure that is seen now may be the incident's.

    The cause of an effect can come late, its update being lost: the member that ended of it is
    not started again for as long.
    """
    if gang.now <= incident.at + COLLATERAL_SECONDS:
        return True
    record = gang.tasks.get(incident.task)
    if incident.kind != causes.PEER_LOST or record is None or record.task_id != incident.task_id:
        return False
    return record.terminal or record.had_failed_when_held


def _count_against_agent(gang: GangDraft, failure: Failure) -> None:
    if failure.record.agent_id and failure.cause.agents_fault:
        avoidance.count(gang.service, failure.record.agent_id)


def _restart(gang: GangDraft, losses: dict[str, Loss]) -> None:
    incident, retry = gang.job.incidents[-1], gang.spec.retry
    used = charges.retries_used(gang.job, retry, gang.now)
    cost = f"retry {used} of {retry.limit}" if incident.charged else "costs no retry"
    known = newest_checkpoint(gang.view) is not None
    place = " from the last checkpoint" if known else ""
    told = f"{{summary}}; {{who}}{place} ({{cost}})"
    _begin_restart(gang, losses, told, incident.told, cost)


def _begin_restart(
    gang: GangDraft, losses: dict[str, Loss], told: str, summary: str, cost: str = ""
) -> None:
    """Stop the members that restart because of these losses; ``told`` is what is said, a form."""
    view = gang.view
    # A server that has ended cannot be reached again.
    servers = dict.fromkeys(clean_ends.finished_servers(view), Loss.PROCESS)
    chosen = restart_set_of(view, {**servers, **losses})
    names = view.roster.in_order((*chosen, *_full_parameter_servers(gang, chosen)))
    everybody = len(names) == len(view.roster)
    who = "the gang starts again" if everybody else f"{they(names, 'start')} again"
    why = told.format(summary=summary, who=who, cost=cost)
    restarts.stop(gang, names, why, planned=False)


def _full_parameter_servers(gang: GangDraft, chosen: Sequence[str]) -> tuple[str, ...]:
    """Return the ps that restart with their chief because they near their memory limit."""
    view = gang.view
    if strategy_of(view) is not Strategy.PARAMETER_SERVER or view.roster.decider not in chosen:
        return ()
    role = view.spec.role(TaskRole.PS)
    if role is None:
        return ()
    limit = role.resources.mem * 2**20 * PS_MEMORY_SHARE
    servers = [n for n in view.roster.names if split_task_name(n)[0] is TaskRole.PS]
    used = [view.report_of(r) for n in servers if (r := view.tasks.get(n))]
    full = any(isinstance(m := u.get("memory_bytes"), int) and m > limit for u in used)
    return tuple(n for n in servers if n not in chosen) if full else ()
