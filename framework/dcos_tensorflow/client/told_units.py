"""What is told of the units of a service: the document at ``/v1/units``, of its scheduler or of its
state where no scheduler of it runs any more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dcos_tensorflow.client.api_client import NoScheduler
from dcos_tensorflow.client.asked import Asked, Service
from dcos_tensorflow.client.errors import CliError

if TYPE_CHECKING:
    from dcos_tensorflow.core.model.service_state import ServiceState

#: What a service of each kind is called, and the command that shows it.
_CALLED = {"trial": "sweep", "shard": "batch"}
#: So many of those that failed are told of at the end.
_FAILURES = 3


def told_units(asked: Asked, kind: str, state: str = "") -> dict[str, Any]:
    """Return the units of a service, of one ``state`` where it is named. Raises CliError."""
    none = f"{_CALLED[kind]} in this service: it is one job"
    service = asked.service()
    try:
        wanted = f"?state={state}" if state else ""
        found = service.connect().ask("GET", f"/v1/units{wanted}").found(none)
    except NoScheduler as away:
        found = _stored(service, state, none, away)
    if found.get("kind") != kind:
        other = _CALLED.get(str(found.get("kind")), "job")
        raise CliError(f"This service is a {other}, and no {_CALLED[kind]}; see {other}.")
    return dict(found)


def came_of(state: ServiceState) -> dict[str, Any]:
    """Return what came of a service's units, for the end of its job; nothing where it has none.

    ``best`` is the best trial of a sweep, None where there is none or it is a batch; ``doubt`` is
    what is to be said of what all trials told, empty for nothing. ``failures``
    are the first of those that failed or, of a sweep, told no objective; each has its ``number``,
    that of a shard being its index, its ``state`` and ``why``; ``failed`` is how many they are.
    """
    from dcos_tensorflow.api.redaction import redact, secret_values
    from dcos_tensorflow.api.views import unit_views as units

    counts = units.counts(state)
    if counts is None:
        return {}
    document = redact(units.Units().shown(state), secret_values(state))
    best, doubt, bad = None, "", [unit for unit in document["units"] if _is_bad(unit)]
    if document["objective"]:
        from dcos_tensorflow.workloads.sweep.leaderboard import board_of

        board = board_of(document)
        row, metric, doubt = board.best, board.metric, board.doubt
        if row is not None:
            told = {"metric": metric, "value": row.value, "parameters": dict(row.parameters)}
            best = {"number": row.number, **told}
    failures = [
        {"number": unit.get("index", unit["number"]), "state": unit["state"], "why": unit["why"]}
        for unit in bad[:_FAILURES]
    ]
    return {**counts, "best": best, "failures": failures, "failed": len(bad), "doubt": doubt}


def _is_bad(unit: Mapping[str, Any]) -> bool:
    silent = "value" in unit and unit["value"] is None and unit["stopped_at"] is None
    return unit["state"] == "failed" or (unit["state"] == "succeeded" and silent)


def _stored(service: Service, state: str, none: str, away: NoScheduler) -> dict[str, Any]:
    """Return what the state of a service without a scheduler tells. Raises CliError."""
    from dcos_tensorflow.api.errors import ElementNotFound
    from dcos_tensorflow.api.redaction import redact, secret_values
    from dcos_tensorflow.api.views import unit_views as units
    from dcos_tensorflow.client.stored import state_url, stored_state

    directory = service.directory
    kept = stored_state(state_url(directory), service.name) if directory is not None else None
    if kept is None:
        raise away
    try:
        found: dict[str, Any] = redact(units.Units().shown(kept, state), secret_values(kept))
    except ElementNotFound:
        raise CliError(f"There is no {none}.") from None
    return found
