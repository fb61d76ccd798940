"""Read the URL that says where the state is kept. Pure.

Two forms: ``sqlite:///<path>`` (three slashes and a relative path, four slashes for an absolute
one, as SQLAlchemy has it) and ``zk://[user:password@]host:port,...[/chroot]``. Error texts never
repeat credentials.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, unquote

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.state.errors import BadStatePath, BadStateUrl
from dcos_tensorflow.state.layout import check_segments
from dcos_tensorflow.zookeeper_address import (
    ZooKeeperAddress,
    ZooKeeperAddressError,
    parse_zookeeper,
)

ALLOWED = (
    "allowed are sqlite:///relative/state.db, sqlite:////absolute/state.db and "
    "zk://[user:password@]host:2181,host:2181[/chroot]"
)


@dataclass(frozen=True)
class SqliteUrl:
    """A database file on this machine."""

    path: Path


def parse_state_url(url: str) -> SqliteUrl | ZooKeeperAddress:
    """Read a state URL; raises BadStateUrl with the allowed forms."""
    scheme, separator, rest = url.partition("://")
    if scheme == "sqlite" and separator:
        return _parse_sqlite(rest)
    if scheme == "zk" and separator:
        return _parse_zookeeper(url)
    shown = f"{scheme}://..." if separator else "a text without a scheme"
    raise BadStateUrl(f"the state URL is {shown}; {ALLOWED}")


def from_anywhere(url: str, folder: Path) -> str:
    """Return the URL for processes in other folders, too; relative paths start at ``folder``.

    Raises BadStateUrl.
    """
    found = parse_state_url(url)
    return f"sqlite:///{quote(str(folder / found.path))}" if isinstance(found, SqliteUrl) else url


def _parse_sqlite(rest: str) -> SqliteUrl:
    if not rest.startswith("/"):
        raise BadStateUrl(f"the state URL sqlite://{rest} needs a third slash; {ALLOWED}")
    name = rest[1:]
    if not name or name.endswith("/") or name == ":memory:" or "?" in name or "#" in name:
        raise BadStateUrl(f"the state URL sqlite://{rest} names no file; {ALLOWED}")
    return SqliteUrl(Path(unquote(name)))


def _parse_zookeeper(url: str) -> ZooKeeperAddress:
    """Read where the service's folder is made: below a chroot, which may be empty."""
    try:
        found = parse_zookeeper(url)
        if found.path:
            check_segments(found.path[1:], f"chroot {found.path!r}")
    except (ZooKeeperAddressError, BadStatePath) as error:
        raise BadStateUrl(f"{error}; {ALLOWED}") from None
    return found
