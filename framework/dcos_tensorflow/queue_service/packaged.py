"""The queue of the DC/OS package: its file of teams, made of the environment of the package's app.

Used by ``queue serve`` where no file is named. The app's options come as variables (``package``),
and the package knows what only it can: where its scheduler is fetched from, and its images.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.client.registry import write_private
from dcos_tensorflow.client.work_directory import WorkDirectory, make_folder
from dcos_tensorflow.options.sections.images import DEFAULT_TENSORFLOW
from dcos_tensorflow.package import variables
from untrusted_input.json_text import read_json


def teams_file_of(environ: Mapping[str, str], work: WorkDirectory) -> Path:
    """Write the file of teams that a package's app says, and return it.

    Raises UsageError. What it holds is checked as that of any such file.
    """
    options = variables.options_in(environ)
    service = {name: str(value) for name, value in options.get("service", {}).items()}
    try:
        told = read_json(options.get("queue", {}).get("teams", ""))
        of_schedulers = dict(told.get("schedulers", {}))
    except (ValueError, AttributeError, TypeError) as error:
        raise UsageError(
            f"Which teams? Name their file; in the package queue.teams is it as JSON text: {error}."
        ) from error
    python, role = service.get("python", ""), service.get("mesos_role", "*")
    version = service.get("tensorflow_version") or DEFAULT_TENSORFLOW
    images = variables.images_in(environ).get(version)
    schedulers = {
        "archive": environ.get(variables.ARCHIVE_VARIABLE, ""),
        "image": images.cpu if images is not None and not python else "",
        "python": python,
        "mesos_role": role if role != "*" else "",
    }
    document = {
        # A folder's name, and part of a task's.
        "name": service.get("name", "").strip("/").replace("/", "-"),
        **told,
        "schedulers": {**schedulers, **of_schedulers},
    }
    make_folder(work.path)
    path = work.path / "teams.json"
    write_private(path, json.dumps(document, indent=2) + "\n")
    return path
