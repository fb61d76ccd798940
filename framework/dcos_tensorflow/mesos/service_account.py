"""Logging in to DC/OS as a service account, as its strict security mode wants it.

Used by the gateway, for every call to masters and agents. A short-lived token that is signed with
the account's key is exchanged at the cluster's identity service for one that is sent along with
each call, and is renewed before it expires and when it is refused (DC/OS documentation,
"Authenticating DC/OS services"). Neither the key nor a token is ever logged or part of a message.
"""

from __future__ import annotations

import base64
import binascii
import json
import logging
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from dcos_tensorflow.mesos.address import Address
from dcos_tensorflow.mesos.connection import HttpConnection
from dcos_tensorflow.records import dataclass
from untrusted_input.json_text import read_json

log = logging.getLogger(__name__)

#: How long the signed token holds: one login.
LOGIN_SECONDS = 300
#: A token is renewed when this much of its life is left, in parts of the whole.
_LEFT_WHEN_RENEWED = 0.1
#: A token that says nothing of its end holds so long: DC/OS gives five days.
_DEFAULT_LIFE_SECONDS = 86_400.0
#: A token that was refused so soon after the login will be refused again.
_FRESH_SECONDS = 30.0
#: The signature that DC/OS asks for.
_SCHEME = "RS256"


class ServiceAccountError(ValueError):
    """What should be the credentials of a service account is not; the text holds none of it."""


class LoginFailed(OSError):
    """The identity service gave no token."""


@dataclass(frozen=True)
class ServiceAccount:
    """A service account: its name, its key (PEM), and where to log in."""

    uid: str
    login_endpoint: str
    private_key: str = field(repr=False)

    @property
    def https(self) -> bool:
        """Say whether the cluster speaks TLS."""
        return urlsplit(self.login_endpoint).scheme == "https"


def parse(text: str) -> ServiceAccount:
    """Return the service account in a secret of DC/OS. Raises ServiceAccountError."""
    try:
        document = read_json(text)
    except ValueError:
        # Never the parser's own words, nor a cause: they show the text.
        raise ServiceAccountError("is not JSON") from None
    if not isinstance(document, dict):
        raise ServiceAccountError("is not a JSON object")
    wanted = ("uid", "private_key", "login_endpoint")
    missing = [name for name in wanted if not isinstance(document.get(name), str)]
    if missing:
        raise ServiceAccountError(f"has no {', no '.join(missing)}")
    if document.get("scheme", _SCHEME) != _SCHEME:
        raise ServiceAccountError(f"asks for another signature than {_SCHEME}")
    account = ServiceAccount(*(document[name] for name in ("uid", "login_endpoint", "private_key")))
    _endpoint(account)
    login_token(account, 0.0)
    return account


def login_token(account: ServiceAccount, now: float) -> str:
    """Return the signed token (RFC 7519, RS256) of one login. Raises ServiceAccountError."""
    # Only a scheduler that logs in needs it: importing it takes a third of a second.
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(account.private_key.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ServiceAccountError("has a private_key that is no key in PEM") from None
    if not isinstance(key, RSAPrivateKey):
        raise ServiceAccountError("has a private_key that is not of RSA")
    header = {"alg": _SCHEME, "typ": "JWT"}
    claims = {"uid": account.uid, "exp": int(now) + LOGIN_SECONDS}
    signed = ".".join(_base64url(json.dumps(part).encode()) for part in (header, claims))
    return f"{signed}.{_base64url(key.sign(signed.encode(), PKCS1v15(), SHA256()))}"


class TokenLogin:
    """The authentication of a service account; see ``connection.Authentication``.

    ``clock`` gives unix seconds. Any thread may use it; one logs in, the others wait for it.
    """

    def __init__(
        self,
        account: ServiceAccount,
        tls: ssl.SSLContext | None = None,
        timeout_seconds: float = 10.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._account = account
        self._tls = tls
        self._timeout_seconds = timeout_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._token = ""
        self._since = 0.0
        self._renew_at = 0.0
        self._expires = 0.0

    def header(self) -> dict[str, str]:
        """Return the Authorization header. Raises LoginFailed."""
        with self._lock:
            now = self._clock()
            if not self._token or now >= self._renew_at:
                self._renew(now)
            return {"Authorization": f"token={self._token}"}

    def refused(self, header: Mapping[str, str]) -> bool:
        """Take note of a 401 to ``header``; say whether another try goes with another token."""
        with self._lock:
            if header.get("Authorization") != f"token={self._token}":
                # Another thread has logged in again meanwhile.
                return True
            if self._clock() - self._since < _FRESH_SECONDS:
                return False
            log.info(
                "the login as %s is not accepted any more: logging in again", self._account.uid
            )
            self._token = ""
            return True

    def _renew(self, now: float) -> None:
        try:
            token = self._log_in(now)
        except LoginFailed as error:
            if not self._token or now >= self._expires:
                raise
            log.warning("the login is not renewed, the one before holds on: %s", error)
            return
        life = max(1.0, (_expiry(token) or now + _DEFAULT_LIFE_SECONDS) - now)
        self._token, self._since, self._expires = token, now, now + life
        self._renew_at = now + life * (1.0 - _LEFT_WHEN_RENEWED)
        log.info("logged in as the service account %s", self._account.uid)

    def _log_in(self, now: float) -> str:
        address, path = _endpoint(self._account)
        body = {"uid": self._account.uid, "token": login_token(self._account, now)}
        connection = HttpConnection(address, self._timeout_seconds, self._tls)
        try:
            headers = {"Content-Type": "application/json", "Accept": "application/json"}
            connection.request("POST", path, body=json.dumps(body).encode(), headers=headers)
            response = connection.getresponse()
            status, answer = response.status, response.read(1_000_000)
        except (OSError, HTTPException) as error:
            what = "no answer in time" if isinstance(error, TimeoutError) else repr(error)
            raise LoginFailed(f"{self._account.login_endpoint}: {what}") from None
        finally:
            connection.close()
        if status != 200:
            raise LoginFailed(
                f"{self._account.login_endpoint} refuses the service account {self._account.uid}:"
                f" HTTP {status}"
            )
        return _token_in(answer, self._account.login_endpoint)


def _token_in(answer: bytes, endpoint: str) -> str:
    try:
        document = read_json(answer)
        token = document["token"]
    except (ValueError, KeyError, TypeError):
        raise LoginFailed(f"{endpoint}: the answer holds no token") from None
    if not isinstance(token, str) or not token or not token.isascii() or not token.isprintable():
        raise LoginFailed(f"{endpoint}: the answer holds no token")
    return token


def _endpoint(account: ServiceAccount) -> tuple[Address, str]:
    try:
        parts = urlsplit(account.login_endpoint)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in ("http", "https"):
        raise ServiceAccountError("has a login_endpoint that is no URL")
    https = parts.scheme == "https"
    return Address(host, port or (443 if https else 80), https), parts.path or "/"


def _expiry(token: str) -> float | None:
    """Return when a token expires, by its own words; None when it has none that we can read."""
    try:
        claims = token.split(".")[1]
        padded = claims + "=" * (-len(claims) % 4)
        document: Any = read_json(base64.urlsafe_b64decode(padded))
        return float(document["exp"])
    except (IndexError, ValueError, KeyError, TypeError, binascii.Error):
        return None


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
