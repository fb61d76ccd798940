"""Unpacks tar archives, with any Python that the product runs on.

Used by ``fetcher``, and by the command line to look into a job. Python has filters for what an
archive may do since 3.11.4; Debian 12 has 3.11.2. There, what reaches beyond the folder is refused
here. Standard library only.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from typing import Literal

#: What setuid, setgid, sticky and the right of others to write are left of a mode.
_MODE_KEPT = 0o755


def unpack(path: str | os.PathLike[str], folder: str, filter: Literal["tar", "data"]) -> None:
    """Unpack an archive, as the filter of this name in ``tarfile`` lets it.

    Raises:
        OSError, EOFError, KeyError, tarfile.TarError, zlib.error, lzma.LZMAError: it cannot be read
            or written, or reaches beyond the folder. KeyError: a link to what is not in it.
    """
    with tarfile.open(path) as archive:
        if hasattr(tarfile, f"{filter}_filter"):
            archive.extractall(folder, filter=filter)
        else:
            archive.extractall(folder, _inside(archive, os.path.realpath(folder), filter))


def _inside(archive: tarfile.TarFile, root: str, filter: str) -> Iterator[tarfile.TarInfo]:
    """Give the members one by one, each checked when those before it are there already."""
    for member in archive:
        member.name = member.name.lstrip("/")
        place = _checked(member.name, root)
        if member.islnk():
            _checked(member.linkname, root)
        if filter == "data":
            if member.issym():
                _checked(os.path.join(os.path.dirname(place), member.linkname), root)
            if not (member.isreg() or member.isdir() or member.islnk() or member.issym()):
                raise tarfile.ExtractError(f"{member.name!r} is a special file")
        member.mode &= _MODE_KEPT
        yield member


def _checked(name: str, root: str) -> str:
    place = os.path.realpath(os.path.join(root, name))
    if os.path.commonpath([place, root]) != root:
        raise tarfile.ExtractError(f"{name!r} is outside of the folder it is unpacked into")
    return place
