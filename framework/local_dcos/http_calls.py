"""A request and its answer as plain values, and the table that leads one to the other. Pure.

Every ``*_calls`` module makes a ``Table``; ``application`` puts them behind a server.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from untrusted_input.json_text import read_json

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
HTML = "text/html"


@dataclass(frozen=True)
class Call:
    """A request. ``path`` is decoded, ``target`` is path and query as they were sent.

    Header names are in lower case.
    """

    method: str
    path: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    query: Mapping[str, str] = field(default_factory=dict)
    #: The user id of whose process asks; None when the kernel does not say.
    user: int | None = None

    def json(self) -> Any:
        """Return the body's JSON; None when there is no body. Raises ValueError."""
        return read_json(self.body) if self.body.strip() else None

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a query parameter that is true or false."""
        return self.query[name].lower() == "true" if name in self.query else default


@dataclass(frozen=True)
class Answer:
    """An answer. A body that is an iterator is sent as it comes."""

    status: int
    body: bytes | Iterator[bytes] | AsyncIterator[bytes] = b""
    content_type: str | None = None
    headers: Sequence[tuple[str, str]] = ()


def json_answer(body: Any, status: int = 200, content_type: str = JSON) -> Answer:
    """Return an answer with JSON."""
    return Answer(status, json.dumps(body).encode(), content_type)


def text_answer(text: str, status: int = 200, content_type: str = TEXT) -> Answer:
    """Return an answer with text."""
    return Answer(status, text.encode(), content_type)


#: Answers a call; the arguments are the pattern's groups.
Handler = Callable[..., Answer]


class Table:
    """Handlers by method and path. The first that fits is called."""

    def __init__(self) -> None:
        self._rows: list[tuple[frozenset[str] | None, re.Pattern[str], Handler]] = []

    def add(self, methods: str, pattern: str, handler: Handler) -> None:
        """Add a handler; ``methods`` are parted by spaces, ``*`` is any."""
        known = None if methods == "*" else frozenset(methods.split())
        if known is not None and "GET" in known:
            known |= {"HEAD"}
        self._rows.append((known, re.compile(pattern), handler))

    def answer(self, call: Call) -> Answer | None:
        """Return the answer, None when no path fits."""
        allowed: set[str] = set()
        for methods, pattern, handler in self._rows:
            found = pattern.fullmatch(call.path)
            if found is None:
                continue
            if methods is None or call.method in methods:
                return handler(call, *found.groups())
            allowed |= methods
        if not allowed:
            return None
        names = ", ".join(sorted(allowed))
        text = f"405 Method Not Allowed: {call.path} takes {names}\n"
        return Answer(405, text.encode(), TEXT, (("Allow", names),))


def query_of(raw: str) -> dict[str, str]:
    """Return the parameters of a query; of several with one name the last."""
    return dict(urllib.parse.parse_qsl(raw, keep_blank_values=True))
