"""The MLflow tracking server that gets the runs, beside the service's own history.

Made by ``options.sections.tracking``, read by ``history.tracking``; the core never looks into it.
"""

from __future__ import annotations

from dcos_tensorflow.records import dataclass


@dataclass(frozen=True)
class TrackingSpec:
    """A tracking server by its URL, the experiment that runs go to, and where its token is.

    ``token`` is the source of a secret (``container_spec.TaskSecret``), empty for none.
    """

    uri: str
    experiment: str
    token: str = ""
