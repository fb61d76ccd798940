"""The user's code on this machine, packed so that a task can fetch it.

Called by ``preparation``. The same files always give the same bytes, so that the name of the
artifact, which carries their hash, tells whether the code has changed.
"""

from __future__ import annotations

import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
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


def pack(source: Path, target: Path) -> Path:
    """Return the archive to fetch: ``source`` itself when it is one, else ``target``, a new zip.

    A folder's content and a single file stand at the top of the zip. Raises UsageError when there
    is nothing to pack, CliError when it cannot be read or written.
    """
    if not source.exists():
        raise UsageError(f"service.job_url: there is no file or folder {source}.")
    try:
        if source.is_file() and is_archive(source):
            _check_archive(source)
            return source
        files = sorted(_files(source)) if source.is_dir() else [(source.name, source)]
        _check(files, source)
        _write(files, target)
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


def _files(root: Path) -> Iterator[tuple[str, Path]]:
    for folder, folders, names in os.walk(root, followlinks=False):
        here = Path(folder)
        folders[:] = sorted(
            name
            for name in folders
            if name not in LEFT_OUT and not (here / name / "pyvenv.cfg").exists()
        )
        for name in names:
            path = here / name
            # Sockets and pipes cannot be packed, and a broken link is not part of any program.
            if path.is_file() and not name.endswith((".pyc", ".pyo")):
                yield path.relative_to(root).as_posix(), path


def _check(files: list[tuple[str, Path]], source: Path) -> None:
    if not files:
        raise UsageError(f"service.job_url: there is no file in {source}.")
    size = sum(path.stat().st_size for _, path in files)
    if size > MAX_BYTES:
        largest = max(files, key=lambda item: item[1].stat().st_size)[0]
        raise UsageError(
            f"service.job_url: {source} holds {size / 1e9:.1f} GB, and every task would fetch all"
            f" of it (the largest file is {largest}); keep data out of it, 1 GB is the most."
        )


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
