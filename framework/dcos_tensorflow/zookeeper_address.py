"""Where an ensemble of ZooKeeper is: ``zk://[user:password@]host[:port],...[/path][?ca=FILE]``.

With ``ca``, the certificates to trust, TLS is spoken, and the names of the servers are looked at;
``cert`` and ``key`` are the client's own. Those who give them do so by ``with_tls``.

``mesos.address`` reads with it where masters announce themselves, ``state.urls`` where the state is
kept; they check the path. Pure: nothing is resolved or dialled. No text and no
error of an address shows its password.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

from dcos_tensorflow.records import dataclass

DEFAULT_PORT = 2181

_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^:\[\]\s/]+)(?::(?P<port>\d{1,5}))?")


class ZooKeeperAddressError(ValueError):
    """Not such an address; the message says what was given, never a password."""


@dataclass(frozen=True)
class Tls:
    """How to speak TLS with the servers: paths of PEM files."""

    #: The authorities to trust.
    ca: str
    #: The client's own certificate and its key; both or neither.
    cert: str = ""
    key: str = ""


@dataclass(frozen=True)
class ZooKeeperAddress:
    """Servers of one ensemble, and a place there."""

    #: Name or IP, IPv6 in brackets, and port.
    hosts: tuple[tuple[str, int], ...]
    #: Empty, or beginning with a slash and not ending with one.
    path: str = ""
    #: Both of the digest scheme, or neither.
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    #: None: bytes go in clear.
    tls: Tls | None = None

    @property
    def host_list(self) -> str:
        """The servers as ZooKeeper clients take them; safe to log."""
        return ",".join(f"{host}:{port}" for host, port in self.hosts)

    @property
    def digest(self) -> list[tuple[str, str]]:
        """The credentials as kazoo takes them; empty where there are none."""
        return [("digest", f"{self.username}:{self.password}")] if self.username else []

    @property
    def tls_arguments(self) -> dict[str, Any]:
        """What kazoo's client takes to speak TLS; empty where none is spoken."""
        if self.tls is None:
            return {}
        own = {"certfile": self.tls.cert, "keyfile": self.tls.key} if self.tls.cert else {}
        return {"use_ssl": True, "check_hostname": True, "ca": self.tls.ca, **own}

    def __str__(self) -> str:
        return f"zk://{self.host_list}{self.path}"


def parse_zookeeper(url: str) -> ZooKeeperAddress:
    """Read an address with its scheme. Raises ZooKeeperAddressError.

    The last ``@`` ends the credentials, whatever they hold: a password that was not quoted must
    not be taken for a host and shown.
    """
    credentials, at, place = url.partition("://")[2].rpartition("@")
    place, _, query = place.partition("?")
    hosts, slash, path = place.partition("/")
    username, password = _credentials(credentials) if at else (None, None)
    return ZooKeeperAddress(
        tuple(_host(host.strip(), hosts) for host in hosts.split(",")),
        (slash + path).rstrip("/"),
        username,
        password,
        _tls(query),
    )


def ensemble_of(url: str) -> str:
    """Return the address of the same servers with the same credentials and TLS, without a path."""
    credentials, at, place = url.strip().partition("://")[2].rpartition("@")
    place, mark, query = place.partition("?")
    return f"zk://{credentials}{at}{place.partition('/')[0]}{mark}{query}"


def is_open(url: str) -> bool:
    """Say whether this is an address in ZooKeeper without credentials."""
    return url.startswith("zk://") and "@" not in url


def with_login(url: str, login: str) -> str:
    """Return an address with the credentials ``login``, plain ``user:password``.

    One that has its own, or is not in ZooKeeper, stays as it is. Raises ZooKeeperAddressError.
    """
    username, _, password = login.partition(":")
    _credentials(f"{quote(username, safe='')}:{quote(password, safe='')}")
    if not is_open(url):
        return url
    place = url.removeprefix("zk://")
    return f"zk://{quote(username, safe='')}:{quote(password, safe='')}@{place}"


def with_tls(url: str, tls: Tls) -> str:
    """Return an address whose servers are spoken to by TLS; another than ZooKeeper's as it is."""
    if not url.startswith("zk://") or "?" in url:
        return url
    given = {name: file for name, file in vars(tls).items() if file}
    return f"{url.strip()}?{urlencode(given, safe='/')}"


def _tls(query: str) -> Tls | None:
    if not query:
        return None
    given = dict(parse_qsl(query, keep_blank_values=True))
    if (
        "ca" not in given
        or given.keys() - {"ca", "cert", "key"}
        or ("cert" in given) != ("key" in given)
    ):
        raise ZooKeeperAddressError(
            "after the ? of an address in ZooKeeper stands ca=FILE; cert=FILE&key=FILE may follow"
        )
    return Tls(**given)


def _credentials(text: str) -> tuple[str, str]:
    username, _, password = text.partition(":")
    username, password = unquote(username), unquote(password)
    if not username or not password:
        raise ZooKeeperAddressError("ZooKeeper needs both a user and a password, or neither")
    if ":" in username:
        raise ZooKeeperAddressError("a ZooKeeper user name must not contain ':' (digest scheme)")
    return username, password


def _host(text: str, hosts: str) -> tuple[str, int]:
    bare = text.count(":") > 1 and not text.startswith("[")
    match = _HOST.fullmatch(f"[{text}]" if bare else text)
    if match is None:
        raise ZooKeeperAddressError(f"{text!r} in zk://{hosts} is no host or host:port")
    port = int(match["port"] or DEFAULT_PORT)
    if not 0 < port < 65536:
        raise ZooKeeperAddressError(
            f"{text!r} in zk://{hosts} has port {port}; ports are 1 to 65535"
        )
    return match["host"], port
