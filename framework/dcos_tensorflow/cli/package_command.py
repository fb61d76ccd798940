"""``package render``: the Marathon app of a service, with DC/OS around the Marathon or without.

The same package files and the same rendering as ``dcos package install``; what the scheduler would
refuse when it starts is refused here already.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dcos_tensorflow import __version__
from dcos_tensorflow.cli.errors import CliError, UsageError
from dcos_tensorflow.cli.output import show_json
from dcos_tensorflow.mesos.address import AddressError, parse_masters
from dcos_tensorflow.network.zookeeper_address import ZooKeeperAddress, ensemble_of
from dcos_tensorflow.options import Options, load
from dcos_tensorflow.options.images import with_images
from dcos_tensorflow.package.cosmos import RenderError, marathon_app
from dcos_tensorflow.package.definition import (
    Package,
    PackageError,
    package_folder,
    read_folder,
    read_repository,
)
from dcos_tensorflow.package.variables import as_package_options, images_in, options_in
from dcos_tensorflow.state.errors import BadStateUrl
from dcos_tensorflow.state.urls import parse_state_url


@dataclass(frozen=True)
class RenderRequest:
    """What ``package render`` was asked for."""

    options: Path
    overrides: tuple[str, ...]
    artifact_url: str | None
    repository: Path | None
    app_id: str
    master: str
    state: str


def render(request: RenderRequest) -> int:
    """Print the app. Raises CliError, OptionsError."""
    options = load(request.options, overrides=request.overrides)
    _refuse_local_code(options)
    try:
        app = marathon_app(_package(request), as_package_options(options), app_id=request.app_id)
    except (PackageError, RenderError) as error:
        raise CliError(f"{error}.") from error
    with_images(load(_options_of(app)), images_in(app["env"]))
    show_json({**app, "env": {**app["env"], **_elsewhere(request)}})
    return 0


def _options_of(app: dict[str, Any]) -> dict[str, Any]:
    """Return the options that the scheduler of ``app`` will find."""
    return options_in({name: value for name, value in app["env"].items() if isinstance(value, str)})


def _package(request: RenderRequest) -> Package:
    if request.repository is not None and request.artifact_url is not None:
        raise UsageError("--repository and --artifact-url exclude each other.")
    if request.repository is not None:
        return read_repository(request.repository)[0]
    if request.artifact_url is None:
        raise UsageError(
            "Where are the files of the package? Give --artifact-url, or --repository with the"
            " document that 'make package' has written."
        )
    if "://" not in request.artifact_url:
        raise UsageError(f"--artifact-url: {request.artifact_url} is no URL.")
    places = {
        "package-version": __version__,
        "artifact-dir": request.artifact_url.rstrip("/"),
        # Only the DC/OS command line downloads these, and it reads a built repository.
        "sha256:dcos-tensorflow-cli.pyz": "",
    }
    return read_folder(package_folder(), places)


def _refuse_local_code(options: Options) -> None:
    url = options.service.job_url.strip()
    if url and "://" not in url and not url.startswith("/"):
        raise UsageError(
            f"service.job_url: {url} is a file beside your options, and a scheduler on the cluster"
            " cannot see it; put it where the agents can fetch it and give its URL."
        )


def _elsewhere(request: RenderRequest) -> dict[str, str]:
    """Return the variables that name another cluster than DC/OS' own."""
    variables = {}
    if request.master:
        try:
            where = parse_masters(request.master)
        except AddressError as error:
            raise UsageError(f"--master: {error}.") from error
        variables["DCOS_TENSORFLOW_MASTER"] = request.master
        if isinstance(where, ZooKeeperAddress):
            variables["DCOS_TENSORFLOW_STATE"] = ensemble_of(request.master)
        elif not request.state:
            raise UsageError(
                "--master names the masters themselves: say with --state where the service keeps"
                " its state, zk://HOST:PORT,..."
            )
    if request.state:
        try:
            parse_state_url(request.state)
        except BadStateUrl as error:
            raise UsageError(f"--state: {error}.") from error
        variables["DCOS_TENSORFLOW_STATE"] = request.state
    return variables
