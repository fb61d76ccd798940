"""A member that ends with 0 while the others still need it. Pure.

Asked by ``core.failures.incidents``. An end with 0 is no failure of that member, and it is not
started again for it. But a server has no reason to end before the job, and the end of a member of a
gang that makes each step together ends the others. Both are mistakes of the job's code, which a new
start repeats. A server that ends because the job does is no such case: the decider may end a while
after it.
"""

from __future__ import annotations

from collections.abc import Collection

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.counted import listed
from dcos_tensorflow.core.model.report import Report, idle_since, waited_for
from dcos_tensorflow.core.model.service_state import GangView
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.model.task_table import Fact
from dcos_tensorflow.core.restarts.gang_queries import strategy_of
from dcos_tensorflow.core.restarts.outcome import deciders_of, servers
from dcos_tensorflow.core.restarts.restart_table import Part, ends_with, part_of
from dcos_tensorflow.core.spec.service_spec import TaskRole, split_task_name
from dcos_tensorflow.records import dataclass

#: A decider that does nothing for so long after a server's end waits for that server.
IDLE_SECONDS = 120.0

_SERVE = (
    "let it run tf.distribute.Server(...) and join(), which never returns (the service ends it)"
)


@dataclass(frozen=True)
class EndedServer:
    """A server that ended by itself with 0, and the tasks that are seen to wait for it."""

    record: TaskRecord
    #: Members whose runners wait for its port.
    waiting: tuple[str, ...]
    #: The deciding tasks that have not finished.
    undecided: tuple[str, ...]
    #: Since when all of these do nothing; None while one of them does something.
    idle_since: float | None

    @property
    def summary(self) -> str:
        """Return what happened, with what helps, in one sentence."""
        whom = listed(self.waiting or self.undecided)
        is_ps = self.record.role is TaskRole.PS
        server = "a parameter server" if is_ps else "a worker of ParameterServerStrategy"
        count = "; or set parameter_server.count to 0 where the training needs none" * is_ps
        return (
            f"{self.record.name} ended by itself with exit code 0 before {whom}: {server} serves "
            f"until the job ends, so {_SERVE}{count}"
        )


def ended_by_itself(record: TaskRecord) -> bool:
    """Say whether a task that has finished did so of its own accord: we have not killed it."""
    return not record.kill_reason


def ended_servers(view: GangView) -> tuple[EndedServer, ...]:
    """Return the servers that have ended by themselves, of a job that is not over."""
    finished = view.tasks.having(Fact.FINISHED)
    if not finished or view.job.is_over:
        return ()
    names = [name for name in servers(view) if name in finished and name in view.roster]
    records = map(view.tasks.__getitem__, names)
    return tuple(_server(view, record) for record in records if ended_by_itself(record))


def finished_servers(view: GangView) -> tuple[str, ...]:
    """Return the parameter servers that have ended with 0: restarted tasks need them again."""
    finished = view.tasks.having(Fact.FINISHED) & view.roster.members
    return tuple(n for n in finished if split_task_name(n)[0] is TaskRole.PS)


def cause_of(view: GangView, effects: Collection[TaskRecord]) -> TaskRecord | None:
    """Return the member whose end with 0 these have failed of; None for none.

    It was started before they failed, and they could not do without it.
    """
    finished = view.tasks.having(Fact.FINISHED) & view.roster.members
    for record in view.tasks.records_of(finished):
        # One that is held was told to stop because of them: in the start before it ended.
        began_at = record.launched_at if record.held else record.began_at
        if ended_by_itself(record) and any(
            began_at <= effect.changed_at and _takes_along(view, record.name, effect.name)
            for effect in effects
        ):
            return record
    return None


def told(record: TaskRecord, effect: TaskRecord) -> str:
    """Return what happened where one ended with 0 and another failed of it, with what helps."""
    if record.role is TaskRole.PS:
        mended = _SERVE
    else:
        mended = (
            "all members have to take part in the operations that need all of them (each step, "
            "model.save, evaluate) and end together: give each the same number of batches "
            "(repeat() with steps_per_epoch, or take()); where one saves, let the others save into "
            "a directory to be thrown away"
        )
    return (
        f"{record.name} ended with exit code 0 while {effect.name} still needed it, and "
        f"{effect.name} failed of that: {mended}"
    )


def _takes_along(view: GangView, lost: str, peer: str) -> bool:
    decider = view.roster.decider
    if part_of(lost, decider) is Part.PS:
        return True
    return ends_with(strategy_of(view), decider, lost, peer)


def _server(view: GangView, record: TaskRecord) -> EndedServer:
    address = view.epoch.addresses.get(record.name) if view.epoch is not None else None
    members = view.tasks.having(Fact.WAITS) & view.roster.members
    waiting = tuple(
        r.name
        for r in view.tasks.records_of(members)
        if address in waited_for(view.report_of(r)) and _must_listen(view.report_of(r))
    )
    finished = view.tasks.having(Fact.FINISHED)
    undecided = tuple(name for name in deciders_of(view) if name not in finished)
    return EndedServer(record, waiting, undecided, _idle_since(view, undecided))


def _must_listen(report: Report) -> bool:
    """Say whether the tasks that wait need the port: a command may soon go on without it."""
    return report.get("contract") != contract.CONTRACT_COMMAND


def _idle_since(view: GangView, names: Collection[str]) -> float | None:
    """Return since when all of these do nothing, in unix seconds; None when one does."""
    if not view.tasks.having(Fact.IDLE).issuperset(names):
        return None
    return max((idle_since(view.report_of(view.tasks[n])) or 0.0 for n in names), default=None)
