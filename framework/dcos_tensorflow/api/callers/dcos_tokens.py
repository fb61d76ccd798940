"""Which tokens of DC/OS are accepted: RS256, signed by a key of the cluster, for a listed user.

Asked by ``api.callers.access`` where the operator has said where the cluster's keys are: its
identity service (``https://<cluster>/acs/api/v1/auth/jwks``), or a file with the same content. A
token names its user, never the user's rights: these are in the operator's list. Tokens
of Open DC/OS are signed with a secret of the cluster's own (HS256) and count for nothing here.
"""

from __future__ import annotations

import logging
import os
import ssl
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcos_tensorflow.api.callers.access import Caller, Right
from untrusted_input.json_text import read_json

if TYPE_CHECKING:
    from jwt import PyJWK


log = logging.getLogger(__name__)

#: Keys that were fetched count so long (seconds), and are fetched again no more often than that.
_KEPT_SECONDS = 3600.0
_AGAIN_SECONDS = 30.0
_TIMEOUT_SECONDS = 5.0
#: What is read of keys, and how many count: a cluster has one or two.
_MOST_BYTES = 256 * 1024
_MOST_KEYS = 16
#: A longer one is none: DC/OS' have some 400 characters.
_MOST_CHARACTERS = 8192


class KeysUnreadable(ValueError):
    """What should be the keys of a cluster is not; the text says why."""


def parse_keys(text: str | bytes) -> tuple[PyJWK, ...]:
    """Return the RSA keys of a JSON Web Key Set (RFC 7517). Raises KeysUnreadable."""
    # A scheduler without such logins does not wait for it.
    from jwt import PyJWK
    from jwt.exceptions import PyJWTError

    try:
        document = read_json(text)
    except ValueError as error:
        raise KeysUnreadable(f"no JSON: {error}") from None
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise KeysUnreadable("no JSON Web Key Set: it has no list of keys")
    found = []
    for each in listed[:_MOST_KEYS]:
        if isinstance(each, dict) and each.get("kty") == "RSA" and "d" not in each:
            try:
                found.append(PyJWK.from_dict(each, algorithm="RS256"))
            except (PyJWTError, ValueError, TypeError) as error:
                raise KeysUnreadable(f"a key in it is none: {error}") from None
    if not found:
        raise KeysUnreadable("it has no public key of RSA")
    return tuple(found)


class KeyFile:
    """The keys in a file; a file that has changed is read again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, ...] = ()
        self._keys: tuple[PyJWK, ...] = ()

    def keys(self, *, fresh: bool = False) -> tuple[PyJWK, ...]:
        """Return the keys; those of before while the file cannot be read."""
        try:
            found = os.stat(self._path)
            stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
            if stamp != self._stamp:
                self._stamp = stamp
                with open(self._path, "rb") as file:
                    self._keys = parse_keys(file.read(_MOST_BYTES))
        except (OSError, KeysUnreadable) as error:
            log.warning("the keys in %s are not taken: %s", self._path, error)
        return self._keys


class KeyService:
    """The keys that the cluster's identity service tells at ``url``."""

    def __init__(
        self,
        url: str,
        tls: Callable[[], ssl.SSLContext | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._tls = tls
        self._clock = clock
        self._lock = threading.Lock()
        self._asked_at: float | None = None
        self._keys: tuple[PyJWK, ...] = ()

    def keys(self, *, fresh: bool = False) -> tuple[PyJWK, ...]:
        """Return the keys, the last known ones without an answer. ``fresh`` asks again soon."""
        with self._lock:
            after = _AGAIN_SECONDS if fresh or not self._keys else _KEPT_SECONDS
            if self._asked_at is None or self._clock() - self._asked_at >= after:
                self._asked_at = self._clock()
                try:
                    self._keys = self._fetched()
                except (OSError, ValueError) as error:
                    log.warning("the keys of the cluster at %s are not told: %s", self._url, error)
            return self._keys

    def _fetched(self) -> tuple[PyJWK, ...]:
        with urllib.request.urlopen(
            self._url, timeout=_TIMEOUT_SECONDS, context=self._tls()
        ) as answer:
            return parse_keys(answer.read(_MOST_BYTES))


class DcosTokens:
    """Callers with a token of DC/OS (``api.callers.access.Logins``)."""

    def __init__(
        self, keys: KeyFile | KeyService, operators: Iterable[str], readers: Iterable[str] = ()
    ) -> None:
        self._keys = keys
        self._rights = {
            **dict.fromkeys(readers, Right.READ),
            **dict.fromkeys(operators, Right.OPERATE),
        }

    def caller(self, token: str) -> Caller | None:
        """Return whose token it is; None for a forged or old one, or an unlisted user's."""
        if len(token) > _MOST_CHARACTERS or token.count(".") != 2:
            return None
        claims = self._claims(token, self._keys.keys()) or self._claims(
            token, self._keys.keys(fresh=True)
        )
        uid = claims.get("uid")
        right = self._rights.get(uid) if isinstance(uid, str) else None
        return None if right is None else Caller(f"dcos:{uid}", right)

    def _claims(self, token: str, keys: Iterable[PyJWK]) -> dict[str, Any]:
        """Return what a token says that one of these keys has signed and that holds; else {}."""
        import jwt

        for key in keys:
            try:
                # Which signature it has is ours to say, not the token's.
                return dict(
                    jwt.decode(
                        token,
                        key.key,
                        algorithms=["RS256"],
                        options={"require": ["exp", "uid"], "verify_aud": False},
                    )
                )
            except (jwt.PyJWTError, ValueError):
                continue
        return {}
