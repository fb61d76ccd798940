"""Where a scheduler's API is, and the token that it asks for.

A person has named it, or a scheduler of this machine has registered it, or the leader has told it
in the state store. Used by ``flags`` for ``--api`` and by ``client``. A token is sent to this
address and to no other: not to where a redirect leads, and not in clear to another machine unless
the user says so.
"""

from __future__ import annotations

from dataclasses import field, replace
from urllib.parse import urlsplit

from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.secret_file import private_secret_in
from dcos_tensorflow.client.work_directory import expanded
from dcos_tensorflow.records import dataclass

API_VARIABLE = "DCOS_TENSORFLOW_API"
#: Not the variable of ``--api-token-file`` of a scheduler: that one is the token of its own API.
TOKEN_FILE_VARIABLE = "DCOS_TENSORFLOW_CLIENT_TOKEN_FILE"
IN_CLEAR_VARIABLE = "DCOS_TENSORFLOW_API_TOKEN_IN_CLEAR"

_FORMS = "http://HOST:PORT, or https://HOST[:PORT][/PATH] where a proxy speaks TLS for it"


class AddressUnusable(CliError):
    """A scheduler has told where it is asked, and it cannot be asked there; the text says why."""


@dataclass(frozen=True)
class ApiAddress:
    """The address of an API. Paths such as ``/v1/job`` follow behind ``prefix``."""

    tls: bool
    host: str
    port: int
    #: The path that a proxy serves the API under; empty without one.
    prefix: str = ""
    #: Empty where none is asked for.
    token: str = field(default="", repr=False)
    #: The file of the very certificate that it shows, of a scheduler of this machine; else empty.
    certificate: str = ""

    @property
    def url(self) -> str:
        """Return the address as a URL, without the token."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' * self.tls}://{host}:{self.port}{self.prefix}"


def registered(api: str, token: str, certificate: str = "") -> ApiAddress:
    """Return the address of a scheduler of this machine, registered as ``host:port``."""
    host, _, port = api.rpartition(":")
    tls = bool(certificate)
    return ApiAddress(tls, host.strip("[]"), int(port), token=token, certificate=certificate)


def named(url: str, token_file: str | None, *, in_clear: bool) -> ApiAddress:
    """Return the address that a person names. Raises UsageError.

    ``in_clear`` allows a token to be sent without TLS to another machine.
    """
    address = _read(url)
    if token_file is None:
        return address
    if not _keeps_secrets(address, in_clear):
        raise UsageError(
            f"--api-token-file: {address.url} would get the token in clear over the network."
            " Name an https:// address, or one of a tunnel on 127.0.0.1; or say"
            f" --api-token-in-clear ({IN_CLEAR_VARIABLE}=true) if you trust the network."
        )
    return replace(address, token=token_in(token_file))


def told(url: str, token: str, *, in_clear: bool, is_here: bool) -> ApiAddress:
    """Return the address that a leader has told, to be asked with this token.

    ``is_here`` says that the leader runs on this machine: to any other one a loopback address means
    another process. Raises AddressUnusable.
    """
    try:
        address = _read(url)
    except UsageError:
        raise AddressUnusable("its scheduler has told no usable address") from None
    if _is_loopback(address.host) and not is_here:
        raise AddressUnusable(
            f"its API listens on {address.host} of another machine alone (--api-host)"
        )
    if token and not _keeps_secrets(address, in_clear):
        raise AddressUnusable(
            f"{address.url} would get the token in clear over the network: give its API a"
            f" certificate (--api-cert), or say --api-token-in-clear ({IN_CLEAR_VARIABLE}=true)"
        )
    return replace(address, token=token)


def token_in(token_file: str) -> str:
    """Return the token in a file of a person. Raises UsageError."""
    origin = f"--api-token-file ({TOKEN_FILE_VARIABLE})"
    try:
        token = private_secret_in(str(expanded(token_file)), origin)
    except ValueError as error:
        raise UsageError(f"{origin}: {error}.") from error
    if not (token.isascii() and token.isprintable()):
        raise UsageError(
            f"--api-token-file: {token_file} holds characters that no header of HTTP can carry."
        )
    return token


def _keeps_secrets(address: ApiAddress, in_clear: bool) -> bool:
    return address.tls or in_clear or _is_loopback(address.host)


def _read(url: str) -> ApiAddress:
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        raise UsageError(f"--api ({API_VARIABLE}) is no address: allowed is {_FORMS}.") from None
    if parts.username is not None or parts.password is not None:
        # It may be the token, and is not shown.
        raise UsageError(
            f"--api ({API_VARIABLE}): every user of this machine would see the text before the @"
            "; leave it out, and name a file that holds the token with --api-token-file."
        )
    wrong = parts.scheme not in ("http", "https") or not parts.hostname
    if wrong or parts.query or parts.fragment or not url.strip().isprintable():
        raise UsageError(f"--api ({API_VARIABLE}) is {url!r}; allowed is {_FORMS}.")
    tls = parts.scheme == "https"
    prefix = parts.path.rstrip("/").removesuffix("/v1")
    return ApiAddress(tls, parts.hostname or "", port or (443 if tls else 80), prefix)


def _is_loopback(host: str) -> bool:
    from untrusted_input.loopback import is_loopback

    return is_loopback(host)
