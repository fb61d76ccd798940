"""Tasks that would restart if the options changed: told before it happens.

Asked by the API for the answer to an update. Decides nothing: ``planned_changes`` does the same
step by step, and what fails meanwhile may take more along. Pure.
"""

from __future__ import annotations

from dcos_tensorflow.core.model.roster import Roster
from dcos_tensorflow.core.model.service_state import GangView
from dcos_tensorflow.core.restarts import update_order
from dcos_tensorflow.core.restarts.gang_queries import restart_set_of
from dcos_tensorflow.core.restarts.membership import who_must_know
from dcos_tensorflow.core.restarts.restart_table import Loss
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class Announced:
    """The tasks that an update concerns, by what becomes of them."""

    #: They get new containers.
    replaced: tuple[str, ...] = ()
    #: They start again in their containers, for these change or the members do.
    along: tuple[str, ...] = ()
    joining: tuple[str, ...] = ()
    leaving: tuple[str, ...] = ()


def announced(view: GangView, spec: ServiceSpec) -> Announced:
    """Return who is concerned when ``spec`` becomes the target."""
    spec = spec.shaped(view.job.shape)
    replaced = update_order.outdated_for(view, spec)
    before = view.epoch.addresses if view.epoch is not None else {}
    wanted = Roster.of(spec, gang=view.gang.name).every
    joining = tuple(n for n in wanted if before and n not in before)
    leaving = tuple(n for n in before if n not in wanted)
    after = {name: before.get(name, "joins") for name in wanted}
    chosen = {
        *restart_set_of(view, {n: Loss.PROCESS for n in replaced if n in view.roster}),
        *(who_must_know(view, before, after) if joining or leaving else ()),
    }
    along = view.roster.in_order(chosen - {*replaced, *joining, *leaving})
    return Announced(replaced, along, joining, leaving)
