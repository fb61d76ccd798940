"""A new run of a service whose job is done: which parts of the state begin anew.

Called by ``scheduler.beginning``. A service outlives its runs. What it owns, or must not forget,
stays: its id at Mesos and its own, what is reserved for it with the volumes, the ledger of bought
machines, attempts that were given up, how often it launched, what is known of agents. A part of the
state that is not named here stays, so that one that is added later is not lost by a renewal.
"""

from __future__ import annotations

from dataclasses import replace

from dcos_tensorflow.core.model.controls import Controls
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.spec import ServiceSpec
from dcos_tensorflow.core.operator.requests import FIXED_FIELDS, changed_volume, lost_provider


def renewed(state: ServiceState, spec: ServiceSpec) -> ServiceState:
    """Return the state that the next run of the service begins with, with the options ``spec``."""
    first = ServiceState.of_one_gang(spec, state.instance, state.settings)
    return replace(
        state,
        spec=spec,
        # Reset: the job and its tasks, its units of work, what operators hold back of it, and the
        # configurations that its tasks ran with.
        gangs=first.gangs,
        units=first.units,
        controls=Controls(),
        former_options={},
        configurations=(),
        told=first.told,
        run=state.run + 1,
        # What has outlived the job before is ended.
        abandoned={
            **state.abandoned,
            **{record.task_id: record.agent_id for record in state.live_tasks},
        },
    )


def refusal(state: ServiceState, spec: ServiceSpec) -> str:
    """Return why the next run cannot have these options, for what the service owns; '' if it can.

    Without anything left of the run before all may change.
    """
    kept = [reservation for reservation in state.reservations.values() if not reservation.given_up]
    if not kept:
        return lost_provider(state, spec)
    for field, what in FIXED_FIELDS.items():
        before, after = getattr(state.spec, field), getattr(spec, field)
        if before != after:
            return (
                f"{what} cannot be changed from {before!r} to {after!r} while volumes of the"
                " service are kept; install another one"
            )
    return changed_volume(state.spec, spec) or lost_provider(state, spec)
