"""The addresses of masters: parsing of the operator's words and of the masters' answers.

Used by the driver, the detector and the agent file reader. Pure: nothing is resolved or dialled.
"""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.zookeeper_address import (
    ZooKeeperAddress,
    ZooKeeperAddressError,
    parse_zookeeper,
)

#: The master's default port (Mesos documentation, "--port").
DEFAULT_MASTER_PORT = 5050
#: The agent's default port.
DEFAULT_AGENT_PORT = 5051


class AddressError(ValueError):
    """An address that cannot be understood; the message names it and what is allowed."""


@dataclass(frozen=True)
class Address:
    """One HTTP endpoint. ``host`` is a name or an IP, IPv6 without brackets."""

    host: str
    port: int
    https: bool = False

    def __str__(self) -> str:
        """Return ``host:port``, IPv6 in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Return ``scheme://host:port``."""
        return f"{'https' if self.https else 'http'}://{self}"


def parse_masters(masters: str, https: bool = False) -> tuple[Address, ...] | ZooKeeperAddress:
    """Parse ``host:port``, a comma list of them, or a ``zk://`` URI.

    Each host may carry ``http://`` or ``https://``; ``https`` says what those without do. Raises
    AddressError.
    """
    text = masters.strip()
    scheme, separator, _ = text.partition("://")
    if separator and scheme.lower() in ("zk", "zoo"):
        return _parse_zookeeper(text)
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise AddressError(
            f"masters {masters!r}: expected host:port, a comma list of them, or "
            "zk://[user:password@]host:port,.../path"
        )
    return tuple(parse_address(part, https) for part in parts)


def parse_address(text: str, https: bool = False, port: int = DEFAULT_MASTER_PORT) -> Address:
    """Parse ``[http[s]://]host[:port]``; ``[::1]:5050`` for IPv6. Raises AddressError."""
    scheme, separator, rest = text.partition("://")
    if separator:
        if scheme.lower() not in ("http", "https"):
            raise AddressError(f"address {text!r}: unknown scheme {scheme!r}, use http or https")
        https = scheme.lower() == "https"
    else:
        rest = text
    rest = rest.split("/", 1)[0]
    if rest.count(":") > 1 and not rest.startswith("["):
        rest = f"[{rest}]"
    try:
        parts = urlsplit(f"//{rest}")
        number = parts.port
    except ValueError as error:
        raise AddressError(f"address {text!r}: {error}") from error
    if not parts.hostname or parts.username is not None or any(c.isspace() for c in rest):
        raise AddressError(f"address {text!r}: expected host:port")
    return Address(parts.hostname, port if number is None else number, https)


def parse_location(location: str, sender: Address) -> Address:
    """Return where a master redirects to.

    Mesos sends ``//host:port/master/api/v1/scheduler``; ``host:port`` alone and full URLs are
    understood too. Without a scheme the sender's is kept. Raises AddressError, also when an https
    master redirects to plain http: the credentials would follow in the clear.
    """
    text = location.strip()
    target = parse_address(text.removeprefix("//"), sender.https)
    if sender.https and not target.https:
        raise AddressError(f"redirect from {sender.url} to {location!r} would leave https")
    return target


def _parse_zookeeper(text: str) -> ZooKeeperAddress:
    """Read where the elected master announces itself: a path is needed."""
    try:
        found = parse_zookeeper(text)
    except ZooKeeperAddressError as error:
        raise AddressError(
            f"masters in ZooKeeper: {error}; expected zk://[user:password@]host:port,.../path"
        ) from None
    path = found.path.strip("/")
    if not path:
        raise AddressError(f"masters {found}: the path of the masters is missing, e.g. /mesos")
    return replace(found, path=f"/{path}")
