"""Ends what waits for nothing: a job that a server has left, a gang that does nothing.

Called by ``core.advance`` while every member is wanted to run. Both are made sure of before
anything is done: a server may end a moment before the job does, and a process that says nothing may
compute. What is not sure is told (``core.failures.waits``), and nothing is done about it.
"""

from __future__ import annotations

from dataclasses import replace

from dcos_tensorflow.core.draft import GangDraft
from dcos_tensorflow.core.failures import causes, incidents
from dcos_tensorflow.core.failures.causes import Cause
from dcos_tensorflow.core.failures.clean_ends import IDLE_SECONDS, EndedServer, ended_servers
from dcos_tensorflow.core.failures.failure import Failure
from dcos_tensorflow.core.failures.waits import is_a_failure, standstill
from dcos_tensorflow.core.restarts.restart_table import Loss

#: An agent sends an update again after 10 s: so long the end of the job may be later told than that
#: of a server which ended because of it.
HEARD_SECONDS = 15.0


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
