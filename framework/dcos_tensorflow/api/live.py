"""The newest state for all viewers: one stream of server-sent events per viewer.

Used by ``api.app`` for ``/v1/events``. The state is looked at only while there are viewers; the
changes since the last look are worked out once for all of them. Nothing is queued for a viewer:
one that is too slow gets the newest as a whole. It renders and redacts nothing itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.records import dataclass
from untrusted_input.asgi_server import ENDING

log = logging.getLogger(__name__)

#: How often the state is looked at, in seconds.
LOOK_SECONDS = 0.5
#: What tasks use is no part of the state: it is looked at so often.
USAGE_SECONDS = 2.0
#: A look and its rendering take no more than this part of the time, however large the service is.
_MOST_WORK = 0.1
#: A sign of life on a stream that has nothing to say, in seconds: proxies end silent ones.
SIGN_OF_LIFE_SECONDS = 15.0
#: So many streams at once; a client that comes then is told to come again.
MOST_VIEWERS = 100

#: Proxies must neither keep nor collect what is said; ``X-Accel-Buffering`` is nginx's word for it.
_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


class TooManyViewers(Exception):
    """As many watch as may."""


@dataclass(frozen=True)
class _Edition:
    #: Counts from 1 as long as the application lives.
    number: int
    #: What is shown.
    document: Mapping[str, Any]
    #: The event for a viewer that has seen the edition before.
    patch: bytes

    def whole(self) -> bytes:
        """Return the event for a viewer that has seen another one, or none."""
        return _event("whole", self.document)


class Live:
    """What all viewers of one application share. Used in the event loop's thread alone.

    ``state`` returns the newest state, None when there is none to show any more. ``render`` makes
    the document of it; it is called in a thread of its own.
    """

    def __init__(
        self,
        state: Callable[[], ServiceState | None],
        render: Callable[[ServiceState], Mapping[str, Any]],
    ) -> None:
        self._state = state
        self._render = render
        self._viewers = 0
        self._shown: ServiceState | None = None
        self._shown_at = 0.0
        self._edition: _Edition | None = None
        self._news = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None

    def stream(self) -> StreamingResponse:
        """Return the answer that goes on. Raises TooManyViewers."""
        if self._viewers >= MOST_VIEWERS:
            raise TooManyViewers(f"{MOST_VIEWERS} watch already")
        return _EventStream(self)

    async def events(self, ending: asyncio.Event) -> AsyncIterator[bytes]:
        """Yield events until ``ending`` is set, or there is no state to show."""
        self._viewers += 1
        if self._looking is None:
            self._edition = self._shown = None
            self._looking = asyncio.create_task(self._look())
        seen = 0
        try:
            # The first word is said at once: proxies then pass the answer's head on.
            yield b": the service's state, and its changes\n\n"
            while not ending.is_set() and self._looking is not None:
                # Taken before the look at the edition: what comes in between is not missed.
                news, edition = self._news, self._edition
                if edition is not None and edition.number != seen:
                    yield edition.patch if edition.number == seen + 1 and seen else edition.whole()
                    seen = edition.number
                elif not await _first_of(news, ending, seconds=SIGN_OF_LIFE_SECONDS):
                    yield b":\n\n"
        finally:
            self._viewers -= 1

    async def _look(self) -> None:
        """Keep the edition new while there are viewers."""
        loop = asyncio.get_running_loop()
        try:
            while self._viewers:
                state = self._state()
                if state is None:
                    return
                began = loop.time()
                if state is not self._shown or began - self._shown_at >= USAGE_SECONDS:
                    self._shown_at = began
                    await self._publish(state)
                spent = loop.time() - began
                await asyncio.sleep(max(LOOK_SECONDS, spent / _MOST_WORK))
        except Exception:
            # Viewers ask again, and are told then what is wrong.
            log.exception("the state cannot be shown")
        finally:
            self._looking = None
            self._tell()

    async def _publish(self, state: ServiceState) -> None:
        document = await run_in_threadpool(self._render, state)
        self._shown, before = state, self._edition
        patch = document if before is None else merge_patch(before.document, document)
        if before is None or patch:
            number = 1 if before is None else before.number + 1
            self._edition = _Edition(number, document, _event("patch", patch))
            self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


class _EventStream(StreamingResponse):
    """The answer to one viewer; it ends when the server does."""

    def __init__(self, live: Live) -> None:
        super().__init__((), 200, _HEADERS, media_type="text/event-stream")
        self._live = live

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.body_iterator = self._live.events(scope.get(ENDING) or asyncio.Event())
        await super().__call__(scope, receive, send)


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return what makes ``after`` of ``before``, as a JSON merge patch (RFC 7396).

    A member that is null and one that is not there are the same to it. Lists go as a whole.
    """
    gone = {name: None for name in before if name not in after}
    changed: dict[str, Any] = {}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            if below := merge_patch(old, value):
                changed[name] = below
        elif old != value or type(old) is not type(value):
            changed[name] = value
    return gone | changed


def _event(kind: str, body: Mapping[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(body, allow_nan=False)}\n\n".encode()


async def _first_of(*events: asyncio.Event, seconds: float) -> bool:
    """Wait for one of the events; False when the time is over first."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        done, _ = await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return bool(done)
    finally:
        for wait in waits:
            wait.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await wait
