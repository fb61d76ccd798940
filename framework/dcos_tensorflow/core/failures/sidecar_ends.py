"""How often an evaluator or a TensorBoard has ended, how long to wait, and when to give it up.

Asked by ``core.restarts.sidecars``, ``core.offers.launching`` and ``core.plans.standing``; decides
by a record's counts and times alone, and changes nothing. A failure of its own is charged, as in
the gang; an end from outside the job is not, and only what ends again and again at
once is given up for that.
"""

from __future__ import annotations

from dcos_tensorflow.core.failures import causes
from dcos_tensorflow.core.model.service_state import GangView
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.restarts import launch_options
from dcos_tensorflow.core.restarts.backoff import backoff_seconds
from dcos_tensorflow.records import dataclass

#: What ran for so long before it was interrupted had got somewhere: it is no loop.
SETTLED_SECONDS = 10.0


@dataclass(frozen=True)
class Ends:
    """Charged failures in a row, and interruptions in a row that came soon after the start."""

    failures: int
    interruptions: int

    def __str__(self) -> str:
        """Say it in words: what counted last."""
        if self.interruptions:
            return f"interruptions in a row: {self.interruptions}"
        return f"failures in a row: {self.failures}"


#: Of what was never started.
NONE = Ends(0, 0)


def ends(view: GangView, record: TaskRecord) -> Ends:
    """Return the counts with the end that ``record`` tells of."""
    if record.terminal and launch_options.has_other_options_now(view, record):
        # What has failed is not what is launched next.
        return NONE
    before = Ends(record.failures, record.interruptions)
    if record.kill_reason or record.state is TaskState.UNREACHABLE:
        # We ended it ourselves: that says nothing about it.
        return before
    ran = record.changed_at - max(record.launched_at, record.ordered_at)
    if causes.cause_of(record).charged:
        earlier = 0 if ran >= view.spec.retry.window_seconds else before.failures
        return Ends(earlier + 1, 0)
    return Ends(before.failures, 1 if ran >= SETTLED_SECONDS else before.interruptions + 1)


def is_given_up(view: GangView, record: TaskRecord) -> bool:
    """Say whether a sidecar that has ended is not to be started again: also one that never can."""
    now, retry = ends(view, record), view.spec.retry
    if now.failures and not record.kill_reason and causes.cause_of(record).permanent:
        return True
    return now.failures > _limit(view, record) or now.interruptions > retry.fruitless_limit


def wait_seconds(view: GangView, record: TaskRecord) -> float:
    """Return how long after its end a sidecar is started again; 0 after a first interruption."""
    now = ends(view, record)
    in_a_row = now.interruptions - 1 if now.interruptions else now.failures
    return backoff_seconds(view.spec.retry, in_a_row, record.task_id)


def _limit(view: GangView, record: TaskRecord) -> int:
    role = view.spec.role(record.role)
    own = role.retry_limit if role is not None else None
    return view.spec.retry.limit if own is None else own
