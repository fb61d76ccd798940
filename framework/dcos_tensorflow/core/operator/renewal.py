"""The next run of a service whose job is done: its state, with the parts of a run made new.

Called by ``scheduler.beginning``. All other parts stay as they are, those that the service owns
among them (machines, volumes, abandoned attempts, its id and its framework's), so that no run can
forget any: a new field of the state stays until it is named here. Pure; decides nothing about the
job that follows.
"""

from __future__ import annotations

from dataclasses import replace

from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model.controls import Controls
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.units import Unit, UnitState, UnitTable
from dcos_tensorflow.core.operator.requests import clash_with_what_is_owned, remembered
from dcos_tensorflow.core.spec.service_spec import ServiceSpec, UnitKind, split_task_name


def refusal(state: ServiceState, spec: ServiceSpec) -> str:
    """Return why no run with ``spec`` can follow; empty when one can.

    The job before is over and is no reason. What the service owns is, as it is for an update.
    """
    held = (found.task for found in state.reservations.values() if not found.given_up)
    roles = {split_task_name(task)[0] for task in held}
    return clash_with_what_is_owned(state, spec, roles)


def renewed(state: ServiceState, spec: ServiceSpec) -> ServiceState:
    """Return the state in which the next run begins with ``spec``.

    Named here is what is reset: the gangs with their tasks, the units of work, what an operator
    holds back of the job, and failures of the job's tasks by agent. A sweep that goes on keeps its
    trials.
    """
    may_run = {**state.abandoned, **{r.task_id: r.agent_id for r in state.live_tasks}}
    before, target = configuration_id(state.spec), configuration_id(spec)
    known = {**state.former_options, before: state.spec}
    configurations = remembered((*state.configurations, before, target), ())
    first = ServiceState.of_one_gang(spec, state.instance)
    return replace(
        state,
        spec=spec,
        run=state.run + 1,
        gangs=first.gangs,
        units=_units(state, spec),
        # Whose end is not waited for is not waited for by the next run either.
        controls=Controls(let_go=tuple(t for t in state.controls.let_go if t in may_run)),
        agent_failures={},
        # What has outlived the job before is ended.
        abandoned=may_run,
        configurations=configurations,
        former_options={
            key: known[key] for key in configurations if key in known and key != target
        },
    )


def _units(state: ServiceState, spec: ServiceSpec) -> UnitTable:
    """Return the trials that the next run begins with: none, or where it goes on all of before.

    What finished or was stopped early stays so; the others are run again, with their parameters.
    """
    before, now = state.spec.units, spec.units
    if before is None or now is None or not now.are_the_rest:
        return UnitTable()
    if UnitKind.SHARD in (before.kind, now.kind):
        # Of shards their outputs say what is done.
        return UnitTable()
    kept = (UnitState.SUCCEEDED, UnitState.PRUNED)
    pages = [
        replace(page, units=tuple(u if u.state in kept else Unit(u.number) for u in page.units))
        for page in state.units.pages
    ]
    return UnitTable.of(pages, last=False, runs=())
