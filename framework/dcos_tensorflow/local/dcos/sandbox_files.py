"""Mesos' files API over sandboxes: browse, read, download. ``mesos_calls`` asks.

Only what lies below a known sandbox is served.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dcos_tensorflow.local.dcos.http_calls import Answer, json_answer, text_answer

Json = dict[str, Any]

#: Mesos reads 16 pages at most (src/files/files.cpp).
_MOST_BYTES = 16 * 4096


def locate(given: str, roots: Sequence[tuple[str, Path]]) -> Path | None:
    """Return the file behind a path, which begins with a virtual or a real name of a sandbox."""
    for virtual, root in roots:
        wanted = Path(given)
        if given == virtual or given.startswith(virtual + "/"):
            wanted = root / given[len(virtual) :].lstrip("/")
        found = wanted.resolve()
        if found.is_relative_to(root.resolve()) and found.exists():
            return found
    return None


def browse(found: Path | None) -> Answer:
    """Return what a directory holds."""
    if found is None or not found.is_dir():
        return Answer(404)
    return json_answer([_info(one) for one in sorted(found.iterdir())])


def download(found: Path | None) -> Answer:
    """Return a file."""
    if found is None:
        return Answer(404)
    if found.is_dir():
        return text_answer("Cannot read from a directory.\n", 400)
    disposition = f'attachment; filename="{found.name}"'
    headers = (("Content-Disposition", disposition),)
    return Answer(200, found.read_bytes(), "application/octet-stream", headers)


def read(found: Path | None, offset: str | None, length: str | None) -> Answer:
    """Return a part of a file, as JSON."""
    if found is None:
        return Answer(404)
    if found.is_dir():
        return text_answer("Cannot read from a directory.\n", 400)
    try:
        start = int(offset) if offset is not None else -1
        most = int(length) if length is not None else -1
    except ValueError as error:
        return text_answer(f"Failed to parse offset or length: {error}.\n", 400)
    if start < 0:
        # Mesos: without an offset the answer is the file's size.
        return json_answer({"data": "", "offset": found.stat().st_size})
    with open(found, "rb") as file:
        file.seek(start)
        data = file.read(_MOST_BYTES if most < 0 else min(most, _MOST_BYTES))
    return json_answer({"data": data.decode("utf-8", "replace"), "offset": start})


def _info(path: Path) -> Json:
    info = path.lstat()
    return {
        "gid": _group(info.st_gid),
        "mode": stat.filemode(info.st_mode),
        "mtime": float(int(info.st_mtime)),
        "nlink": info.st_nlink,
        "path": os.fspath(path),
        "size": info.st_size,
        "uid": _user(info.st_uid),
    }


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
