"""The evidence in the sandbox of an ended task: asking for it, and its meaning for an incident.

``core.failures.incidents`` asks as an incident is noted, ``core.advance`` at a success;
``core.absorb`` hands the answer in, seconds later or never. Only the verdict's end waits for it.
"""

from __future__ import annotations

from dataclasses import replace

from dcos_tensorflow.core.draft import Draft, GangDraft
from dcos_tensorflow.core.model.actions import CollectEvidence
from dcos_tensorflow.core.model.events import EvidenceFound
from dcos_tensorflow.core.model.own_error import OwnError
from dcos_tensorflow.core.model.service_state import Evidence
from dcos_tensorflow.core.model.task import TaskRecord, TaskState, parse_task_id
from dcos_tensorflow.core.model.task_table import Fact
from dcos_tensorflow.core.spec.service_spec import MAIN, gang_named

#: How long an ended task's sandbox may take to tell why (seconds); the verdict waits for it.
EVIDENCE_SECONDS = 10.0


def collect(draft: Draft, record: TaskRecord) -> None:
    """Ask for what an ended task's sandbox tells."""
    if not record.agent_id:
        return
    told = draft.state.told
    wanted = {**told.evidence_wanted, record.task_id: draft.now + EVIDENCE_SECONDS}
    draft.state = replace(draft.state, told=replace(told, evidence_wanted=wanted))
    draft.act(
        CollectEvidence(record.task_id, record.agent_id),
        f"reading from its sandbox how {record.name} ended",
    )


def is_awaited(gang: GangDraft) -> bool:
    """Say whether a sandbox of the gang's tasks may yet tell something."""
    wanted = gang.service.state.told.evidence_wanted
    return any(gang.now < until and _is_of(gang.name, task_id) for task_id, until in wanted.items())


def _is_of(gang: str, task_id: str) -> bool:
    parsed = parse_task_id(task_id)
    return parsed is not None and gang_named(parsed[1]) == gang


def learn(draft: Draft, found: EvidenceFound) -> None:
    """Take what a sandbox has told: the incident of that attempt says it too."""
    told = draft.state.told
    draft.state = replace(
        draft.state,
        told=replace(
            told,
            evidence={**told.evidence, found.task_id: Evidence(found.summary, found.last_lines)},
            evidence_wanted={k: v for k, v in told.evidence_wanted.items() if k != found.task_id},
        ),
    )
    if found.progress and draft.state.task_by_id(found.task_id) is not None:
        # What a task told last may have found no scheduler that asked just then.
        known = draft.state.told.reports.get(found.task_id, {})
        draft.note_report(found.task_id, {**known, "progress": found.progress})
    parsed = parse_task_id(found.task_id)
    gang = gang_named(parsed[1]) if parsed is not None else MAIN
    if gang in draft.state.gangs:
        _learn(draft.gang(gang), found)


def _learn(gang: GangDraft, found: EvidenceFound) -> None:
    decider = gang.tasks.get(gang.roster.decider)
    if found.result and decider is not None and decider.task_id == found.task_id:
        gang.job = replace(gang.job, result=found.result)
        gang.say(f"{decider.name} left a result")
    record = gang.service.state.task_by_id(found.task_id)
    if record is not None and record.state is TaskState.FINISHED:
        # What a success leaves says nothing of a failure before it.
        return
    error = _new_error(record, found)
    if record is not None and error is not None:
        gang.put(replace(record, failed_start=record.ended_start, error=error))
    incidents = gang.job.incidents
    places = (n for n, i in enumerate(incidents) if i.task_id == found.task_id)
    place = max(places, default=None)
    if place is None:
        return
    mine, verdict = incidents[place], gang.job.verdict
    if mine.charged and mine.error is None:
        mine = replace(mine, error=error)
    if found.summary and found.summary not in mine.summary:
        mine = replace(mine, evidence=found.summary)
        gang.say(f"{mine.task} ended because: {found.summary}")
        if verdict is not None and place == len(incidents) - 1:
            verdict = replace(verdict, summary=f"{verdict.summary}: {found.summary}")
    incidents = (*incidents[:place], mine, *incidents[place + 1 :])
    gang.job = replace(gang.job, incidents=incidents, verdict=verdict)


def _new_error(record: TaskRecord | None, found: EvidenceFound) -> OwnError | None:
    """Return the exception that the container ended of; None where its runner had told of it."""
    if record is None or record.state is not TaskState.FAILED:
        return None
    return found.error if record.failed_start != record.ended_start else None


def ask_again(gang: GangDraft) -> None:
    """Ask what sandboxes tell that was not asked yet: a scheduler before us may have, or it was no
    matter as a task ended in the midst of a restart.
    """
    told = gang.service.state.told
    for record in gang.tasks.records_of(gang.tasks.having(Fact.UNWELL) & gang.roster.members):
        asked = record.task_id in told.evidence or record.task_id in told.evidence_wanted
        if record.state is TaskState.FAILED and not asked:
            collect(gang.service, record)
