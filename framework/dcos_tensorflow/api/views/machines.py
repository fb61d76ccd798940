"""The machines that were bought for the service (``/v1/capacity``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from dcos_tensorflow.api.errors import ElementNotFound
from dcos_tensorflow.core.model.service_state import ServiceState

if TYPE_CHECKING:
    from dcos_tensorflow.api import schemas


def capacity(state: ServiceState) -> schemas.Capacity:
    """Return what there is, what it costs, and why nothing comes.

    Raises ElementNotFound where the options have no section ``capacity``.
    """
    spec = state.spec.capacity
    if spec is None:
        raise ElementNotFound("capacity")
    # A service that buys no machines does not import it.
    from dcos_tensorflow.capacity.status import document
    from dcos_tensorflow.scheduler.machines.ledger_records import ledger_of

    now = state.subscription.stepped_at
    ledger = ledger_of(state.capacity)
    found = document(ledger, state.told.capacity, spec, now)
    return cast("schemas.Capacity", found)
