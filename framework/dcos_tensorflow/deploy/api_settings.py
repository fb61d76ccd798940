"""Whether what is said of the API's callers, certificate and address fits together.

Used by ``deploy.settings`` once each value alone is right. The web framework, TLS and the library
of keys come with the checks that need them: the flags of every command come from ``settings``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dcos_tensorflow.client.errors import UsageError

if TYPE_CHECKING:
    from dcos_tensorflow.deploy.settings import Settings


def check(settings: Settings) -> None:
    """Raise UsageError where it makes no sense, with the place where it stands."""
    _check_tokens(settings)
    if settings["api_dcos_keys"]:
        _check_keys(settings)
    if settings["api_cert"]:
        _check_certificate(settings)
    if settings.given("api_host"):
        _check_binding(settings)


def _check_tokens(settings: Settings) -> None:
    token, read_token = (settings.secret(name) for name in ("api_token", "api_read_token"))
    if token and token == read_token:
        raise UsageError("The operator's token of the API and the one that may only read are one.")
    users = settings["api_dcos_operators"] or settings["api_dcos_readers"]
    if bool(settings["api_dcos_keys"]) != bool(users):
        raise UsageError(
            "--api-dcos-keys names the keys of DC/OS, --api-dcos-operators and --api-dcos-readers"
            " its users with rights: give the keys together with at least one of the lists."
        )
    routers = settings["api_from"]
    if settings["api_open"] and not token and (read_token or users or routers):
        raise UsageError(
            f"{settings.origin('api_open')}: an open API requires no token, but tokens are given,"
            " or addresses that need none."
        )
    if users and routers:
        raise UsageError(
            f"{settings.origin('api_from')}: requests from there need no token, but --api-dcos-keys"
            " requires one: give one of them."
        )


def _check_keys(settings: Settings) -> None:
    from dcos_tensorflow.api.callers.dcos_tokens import KeysUnreadable, parse_keys

    place = settings["api_dcos_keys"]
    if place.startswith("https://"):
        return
    try:
        parse_keys(Path(place).read_bytes())
    except (OSError, KeysUnreadable) as error:
        raise UsageError(f"{settings.origin('api_dcos_keys')}: {place}: {error}.") from error


def _check_certificate(settings: Settings) -> None:
    from untrusted_input.server_tls import CertificateUnusable, ServerTls

    try:
        ServerTls(Path(settings["api_cert"]), Path(settings["api_key"]))
    except CertificateUnusable as error:
        raise UsageError(f"{settings.origin('api_cert')}: {error}.") from error


def _check_binding(settings: Settings) -> None:
    from dcos_tensorflow.api.callers.access import OpenBinding, check_binding

    try:
        guarded = bool(settings.secret("api_token") or settings["api_from"])
        check_binding(settings["api_host"], guarded, settings["api_open"])
    except OpenBinding as error:
        raise UsageError(
            f"{settings.origin('api_host')}: {error} (--api-token-file, --api-open)"
        ) from error
