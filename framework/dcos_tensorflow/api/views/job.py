"""The job: where it stands, how it ended, how far each task is (``/v1/job``); why it waits
(``/v1/why``)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from dcos_tensorflow.api.views import storage
from dcos_tensorflow.api.views import unit_views as units
from dcos_tensorflow.api.views.debug import verdict_body
from dcos_tensorflow.api.views.pods import pod_names
from dcos_tensorflow.core.cluster import output_places
from dcos_tensorflow.core.failures.waits import Wait, waits
from dcos_tensorflow.core.kept import codec
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model.job import Incident
from dcos_tensorflow.core.model.report import unit_of
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.plans.elements import Status
from dcos_tensorflow.core.plans.plan import plans
from dcos_tensorflow.core.restarts import outcome
from dcos_tensorflow.core.spec.service_spec import gang_named

if TYPE_CHECKING:
    from dcos_tensorflow.api import schemas
    from dcos_tensorflow.api.source import Usages

#: What is taken from a task runner's report (docs/task-runner.md); all else in it stays there.
REPORTED = (
    "state",
    "waiting_for",
    "started_at",
    "starts",
    "exit_code",
    "contract",
    "summary",
    "hint",
    "progress",
    "result",
    "dropped_log_bytes",
    "checkpoint",
    "storage",
)

_VERDICTS_SHOWN = 20
_MEBIBYTE = 1 << 20


def job(state: ServiceState, usages: Usages = MappingProxyType({})) -> schemas.Job:
    """Return the job. Times are unix seconds; null where something has not happened.

    ``usages`` is what tasks use now, by task id.
    """
    known, restart, run = state.job, state.job.restart, output_places.run_of(state)
    return {
        "service": state.spec.name,
        "phase": str(known.phase),
        "why": state.only_gang.why,
        "deployed": known.deployed,
        "run": run.number,
        "output": output_places.output_place(state.spec, run) or None,
        "attempt": state.attempt,
        "restarts": restart.count,
        "retry_limit": state.spec.retry.limit,
        "started_at": known.started_at or None,
        "finished_at": known.finished_at or None,
        "restart_at": restart.due_at or None,
        "restarting": list(restart.members),
        "absent": list(known.membership.absent),
        "paused": list(state.controls.paused_tasks),
        "configuration": configuration_id(state.spec),
        "refused_configuration": state.told.refused_configuration or None,
        "uninstalling": state.uninstall.asked,
        "given_up": list(state.uninstall.given_up),
        "outcome_policy": str(state.spec.outcome),
        "deciding_tasks": list(outcome.deciding_tasks(state.spec)),
        "verdict": codec.to_plain(known.verdict),
        "result": codec.to_plain(known.result) or None,
        "units": units.counts(state),
        "buys_machines": state.spec.capacity is not None,
        "incidents": [_incident(incident) for incident in known.incidents],
        "tasks": {name: _task(state, name, usages) for name in pod_names(state)},
    }


def _incident(incident: Incident) -> schemas.Incident:
    plain: dict[str, Any] = codec.to_plain(incident)
    for kept in ("evidence", "error", "began_at", "checkpoint"):
        del plain[kept]
    return cast("schemas.Incident", {**plain, "summary": incident.told})


def _task(state: ServiceState, name: str, usages: Usages) -> schemas.TaskOfJob:
    record = state.tasks.get(name)
    if record is None:
        return {"state": None, "attempt": 0, "report": None, "usage": None}
    report = state.told.reports.get(record.task_id)
    evidence = state.told.evidence.get(record.task_id)
    return {
        "task_id": record.task_id,
        "state": str(record.state),
        "attempt": record.attempt,
        "epoch": record.epoch,
        "failures": _failures(state, record),
        "agent_id": record.agent_id,
        "hostname": record.hostname,
        "address": record.address,
        "ports": list(record.ports),
        "asked_port": _asked_port(state, record),
        "launched_at": record.launched_at,
        "changed_at": record.changed_at,
        "reason": record.reason,
        "message": record.message,
        "kill_reason": record.kill_reason,
        "report": {key: report[key] for key in REPORTED if key in report} if report else None,
        "evidence": codec.to_plain(evidence),
        "usage": _usage(state, record, usages.get(record.task_id)),
        "unit": told[0] if (told := unit_of(report or {})) is not None else None,
    }


def _failures(state: ServiceState, record: TaskRecord) -> int:
    """Return how often a task has failed: as a sidecar, or as the cause of incidents of its gang.

    Those are counted that the job keeps: of the time in which failures count.
    """
    gang = state.gangs.get(gang_named(record.name))
    incidents = gang.job.incidents if gang is not None else ()
    return record.failures + sum(incident.task == record.name for incident in incidents)


def _usage(
    state: ServiceState, record: TaskRecord, told: Mapping[str, Any] | None
) -> schemas.Usage | None:
    """Return what a task uses, beside what it was given."""
    role = state.spec.role(record.role)
    if told is None or role is None:
        return None
    given = role.resources
    limits = {"cpus": float(given.cpus), "mem_limit_bytes": int(given.mem * _MEBIBYTE)}
    return cast("schemas.Usage", {**told, **limits})


def _asked_port(state: ServiceState, record: TaskRecord) -> int | None:
    """Return the port that the options name, where the task got another one."""
    role = state.spec.role(record.role)
    asked = role.port if role is not None else 0
    return asked if asked and record.ports and record.ports[0] != asked else None


def _wait(wait: Wait, now: float) -> schemas.Wait:
    return cast("schemas.Wait", {**codec.to_plain(wait), "told": wait.told(now)})


def why(state: ServiceState) -> schemas.Why:
    """Return why the job is not further: in one sentence, per task and per offer.

    ``tasks`` holds those whose step is not complete or whose pod is paused, ``waits`` those that
    wait though the job runs, ``storage`` those that cannot reach what they keep in S3, ``machines``
    those for which none is bought; ``offers.held`` those in hand,
    ``offers.handed_back`` the newest that did not help, newest first.
    """
    waiting: dict[str, schemas.Waiting] = {}
    misfits = state.only_gang.placing.misfits
    counts: Mapping[str, Mapping[str, int]] = {m.task: m.counts for m in misfits}
    # A paused pod's step of a deployment that is over stays complete, as in the SDK.
    paused = frozenset() if state.job.is_over else frozenset(state.controls.paused_tasks)
    for name, plan in plans(state.view()).items():
        for phase in plan.phases:
            for step in phase.steps:
                if step.status is not Status.COMPLETE or step.task in paused:
                    waiting[step.task or step.name] = {
                        "plan": name,
                        "status": step.status,
                        "why": step.message,
                        "agents_by_reason": dict(counts.get(step.task, {})),
                    }
    silent = state.told.silent
    now = state.subscription.stepped_at
    found = waits(state.view(), now)
    rejected = [v for v in reversed(state.desk.log.verdicts) if not v.passed]
    return {
        "phase": str(state.job.phase),
        "why": f"{state.only_gang.why}{', but not all get on' if found else ''}",
        "not_updated": state.told.why_not_updated or None,
        "registered": state.registered,
        "suppressed": state.desk.suppressed,
        "tasks": waiting,
        "waits": [_wait(wait, now) for wait in found],
        "storage": {
            name: [{**problem, "why": storage.sentence(problem)} for problem in found]
            for name, found in storage.problems_by_task(state).items()
        },
        "silent_agents": [
            {"why": one.why, "hostnames": list(one.hostnames), "count": one.count, "told": str(one)}
            for one in silent
        ],
        "machines": dict(state.told.capacity),
        "offers": {
            "held": [
                {
                    "offer_id": offer.offer_id,
                    "agent_id": offer.agent_id,
                    "hostname": offer.hostname,
                    "resources": codec.to_plain(offer.resources),
                }
                for offer in state.desk.offers.values()
            ],
            "handed_back": [verdict_body(v) for v in rejected[:_VERDICTS_SHOWN]],
        },
    }
