"""From the package's files and a user's options to what the scheduler of the app would serve.

Every step is the real one: Cosmos' rendering, the app's command run by a shell in a sandbox with
the variables that Marathon adds, the flags of the ``scheduler`` command, its settings, its options
and the service that it makes of them. Only the scheduler itself is not started.
"""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from dcos_tensorflow.cli.main import cli
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.deploy import daemon
from dcos_tensorflow.deploy.settings import (
    UNINSTALL_VARIABLE,
    Settings,
    collect,
    with_cosmos_wish,
)
from dcos_tensorflow.options import OptionsError
from dcos_tensorflow.package.definition import Package, marathon_app, read_folder

#: The folder whose files ``make package`` publishes.
UNIVERSE = Path(__file__).resolve().parents[2] / "universe"
PLACES = {
    "package-version": "1.0.0",
    "artifact-dir": "https://repository.example.org/tensorflow/1.0.0",
    "sha256:dcos-tensorflow-cli.pyz": "0" * 64,
}

_COMMAND = "dcos-tensorflow/bin/dcos-tensorflow"
#: Stands in the place of the command: writes its arguments and its environment.
_WITNESS = "#!/bin/sh\nprintf '%s\\0' \"$@\" > arguments\nexec env -0 > environment\n"


@dataclass(frozen=True)
class SchedulerStart:
    """What a scheduler would be started with: the app, its environment, settings and service.

    ``problem`` says what is wrong with its options, ``given`` are these.
    """

    app: Mapping[str, Any]
    environ: Mapping[str, str]
    settings: Settings
    spec: ServiceSpec
    given: Mapping[str, Any]
    problem: OptionsError | CliError | None


def universe_package() -> Package:
    """Return the package as ``make package`` builds it."""
    return read_folder(UNIVERSE, PLACES)


def started_by_marathon(
    package: Package,
    options: Mapping[str, Any],
    sandbox: Path,
    *,
    uninstall: bool = False,
    variables: Mapping[str, str] | None = None,
) -> SchedulerStart:
    """Return what the app of these package options starts. Raises OptionsError, UsageError.

    What the package itself refuses raises, as it would be told by Cosmos.

    ``uninstall`` starts it as Cosmos does when the service is uninstalled; ``variables`` are edited
    into the app's environment, as an operator may do.
    """
    app = marathon_app(package, options)
    environ = {name: text for name, text in app["env"].items() if isinstance(text, str)}
    environ.update(variables or {})
    if uninstall:
        environ[UNINSTALL_VARIABLE] = "true"
    arguments, seen = _in_the_shell(str(app["cmd"]), environ, sandbox)
    settings = collect(None, seen, with_cosmos_wish(_flags(arguments), seen))
    wanted = daemon.read_options(None, (), settings, seen)
    directory = WorkDirectory(Path(settings["work_dir"])).service(wanted.options.service.name)
    prepared, problem = daemon.prepared_for(wanted, directory, settings, None, seen, local=False)
    return SchedulerStart(app, seen, settings, prepared.spec, wanted.given, problem)


def _in_the_shell(
    command: str, environ: Mapping[str, str], sandbox: Path
) -> tuple[list[str], dict[str, str]]:
    """Return the arguments and the environment that the app's command gets from its shell."""
    witness = sandbox / _COMMAND
    witness.parent.mkdir(parents=True, exist_ok=True)
    witness.write_text(_WITNESS)
    witness.chmod(0o755)
    marathon = {
        "PATH": os.defpath,
        "HOST": "10.0.0.100",
        "PORT_API": "31000",
        "MESOS_SANDBOX": str(sandbox),
    }
    subprocess.run(
        ["/bin/sh", "-c", command], cwd=sandbox, env={**environ, **marathon}, check=True, timeout=30
    )
    arguments = (sandbox / "arguments").read_text().split("\0")[:-1]
    pairs = (sandbox / "environment").read_text().split("\0")[:-1]
    return arguments, dict(pair.split("=", 1) for pair in pairs)


def _flags(arguments: list[str]) -> dict[str, Any]:
    """Return the flags of the ``scheduler`` command in ``arguments``, as the command reads them."""
    name, *rest = arguments
    command = cli.get_command(click.Context(cli), name)
    assert command is not None, f"the app starts {name!r}, which is no command"
    given = command.make_context(name, rest).params
    return {
        key: value
        for key, value in given.items()
        if key not in ("options_file", "config", "overrides")
    }
