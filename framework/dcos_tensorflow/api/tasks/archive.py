"""A file or folder of a task's sandbox as a tar archive, for an operator who copies it.

Used by ``api.app``. The sandbox is walked first, so that a refusal comes before anything
is sent; then its files come one after the other, read from the agent as they are sent. Files that
hold secrets are left out, and the texts of secrets are written over. Links are left out: an agent
would follow them.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from starlette.responses import Response, StreamingResponse

from dcos_tensorflow.api.errors import BadRequest
from dcos_tensorflow.api.source import StateSource
from dcos_tensorflow.api.tasks.files import NothingThere, check_path, is_secret_file
from dcos_tensorflow.api.verbs import Reply, parsed, received
from dcos_tensorflow.api.views.pods import record_of
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.mesos.agent_files import AgentUnreachable, FileEntry, FileNotFound
from dcos_tensorflow.records import dataclass

MEDIA_TYPE = "application/x-tar"
#: More files and folders are not copied at once, nor folders within so many others.
MOST_FILES = 50_000
_DEEPEST = 64
_BLOCK = tarfile.BLOCKSIZE

#: What is in a folder, and the bytes of a file of a known size.
Browse = Callable[[str], Sequence[FileEntry]]
Read = Callable[[str, int], Iterator[bytes]]


@dataclass(frozen=True)
class Member:
    """A file or folder: where it lies below the sandbox, and as what it is in the archive."""

    path: str
    name: str
    entry: FileEntry


def copy(
    state: ServiceState, name: str, body: bytes, source: StateSource, secrets: Iterable[str]
) -> Reply:
    """Copy the file or folder of a task that a body names, out of the newest attempt's sandbox.

    Raises BadRequest, ElementNotFound, FileRefused, NothingThere and the errors of agent_files.
    """
    path, specs = _path_in(body), [state.spec, *source.configurations().values()]
    record = record_of(state, name)
    if path:
        check_path(path, specs)
    if record is None or not record.agent_id:
        raise NothingThere(f"{name} was never launched")
    browse = partial(source.browse, record.agent_id, record.task_id)
    read = partial(source.content, record.agent_id, record.task_id)

    def carry_out() -> Response:
        root = path.rpartition("/")[2] or name
        listed = members(path, root, browse, lambda file: is_secret_file(file, specs))
        return StreamingResponse(archive(listed, read, secrets), media_type=MEDIA_TYPE)

    return Reply(200, received(f"copy {path or '.'}"), then=carry_out)


def _path_in(body: bytes) -> str:
    plain = parsed(body, '{"path": "..."}')
    path = plain.get("path") if isinstance(plain, dict) and set(plain) == {"path"} else None
    if not isinstance(path, str):
        raise BadRequest('the body must be {"path": "..."} alone; "." is the whole sandbox')
    return path.strip("/").removeprefix("./") if path.strip("/") not in ("", ".") else ""


def members(path: str, root: str, browse: Browse, is_hidden: Callable[[str], bool]) -> list[Member]:
    """Return what is to be copied: ``path`` and all below it, named ``root`` in the archive.

    An empty path is the whole sandbox. Raises FileNotFound, BadRequest and what ``browse`` does.
    """
    if path:
        folder, _, name = path.rpartition("/")
        found = next((each for each in browse(folder) if each.name == name), None)
        if found is None:
            raise FileNotFound(f"there is no {path}")
    else:
        found = FileEntry(root, 0, 0o755, 0.0, is_folder=True)
    if not found.is_folder and not found.is_file:
        raise BadRequest(f"{path} is a link or no file: it is not copied")
    listed = [Member(path, root, found)]
    for member in listed:
        if not member.entry.is_folder:
            continue
        if member.name.count("/") >= _DEEPEST:
            raise BadRequest(f"{member.path} lies in more than {_DEEPEST} folders")
        for entry in browse(member.path):
            below = f"{member.path}/{entry.name}".lstrip("/")
            if (entry.is_folder or entry.is_file) and not is_hidden(below):
                listed.append(Member(below, f"{member.name}/{entry.name}", entry))
        if len(listed) > MOST_FILES:
            most = counted(MOST_FILES, "file")
            raise BadRequest(f"{path or 'the sandbox'} has more than {most}: copy less")
    return listed


def archive(listed: Iterable[Member], read: Read, secrets: Iterable[str]) -> Iterator[bytes]:
    """Yield the bytes of the archive. Raises what ``read`` does, and for a file that was cut."""
    hidden = sorted((secret.encode() for secret in secrets), key=len, reverse=True)
    for member in listed:
        entry = member.entry
        info = tarfile.TarInfo(member.name)
        info.type = tarfile.DIRTYPE if entry.is_folder else tarfile.REGTYPE
        info.size = 0 if entry.is_folder else entry.size
        info.mode, info.mtime = entry.mode, int(entry.changed_at)
        yield info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
        if entry.is_folder:
            continue
        left = entry.size
        for data in masked(read(member.path, entry.size), hidden):
            left -= len(data)
            yield data
        if left:
            # What follows would be taken for the rest of this file.
            raise AgentUnreachable(f"{member.path} was cut while it was copied: copy it again")
        yield bytes(-entry.size % _BLOCK)
    yield bytes(2 * _BLOCK)


def masked(parts: Iterable[bytes], secrets: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the same number of bytes with each secret written over, wherever the parts end."""
    longest = max(map(len, secrets), default=1)
    rest = b""
    for part in parts:
        rest += part
        for secret in secrets:
            rest = rest.replace(secret, b"*" * len(secret))
        whole = max(0, len(rest) - longest + 1)
        if whole:
            yield rest[:whole]
            rest = rest[whole:]
    if rest:
        yield rest
