"""What a service's dashboard showed at the end of its last job, kept in the service's folder.

``deploy.served_job`` leaves it, ``window`` shows it once no scheduler serves the service.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.client.registry import write_private
from dcos_tensorflow.client.work_directory import ServiceDirectory
from untrusted_input.json_text import read_json

log = logging.getLogger(__name__)

#: No page of a service of ours is larger: 20,000 tasks need less; bytes.
_MOST_BYTES = 32 << 20


def keep_page(
    directory: ServiceDirectory, watched: Mapping[str, Any], answers: Mapping[str, Any]
) -> None:
    """Leave a page: what ``/v1/events`` tells, and the answers of other paths of the API.

    A full disk is no reason to fail.
    """
    text = json.dumps({"watched": watched, "answers": answers})
    if len(text) > _MOST_BYTES:
        log.warning("the last page of the service is too large to be kept")
        return
    try:
        write_private(directory.last_page, text)
    except OSError as error:
        log.warning("cannot write %s: %s", directory.last_page, error)


def last_page(directory: ServiceDirectory) -> dict[str, Any] | None:
    """Return what ``keep_page`` has left; None where nothing is, or what can be read is none."""
    try:
        with directory.last_page.open("rb") as file:
            found = read_json(file.read(_MOST_BYTES + 1).decode("utf-8"))
    except (OSError, ValueError):
        return None
    is_page = isinstance(found, dict) and isinstance(found.get("watched"), dict)
    return found if is_page and isinstance(found.get("answers"), dict) else None
