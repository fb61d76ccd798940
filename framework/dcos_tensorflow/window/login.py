"""Lets a browser in: by a link that works once, then by a cookie. Pure but for the clock.

The holder of the window's key (``window.process``: a file that this user alone can read) asks for a
link; a browser that follows it gets a session. As in Jupyter no page asks for a token again.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable

#: A link that is not followed works no longer; seconds.
LINK_SECONDS = 300.0
#: How long a browser stays logged in; seconds.
SESSION_SECONDS = 30 * 24 * 3600.0
#: Of each so many are remembered, the newest.
_MOST = 100


class Login:
    """The links and sessions of one window. Used in the event loop's thread alone."""

    def __init__(self, key: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._key = key
        self._clock = clock
        self._links: dict[str, float] = {}
        self._sessions: dict[str, float] = {}

    def is_key(self, given: str) -> bool:
        """Say whether this is the window's key."""
        return hmac.compare_digest(given.encode(), self._key.encode())

    def new_link(self) -> str:
        """Return a secret that lets one browser in, once."""
        return self._remembered(self._links, LINK_SECONDS)

    def enter(self, link: str) -> str | None:
        """Return a new session for a link's secret; None where that is used, too old or wrong."""
        if link not in self._links or self._links.pop(link) < self._clock():
            return None
        return self.new_session()

    def new_session(self) -> str:
        """Return a new session, of a browser whose user has shown another right to it."""
        return self._remembered(self._sessions, SESSION_SECONDS)

    def is_session(self, given: str) -> bool:
        """Say whether a browser with this cookie is logged in."""
        return given in self._sessions and self._sessions[given] >= self._clock()

    def _remembered(self, known: dict[str, float], seconds: float) -> str:
        while len(known) >= _MOST:
            del known[next(iter(known))]
        secret = secrets.token_urlsafe(32)
        known[secret] = self._clock() + seconds
        return secret
