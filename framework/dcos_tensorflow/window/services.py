"""What the window knows of each service: its registration and its newest run, from its folder."""

from __future__ import annotations

from typing import Any

from dcos_tensorflow.client import registry
from dcos_tensorflow.client.api_client import SchedulerClient, client_of
from dcos_tensorflow.client.work_directory import ServiceDirectory, WorkDirectory
from dcos_tensorflow.history import folder
from dcos_tensorflow.history.record import best


def found(work: WorkDirectory) -> list[dict[str, Any]]:
    """Return all services, those that are served first, then the newest first."""
    told = [_told(name, work.service(name)) for name in registry.service_names(work)]
    return sorted(told, key=lambda one: (one["served"], one["started_at"] or 0.0), reverse=True)


def scheduler_of(directory: ServiceDirectory) -> SchedulerClient | None:
    """Return a client of the scheduler that serves a service; None where none does."""
    registered = registry.read(directory)
    if registered is None or not registered.process_lives():
        return None
    return client_of(registered)


def _told(name: str, directory: ServiceDirectory) -> dict[str, Any]:
    runs = folder.runs_in(directory.history)
    record = runs[0].record() if runs else {}
    told = best(record) if record else None
    return {
        "name": name,
        "served": scheduler_of(directory) is not None,
        "runs": len(runs),
        "run": record.get("run"),
        "phase": record.get("phase"),
        "outcome": record.get("outcome"),
        "summary": record.get("summary"),
        "step": record.get("step"),
        "best": {"metric": told[0], "value": told[1]} if told is not None else None,
        "started_at": record.get("started_at"),
        "finished_at": record.get("finished_at"),
    }
