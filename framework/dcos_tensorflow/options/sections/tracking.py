"""The options of a tracking server that is told of runs, and the TrackingSpec. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dcos_tensorflow.options.models import Options

from collections.abc import Iterator
from urllib.parse import urlsplit

from pydantic import Field

from dcos_tensorflow.core.spec.tracking_spec import TrackingSpec
from dcos_tensorflow.options.errors import Finding
from dcos_tensorflow.options.sections.containers import SourceIfAny
from dcos_tensorflow.options.sections.section import Section
from dcos_tensorflow.options.sections.storage import EndpointUrl
from dcos_tensorflow.options.sections.values import Line

_HERE = ("localhost", "127.0.0.1", "::1")


class Mlflow(Section):
    """An MLflow tracking server that is told of runs."""

    tracking_uri: EndpointUrl = Field(
        "",
        title="Tracking server",
        description="URL of an MLflow tracking server, which the scheduler tells of each run: its "
        "parameters, metrics, state, and the places of output and checkpoints; of a sweep each "
        "trial as well. Empty: none.",
    )
    experiment: Line = Field(
        "",
        title="Experiment",
        description="MLflow experiment of the runs; it is made where it is missing. Empty: "
        "service.name.",
    )
    token: SourceIfAny = Field(
        "",
        title="Token",
        description="Place of a token for that server, or of a login with a colon between name and "
        "password: file:/path on the scheduler's machine, env:NAME of its environment, or a path "
        "of the folder that --secrets-dir names.",
    )


def tracking_spec(options: Options) -> TrackingSpec | None:
    """Return who is told of runs; None for the service's own history alone."""
    given = options.mlflow
    if not given.tracking_uri:
        return None
    experiment = given.experiment.strip() or options.service.name
    return TrackingSpec(given.tracking_uri, experiment, given.token)


def tracking_findings(options: Options) -> Iterator[Finding]:
    """Yield what is wrong with options about tracking each of which is right in itself."""
    given, path = options.mlflow, "mlflow.tracking_uri"
    parts = urlsplit(given.tracking_uri)
    if given.token and parts.scheme == "http" and parts.hostname not in _HERE:
        told = "the token would go through the network in clear"
        yield Finding(path, told, "a URL that begins with https://", (path, "mlflow.token"))
