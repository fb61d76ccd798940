"""The command ``dcos-tensorflow``: its commands, their flags, and the last line of defence.

Every error becomes one message on standard error and an exit code. A crash of ours is written to a
log file, and the message says where; nobody is shown a traceback.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from dcos_tensorflow import __version__
from dcos_tensorflow.cli.completion import COMPLETION_VARIABLE, completion, service_names
from dcos_tensorflow.cli.errors import (
    EXIT_INTERRUPTED,
    EXIT_PIPE,
    EXIT_SOFTWARE,
    EXIT_USAGE,
    CliError,
    UsageError,
)
from dcos_tensorflow.cli.flags import F, json_flag, overrides_flag, work_dir_flag
from dcos_tensorflow.cli.machine import AgentWishes
from dcos_tensorflow.cli.operator_commands import plan, pod, uninstall, update
from dcos_tensorflow.cli.output import complain, show_json
from dcos_tensorflow.cli.settings import SETTINGS, collect
from dcos_tensorflow.cli.work_directory import WorkDirectory, work_directory
from dcos_tensorflow.options import OptionsError

_PROGRAM = "dcos-tensorflow"
#: Settings that ``run`` takes too; the rest are the daemon's.
_RUN_SETTINGS = (
    *("master", "state", "principal", "secret_file", "ca_file", "client_cert", "client_key"),
    *("verify", "api_host", "api_port", "api_token_file", "advertise", "secrets_dir"),
)
_RUN_VARIABLES = frozenset(s.variable for s in SETTINGS if s.name in _RUN_SETTINGS or s.secret)
_OPTIONS_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    sys.exit(run_command_line(sys.argv[1:] if arguments is None else arguments))


def run_command_line(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    # What a library logs outside a command's log is no message to a person.
    logging.lastResort = None
    try:
        code = cli.main(list(arguments), prog_name=_PROGRAM, standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except click.ClickException as error:
        error.show(sys.stderr)
        return error.exit_code
    except click.Abort:
        complain("Aborted.")
        return EXIT_INTERRUPTED
    except OptionsError as error:
        _complain_about_options(error, "--json" in arguments)
        return EXIT_USAGE
    except CliError as error:
        complain(f"Error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except SystemExit as ended:
        if COMPLETION_VARIABLE in os.environ:
            return int(ended.code or 0)
        # click's way to end when whoever read our output has gone; it exits with 1 by itself.
        return EXIT_PIPE
    except BrokenPipeError:
        # Whoever read our output has gone; Python would complain once more while it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PIPE
    except Exception as error:
        return _crashed(error)


def _complain_about_options(error: OptionsError, as_json: bool) -> None:
    if as_json:
        problems = [
            {"path": p.path, "message": p.message, "given": p.given, "allowed": p.allowed}
            | ({"suggestion": p.suggestion} if p.suggestion else {})
            for p in error.problems
        ]
        show_json({"valid": False, "problems": problems})
    else:
        complain(f"Error: {error}")


def _crashed(error: Exception) -> int:
    """Write what is needed to mend it where it can be found, and say where."""
    path = work_directory(None, os.environ).crash_log
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(path, "a", encoding="utf-8") as log:
            log.write(f"{datetime.now(UTC).isoformat()} {_PROGRAM} {__version__}\n")
            log.write("".join(traceback.format_exception(error)) + "\n")
        where = f"the details are in {path}"
    except OSError as problem:
        where = f"the details could not be written to {path}: {problem.strerror}"
    complain(f"Error: this is a mistake of {_PROGRAM}: {type(error).__name__}: {error}; {where}.")
    return EXIT_SOFTWARE


def _setting_flags(names: Sequence[str]) -> Callable[[F], F]:
    """Return a decorator that adds the flags of these settings."""

    def decorate(function: F) -> F:
        for setting in reversed([s for s in SETTINGS if s.name in names and not s.secret]):
            flag = setting.flag
            if isinstance(setting.default, bool):
                flag = f"{flag}/--no-{flag.removeprefix('--')}"
                add = click.option(flag, setting.name, default=None, help=_help(setting.meaning))
            else:
                metavar = setting.name.rpartition("_")[2].upper()
                add = click.option(
                    flag, setting.name, default=None, metavar=metavar, help=_help(setting.meaning)
                )
            function = add(function)
        return function

    return decorate


def _help(meaning: str) -> str:
    return f"{meaning[:1].upper()}{meaning[1:]}."


def _agent_flags(function: F) -> F:
    flags = (
        click.option("--agents", type=int, help="Agents of the embedded cluster.", default=None),
        click.option("--cpus", type=click.FloatRange(min=0, min_open=True), help="CPUs each."),
        click.option("--mem", type=click.FloatRange(min=1), help="Memory of each, in MB."),
        click.option("--disk", type=click.FloatRange(min=0), help="Disk of each, in MB."),
        click.option("--gpus", type=click.IntRange(min=0), help="GPUs of each."),
        click.option(
            "--attributes",
            default="",
            metavar="K:V;K:V",
            help="Attributes; several values, rack:r1,r2, go to the agents in turn.",
        ),
    )
    for add in reversed(flags):
        function = add(function)
    return function


def _wishes(
    *,
    agents: int | None,
    cpus: float | None,
    mem: float | None,
    disk: float | None,
    gpus: int | None,
    attributes: str,
) -> AgentWishes:
    return AgentWishes(1 if agents is None else agents, cpus, mem, disk, gpus, attributes)


def _work(work_dir: Path | None) -> WorkDirectory:
    return work_directory(work_dir, os.environ)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "--version", prog_name=_PROGRAM)
def cli() -> None:
    """Distributed TensorFlow on Apache Mesos and DC/OS from one options JSON."""


@cli.command()
@click.argument("options_file", metavar="OPTIONS.json", type=_OPTIONS_FILE)
@click.option("--local", is_flag=True, help="Run on the embedded cluster, the default.")
@click.option("--follow/--detach", default=True, help="Show progress to the end, or go on alone.")
@overrides_flag
@_setting_flags(_RUN_SETTINGS)
@_agent_flags
@work_dir_flag
@click.option("--fresh", is_flag=True, help="Remove the checkpoints of earlier runs first.")
@click.option("--update", is_flag=True, help="Let a job that has not ended go over to OPTIONS.")
@click.option("--yes", "-y", is_flag=True, help="Ask nothing: Ctrl-C stops, --fresh removes.")
@json_flag
def run(
    options_file: Path,
    *,
    local: bool,
    follow: bool,
    overrides: tuple[str, ...],
    agents: int | None,
    cpus: float | None,
    mem: float | None,
    disk: float | None,
    gpus: int | None,
    attributes: str,
    work_dir: Path | None,
    fresh: bool,
    update: bool,
    yes: bool,
    as_json: bool,
    **settings: Any,
) -> int:
    """Deploy a job, follow it to its end, and exit as it did."""
    from dcos_tensorflow.cli.run_command import RunRequest, run

    if local and settings["master"] is not None:
        raise UsageError("--local and --master exclude each other.")
    wishes = _wishes(agents=agents, cpus=cpus, mem=mem, disk=disk, gpus=gpus, attributes=attributes)
    environ = {k: v for k, v in os.environ.items() if k in _RUN_VARIABLES}
    if local:
        environ.pop("DCOS_TENSORFLOW_MASTER", None)
    collected = collect(None, environ, settings)
    if collected["master"] and wishes.given:
        raise UsageError(
            "--agents, --cpus, --mem, --disk, --gpus and --attributes are for the embedded cluster;"
            f" this job goes to {collected.origin('master')}."
        )
    return run(
        RunRequest(
            options=options_file,
            overrides=overrides,
            settings=collected,
            wishes=wishes,
            work=_work(work_dir),
            detach=not follow,
            fresh=fresh,
            update=update,
            yes=yes,
            json=as_json,
        )
    )


@cli.command()
@click.argument("options_file", metavar="[OPTIONS.json]", type=_OPTIONS_FILE, required=False)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="JSON file of settings; the environment wins over it, flags win over both.",
)
@overrides_flag
@_setting_flags([s.name for s in SETTINGS if s.name != "options"])
def scheduler(
    options_file: Path | None, config: Path | None, overrides: tuple[str, ...], **settings: Any
) -> int:
    """Serve a job as a daemon.

    Each flag can also be given as DCOS_TENSORFLOW_<NAME> in the environment, or as <name> in the
    --config file. Ending this process leaves all tasks running.
    """
    from dcos_tensorflow.cli.scheduler_command import serve

    return serve(options_file, overrides, collect(config, os.environ, settings))


@cli.command()
@click.argument("options_file", metavar="OPTIONS.json", type=_OPTIONS_FILE)
@overrides_flag
@json_flag
def validate(options_file: Path, overrides: tuple[str, ...], as_json: bool) -> int:
    """Show what a job would run, or everything that is wrong with its options."""
    from dcos_tensorflow.cli.validate_command import validate

    return validate(options_file, overrides, as_json=as_json)


@cli.group()
def package() -> None:
    """Look at the DC/OS package, and use it on a Marathon without DC/OS."""


@package.command()
@click.option(
    "--options",
    "options_file",
    type=_OPTIONS_FILE,
    required=True,
    metavar="OPTIONS.json",
    help="The options of the service.",
)
@overrides_flag
@click.option(
    "--artifact-url",
    metavar="URL",
    help="Where the files of 'make package' are served from.",
)
@click.option(
    "--repository",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
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
    as_json: bool,
) -> int:
    """Print the Marathon app that the package makes of these options, as JSON in any case."""
    from dcos_tensorflow.cli.package_command import RenderRequest, render

    return render(
        RenderRequest(options_file, overrides, artifact_url, repository, app_id, master, state)
    )


@cli.group()
def local() -> None:
    """Keep an embedded cluster running on this machine."""


@local.command()
@_agent_flags
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the master.")
@click.option("--dcos", is_flag=True, help="Serve what the dcos command line needs, too.")
@click.option("--dcos-port", type=click.IntRange(0, 65535), help="Port of the local DC/OS.")
@click.option(
    "--dcos-variant",
    type=click.Choice(["open", "enterprise"]),
    help="enterprise allows updates to other package versions.",
)
@click.option("--dcos-login", is_flag=True, help="Ask for DCOS_USERNAME and DCOS_PASSWORD.")
@click.option(
    "--dcos-core-cli", type=_OPTIONS_FILE, metavar="ZIP", help="The plugin dcos-core-cli to serve."
)
@work_dir_flag
@json_flag
def up(
    *,
    agents: int | None,
    cpus: float | None,
    mem: float | None,
    disk: float | None,
    gpus: int | None,
    attributes: str,
    port: int,
    dcos: bool,
    dcos_port: int | None,
    dcos_variant: str | None,
    dcos_login: bool,
    dcos_core_cli: Path | None,
    work_dir: Path | None,
    as_json: bool,
) -> int:
    """Start the embedded cluster."""
    from dcos_tensorflow.cli import local_commands

    wishes = _wishes(agents=agents, cpus=cpus, mem=mem, disk=disk, gpus=gpus, attributes=attributes)
    given = any((dcos_port is not None, dcos_variant, dcos_login, dcos_core_cli))
    if given and not dcos:
        raise UsageError("The flags --dcos-... say how the local DC/OS is wanted: add --dcos.")
    local_dcos = local_commands.DcosWishes(
        dcos_port or 0, dcos_variant or "open", dcos_core_cli, dcos_login
    )
    return local_commands.up(
        _work(work_dir),
        wishes,
        port,
        as_json=as_json,
        dcos=local_dcos if dcos else None,
        environ=os.environ,
    )


@local.command(name="status")
@work_dir_flag
@json_flag
def local_status(work_dir: Path | None, as_json: bool) -> int:
    """Say whether the embedded cluster runs, and where."""
    from dcos_tensorflow.cli import local_commands

    return local_commands.status(_work(work_dir), as_json=as_json)


@local.command()
@work_dir_flag
@json_flag
def down(work_dir: Path | None, as_json: bool) -> int:
    """End the embedded cluster and every task on it."""
    from dcos_tensorflow.cli import local_commands

    return local_commands.down(_work(work_dir), as_json=as_json)


@cli.command()
@click.argument("service", required=False, shell_complete=service_names)
@click.option("--follow", "-f", is_flag=True, help="Show progress until the job ends.")
@work_dir_flag
@json_flag
def status(service: str | None, follow: bool, work_dir: Path | None, as_json: bool) -> int:
    """Show where a job stands, or how it ended."""
    from dcos_tensorflow.cli import service_commands

    return service_commands.status(_work(work_dir), service, follow=follow, as_json=as_json)


@cli.command()
@click.argument("service", required=False, shell_complete=service_names)
@work_dir_flag
@json_flag
def why(service: str | None, work_dir: Path | None, as_json: bool) -> int:
    """Say why a job is not further, per task and per offer."""
    from dcos_tensorflow.cli import service_commands

    return service_commands.why(_work(work_dir), service, as_json=as_json)


@cli.command()
@click.argument("service", required=False, shell_complete=service_names)
@work_dir_flag
@json_flag
def cluster(service: str | None, work_dir: Path | None, as_json: bool) -> int:
    """Show the ClusterSpec of a running job."""
    from dcos_tensorflow.cli import service_commands

    return service_commands.cluster(_work(work_dir), service, as_json=as_json)


@cli.command()
@click.argument("service", shell_complete=service_names)
@click.option("--wait/--no-wait", default=True, help="Wait until the job has ended.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait.",
)
@work_dir_flag
@json_flag
def stop(service: str, wait: bool, timeout: float, work_dir: Path | None, as_json: bool) -> int:
    """End a job: its tasks are ended and its resources given back."""
    from dcos_tensorflow.cli import service_commands

    return service_commands.stop(
        _work(work_dir), service, wait=wait, seconds=timeout, as_json=as_json
    )


for _command in (plan, pod, update, uninstall, completion):
    cli.add_command(_command)


if __name__ == "__main__":
    main()
