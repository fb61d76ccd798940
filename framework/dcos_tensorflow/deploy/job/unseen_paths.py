"""Files that a job's code names and its tasks would not find: a warning before the start.

Called by ``preparation``. A task sees its sandbox, which the job's folder becomes, and its own
machine. A path that is no file here is not judged: it may be one there, or be written by the job.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from dcos_tensorflow.client.work_directory import expanded
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.job_code.facts import Named

#: So many are told.
MOST_NOTES = 5
#: What machines have of their own, each in its way.
_SYSTEM = ("bin", "dev", "etc", "lib", "proc", "run", "sys", "tmp", "usr", "var")
_PATTERN = re.compile(r"[*?\[{%].*")


def unseen_paths(
    paths: tuple[Named, ...], spec: ServiceSpec, source: Path | None, base: Path, *, local: bool
) -> list[str]:
    """Return a sentence for each of ``paths`` that is there, and not for a task.

    ``source`` is the folder of the code, None where it is an archive or elsewhere; ``base`` is the
    folder of the options. ``local`` says that the tasks run on this machine.
    """
    if source is None or not source.is_dir():
        return []
    found = (_unseen(named, spec, source, base, local=local) for named in paths)
    return list(dict.fromkeys(filter(None, found)))[:MOST_NOTES]


def _unseen(named: Named, spec: ServiceSpec, source: Path, base: Path, *, local: bool) -> str:
    text = named.name
    if _PATTERN.search(text):
        # The folder that a pattern of files lies in.
        text = os.path.dirname(_PATTERN.sub("", text))
    if not text or text.strip("./") == "":
        return ""
    if text.startswith(("/", "~")):
        return "" if local else _of_this_machine(named, text, spec)
    inside = os.path.normpath(text)
    if not inside.startswith("..") and (source / inside).exists():
        return ""
    if any(inside == path or inside.startswith(f"{path}/") for path in _brought(spec)):
        return ""
    for folder in (source / os.path.dirname(named.file), source, base):
        path = Path(os.path.normpath(folder / text))
        if path.exists():
            return _told(named, path, source, base)
    return ""


def _brought(spec: ServiceSpec) -> list[str]:
    """Return where tasks find their data."""
    places = [data.path for data in spec.job.links] + [data.path for data in spec.storage.data]
    return [os.path.normpath(place) for place in places]


def _of_this_machine(named: Named, text: str, spec: ServiceSpec) -> str:
    try:
        path = expanded(text)
    except ValueError:
        return ""
    if not path.exists() or len(path.parts) < 2 or path.parts[1] in _SYSTEM:
        return ""
    shared = {
        place for role in spec.roles if role.container for place in role.container.host_directories
    }
    shared |= {spec.job.checkpoint_dir, spec.job.shared_filesystem}
    shared |= {link.source for link in spec.job.links}
    if any(place.startswith("/") and path.is_relative_to(place) for place in shared):
        return ""
    return (
        f"{named.place} names {named.name}, which is on this machine: where a task runs it may not"
        " be. data brings files and folders along, from S3 or from beside the options."
    )


def _told(named: Named, path: Path, source: Path, base: Path) -> str:
    if path.is_relative_to(source):
        return (
            f"{named.place} names {named.name}, which no task finds by that: code runs in the"
            f" folder of service.job_url, where it is {path.relative_to(source)}."
        )
    folder = path if path.is_dir() else path.parent
    uri = os.path.relpath(folder, base)
    return (
        f"{named.place} names {named.name}, which no task finds: it is outside of the job's folder."
        f' "data": [{{"uri": "{uri}", "path": "{folder.name}"}}] brings it, to be found at'
        f" {folder.name}."
    )
