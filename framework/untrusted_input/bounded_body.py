"""The body of a request, of which no more is read than makes sense: one rule for every door."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.requests import Request


class BodyTooLong(ValueError):
    """The body is longer than any that makes sense; the text says so."""


async def body_of(request: Request, most_bytes: int) -> bytes:
    """Return the body. Raises BodyTooLong, once so much was read."""
    found = bytearray()
    async for piece in request.stream():
        found += piece
        if len(found) > most_bytes:
            raise BodyTooLong(f"the body is longer than {most_bytes} bytes")
    return bytes(found)
