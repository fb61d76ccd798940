"""The tracking server of a scheduler's runs: its teller, its secret, and the runs that it gets.

Used by ``served_job``; ``history.tracking`` asks, on its own thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dcos_tensorflow.core.cluster import output_places
from dcos_tensorflow.core.cluster.storage_sections import checkpoints_place
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.history.mlflow import MlflowServer, TrackingError
from dcos_tensorflow.history.tracking import Tracking, TrackingSources
from dcos_tensorflow.scheduler.gate import GateError
from dcos_tensorflow.scheduler.scheduler import Scheduler


def tracking_of(
    path: Path, scheduler: Scheduler, clean: Callable[[ServiceState, Any], Any]
) -> Tracking:
    """Return what tells of the runs below ``path``; ``clean`` takes secrets out."""

    def server(state: ServiceState) -> MlflowServer:
        spec = state.spec.tracking
        if spec is None:
            raise TrackingError("none is named")
        try:
            return scheduler.tracking_server(spec)
        except GateError as error:
            raise TrackingError(str(error)) from None

    def trials(state: ServiceState) -> Mapping[str, Any]:
        from dcos_tensorflow.api.views.unit_views import UnitsView

        found: Mapping[str, Any] = clean(state, UnitsView().shown(state, ""))
        return found

    return Tracking(path, TrackingSources(scheduler.state, server, _places, trials))


def _places(state: ServiceState) -> Mapping[str, str]:
    """Return where the present run leaves what outlives its tasks."""
    output = output_places.output_place(state.spec, output_places.run_of(state))
    return {"output": output, "checkpoints": checkpoints_place(state.spec)}
