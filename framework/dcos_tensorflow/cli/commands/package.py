"""``package render``: the Marathon app of a service, with DC/OS around the Marathon or without.

The same package files and the same rendering as ``dcos package install``; options that the
scheduler would refuse at its start are refused here already.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dcos_tensorflow import __version__
from dcos_tensorflow.cli.flags import OPTIONS_FILE, json_flag, overrides_flag
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.output import show_json

if TYPE_CHECKING:
    from dcos_tensorflow.options import Options
    from dcos_tensorflow.package.definition import Package


@click.group(hidden=True)
def package() -> None:
    """Use the DC/OS package on a Marathon without DC/OS."""


@package.command()
@click.option(
    "--options",
    "options_file",
    type=OPTIONS_FILE,
    required=True,
    metavar="OPTIONS.json",
    help="The options of the service.",
)
@overrides_flag
@click.option(
    "--artifact-url", metavar="URL", help="URL from which the files of 'make package' are served."
)
@click.option(
    "--repository",
    type=OPTIONS_FILE,
    metavar="FILE",
    help="The repository document of 'make package', in place of --artifact-url.",
)
@click.option("--app-id", default="", metavar="ID", help="Id of the app; else the service's name.")
@click.option(
    "--master",
    default="",
    metavar="MASTER",
    help="Mesos masters in place of those of DC/OS: zk://HOST:PORT,.../mesos or HOST:PORT,...",
)
@click.option(
    "--state",
    default="",
    metavar="STATE",
    help="State store in place of the ZooKeeper of DC/OS: zk://HOST:PORT,...",
)
@click.option(
    "--zookeeper-login-file",
    "login_file",
    default="",
    metavar="FILE",
    help="File with user:password for ZooKeeper, on the machines that Marathon may choose.",
)
@json_flag
def render(
    options_file: Path,
    *,
    overrides: tuple[str, ...],
    artifact_url: str | None,
    repository: Path | None,
    app_id: str,
    master: str,
    state: str,
    login_file: str,
    as_json: bool,
) -> int:
    """Print the package's Marathon app for these options, always as JSON."""
    from dcos_tensorflow.options import load
    from dcos_tensorflow.options.sections.images import with_images
    from dcos_tensorflow.package.definition import PackageError, marathon_app
    from dcos_tensorflow.package.variables import as_package_options, images_in, options_in
    from local_dcos import RenderError

    # The app carries every option, and its counts are those of the package.
    options = load(options_file, overrides=overrides, published_defaults=True)
    _refuse_local_code(options)
    try:
        found = _package(artifact_url, repository)
        app = marathon_app(found, as_package_options(options), app_id=app_id)
    except (PackageError, RenderError) as error:
        raise CliError(f"{error}.") from error
    env: dict[str, Any] = app["env"]
    # What the scheduler of the app will find.
    texts = {name: value for name, value in env.items() if isinstance(value, str)}
    with_images(load(options_in(texts)), images_in(env))
    elsewhere = _elsewhere(master, state)
    if login_file:
        elsewhere["DCOS_TENSORFLOW_ZOOKEEPER_LOGIN_FILE"] = login_file
    show_json({**app, "env": {**env, **elsewhere}})
    return 0


def _package(artifact_url: str | None, repository: Path | None) -> Package:
    from dcos_tensorflow.package.definition import package_folder, read_folder, read_repository

    if repository is not None and artifact_url is not None:
        raise UsageError("--repository and --artifact-url exclude each other.")
    if repository is not None:
        return read_repository(repository)[0]
    if artifact_url is None:
        raise UsageError(
            "Where are the files of the package? Give --artifact-url, or --repository with the"
            " document that 'make package' has written."
        )
    if "://" not in artifact_url:
        raise UsageError(f"--artifact-url: {artifact_url} is no URL.")
    places = {
        "package-version": __version__,
        "artifact-dir": artifact_url.rstrip("/"),
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


def _elsewhere(master: str, state: str) -> dict[str, str]:
    """Return the variables that name another cluster than DC/OS' own. Raises UsageError."""
    from dcos_tensorflow.mesos.address import AddressError, parse_masters
    from dcos_tensorflow.state.errors import BadStateUrl
    from dcos_tensorflow.state.urls import parse_state_url
    from dcos_tensorflow.zookeeper_address import ZooKeeperAddress, ensemble_of

    variables = {}
    if master:
        try:
            where = parse_masters(master)
        except AddressError as error:
            raise UsageError(f"--master: {error}.") from error
        variables["DCOS_TENSORFLOW_MASTER"] = master
        if isinstance(where, ZooKeeperAddress):
            variables["DCOS_TENSORFLOW_STATE"] = ensemble_of(master)
        elif not state:
            raise UsageError(
                "--master names the masters themselves: say with --state where the service keeps"
                " its state, zk://HOST:PORT,..."
            )
    if state:
        try:
            parse_state_url(state)
        except BadStateUrl as error:
            raise UsageError(f"--state: {error}.") from error
        variables["DCOS_TENSORFLOW_STATE"] = state
    return variables
