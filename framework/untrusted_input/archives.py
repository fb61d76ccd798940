"""Unpacks archives that others have made: the one place where that is done.

Called by the task runner for a job with a checksum, by the embedded cluster's fetcher, and by the
command line to look into a job. Forbidden archives are refused with a sentence, and nothing of them
is left then: those that write outside of its folder or through a link, take all memory or disk,
bring anything but files, directories and links. It fetches nothing, and runs nothing.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import nullcontext
from importlib import import_module
from typing import (
    IO,
    TYPE_CHECKING,
    Any,
    ContextManager,
    Dict,
    Iterator,
    List,
    NamedTuple,
    Set,
    Tuple,
)

if TYPE_CHECKING:
    import tarfile
    import zipfile

#: The endings that Mesos' fetcher unpacks (src/launcher/fetcher.cpp), but for that of one file.
SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_ONE_FILE = ".gz"
_BLOCK_BYTES = 1 << 18
#: Names and extended headers of a tar are read at once, each of them whole.
_HEADER_BYTES = 1 << 20
#: What one name may have on Linux (limits.h, NAME_MAX).
_NAME_BYTES = 255
#: By the first bytes of a file: what it is compressed with.
_COMPRESSIONS = ((b"\x1f\x8b", "gzip"), (b"BZh", "bz2"), (b"\xfd7zXZ\0", "lzma"))


class Limits(NamedTuple):
    """How much an archive may bring. Bytes, but for ``ratio`` and ``files``."""

    #: Of all its files together.
    unpacked: float = 64e9
    #: The same as a multiple of its own size: what brings more is made to fill disks.
    ratio: float = 200.0
    #: So much it may bring whatever its own size is.
    small: float = 1e9
    #: Files, directories and links, each by a name of its own.
    files: int = 500_000
    #: Of one name with all its directories.
    path: int = 1024


LIMITS = Limits()


class ArchiveRefused(Exception):
    """The archive cannot or must not be unpacked; the text goes on where its name ends."""


def is_archive(name: str) -> bool:
    """Say whether a file of this name has others in it."""
    return name.lower().endswith(SUFFIXES)


def unpack(file: IO[bytes], name: str, folder: str, limits: Limits = LIMITS) -> None:
    """Unpack ``file``, open at its beginning, into ``folder``; its ``name`` says what it is.

    What is there already is replaced, as Mesos' fetcher does; a file that is no archive by its name
    brings nothing. Raises ArchiveRefused, and OSError for what the machine cannot do.
    """
    os.makedirs(folder, exist_ok=True)
    size = os.fstat(file.fileno()).st_size
    target = _Folder(os.path.realpath(folder), size, limits)
    try:
        lowered = name.lower()
        if lowered.endswith(".zip"):
            _unzip(file, target)
        elif lowered.endswith(SUFFIXES):
            _untar(file, target)
        elif lowered.endswith(_ONE_FILE):
            with _decompressed(file) as plain:
                target.add_file(name[: -len(_ONE_FILE)], 0o644, plain)
        target.finish()
    except BaseException as error:
        target.remove()
        if isinstance(error, ArchiveRefused) or not isinstance(error, Exception):
            raise
        # A broken one says that its parts are where no seek can go: that is EINVAL.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            # The machine's: a full disk, a folder that must not be written to.
            raise
        # Archives fail in more ways than their modules name: streams that are cut, a password that
        # is asked for, a compression that is unknown, numbers that overflow.
        raise ArchiveRefused(_told(error, lowered)) from error


def _told(error: Exception, name: str) -> str:
    kind = "zip file" if name.endswith(".zip") else "tar archive"
    if type(error).__name__ in ("BadZipFile", "ReadError"):
        return f"is not a {kind} that can be read, whatever its name says"
    return f"cannot be unpacked: {str(error) or type(error).__name__}"


class _Folder:
    """Where an archive is unpacked: takes what it holds piece by piece, and refuses.

    Every directory on the way to a file is looked at, and links are made when all else is there:
    nothing is ever written through one.
    """

    def __init__(self, root: str, archive_bytes: int, limits: Limits) -> None:
        self._root = root
        self.limits = limits
        self._allowed = min(limits.unpacked, max(limits.small, limits.ratio * archive_bytes))
        self._bytes = 0
        self._count = 0
        #: What was made here, in this order: (path, is a directory).
        self._made: List[Tuple[str, bool]] = []
        #: By the name in the archive: directories that are none but that, and files.
        self._directories: Set[str] = {""}
        self._files: Set[str] = set()
        self._links: Dict[str, str] = {}

    def add_directory(self, name: str) -> None:
        """Make a directory, and those that it is in."""
        self._enter(self._checked(name), name)

    def add_file(self, name: str, mode: int, content: IO[bytes], size: int = 0) -> None:
        """Write a file of at least ``size`` bytes: what ``content`` has."""
        plain = self._new(name)
        if mode & (stat.S_ISUID | stat.S_ISGID):
            raise ArchiveRefused(f"holds {name!r} with the right to act as its owner or group")
        self._room(size)
        path = os.path.join(self._root, plain)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(path, flags, 0o600), "wb") as out:
            self._made.append((path, False))
            while True:
                block = content.read(_BLOCK_BYTES)
                if not block:
                    break
                self._room(len(block))
                self._bytes += len(block)
                out.write(block)
            if out.tell() < size:
                raise ArchiveRefused(f"cannot be unpacked: it ends within {name!r}")
            os.fchmod(out.fileno(), mode & 0o755 | stat.S_IRUSR | stat.S_IWUSR)
        self._files.add(plain)

    def add_link(self, name: str, target: str) -> None:
        """Make a symbolic link, once all else is there."""
        plain = self._new(name)
        self._measured(target)
        if not _stays(plain.rpartition("/")[0], target):
            raise ArchiveRefused(f"holds the link {name!r} to {target!r}, which is outside of it")
        self._links[plain] = target

    def add_hard_link(self, name: str, target: str) -> None:
        """Make another name of a file of this archive."""
        plain, known = self._new(name), _plain(target)
        if known not in self._files:
            raise ArchiveRefused(f"holds the link {name!r} to {target!r}, which is no file of it")
        path = os.path.join(self._root, plain)
        os.link(os.path.join(self._root, known), path, follow_symlinks=False)
        self._made.append((path, False))
        self._files.add(plain)

    def finish(self) -> None:
        """Make the links."""
        for plain, target in self._links.items():
            path = os.path.join(self._root, plain)
            os.symlink(target, path)
            self._made.append((path, False))

    def remove(self) -> None:
        """Remove all that was made."""
        for path, is_directory in reversed(self._made):
            try:
                (os.rmdir if is_directory else os.unlink)(path)
            except OSError:
                # Another program's file is in it, or another process was faster.
                continue

    def _new(self, name: str) -> str:
        """Return the plain name of a file to be made, where nothing is any more."""
        plain = self._checked(name)
        if not plain or plain in self._files or plain in self._links:
            raise ArchiveRefused(f"holds {name!r} twice")
        self._enter(plain.rpartition("/")[0], name)
        path = os.path.join(self._root, plain)
        if _is_directory(path):
            raise ArchiveRefused(f"holds {name!r}, where there is a directory")
        if os.path.lexists(path):
            os.unlink(path)
        return plain

    def _checked(self, name: str) -> str:
        self._count += 1
        if self._count > self.limits.files:
            raise ArchiveRefused(f"holds more than {self.limits.files:,} files")
        if name.startswith("/"):
            raise ArchiveRefused(f"holds {name!r}, which is an absolute path")
        if ".." in name.split("/"):
            raise ArchiveRefused(f"holds {name!r}, which may be outside of the folder for it")
        self._measured(name)
        return _plain(name)

    def _measured(self, name: str) -> None:
        encoded = os.fsencode(name)
        longest = max(map(len, encoded.split(b"/")))
        if not encoded or len(encoded) > self.limits.path or longest > _NAME_BYTES:
            raise ArchiveRefused(
                f"holds a name of {len(encoded)} bytes, {name[:40]!r}: {self.limits.path} are "
                f"allowed, and {_NAME_BYTES} between two slashes"
            )

    def _enter(self, directory: str, name: str) -> None:
        """See that ``directory`` is a real one, and make what is missing of it."""
        if directory in self._directories:
            return
        parts = directory.split("/")
        for end in range(1, len(parts) + 1):
            above = "/".join(parts[:end])
            if above in self._directories:
                continue
            path = os.path.join(self._root, above)
            is_there = os.path.lexists(path)
            if above in self._links or (is_there and not _is_directory(path)):
                raise ArchiveRefused(f"holds {name!r} below {above!r}, which is no directory")
            if not is_there:
                # It counts, too: the names of others may tell of very many.
                self._count += 1
                os.mkdir(path, 0o755)
                self._made.append((path, True))
            self._directories.add(above)

    def _room(self, more: int) -> None:
        if not 0 <= more <= self._allowed - self._bytes:
            raise ArchiveRefused(
                f"would be more than {self._allowed / 1e9:.3g} GB unpacked, which is the most for "
                "one of its size"
            )


def _plain(name: str) -> str:
    """Return a name without what means nothing in it."""
    return "/".join(part for part in name.split("/") if part not in ("", "."))


def _is_directory(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _stays(directory: str, target: str) -> bool:
    """Say whether a link in ``directory`` leads to a place within the folder, whatever is there.

    It goes up first, from real directories, and then down alone: by way of another link, too, it
    gets where that one leads, which is within the folder as well.
    """
    parts = [part for part in target.split("/") if part not in ("", ".")]
    up = 0
    while up < len(parts) and parts[up] == "..":
        up += 1
    depth = len(directory.split("/")) if directory else 0
    return not target.startswith("/") and up <= depth and ".." not in parts[up:]


# Zip.


def _unzip(file: IO[bytes], target: _Folder) -> None:
    import zipfile

    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            # As unzip does, which Mesos calls: an archiver on Unix has told its mode.
            mode = member.external_attr >> 16 if member.create_system == 3 else 0
            _unzip_member(archive, member, mode, target)


def _unzip_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, mode: int, target: _Folder
) -> None:
    name, kind = member.filename, stat.S_IFMT(mode)
    if member.is_dir():
        target.add_directory(name)
    elif kind == stat.S_IFLNK:
        if member.file_size > target.limits.path:
            raise ArchiveRefused(f"holds the link {name!r} to a name of {member.file_size} bytes")
        target.add_link(name, os.fsdecode(archive.read(member)))
    elif kind in (0, stat.S_IFREG):
        with archive.open(member) as content:
            target.add_file(name, stat.S_IMODE(mode) or 0o644, content, member.file_size)
    else:
        raise _special(name)


def _special(name: str) -> ArchiveRefused:
    return ArchiveRefused(f"holds {name!r}, which is no file, directory or link")


# Tar.


class _Bounded:
    """What a tar is read from: no more of it at a time than a file or a header takes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.tell, self.seek = file.tell, file.seek

    def read(self, size: int) -> bytes:
        if not 0 <= size <= _HEADER_BYTES:
            raise ArchiveRefused(f"holds a header of {size} bytes")
        return self._file.read(size)


