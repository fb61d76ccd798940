"""Files of a task's sandbox: the file of a request, and the part of it that is given.

``api.app`` reads the file in between, with the scheduler's own credentials. Refusals come
from here, before any agent is asked: paths that lead out of the sandbox, and the files in which
tasks find their secrets. Pure.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Mapping
from typing import Any

from dcos_tensorflow.api import schemas
from dcos_tensorflow.api.errors import BadRequest
from dcos_tensorflow.api.redaction import redact_part
from dcos_tensorflow.api.views.pods import record_of
from dcos_tensorflow.core import contract
from dcos_tensorflow.core.cluster import storage_sections
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import mesos_task_id, parse_task_id
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.records import dataclass

#: What an agent gives per read; more is not given at once.
MAX_BYTES = 64 * 1024
#: So much is read in front of what is asked for, to see what its first line is about.
LOOK_BACK = 4 * 1024
_MAX_PATH = 1024
#: Folders of secrets: our own deliveries; the keys that DC/OS gives a task's executor.
_SECRET_FOLDERS = (contract.KERBEROS_KEYTAB_FILE.partition("/")[0], ".ssl")


class FileRefused(Exception):
    """The file holds a secret."""


class NothingThere(LookupError):
    """There is no such file, or not yet; the text says why."""


@dataclass(frozen=True)
class FileRequest:
    """A part of a file of one attempt of a task."""

    agent_id: str
    task_id: str
    file: str
    offset: int
    length: int

    @property
    def begin(self) -> int:
        """Return where to read from, for the line that is going on at the offset."""
        return max(0, self.offset - LOOK_BACK)


def wanted(
    state: ServiceState,
    stored: Iterable[ServiceSpec],
    name: str,
    file: str,
    query: Mapping[str, str],
) -> FileRequest:
    """Return what is meant. ``stored`` are the configurations that are kept.

    Raises ElementNotFound for an unknown task, NothingThere for one that was never launched,
    FileRefused, BadRequest.
    """
    record = record_of(state, name)
    check_path(file, [state.spec, *stored])
    offset = _count(query, "offset", 0)
    length = min(_count(query, "length", MAX_BYTES), MAX_BYTES)
    task_id, agent_id = query.get("task_id", ""), query.get("agent_id", "")
    if bool(task_id) != bool(agent_id):
        raise BadRequest("an earlier attempt is named by task_id and agent_id together")
    if task_id:
        _check_attempt(state, name, task_id)
        return FileRequest(agent_id, task_id, file, offset, length)
    if record is None or not record.agent_id:
        raise NothingThere(f"{name} was never launched")
    return FileRequest(record.agent_id, record.task_id, file, offset, length)


def body(asked: FileRequest, read: bytes, size: int, secrets: Iterable[str] = ()) -> schemas.Part:
    """Return the answer: whole lines as long as there is more, so that none is torn.

    ``read`` is of the file from ``asked.begin`` on.

    What cannot be told from ``data`` alone is where to go on: characters that are no UTF-8 are
    replaced, and secrets are masked. ``next_offset`` says it.
    """
    data = read[asked.offset - asked.begin :]
    before = read[: asked.offset - asked.begin].decode("utf-8", "replace")
    given = data
    if asked.offset + len(data) < size:
        given = data[: data.rfind(b"\n") + 1] or data
    given = _whole_characters(given)
    return {
        "task_id": asked.task_id,
        "file": asked.file,
        "offset": asked.offset,
        "data": redact_part(given.decode("utf-8", "replace"), before, secrets),
        "next_offset": asked.offset + len(given),
        "size": size,
    }


def _whole_characters(data: bytes) -> bytes:
    """Return ``data`` without the beginning of a character at its end, unless that is all of it."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    torn = len(decoder.getstate()[0])
    return data[:-torn] if 0 < torn < len(data) else data


def check_path(file: str, specs: Iterable[ServiceSpec]) -> None:
    """Raise BadRequest for a path that leads out of the sandbox, FileRefused for a secret's."""
    parts = file.split("/")
    if len(file) > _MAX_PATH or not file.isprintable() or {"", ".", ".."} & set(parts):
        raise BadRequest(
            f"{file[:200]!r} is not a file of a sandbox; allowed: stdout, stderr, or a path below"
            " it, without . and .. in it"
        )
    if is_secret_file(file, specs):
        raise FileRefused(f"{file} holds a secret: it is not shown")


def is_secret_file(file: str, specs: Iterable[ServiceSpec]) -> bool:
    """Say whether a file below the sandbox, or the folder that it lies in, holds secrets."""
    if file.partition("/")[0] in _SECRET_FOLDERS:
        return True
    return any(
        file == secret or file.startswith(f"{secret}/")
        for spec in specs
        for role in spec.roles
        for secret in _files_of(spec, role)
    )


def _files_of(spec: ServiceSpec, role: Any) -> Iterable[str]:
    for secret in (*role.secrets, *storage_sections.secrets(spec, role.role)):
        # The way to it may be written in other words than a request may be.
        name = "/".join(part for part in secret.file.split("/") if part not in ("", "."))
        if name:
            yield name


def _check_attempt(state: ServiceState, name: str, task_id: str) -> None:
    found = parse_task_id(task_id)
    if found is None or task_id != mesos_task_id(state.spec.name, name, found[2]):
        raise BadRequest(f"{task_id[:200]!r} is not the Mesos task id of an attempt of {name}")


def _count(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise BadRequest(f"{name} must be a number of bytes from 0, not {text[:50]!r}")
    return int(text)
