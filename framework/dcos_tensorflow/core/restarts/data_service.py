"""The job's tf.data service: its dispatcher's address, for all tasks that use it; its end.

Called by ``core.advance``, and by ``core.offers.launching`` for new tasks. Its tasks are
sidecars like others (``core.restarts.sidecars``): one that ends is replaced alone. No process has
the dispatcher's address: each runner leads to it from an address that stays
(``task.data_service.forwarder``), so that a dispatcher that moves restarts nothing.
"""

from __future__ import annotations

from dataclasses import replace

from dcos_tensorflow.core.cluster.addresses import reached_at
from dcos_tensorflow.core.draft import GangDraft
from dcos_tensorflow.core.failures import causes, charges
from dcos_tensorflow.core.model import bounds
from dcos_tensorflow.core.model.job import Incident
from dcos_tensorflow.core.model.service_state import GangView
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.restarts import sidecars
from dcos_tensorflow.core.spec.service_spec import DATA_ROLES, TaskRole


def told(view: GangView, role: TaskRole) -> str:
    """Return where the runner of a task of this role is to find the dispatcher; empty: nowhere."""
    found, dispatcher = view.spec.role(role), _dispatcher(view)
    uses = found is not None and found.data_service
    return reached_at(dispatcher) if uses and dispatcher is not None else ""


def look_after(gang: GangDraft) -> None:
    """Tell the runners of a dispatcher that has moved; end the job that has no service any more."""
    if _dispatcher(gang.view) is None:
        return
    where = {role.role: told(gang.view, role.role) for role in gang.spec.roles}
    for record in gang.tasks.live:
        known = where.get(record.role, "")
        if known and record.data_service != known:
            gang.put(replace(record, data_service=known))
    for role in DATA_ROLES:
        lost = _all_given_up(gang.view, role)
        if lost is not None:
            _end(gang, lost, f"no {role} is left, and the training would wait for data")
            return


def _end(gang: GangDraft, lost: TaskRecord, why: str) -> None:
    kind = causes.cause_of(lost).kind
    summary = bounds.cut(lost.kill_reason or causes.describe(lost), bounds.TEXT_BYTES)
    incident = Incident(lost.name, lost.task_id, gang.now, kind, summary, charged=True)
    gang.job = replace(gang.job, incidents=(*gang.job.incidents, incident))
    gang.restart = replace(gang.restart, count=gang.restart.count + 1)
    charges.fail(gang, f"{summary}; {why}", lost.exit_code or causes.exit_code(lost.message) or 1)


def _dispatcher(view: GangView) -> TaskRecord | None:
    role = view.spec.role(TaskRole.DATA_DISPATCHER)
    names = view.roster.names_of(role) if role is not None else ()
    return view.tasks.get(names[0]) if names else None


def _all_given_up(view: GangView, role: TaskRole) -> TaskRecord | None:
    """Return the one of a role that ended last, where none of them is started again."""
    wanted = view.spec.role(role)
    records = [view.tasks.get(name) for name in view.roster.names_of(wanted)] if wanted else []
    ended = [r for r in records if r is not None and r.terminal and _is_over(view, r)]
    return max(ended, key=lambda r: r.changed_at) if ended and len(ended) == len(records) else None


def _is_over(view: GangView, record: TaskRecord) -> bool:
    return record.state is TaskState.FINISHED or sidecars.is_given_up(view, record)
