"""Mesos' file API over an agent's sandboxes: to browse, to read, to download.

Called by ``http_agent`` and, for the page of the cluster, by ``overview``. Paths are those of the
machine, or virtual ones as ``/files/debug`` names them; only files below the agent's work directory
are served.
"""

from __future__ import annotations

import grp
import json
import os
import pwd
import stat
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from embedded_mesos.agent import agent_views
from embedded_mesos.agent.agent import Agent
from embedded_mesos.master.calls.replies import TEXT
from embedded_mesos.wire.http_server import Handler

PATHS = frozenset({"/files/browse", "/files/read", "/files/download"})
#: Mesos reads 16 pages at most (src/files/files.cpp).
_MAX_READ_BYTES = 16 * 4096


def answer(
    to: Handler, agent: Agent, lock: threading.RLock, path: str, query: Mapping[str, str]
) -> None:
    """Answer a request for one of ``PATHS``. ``lock`` is held while the agent is looked at."""
    if "path" not in query:
        to.answer(400, "Expecting 'path=value' in query.\n", TEXT)
        return
    root = Path(agent.identity.work_dir).resolve()
    with lock:
        sandboxes = agent_views.sandboxes(agent)
    found = _located(query["path"], sandboxes)
    if not found.is_relative_to(root) or not found.exists():
        to.answer(404)
    elif path == "/files/browse":
        _browse(to, found)
    elif found.is_dir():
        to.answer(400, "Cannot read from a directory.\n", TEXT)
    elif not found.is_file():
        # A pipe's reader waits for its other end: a task could hold the readers for ever.
        to.answer(400, "Cannot read from a path that is no file.\n", TEXT)
    elif path == "/files/read":
        _read(to, found, query)
    else:
        to.answer_file(found)


def _located(given: str, sandboxes: Mapping[str, str]) -> Path:
    """Return the file behind a path that begins with a sandbox's virtual or real name."""
    for virtual, directory in sandboxes.items():
        if (given + "/").startswith(virtual + "/"):
            return Path(directory + given.removeprefix(virtual)).resolve()
    return Path(given).resolve()


def _browse(to: Handler, directory: Path) -> None:
    if not directory.is_dir():
        to.answer(404)
        return
    to.answer_json([_file_info(one) for one in sorted(directory.iterdir())])


def _read(to: Handler, path: Path, query: Mapping[str, str]) -> None:
    try:
        offset = int(query.get("offset", "-1"))
        length = int(query.get("length", "-1"))
    except ValueError as error:
        to.answer(400, f"Failed to parse offset or length: {error}.\n", TEXT)
        return
    size = path.stat().st_size
    if offset < 0:
        # Mesos: without an offset the answer is the file's size.
        to.answer_json({"data": "", "offset": size})
        return
    length = _MAX_READ_BYTES if length < 0 else min(length, _MAX_READ_BYTES)
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read(length)
    # Agents put a file's bytes into JSON as they are: a reader must be able to count.
    text = data.decode("utf-8", "surrogateescape")
    body = json.dumps({"data": text, "offset": offset}, ensure_ascii=False)
    to.answer(200, body.encode("utf-8", "surrogateescape"), "application/json")


def _file_info(path: Path) -> dict[str, Any]:
    info = path.lstat()
    return {
        "gid": _name(grp.getgrgid, info.st_gid),
        "mode": stat.filemode(info.st_mode),
        "mtime": float(int(info.st_mtime)),
        "nlink": info.st_nlink,
        "path": os.fspath(path),
        "size": info.st_size,
        "uid": _name(pwd.getpwuid, info.st_uid),
    }


def _name(lookup: Any, number: int) -> str:
    try:
        return str(lookup(number)[0])
    except KeyError:
        return str(number)
