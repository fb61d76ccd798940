"""The first state of a scheduler: the stored one, that of a new service, or an uninstall.

Called by ``scheduler.scheduler`` once it leads the service, before anything else happens. It writes
to the state store and decides nothing that the core can decide.
"""

from __future__ import annotations

import logging
import secrets
import uuid
from collections.abc import Mapping
from dataclasses import field, replace

from dcos_tensorflow.core.kept import paths
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.kept.restore import (
    StateUnreadable,
    configurations,
    is_uninstalling,
    restore,
    upgrade,
    without_service,
)
from dcos_tensorflow.core.kept.writes import first_writes, writes_between
from dcos_tensorflow.core.model.events import ConfigurationChanged, Event, UninstallRequested
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import LaunchSettings, ServiceState
from dcos_tensorflow.core.operator import renewal, requests
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.scheduler.loop.clock import steady_time
from dcos_tensorflow.scheduler.options_documents import OptionsDocuments
from dcos_tensorflow.state.store import StateStore

log = logging.getLogger(__name__)

_UNINSTALL = "the scheduler was started to uninstall the service"


class UninstallGoesOn(Exception):
    """An uninstall of the service has begun, and this scheduler was not told to go on with it.

    Or it is over, and the scheduler stood by meanwhile.
    """


class NothingInForce(Exception):
    """The options cannot be had, and there are none of before to go on with."""


@dataclass(frozen=True)
class Beginning:
    """The state to begin with, what to tell the core first, and whether Mesos is needed at all.

    ``configurations`` are all that are stored, by id, ``options`` those that they were made of.
    """

    state: ServiceState
    events: tuple[Event, ...] = ()
    subscribe: bool = True
    configurations: Mapping[str, ServiceSpec] = field(default_factory=dict)
    options: OptionsDocuments = field(default_factory=OptionsDocuments)


def begin(
    store: StateStore,
    spec: ServiceSpec,
    settings: LaunchSettings,
    *,
    refused: str = "",
    fresh: bool = False,
    uninstall: bool = False,
    finish_uninstall: bool = False,
    first_run: int = 1,
) -> Beginning:
    """Return what to begin with. ``fresh`` replaces a job that is done by a new one.

    Where nothing is stored, that may be so because the state was lost: the state says that it seeks
    its former life. A job that is not done goes on; where ``spec`` is another than the stored one,
    the core is told and takes it for the target. Where it cannot be had, the stored one stays in
    force, and the state says so from its first moment on: a client that asks for the progress must
    not be told that it is complete. ``refused`` says why ``spec`` cannot be had whatever is stored;
    of options that cannot be read it has the name alone. ``first_run`` is the
    number of a new service's first run. With ``finish_uninstall`` an uninstall that has begun is
    gone on with as if ``uninstall`` were said. Raises UninstallGoesOn, NothingInForce,
    StateUnreadable, StateError.
    """
    values, upgrade_writes = upgrade(store.load())
    begun = is_uninstalling(values)
    if begun and not (uninstall or finish_uninstall):
        raise UninstallGoesOn(
            f"the service {spec.name} is being uninstalled, and that cannot be taken back; start"
            " its scheduler with --uninstall or SDK_UNINSTALL to go on with it, and the service"
            " again when it is over"
        )
    uninstall = uninstall or begun
    if upgrade_writes:
        log.info("the state was written by an earlier release; it is brought to this one's format")
        store.commit(upgrade_writes)
    stored = restore(values, settings, steady_time())
    foreign = without_service(values)
    if foreign and not uninstall:
        raise StateUnreadable(foreign)
    if refused and stored is None and not uninstall:
        raise NothingInForce(refused)
    # What an uninstall has not erased yet is of a framework that it has removed.
    first = stored or replace(
        _first_state(spec, settings), run=first_run, seeks_former_life=not begun
    )
    if uninstall:
        return _uninstalling(first, known=stored is not None)
    if stored is None:
        store.commit(first_writes(first))
        return Beginning(first)
    same = configuration_id(stored.spec) == configuration_id(spec)
    done = stored.job.phase is JobPhase.DONE
    follows = done and (fresh or not same) and not refused
    why = "" if same else refused or (renewal if follows else requests).refusal(stored, spec)
    events: tuple[Event, ...] = ()
    if why:
        log.error("these options are refused, those before stay in force: %s", why)
        stored = replace(stored, told=replace(stored.told, refused_configuration=why))
    elif follows:
        stored = _renewed(store, spec, stored)
    else:
        live = len(stored.live_tasks)
        log.info("carrying on: the job is %s, %d tasks live", stored.job.phase, live)
        events = () if same else (ConfigurationChanged(spec),)
    beginning = Beginning(stored, events, configurations=_configurations(values))
    beginning.options.load(values)
    return beginning


def _configurations(values: Mapping[str, bytes]) -> dict[str, ServiceSpec]:
    found, unreadable = configurations(values)
    for identifier, why in unreadable.items():
        # It is not the target: nothing depends on it but going back to it.
        log.warning("the stored configuration %s cannot be read: %s", identifier, why)
    return found


def _uninstalling(state: ServiceState, *, known: bool) -> Beginning:
    """Begin or go on with an uninstall; without a framework there is nothing to ask Mesos for.

    Where nothing is stored, Mesos may know one.
    """
    if not known:
        name = state.spec.name
        log.info("nothing is stored of the service %s; whatever is left is erased", name)
    subscribe = state.seeks_former_life or bool(state.framework_id)
    return Beginning(state, (UninstallRequested(_UNINSTALL),), subscribe)


def _first_state(spec: ServiceSpec, settings: LaunchSettings) -> ServiceState:
    settings = replace(settings, token_key=secrets.token_hex(32))
    state = ServiceState.of_one_gang(spec, str(uuid.uuid4()), settings)
    return replace(state, configurations=(configuration_id(spec),))


def _renewed(store: StateStore, spec: ServiceSpec, stored: ServiceState) -> ServiceState:
    """Replace a job that is done by the next run of the service, and return the state."""
    state = renewal.renewed(stored, spec)
    if state.capacity:
        # Few services buy machines.
        from dcos_tensorflow.scheduler.machines.ledger_records import for_the_next_run

        state = replace(state, capacity=for_the_next_run(state.capacity))
    # A commit that is cut short leaves a job with the options that it was begun with.
    writes = writes_between(stored, state)
    store.commit(sorted(writes, key=lambda write: write.path == paths.CONFIG_TARGET))
    log.info("the job before is done (%s); a new one begins", stored.job.why)
    return state
