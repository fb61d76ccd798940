"""Which addresses only this machine can reach.

Used by the API, which may be open to every client of those, and by the command line, which sends a
token in clear to those alone.
"""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach ``host``. Other names than localhost do not count."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
