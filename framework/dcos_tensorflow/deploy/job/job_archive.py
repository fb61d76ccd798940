"""The user's code on this machine, packed so that a task can fetch it.

Called by ``preparation``. The same files always give the same bytes, so that the name of the
artifact, which carries their hash, tells whether the code has changed.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dcos_tensorflow.client.errors import CliError, UsageError
from untrusted_input import archives

if TYPE_CHECKING:
    from dcos_tensorflow.scheduler.gate import Gate


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

#: Zip files begin in 1980; a fixed time keeps the bytes the same.
_TIME = (1980, 1, 1, 0, 0, 0)


def pack(source: Path, target: Path, *, apart: Collection[Path] = (), gate: Gate) -> Path:
    """Return the archive to fetch: ``source`` itself when it is one, else ``target``, a new zip.

    A folder's content and a single file stand at the top of the zip; of a folder all but ``apart``:
    our own files, and data that comes in another way. ``gate`` says where links may lead. Raises
    UsageError when there is nothing to pack, or what may not be, CliError when it cannot be read or
    written.
    """
    if not source.exists():
        raise UsageError(f"service.job_url: there is no file or folder {source}.")
    if source.is_file() and archives.is_archive(source.name):
        _check_archive(source)
        return source
    found = files_of(source, apart, gate=gate, option="service.job_url")
    return pack_files(
        found,
        target,
        option="service.job_url",
        place=str(source),
        too_large=f"service.job_url: {source} holds more than {MAX_BYTES / 1e9:g} GB, and every"
        " task would fetch all of it; keep data out of it, which data can bring, too",
    )


def pack_files(
    found: Iterable[tuple[str, Path]], target: Path, *, option: str, place: str, too_large: str
) -> Path:
    """Write files into a zip, under the names that stand before them, and return it.

    ``option`` names them and ``place`` is where they lie; ``too_large`` is said of more than
    MAX_BYTES. Raises UsageError for that and for no file at
    all, CliError when something cannot be read or written.
    """
    try:
        _write(_checked(found, option, place, too_large), target)
    except OSError as error:
        # A disk that is full while it is written to names no file.
        what = error.filename or f"{place}, into {target},"
        raise CliError(f"{option}: {what} cannot be packed: {error.strerror}.") from error
    return target


def unpack(source: Path, target: Path) -> None:
    """Unpack an archive into a folder, to look into it. Raises UsageError when that cannot be done.

    What the fetcher of a task could not unpack either is better refused here.
    """
    try:
        with source.open("rb") as file:
            archives.unpack(file, source.name, str(target))
    except archives.ArchiveRefused as error:
        raise UsageError(f"service.job_url: {source} {error}.") from error
    except OSError as error:
        raise UsageError(f"service.job_url: {source} cannot be unpacked: {error}.") from error


def check_sum(source: Path | None, wanted: str) -> None:
    """Hold an archive against ``service.job_sha256``, if there are both. Raises UsageError.

    Tasks would refuse it as well. What is packed here has no sum that anybody could know.
    """
    if source is None or not wanted:
        return
    if not (source.is_file() and archives.is_archive(source.name)):
        raise UsageError(
            f"service.job_sha256: {source} is packed here, and no archive that could have a sum; "
            "leave the option out."
        )
    with source.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != wanted:
        raise UsageError(f"service.job_sha256: the SHA-256 of {source} is {found}.")


def files_of(
    root: Path, apart: Collection[Path] = (), *, gate: Gate, option: str
) -> Iterator[tuple[str, Path]]:
    """Give every file of a folder but those ``apart``, with its name in the archive; or the file.

    Links are followed where the ``gate`` lets them lead, to folders too, but for one to a folder
    that it lies in: that would never end. ``option`` has named ``root``.
    Raises UsageError for a link that leads elsewhere, and OSError for what cannot be read: a job
    that lacks it would be another job.
    """

    def check(path: Path) -> None:
        # Whatever else lies in a folder lies where the folder does.
        refused = gate.link_refusal(root, path) if path == root or path.is_symlink() else ""
        if refused:
            raise UsageError(f"{option}: {refused}.")

    check(root)
    if not root.is_dir():
        yield root.name, root
        return
    left = {path.resolve() for path in apart}
    below = [(root, "", frozenset({root.resolve()}))]
    while below:
        folder, prefix, above = below.pop()
        for name in os.listdir(folder):
            path = folder / name
            if path.is_dir():
                real = path.resolve()
                left_out = name in LEFT_OUT or os.path.exists(path / "pyvenv.cfg")
                if not left_out and real not in left and real not in above:
                    check(path)
                    below.append((path, f"{prefix}{name}/", above | {real}))
            # Sockets and pipes cannot be packed, and a broken link is not part of any program.
            elif path.is_file() and not name.endswith((".pyc", ".pyo")):
                if left and path.resolve() in left:
                    continue
                check(path)
                yield prefix + name, path


def _checked(
    found: Iterable[tuple[str, Path]], option: str, place: str, too_large: str
) -> list[tuple[str, Path]]:
    """Return the files in order.

    Raises UsageError for none, for more than a job can be, and for a name that no zip can hold.
    """
    files, total, largest = [], 0, (0, "")
    for name, path in found:
        if (shown := name.encode(errors="backslashreplace").decode()) != name:
            raise UsageError(f"{option}: the name of {shown} in {place} is not UTF-8: rename it.")
        size = path.stat().st_size
        files.append((name, path))
        total, largest = total + size, max(largest, (size, name))
        if total > MAX_BYTES:
            raise UsageError(f"{too_large} (a large file is {largest[1]}).")
    if not files:
        raise UsageError(f"{option}: there is no file in {place}.")
    return sorted(files)


def _check_archive(source: Path) -> None:
    if source.suffix.lower() == ".zip" and not zipfile.is_zipfile(source):
        raise UsageError(f"service.job_url: {source} is not a zip file, in spite of its name.")
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
