"""Who may ask: a bearer token or none, and which addresses may be bound without one.

Used by ``api.app`` for each request and by ``scheduler.scheduler`` before the server is started.
"""

from __future__ import annotations

import hmac
import ipaddress

from starlette.requests import Request

from dcos_tensorflow.network.loopback import is_loopback


class OpenBinding(ValueError):
    """The API would be open to the network without a token, and nobody asked for that."""


def check_binding(host: str, token: str, allow_open: bool) -> None:
    """Refuse to serve ``host`` without a token, unless ``allow_open`` says that it is wanted.

    Raises OpenBinding. Whoever reaches an open API can end the job.
    """
    if token or allow_open or is_loopback(host):
        return
    raise OpenBinding(
        f"the API would listen on {host or 'all addresses'} without a token: whoever reaches it "
        "could stop the job; set a token, bind to 127.0.0.1, or allow an open API explicitly"
    )


def is_allowed(request: Request, token: str) -> bool:
    """Say whether the request carries ``token``; every one is allowed when there is none.

    Both forms of the header count: ``Bearer <token>``, and the ``token=<token>`` of DC/OS.
    """
    if not token:
        return True
    given = request.headers.get("authorization", "")
    for prefix in ("bearer ", "token="):
        if given.lower().startswith(prefix):
            sent = given[len(prefix) :].strip()
            return hmac.compare_digest(sent.encode("latin-1", "replace"), token.encode())
    return False


def is_foreign(request: Request, token: str) -> bool:
    """Say whether a browser may have sent this for a page that is not ours.

    Two ways lead from any web page to an API on this machine that asks for no token. The page's
    request is cross-site (Fetch Metadata); or its own name was made to mean 127.0.0.1 (DNS
    rebinding), and then that name is in ``Host``.
    """
    if request.headers.get("sec-fetch-site", "") == "cross-site":
        return True
    listening = request.scope.get("server") or ("", None)
    if token or not is_loopback(listening[0]):
        return False
    return not _is_address(request.url.hostname or "")


def _is_address(host: str) -> bool:
    if is_loopback(host):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
