"""Read the URL that says where the state is kept. Pure.

Two forms: ``sqlite:///<path>`` (three slashes and a relative path, four slashes for an absolute
one, as SQLAlchemy has it) and ``zk://[user:password@]host:port,...[/chroot]``. Error texts never
repeat credentials.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote

from dcos_tensorflow.state.errors import BadStatePath, BadStateUrl
from dcos_tensorflow.state.paths import check_segments

ALLOWED = (
    "allowed are sqlite:///relative/state.db, sqlite:////absolute/state.db and "
    "zk://[user:password@]host:2181,host:2181[/chroot]"
)
DEFAULT_ZOOKEEPER_PORT = 2181

_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^:\[\]\s]+)(?::(?P<port>\d{1,5}))?")


@dataclass(frozen=True)
class SqliteUrl:
    """A database file on this machine."""

    path: Path


@dataclass(frozen=True)
class ZooKeeperUrl:
    """Servers of one ensemble, a chroot ("" or beginning with a slash), and digest credentials."""

    hosts: tuple[tuple[str, int], ...]
    chroot: str = ""
    username: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def host_list(self) -> str:
        """The servers as ZooKeeper clients take them; safe to log."""
        return ",".join(f"{host}:{port}" for host, port in self.hosts)

    def with_credentials(self, username: str | None, password: str | None) -> ZooKeeperUrl:
        """The same place with these credentials; raises BadStateUrl for half or double ones."""
        if self.username is not None:
            raise BadStateUrl("ZooKeeper credentials are given twice: in the URL and apart from it")
        _check_credentials(username, password)
        return replace(self, username=username, password=password)

    def __str__(self) -> str:
        return f"zk://{self.host_list}{self.chroot}"


def parse_state_url(url: str) -> SqliteUrl | ZooKeeperUrl:
    """Read a state URL; raises BadStateUrl with the allowed forms."""
    scheme, separator, rest = url.partition("://")
    if scheme == "sqlite" and separator:
        return _parse_sqlite(rest)
    if scheme == "zk" and separator:
        return _parse_zookeeper(rest)
    shown = f"{scheme}://..." if separator else "a text without a scheme"
    raise BadStateUrl(f"the state URL is {shown}; {ALLOWED}")


def _parse_sqlite(rest: str) -> SqliteUrl:
    if not rest.startswith("/"):
        raise BadStateUrl(f"the state URL sqlite://{rest} needs a third slash; {ALLOWED}")
    name = rest[1:]
    if not name or name.endswith("/") or name == ":memory:" or "?" in name or "#" in name:
        raise BadStateUrl(f"the state URL sqlite://{rest} names no file; {ALLOWED}")
    return SqliteUrl(Path(unquote(name)))


def _parse_zookeeper(rest: str) -> ZooKeeperUrl:
    credentials, has_credentials, address = rest.rpartition("@")
    username = password = None
    if has_credentials:
        raw_username, _, raw_password = credentials.partition(":")
        username, password = unquote(raw_username), unquote(raw_password)
        _check_credentials(username, password)
    hosts, slash, chroot = address.partition("/")
    return ZooKeeperUrl(
        hosts=tuple(_parse_host(host, hosts) for host in hosts.split(",")),
        chroot=_check_chroot(slash + chroot),
        username=username,
        password=password,
    )


def _parse_host(text: str, hosts: str) -> tuple[str, int]:
    match = _HOST.fullmatch(text)
    if match is None:
        raise BadStateUrl(f"{text!r} in zk://{hosts} is no host or host:port; {ALLOWED}")
    port = int(match["port"] or DEFAULT_ZOOKEEPER_PORT)
    if not 0 < port < 65536:
        raise BadStateUrl(f"{text!r} in zk://{hosts} has port {port}; ports are 1 to 65535")
    return match["host"], port


def _check_credentials(username: str | None, password: str | None) -> None:
    if not username or not password:
        raise BadStateUrl(f"ZooKeeper needs both a user and a password, or neither; {ALLOWED}")
    if ":" in username:
        raise BadStateUrl("a ZooKeeper user name must not contain ':' (digest scheme)")


def _check_chroot(chroot: str) -> str:
    chroot = chroot.rstrip("/")
    if chroot:
        try:
            check_segments(chroot[1:], f"chroot {chroot!r}")
        except BadStatePath as error:
            raise BadStateUrl(f"{error}; {ALLOWED}") from None
    return chroot
