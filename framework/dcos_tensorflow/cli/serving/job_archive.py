"""The user's code on this machine, packed so that a task can fetch it.

Called by ``preparation``. The same files always give the same bytes, so that the name of the
artifact, which carries their hash, tells whether the code has changed.
"""

from __future__ import annotations

import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from lzma import LZMAError
from pathlib import Path

from dcos_tensorflow.cli.errors import CliError, UsageError
from dcos_tensorflow.local.machine import tar_archives

#: What the Mesos fetcher unpacks by itself (Mesos docs, "Fetcher").
ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")

#: Folders that are never part of a job.
LEFT_OUT = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        ".venv",
        ".venvs",
        "venv",
        "__pycache__",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".ipynb_checkpoints",
        ".tox",
        ".nox",
        ".idea",
        ".vscode",
        "node_modules",
    }
)

#: More than this is data, which every task would fetch and unpack again.
MAX_BYTES = 1_000_000_000

_BROKEN = (tarfile.TarError, zlib.error, LZMAError)

#: Zip files begin in 1980; a fixed time keeps the bytes the same.
_TIME = (1980, 1, 1, 0, 0, 0)


def is_archive(path: Path) -> bool:
    """Say whether the fetcher unpacks a file of this name by itself."""
    return path.name.lower().endswith(ARCHIVE_SUFFIXES)


def pack(source: Path, target: Path, *, apart: Path | None = None) -> Path:
    """Return the archive to fetch: ``source`` itself when it is one, else ``target``, a new zip.

    A folder's content and a single file stand at the top of the zip; of a folder all but ``apart``,
    where our own files lie. Raises UsageError when there is nothing to pack, CliError when it
    cannot be read or written.
    """
    apart = apart.resolve() if apart is not None else None
    if not source.exists():
        raise UsageError(f"service.job_url: there is no file or folder {source}.")
    try:
        if source.is_file() and is_archive(source):
            _check_archive(source)
            return source
        found = _files(source, apart) if source.is_dir() else [(source.name, source)]
        _write(_checked(found, source), target)
    except OSError as error:
        raise CliError(
            f"service.job_url: {error.filename or source} cannot be packed: {error.strerror}."
        ) from error
    return target


def unpack(source: Path, target: Path) -> None:
    """Unpack an archive into a folder, to look into it. Raises UsageError when that cannot be done.

    What the fetcher of a task could not unpack either is better refused here.
    """
    is_zip = source.name.lower().endswith(".zip")
    try:
        if is_zip:
            with zipfile.ZipFile(source) as archive:
                archive.extractall(target)
        else:
            tar_archives.unpack(source, str(target), "data")
    except (zipfile.BadZipFile, tarfile.ReadError) as error:
        kind = "zip file" if is_zip else "tar archive"
        raise UsageError(
            f"service.job_url: {source} is not a {kind} that can be read, whatever its name says."
        ) from error
    # RuntimeError: a zip that asks for a password, or (NotImplementedError) an unknown compression.
    # KeyError: a link to what the archive does not hold.
    except (OSError, EOFError, RuntimeError, KeyError, *_BROKEN) as error:
        raise UsageError(f"service.job_url: {source} cannot be unpacked: {error}.") from error


def _files(root: Path, apart: Path | None) -> Iterator[tuple[str, Path]]:
    """Give every file of the job, with its name in the archive, through links to folders, too.

    A link to a folder that it lies in is not followed: that would never end. Raises OSError for
    what cannot be read: a job that lacks it would be another job.
    """
    below = [(root, "", frozenset({root.resolve()}))]
    while below:
        folder, prefix, above = below.pop()
        for name in os.listdir(folder):
            path = folder / name
            if path.is_dir():
                real = path.resolve()
                left_out = name in LEFT_OUT or os.path.exists(path / "pyvenv.cfg")
                if not left_out and real != apart and real not in above:
                    below.append((path, f"{prefix}{name}/", above | {real}))
            # Sockets and pipes cannot be packed, and a broken link is not part of any program.
            elif path.is_file() and not name.endswith((".pyc", ".pyo")):
                yield prefix + name, path


def _checked(found: Iterable[tuple[str, Path]], source: Path) -> list[tuple[str, Path]]:
    """Return the files in order. Raises UsageError for none, and for more than a job can be."""
    files, total, largest = [], 0, (0, "")
    for name, path in found:
        size = path.stat().st_size
        files.append((name, path))
        total, largest = total + size, max(largest, (size, name))
        if total > MAX_BYTES:
            raise UsageError(
                f"service.job_url: {source} holds more than {MAX_BYTES / 1e9:g} GB, and every task"
                f" would fetch all of it (a large file is {largest[1]}); keep data out of it."
            )
    if not files:
        raise UsageError(f"service.job_url: there is no file in {source}.")
    return sorted(files)


def _check_archive(source: Path) -> None:
    if source.suffix.lower() == ".zip" and not zipfile.is_zipfile(source):
        raise UsageError(f"service.job_url: {source} is not a zip file, whatever its name says.")
    if source.stat().st_size == 0:
        raise UsageError(f"service.job_url: {source} is empty.")


def _write(files: list[tuple[str, Path]], target: Path) -> None:
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, path in files:
                entry = zipfile.ZipInfo(name, _TIME)
                entry.compress_type = zipfile.ZIP_DEFLATED
                executable = path.stat().st_mode & 0o100
                entry.external_attr = (0o755 if executable else 0o644) << 16
                archive.writestr(entry, path.read_bytes())
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
