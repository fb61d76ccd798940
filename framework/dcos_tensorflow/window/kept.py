"""The answers of a service that no scheduler serves, from its folder.

Used by ``window.of_this_machine``. They have the form of the API's own (docs/api.md), so that the
dashboard shows a finished service as it shows one that runs. Notes of runs are kept; each other
order is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.api.views import curves
from dcos_tensorflow.client.following.task_output import FolderOutput, Lost, NotThere, Unreadable
from dcos_tensorflow.client.kept.last_page import last_page
from dcos_tensorflow.client.work_directory import ServiceDirectory
from dcos_tensorflow.core.contract import UNIT_FILE
from dcos_tensorflow.history import folder
from dcos_tensorflow.history.record import notes_of
from dcos_tensorflow.window.services import NotKept, Refused
from untrusted_input.json_text import read_json

#: Files of a sandbox that are shown, and how much of one at once.
_FILES = re.compile(rf"stdout|stderr|{UNIT_FILE.format('[0-9]+')}")
_MOST_BYTES = 64 * 1024


def watched(directory: ServiceDirectory) -> dict[str, Any]:
    """Return what ``/v1/events`` told last, with ``kept``. Raises NotKept."""
    page = last_page(directory)
    if page is None:
        raise NotKept(
            "no scheduler serves it, and it left no last page; its runs:"
            f" dcos-tensorflow runs {directory.path.name}"
        )
    return {**page.watched, "kept": True}


def answer(directory: ServiceDirectory, path: str, query: Mapping[str, str]) -> Any:
    """Return the body of a GET of the API. Raises NotKept."""
    match path.split("/"):
        case ["v1", "job" | "why" as part]:
            return watched(directory)[part]
        case ["v1", "curves"]:
            return curves.curves(_points(directory, query.get("run", "")))
        case ["v1", "runs"]:
            records = (run.record() for run in folder.runs_in(directory.history))
            return curves.runs([record for record in records if record])
        case ["v1", "pod", name, "files", file]:
            return _part(directory, name, file, query)
        case _:
            page = last_page(directory)
            if page is not None and path in page.answers:
                return page.answers[path]
    raise NotKept("this is not kept of a service that no scheduler serves")


def ordered(directory: ServiceDirectory, path: str, body: bytes) -> Any:
    """Return the answer to an order. Raises Refused for all but notes, NotKept for no run."""
    match path.split("/"):
        case ["v1", "runs", name, "notes"]:
            try:
                notes = notes_of(read_json(body))
            except ValueError as error:
                raise Refused(str(error), 400) from None
            run = folder.run_called(directory.history, name)
            if run is None:
                raise NotKept(f"no run {name} is kept")
            run.keep_notes(notes)
            return dict(notes)
    raise Refused("no scheduler serves it now, and so nothing can be ordered", 409)


def _points(directory: ServiceDirectory, run: str) -> Any:
    runs = folder.runs_in(directory.history)
    found = folder.run_called(directory.history, run) if run else next(iter(runs), None)
    if found is None:
        raise NotKept(f"no run {run} is kept")
    return found.points()


def _part(
    directory: ServiceDirectory, name: str, file: str, query: Mapping[str, str]
) -> dict[str, Any]:
    output = FolderOutput(directory)
    attempt = output.attempt(name) if name in output.tasks() and _FILES.fullmatch(file) else None
    if attempt is None:
        raise NotKept(f"{file} of {name} is not kept")
    offset, length = _count(query, "offset", 0), _count(query, "length", _MOST_BYTES)
    try:
        part = output.read(attempt, file, offset, min(length, _MOST_BYTES))
    except (NotThere, Unreadable, Lost) as error:
        raise NotKept(f"{file} of {name} is not kept") from error
    return {
        "task_id": attempt.task_id,
        "file": file,
        "offset": offset,
        "data": part.text,
        "next_offset": part.next_offset,
        "size": part.size,
    }


def _count(query: Mapping[str, str], name: str, default: int) -> int:
    given = query.get(name, "")
    return min(int(given), 2**62) if given.isascii() and given.isdecimal() else default
