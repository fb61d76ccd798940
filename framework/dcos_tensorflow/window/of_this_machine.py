"""The services of a work directory: registered ones are asked, of others their folder answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.client import registry
from dcos_tensorflow.client.api_address import ApiAddress
from dcos_tensorflow.client.api_client import client_of
from dcos_tensorflow.client.served_queue import ServedQueue, served_queue
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.history import folder
from dcos_tensorflow.history.record import best
from dcos_tensorflow.window import kept
from dcos_tensorflow.window.boards import Boards

_TOLD_OF_RUN = ("run", "phase", "outcome", "summary", "step", "started_at", "finished_at")


class OfThisMachine:
    """See ``window.services.Services``."""

    def __init__(self, work: WorkDirectory) -> None:
        self._work = work
        self._boards = Boards()

    def has(self, name: str) -> bool:
        """Say whether the service has a folder, or is a job of the queue that runs elsewhere."""
        return name in registry.service_names(self._work) or self._queued(name) is not None

    def found(self) -> list[dict[str, Any]]:
        """Return what is known of each: registration and newest run, or what its queue tells."""
        told = {name: self._told(name) for name in registry.service_names(self._work)}
        queue = self.queue()
        for job in queue.running(self._work) if queue is not None else ():
            name = self._work.service(job["job"]).path.name
            told[name] = {**self._told(name), **_of_queue(job)}
        return sorted(
            told.values(), key=lambda one: (one["served"], one["started_at"] or 0.0), reverse=True
        )

    def api(self, name: str, *, now: bool = False) -> ApiAddress | None:
        """Return what is registered, while that process lives; else where its queue passes on."""
        return self._registered(name) or self._queued(name)

    def _registered(self, name: str) -> ApiAddress | None:
        registered = registry.read(self._work.service(name))
        if registered is None or not registered.process_lives():
            return None
        return client_of(registered).api

    def _queued(self, name: str) -> ApiAddress | None:
        """Return where a job of the queue is asked that runs elsewhere; None of another service."""
        queue = self.queue()
        job = queue.job(name.replace("__", "/")) if queue is not None else None
        return queue.api_of(name) if queue is not None and job and job["runs"] else None

    def watched(self, name: str) -> dict[str, Any]:
        """Return what the folder keeps of it."""
        return kept.watched(self._work.service(name))

    def answer(self, name: str, path: str, query: Mapping[str, str]) -> Any:
        """Return what the folder keeps of it."""
        return kept.answer(self._work.service(name), path, query)

    def ordered(self, name: str, path: str, body: bytes) -> Any:
        """Keep notes of runs; refuse all else."""
        return kept.ordered(self._work.service(name), path, body)

    def board(self, name: str) -> str:
        """Return the address of one over the service's folder."""
        return self._boards.address(self._work.service(name))

    def queue(self) -> ServedQueue | None:
        """Return the queue that this machine serves."""
        return served_queue(self._work)

    def stop(self) -> None:
        """End the TensorBoards."""
        self._boards.stop()

    def _told(self, name: str) -> dict[str, Any]:
        runs = folder.runs_in(self._work.service(name).history)
        record = runs[0].record() if runs else {}
        told = best(record) if record else None
        return {
            "name": name,
            "served": self._registered(name) is not None,
            "runs": len(runs),
            **{key: record.get(key) for key in _TOLD_OF_RUN},
            "best": {"metric": told[0], "value": told[1]} if told is not None else None,
        }


def _of_queue(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is told of a service by the queue whose job it is."""
    return {
        "served": True,
        "phase": "running",
        "outcome": None,
        "summary": job["why"],
        "started_at": job["began_at"],
        "finished_at": None,
    }
