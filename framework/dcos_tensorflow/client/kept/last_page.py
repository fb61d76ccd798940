"""The dashboard of a state alone, without its scheduler: made, and kept in the service's folder.

``deploy.served_job`` leaves it at a job's end, ``window`` shows it once no scheduler serves the
service; of a service of a state store it makes the page of the stored state.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from dcos_tensorflow.client.registry import write_private
from dcos_tensorflow.client.work_directory import ServiceDirectory
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.records import dataclass
from untrusted_input.json_text import read_json

log = logging.getLogger(__name__)

#: No page of a service of ours is larger: 20,000 tasks need less; bytes.
_MOST_BYTES = 32 << 20


@dataclass(frozen=True)
class LastPage:
    """A page, secrets hidden."""

    #: What ``/v1/events`` tells.
    watched: Mapping[str, Any]
    #: The answers of other paths of the API.
    answers: Mapping[str, Any]


def page_of(
    state: ServiceState,
    options: Mapping[str, Any],
    refused: Mapping[str, Any],
    secrets: Iterable[str] = (),
) -> LastPage:
    """Return the page of a state, of the options that it has and of those that it cannot have.

    ``secrets`` are those that the state does not know itself.
    """
    # The commands that find a page need none of what makes one.
    from dcos_tensorflow.api.app import watched
    from dcos_tensorflow.api.redaction import redact, secret_values
    from dcos_tensorflow.api.views import cluster, configurations, machines, unit_views

    answers: dict[str, Any] = {
        "v1/configurations/target": configurations.target(state, options, refused),
        "v1/cluster": cluster.cluster(state),
    }
    if state.spec.units is not None:
        answers["v1/units"] = unit_views.UnitsView().shown(state, "")
    if state.spec.capacity is not None:
        answers["v1/capacity"] = machines.capacity(state)
    hidden = secret_values(state, secrets)
    return LastPage(redact(watched(state), hidden), redact(answers, hidden))


def keep_page(directory: ServiceDirectory, page: LastPage) -> None:
    """Leave a page. A full disk is no reason to fail."""
    text = json.dumps(asdict(page))
    if len(text) > _MOST_BYTES:
        log.warning("the last page of the service is too large to be kept")
        return
    try:
        write_private(directory.last_page, text)
    except OSError as error:
        log.warning("cannot write %s: %s", directory.last_page, error)


def last_page(directory: ServiceDirectory) -> LastPage | None:
    """Return what ``keep_page`` has left; None where nothing is, or what can be read is none."""
    try:
        with directory.last_page.open("rb") as file:
            found = read_json(file.read(_MOST_BYTES + 1).decode("utf-8"))
    except (OSError, ValueError):
        return None
    watched, answers = (
        (found.get("watched"), found.get("answers")) if isinstance(found, dict) else (None, None)
    )
    if not isinstance(watched, dict) or not isinstance(answers, dict):
        return None
    return LastPage(watched, answers)
