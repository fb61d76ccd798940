"""When a failure is the code's own, so that starting it again mends nothing. Pure.

Asked by ``core.failures.incidents`` as an incident is noted, and again while the restart that it
leads to is under way: the evidence of a sandbox and the failures of other members come later. Two
rules:

* the same exception at the same line, ``retry.same_failure_limit`` times, without a step of
  progress between;
* an exception of all members that run the user's code, before the first step of the job.

An exception of a batch or a sweep is the code's own where the first units to fail have failed alike
and none has succeeded: ``core.work.slots`` asks before it goes on with the others.

Decided by data alone (``core.model.own_error``). Other errors of the job have their limits in
``incidents``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice

from dcos_tensorflow.core.failures import causes
from dcos_tensorflow.core.model.job import Incident, JobState
from dcos_tensorflow.core.model.service_state import GangView, ServiceState
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.model.units import Unit, UnitState
from dcos_tensorflow.core.restarts.gang_queries import known_step
from dcos_tensorflow.core.spec.service_spec import RetrySpec, TaskRole, UnitKind, split_task_name
from dcos_tensorflow.core.spec.workload_spec import SweepSpec
from dcos_tensorflow.core.work import assignment as units

#: Where a job tells no steps, an error that comes later is none before its first step: importing
#: TensorFlow and reaching the peers takes less (seconds).
START_SECONDS = 120.0
#: Where it neither tells steps nor saves checkpoints, a start that ran for so long got somewhere.
SILENT_SECONDS = 600.0
#: A shard that has run for so many times as long as others took to fail may do better.
DOES_BETTER_AFTER = 2.0

#: So many trials that have failed are compared, the first ones.
_COMPARED = 16

_OWN = "the code's own, not tried again (retry.same_failure_limit)"


def why_not_again(view: GangView) -> str:
    """Return why nothing of the newest incident is to be started again; empty when it is."""
    incident, limit = view.job.incidents[-1], view.spec.retry.same_failure_limit
    if incident.error is None or not incident.charged:
        return ""
    times = repetitions(view.job.incidents)
    if times >= limit > 1:
        is_error = incident.kind != causes.ENDED_BEFORE_PEERS
        same = "the same error at the same line" if is_error else "the same"
        step = incident.step if incident.error.step is None else incident.error.step
        at = "no step between" if step is None else f"each time at step {step}"
        return f"{times} times {same}, {at}: {_OWN}"
    if limit == 1:
        return _OWN
    if _holds_for_all(limit) and _missing_from_all(view, incident) == 0:
        return f"before the first step, in all tasks that run the code: {_OWN}"
    return ""


def why_no_more_units(state: ServiceState, now: float) -> str:
    """Return why the other units would fail, too; empty when they may do better.

    The first that failed have failed alike, on two machines where slots are on two, and none has
    succeeded. Trials must have failed before their first step, and share no parameter: a value that
    the first ones share may be what fails. Of a batch that does what is missing it is asked in
    vain: the others have succeeded before.
    """
    spec, table = state.spec, state.units
    if spec.units is None or spec.units.are_the_rest or not spec.units.is_one_work:
        return ""
    stopped = table.count(UnitState.PRUNED)
    if table.count(UnitState.SUCCEEDED) or stopped or table.newest_failure is None:
        return ""
    number = spec.retry.same_failure_limit + 1
    most = number if spec.units.kind is UnitKind.SHARD else max(number, _COMPARED)
    failed = tuple(islice((unit for unit in table if unit.failures), most))
    first = tuple(unit.failures for unit in failed)
    newest = first[0][-1]
    if len(first) < number or newest.error is None:
        return ""
    if not all(failure.is_like(newest) for failures in first for failure in failures):
        return ""
    where = ""
    if spec.units.kind is UnitKind.TRIAL:
        steps = [f.error.step for failures in first for f in failures if f.error is not None]
        if any(step is not None for step in steps) or _share_a_value(state, failed):
            return ""
        where = " before their first step"
    machines = {failure.agent_id for failures in first for failure in failures}
    if len(machines) < 2 and units.is_elsewhere(state, machines):
        return ""
    took = max(failure.seconds for failures in first for failure in failures)
    runs = (gang.unit for gang in state.gangs.values())
    if any(run is not None and now - run.begun_at > DOES_BETTER_AFTER * took for run in runs):
        return ""
    told = f"{len(first)} {spec.units.kind}s failed alike{where} and none has succeeded"
    return f"{told}: {newest.summary}: {_OWN}"


def _share_a_value(state: ServiceState, failed: Sequence[Unit]) -> bool:
    """Say whether trials have a value in common of a parameter that may have others."""
    work = state.spec.workload
    contexts = [state.units.payload(unit.number).get("context") or {} for unit in failed]
    parameters = work.parameters if isinstance(work, SweepSpec) else ()
    names = [parameter.name for parameter in parameters if parameter.count() != 1]
    return any(len({json.dumps(told.get(name)) for told in contexts}) == 1 for name in names)


def may_be_of_all(view: GangView, now: float) -> bool:
    """Say whether other members may yet fail alike: they are not stopped before the back-off ends.

    Members reach the same line seconds apart: a task that is stopped for the first one that does
    never tells that it would have failed, too.
    """
    if view.roster.is_of_slot or not view.job.incidents or now >= view.job.restart.due_at:
        return False
    incident = view.job.incidents[-1]
    if incident.error is None or not _holds_for_all(view.spec.retry.same_failure_limit):
        return False
    return bool(_missing_from_all(view, incident))


def repetitions(incidents: Sequence[Incident]) -> int:
    """Return how often the error of the newest incident has come in a row, itself included.

    Other failures may lie between, but no progress. Where a start fails at another step than the
    one before, something has changed: that it always comes to the same line is not shown. Of
    several members that fail alike in one start, the first counts.
    """
    newest, times = incidents[-1], 1
    if newest.error is None or _ran_silently(newest, SILENT_SECONDS):
        return times
    began_at = newest.began_at
    for earlier in reversed(incidents[:-1]):
        if not (earlier.charged and newest.error.is_like(earlier.error)):
            if _is_further(earlier.step, newest.step):
                break
            continue
        if not _is_at_same_step(earlier, newest):
            break
        if earlier.at < began_at:
            times += 1
            began_at = earlier.began_at
        if _ran_silently(earlier, SILENT_SECONDS):
            break
    return times


def unexplained_in_a_row(incidents: Sequence[Incident]) -> int:
    """Return how often a signal has ended the newest incident's task, of which nothing tells whose.

    Itself included, and with no progress between. 0 where it was something else.
    """
    newest, times = incidents[-1], 0
    step = checkpoint = None
    for incident in incidents:
        trained = _is_further(incident.step, step)
        saved = _is_further(incident.checkpoint, checkpoint)
        if trained or saved or _ran_silently(incident, SILENT_SECONDS):
            times = 0
        times += int(incident.unexplained and incident.task == newest.task)
        step = incident.step if trained else step
        checkpoint = incident.checkpoint if saved else checkpoint
    return times if newest.unexplained else 0


def kills_in_a_row(incidents: Sequence[Incident]) -> int:
    """Return how often in a row the newest incident's task was interrupted, and got no further.

    Itself included; 0 where it was not.
    """
    newest, times = incidents[-1], 0
    for incident in reversed(incidents):
        same = (incident.task, incident.kind) == (newest.task, causes.INTERRUPTED)
        if not same or _is_further(newest.step, incident.step):
            break
        times += 1
    return times


def in_newest_start(incidents: Sequence[Incident]) -> int:
    """Return how many members have failed alike in the same start, the newest one included."""
    newest = incidents[-1]
    others = [
        i
        for i in incidents[:-1]
        if newest.error is not None and newest.error.is_like(i.error) and i.at >= newest.began_at
    ]
    return len(others) + 1


def _is_at_same_step(earlier: Incident, newest: Incident) -> bool:
    """Say whether the job has got nowhere between two failures alike.

    By what the failing start has told of itself, where it has, and by what the gang has.
    """
    if _is_further(newest.checkpoint, earlier.checkpoint):
        return False
    own = [i.error.step if i.error is not None else None for i in (earlier, newest)]
    if own == [None, None]:
        return earlier.step == newest.step
    return own[0] == own[1] and not _is_further(newest.step, earlier.step)


def _is_further(step: int | None, other: int | None) -> bool:
    return step is not None and (other is None or step > other)


def _ran_silently(incident: Incident, seconds: float) -> bool:
    told = incident.error is not None and incident.error.step is not None
    silent = incident.step is None and not told
    return silent and incident.at - incident.began_at >= seconds


def _holds_for_all(limit: int) -> bool:
    """Say whether an error of all members is not tried again: the options can ask for more."""
    return limit <= RetrySpec().same_failure_limit


def _missing_from_all(view: GangView, incident: Incident) -> int | None:
    """Return how many members may yet have the error, of those that run the user's code.

    None when not all of them can have it before the first step of the job: one has failed of
    something else, or the job has got somewhere.
    """
    if not _is_before_first_step(view.job, incident) or known_step(view) is not None:
        return None
    missing = 0
    for name in view.roster.names:
        if split_task_name(name)[0] is TaskRole.PS:
            # With sessions it runs none of the user's code.
            continue
        record = view.tasks.get(name)
        if record is None:
            return None
        error = record.newest_error
        if incident.error is not None and incident.error.is_like(error):
            if error is not None and error.step is not None:
                return None
        elif _may_yet_fail(record):
            missing += 1
        else:
            return None
    return missing


def _is_before_first_step(job: JobState, incident: Incident) -> bool:
    return job.best_step is None and not _ran_silently(incident, START_SECONDS)


def _may_yet_fail(record: TaskRecord) -> bool:
    return not (record.terminal or record.held or record.process_failed)