def _decompressed(file: IO[bytes]) -> ContextManager[IO[bytes]]:
    begin = file.read(6)
    file.seek(0)
    kind = next((kind for head, kind in _COMPRESSIONS if begin.startswith(head)), "")
    if not kind:
        return nullcontext(file)
    opened: IO[bytes] = import_module(kind).open(file)
    return opened


def _untar(file: IO[bytes], target: _Folder) -> None:
    import tarfile

    with _decompressed(file) as plain:
        source: IO[bytes] = _Bounded(plain)  # type: ignore[assignment]
        with tarfile.open(fileobj=source, mode="r:") as archive:
            for member in _members(archive):
                _untar_member(archive, member, target)


def _members(archive: Any) -> Iterator[tarfile.TarInfo]:
    """Give the members one by one, and keep none of them."""
    while True:
        member = archive.next()
        if member is None:
            return
        yield member
        archive.members.clear()


def _untar_member(archive: tarfile.TarFile, member: tarfile.TarInfo, target: _Folder) -> None:
    name = member.name
    if member.isdir():
        target.add_directory(name)
    elif member.issym():
        target.add_link(name, member.linkname)
    elif member.islnk():
        target.add_hard_link(name, member.linkname)
    elif member.isreg():
        content = archive.extractfile(member)
        assert content is not None
        target.add_file(name, member.mode, content, member.size)
    else:
        raise _special(name)
