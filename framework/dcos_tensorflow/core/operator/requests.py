"""What people ask of a running service: steer a plan, restart a pod, change the options.

Called by ``core.absorb``. What cannot be done is refused with a sentence, and nothing changes.
"""

from __future__ import annotations

from dataclasses import fields

from dcos_tensorflow.core.cluster.cluster_spec import illegal_mix, rendered_strategy
from dcos_tensorflow.core.cluster.launch_options import still_of_use
from dcos_tensorflow.core.draft import Draft
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState, configuration_id
from dcos_tensorflow.core.model.spec import GANG_ROLES, ServiceSpec
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.offers import reservations
from dcos_tensorflow.core.operator import plan_control
from dcos_tensorflow.core.recovery import incidents, planned_changes, sidecars, update_order

#: What identifies the service to Mesos and to its peers: another value is another service.
FIXED_FIELDS = {
    "name": "the name of a service",
    "user": "the user that tasks run as",
    "mesos_role": "the Mesos role",
    "principal": "the principal",
    "region": "the region",
}


def control(draft: Draft, command: events.PlanCommand | events.PodCommand) -> None:
    """Carry out a plan or pod verb."""
    controls, effects, why = plan_control.controlled(draft.state, command)
    draft.set(controls=controls)
    draft.reasons.append(why)
    for name in effects.give_up:
        _give_up(draft, name)
    for names, anew in ((effects.restart, False), (effects.replace, True)):
        gang = []
        for name in names:
            if anew:
                reservations.give_up(draft, name, "replaced on request")
            record = draft.state.tasks.get(name)
            if record is None:
                continue
            if record.terminal:
                sidecars.try_again_on_request(draft, record)
                continue
            if anew and record.state is TaskState.UNREACHABLE:
                # Whoever replaces it by hand does not wait for its agent any longer.
                _give_up(draft, name)
                incidents.count_against_agent(draft, record.agent_id, planned_changes.AVOIDED_AFTER)
            elif record.role in GANG_ROLES:
                gang.append(name)
            else:
                sidecars.restart_on_request(draft, record, replace_container=anew)
        planned_changes.restart_on_request(draft, gang, replace=anew)


def _give_up(draft: Draft, name: str) -> None:
    """Wait no more for the end of a task that nobody can reach; should it return, it is killed."""
    record = draft.state.tasks.get(name)
    if record is None or record.terminal:
        return
    draft.set(abandoned={**draft.state.abandoned, record.task_id: record.agent_id})
    draft.put(record.advance(TaskState.LOST, draft.now, message="given up on request"))


def refusal(state: ServiceState, spec: ServiceSpec) -> str:
    """Return why the service cannot go over to ``spec``; empty when it can."""
    for field, what in FIXED_FIELDS.items():
        before, after = getattr(state.spec, field), getattr(spec, field)
        if before != after:
            return (
                f"{what} cannot be changed from {before!r} to {after!r} while the service exists;"
                " install another one"
            )
    wrong = illegal_mix(spec) or _changed_volume(state.spec, spec)
    if wrong:
        return wrong
    if state.job.phase in (JobPhase.FINISHING, JobPhase.ENDING, JobPhase.DONE):
        return f"the job is {state.job.phase}: nothing of it can be changed any more"
    if rendered_strategy(spec) is not rendered_strategy(state.spec):
        return (
            f"the strategy would change from {rendered_strategy(state.spec)} to"
            f" {rendered_strategy(spec)}: its checkpoints would not fit; stop the job first"
        )
    return ""


def _changed_volume(before: ServiceSpec, after: ServiceSpec) -> str:
    """Return why volumes cannot change so; whoever has one would lose what is in it."""
    for role in after.roles:
        earlier = next((r for r in before.roles if r.role is role.role), None)
        if earlier is not None and earlier.volume != role.volume:
            return (
                f"the volume of {role.role} tasks cannot be changed while there are any;"
                " install another service"
            )
    return ""


def change_configuration(draft: Draft, event: events.ConfigurationChanged) -> None:
    """Make another configuration the target; what differs is restarted by and by."""
    if configuration_id(event.spec) == configuration_id(draft.state.spec):
        draft.set(refused_configuration="")
        draft.reasons.append("the configuration is the target already")
        return
    why = refusal(draft.state, event.spec)
    draft.set(refused_configuration=why)
    if why:
        draft.reasons.append(f"the configuration is not changed: {why}")
        return
    differing = [
        f.name
        for f in fields(ServiceSpec)
        if getattr(event.spec, f.name) != getattr(draft.state.spec, f.name)
    ]
    before = {**draft.state.former_options, configuration_id(draft.state.spec): draft.state.spec}
    draft.set(
        spec=event.spec,
        former_options=still_of_use(before, draft.state.tasks.values()),
        controls=update_order.reconfigured(draft.state, event.spec),
        # What did not fit before may fit now: look again, also at what was declined.
        considered=(-1, ()),
        suppressed=None,
    )
    wanted = set(event.spec.task_names())
    draft.set_job(
        absent=tuple(n for n in draft.job.absent if n in wanted),
        joining=tuple(n for n in draft.job.joining if n in wanted),
    )
    planned_changes.take_along(draft)
    draft.reasons.append(
        f"configuration {configuration_id(event.spec)} is the target now:"
        f" {', '.join(differing)} differ"
    )
