"""The signature on every request to the task runner (``core.contract`` says its form).

``server`` checks with it, ``scheduler.runners.runner_request`` signs with it. Pure: the time is
given.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Mapping

from dcos_tensorflow.core import contract

#: Python refuses to read numbers of thousands of digits, and no client has to send them.
MAX_DIGITS = 18


class NotAuthentic(Exception):
    """The request does not prove that it comes from the scheduler; the message says why."""


def is_count(text: str) -> bool:
    """Say whether a header's text is a whole number of a size that anybody could mean."""
    return text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS


def sign(token: str, method: str, path: str, seconds: int, body: bytes) -> str:
    """Return the hex HMAC-SHA256 for a request sent at ``seconds`` (unix time)."""
    message = f"{method} {path}\n{seconds}\n".encode() + body
    return hmac.new(token.encode(), message, hashlib.sha256).hexdigest()


def signed_headers(
    token: str, method: str, path: str, seconds: int, body: bytes
) -> Mapping[str, str]:
    """Return the two headers that make a request authentic."""
    return {
        contract.TIME_HEADER: str(seconds),
        contract.TOKEN_HEADER: sign(token, method, path, seconds, body),
    }


def check(
    token: str, method: str, path: str, headers: Mapping[str, str], body: bytes, *, now: float
) -> None:
    """Return when the request is authentic and fresh; else raise NotAuthentic."""
    given = headers.get(contract.TOKEN_HEADER)
    seconds = headers.get(contract.TIME_HEADER)
    if not given or not seconds:
        wanted = f"{contract.TOKEN_HEADER} and {contract.TIME_HEADER}"
        raise NotAuthentic(f"the headers {wanted} are required")
    if not is_count(seconds):
        raise NotAuthentic(f"{contract.TIME_HEADER} must be unix seconds")
    wanted = sign(token, method, path, int(seconds), body)
    if not hmac.compare_digest(wanted.encode(), given.lower().encode()):
        raise NotAuthentic("the signature does not fit the request")
    if abs(now - int(seconds)) > contract.TOKEN_MAX_AGE_SECONDS:
        raise NotAuthentic(
            f"{contract.TIME_HEADER} is more than {contract.TOKEN_MAX_AGE_SECONDS} s off our clock"
        )
