"""What is told of the units of a service: the document at ``/v1/units``, of its scheduler or of its
state where no scheduler of it runs any more."""

from __future__ import annotations

from typing import Any

from dcos_tensorflow.cli.errors import CliError
from dcos_tensorflow.cli.services.asked import Asked, Service
from dcos_tensorflow.cli.services.client import NoScheduler

#: What a service of each kind is called, and the command that shows it.
_CALLED = {"trial": "sweep", "shard": "batch"}


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


def _stored(service: Service, state: str, none: str, away: NoScheduler) -> dict[str, Any]:
    """Return what the state of a service that nobody serves tells. Raises CliError."""
    from dcos_tensorflow.api.answers import ElementNotFound
    from dcos_tensorflow.api.redaction import redact, secret_values
    from dcos_tensorflow.api.views import units
    from dcos_tensorflow.cli.services.stored import state_url, stored_state

    directory = service.directory
    kept = stored_state(state_url(directory), service.name) if directory is not None else None
    if kept is None:
        raise away
    try:
        found: dict[str, Any] = redact(units.units(kept, state), secret_values(kept))
    except ElementNotFound:
        raise CliError(f"There is no {none}.") from None
    return found
