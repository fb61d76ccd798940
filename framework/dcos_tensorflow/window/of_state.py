"""The services of a state store, on all machines: leaders are asked, of others the state answers.

The store is read at most every few seconds, however many browsers ask. The token is
the operator's, the same for all schedulers. Of a service that none serves, runs and curves are
shown by their copies in S3 (``window.copied_runs``); output is where the tasks were, and is not.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.api.redaction import redact
from dcos_tensorflow.api.views import curves
from dcos_tensorflow.client.api_address import ApiAddress
from dcos_tensorflow.client.kept import stored
from dcos_tensorflow.client.kept.last_page import LastPage, page_of
from dcos_tensorflow.client.served_queue import ServedQueue
from dcos_tensorflow.client.state_services import StateService, services_of
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.window.boards import NoBoard
from dcos_tensorflow.window.copied_runs import CopiedRuns
from dcos_tensorflow.window.services import NotKept, Refused

#: So long what was found holds, but for orders; seconds.
_FRESH_SECONDS = 3.0
#: The pages of so many services are remembered as long.
_MOST_PAGES = 16


class OfState:
    """See ``window.services.Services``; what is not said there is for ``services_of``."""

    def __init__(self, url: str, token: str, runs: CopiedRuns, *, in_clear: bool) -> None:
        self._url = url
        self._runs = runs
        self._token = token
        self._in_clear = in_clear
        self._lock = threading.Lock()
        self._known: Mapping[str, StateService] = {}
        self._known_at = -math.inf
        self._pages: dict[str, tuple[float, LastPage]] = {}

    def has(self, name: str) -> bool:
        """Say whether the store has such a folder."""
        return name in self._services()

    def found(self) -> list[dict[str, Any]]:
        """Return what the store tells of each."""
        told = [redact(_told(service)) for service in self._services().values()]
        return sorted(told, key=lambda one: (one["served"], one["started_at"] or 0.0), reverse=True)

    def api(self, name: str, *, now: bool = False) -> ApiAddress | None:
        """Return what the leader has told."""
        service = self._services(now=now).get(name)
        return service.api if service is not None else None

    def watched(self, name: str) -> dict[str, Any]:
        """Return what the state shows."""
        page = self._page(name)
        is_done = page.watched["job"]["phase"] == JobPhase.DONE
        return {**page.watched, "kept": is_done or f"as it is stored; {self._why_unasked(name)}"}

    def answer(self, name: str, path: str, query: Mapping[str, str]) -> Any:
        """Return what the state shows, and of its runs what is copied to S3."""
        if path == "v1/runs":
            return curves.runs(self._runs.records(self._state(name).spec))
        if path == "v1/curves":
            spec, run = self._state(name).spec, query.get("run", "")
            return curves.curves(self._runs.points(spec, run))
        page = self._page(name)
        if path in ("v1/job", "v1/why"):
            return page.watched[path.removeprefix("v1/")]
        if path not in page.answers:
            raise NotKept(f"this is not in the state store; {self._why_unasked(name)}")
        return page.answers[path]

    def ordered(self, name: str, path: str, body: bytes) -> Any:
        """Refuse it."""
        raise Refused(f"nothing can be ordered: {self._why_unasked(name)}", 409)

    def board(self, name: str) -> str:
        """Refuse it: where the summaries are is the task's business."""
        raise NoBoard(
            "its summaries are where its tasks write them: set service.use_tensorboard, and"
            " dcos-tensorflow open --tensorboard shows it while the job runs"
        )

    def queue(self) -> ServedQueue | None:
        """Return none: a queue is registered where it runs."""
        return None

    def stop(self) -> None:
        """Do nothing: nothing was started."""

    def _services(self, *, now: bool = False) -> Mapping[str, StateService]:
        with self._lock:
            if now or time.monotonic() - self._known_at >= _FRESH_SECONDS:
                found = services_of(self._url, self._token, in_clear=self._in_clear)
                self._known = {service.folder: service for service in found}
                self._known_at = time.monotonic()
            return self._known

    def _page(self, name: str) -> LastPage:
        with self._lock:
            made_at, page = self._pages.get(name, (-math.inf, None))
            if page is not None and time.monotonic() - made_at < _FRESH_SECONDS:
                return page
            page = page_of(self._state(name), stored.stored_options(self._url, name), {})
            self._pages.pop(name, None)
            self._pages[name] = (time.monotonic(), page)
            while len(self._pages) > _MOST_PAGES:
                del self._pages[next(iter(self._pages))]
            return page

    def _state(self, name: str) -> ServiceState:
        state = stored.stored_state(self._url, name)
        if state is None:
            raise NotKept(f"nothing is stored of {name}")
        return state

    def _why_unasked(self, name: str) -> str:
        service = self._services().get(name)
        return _unasked(service) if service is not None else "it is no longer stored"


def _unasked(service: StateService) -> str:
    """Return why its scheduler is not asked."""
    if service.leader is None:
        return "no scheduler serves it"
    return f"address unknown: {service.unknown}" if service.api is None else ""


def _told(service: StateService) -> dict[str, Any]:
    job = service.job
    verdict = job.verdict if job is not None else None
    summary = verdict.summary if verdict is not None else job.why if job is not None else ""
    is_done = job is not None and job.phase is JobPhase.DONE
    unasked = "" if is_done and service.leader is None else _unasked(service)
    return {
        "name": service.folder,
        "served": service.leader is not None,
        "runs": None,
        "run": None,
        "phase": str(job.phase) if job is not None else None,
        "outcome": str(verdict.outcome) if verdict is not None else None,
        "summary": "; ".join(filter(None, (summary, unasked))),
        "step": None,
        "best": None,
        "started_at": (job.started_at or None) if job is not None else None,
        "finished_at": (job.finished_at or None) if job is not None else None,
    }
