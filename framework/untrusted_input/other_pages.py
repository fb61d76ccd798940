"""Whether a page in a browser has sent a request that a person at this machine did not mean.

Used by every server on loopback: the service's API, the embedded Mesos, the local DC/OS. A page of
any site can have its visitor's browser ask an address of this machine, and the kernel then names
the visitor as the caller. Browsers name the page: by ``Sec-Fetch-Site`` (Fetch
Metadata, W3C), or by ``Origin`` (RFC 6454) where they do not send that. Neither says so when a site
has made its own name mean this machine (DNS rebinding): then that name is in ``Host``. Pure.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from untrusted_input.loopback import is_loopback


def is_from_another_page(method: str, headers: Mapping[str, str]) -> bool:
    """Say whether a page that was not served here has sent this; names of headers in lower case.

    Another port of the same host is another page (``same-site``): another user may listen there. To
    follow a link here is no request of the page: it reads none of the answer.
    """
    site = headers.get("sec-fetch-site")
    if site is None:
        origin = headers.get("origin")
        if origin is None:
            return False
        # A proxy in front of us puts the name that it was asked by there; no page can.
        names = {headers.get("host"), headers.get("x-forwarded-host")} - {None, ""}
        return _place(origin) not in names
    if site in ("same-origin", "none"):
        return False
    return not (
        method in ("GET", "HEAD")
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )


def _place(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        # No browser says so; a client that does is none of ours.
        return ""


def names_an_address(headers: Mapping[str, str]) -> bool:
    """Say whether ``Host`` is an address or localhost: any other name may be another site's.

    Who sends none is no browser.
    """
    given = headers.get("host")
    if given is None:
        return True
    try:
        host = urlsplit(f"//{given}").hostname or ""
        if is_loopback(host):
            return True
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
