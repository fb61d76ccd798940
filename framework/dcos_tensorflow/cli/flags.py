"""Flags and arguments that many commands share, and the values that they become."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from dcos_tensorflow.cli.names import service_names
from dcos_tensorflow.client.api_address import (
    API_VARIABLE,
    IN_CLEAR_VARIABLE,
    TOKEN_FILE_VARIABLE,
    ApiAddress,
    named,
)
from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.client.service_choice import ServiceChoice
from dcos_tensorflow.client.work_directory import WorkDirectory, work_directory

F = TypeVar("F", bound=Callable[..., Any])

#: An options file that is there.
OPTIONS_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
#: Where a group leaves the service that it was given, for its commands.
_NAME = "dcos_tensorflow.service"
#: Where a command leaves what stood behind ``--``.
_ARGUMENTS = "dcos_tensorflow.arguments"


def takes_service_flags(function: F) -> F:
    """Add what says which service is meant, and ``--json``; hand over a ServiceChoice."""
    return service_flags(json_flag(with_service_choice(function)))


def takes_service(*, required: bool = False) -> Callable[[F], F]:
    """Add the argument SERVICE, too: for commands without another argument.

    ``required``: the service must be named, though there be only one.
    """

    def decorate(function: F) -> F:
        add = click.argument(
            "service", metavar="[SERVICE]", required=False, shell_complete=service_names
        )
        return add(service_flags(json_flag(with_service_choice(function, required=required))))

    return decorate


def with_service_choice(function: F, *, required: bool = False) -> F:
    """Hand over which service is meant, where it is looked for, and how the answer is wanted."""

    @functools.wraps(function)
    def call(
        *,
        work: WorkDirectory,
        as_json: bool,
        name: str | None,
        api: ApiAddress | None,
        service: str | None = None,
        **given: Any,
    ) -> Any:
        if service is not None and name is not None and service != name:
            raise UsageError(f"Which service is meant, {service} or {name}?")
        meant = service or name
        if required and meant is None and api is None:
            raise UsageError("Which service is meant? Name it.")
        return function(ServiceChoice(work, meant, as_json, api), **given)

    return call  # type: ignore[return-value]


def service_flags(function: F) -> F:
    """Add ``--name``, ``--work-dir`` and where the API is, handed over as ``work`` and ``api``."""
    return name_flag(api_flags(work_dir_flag(function)))


def api_flags(function: F) -> F:
    """Add ``--api`` and what belongs to it, handed over as ``api``: an ApiAddress, or None."""

    @functools.wraps(function)
    def call(*, api: str | None, token_file: str | None, token_in_clear: bool, **given: Any) -> Any:
        address = None
        if api is not None:
            address = named(api, token_file, in_clear=token_in_clear)
        elif _on_command_line("token_file"):
            raise UsageError(f"--api-token-file is for an API that --api ({API_VARIABLE}) names.")
        return function(api=address, **given)

    in_clear = click.option(
        "--api-token-in-clear",
        "token_in_clear",
        is_flag=True,
        envvar=IN_CLEAR_VARIABLE,
        hidden=True,
        help="Send the token without TLS to another machine.",
    )
    token = click.option(
        "--api-token-file",
        "token_file",
        metavar="FILE",
        envvar=TOKEN_FILE_VARIABLE,
        help="File with the token of that API, readable only by you.",
    )
    api = click.option(
        "--api",
        metavar="URL",
        envvar=API_VARIABLE,
        help=f"Ask the scheduler with this API, on any machine; {API_VARIABLE}.",
    )
    return api(token(in_clear(call)))  # type: ignore[return-value]


def _on_command_line(parameter: str) -> bool:
    source = click.get_current_context().get_parameter_source(parameter)
    return source is ParameterSource.COMMANDLINE


def work_dir_flag(function: F) -> F:
    """Add ``--work-dir``, handed over as ``work``."""
    return click.option(
        "--work-dir",
        "work",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        callback=lambda _context, _parameter, given: work_directory(given, os.environ),
        help="Folder of your services; DCOS_TENSORFLOW_HOME, else ~/.local/share/dcos-tensorflow.",
    )(function)


def json_flag(function: F) -> F:
    """Add ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")(function)


def name_flag(function: F) -> F:
    """Add ``--name``, the SDK's flag for the service that is meant.

    It may stand behind any word of a command line: what a group was given holds for its commands.
    """
    return click.option(
        "--name",
        metavar="SERVICE",
        shell_complete=service_names,
        callback=_given_here_or_above,
        help="Name of the service, if there is more than one.",
    )(function)


class NamedGroup(click.Group):
    """A group of commands, which takes ``--name`` for them."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.params.append(
            click.Option(
                ["--name"],
                metavar="SERVICE",
                expose_value=False,
                shell_complete=service_names,
                callback=_given_here_or_above,
                help="Name of the service, if there is more than one.",
            )
        )


class GroupWithDefault(NamedGroup):
    """A group of which one command, ``default``, is meant where none is named: it takes a service.

    A service that is called as one of its commands is asked about by the default's own name.
    """

    def __init__(self, *given: Any, default: str, **more: Any) -> None:
        super().__init__(*given, **more)
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the command in front that is meant where none is named."""
        named = args[:1] and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named else [self.default, *args])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the services of this machine, too."""
        names = service_names(ctx, self.params[0], incomplete)
        return [*super().shell_complete(ctx, incomplete), *map(CompletionItem, names)]


def _given_here_or_above(
    context: click.Context, _parameter: click.Parameter, given: str | None
) -> str | None:
    if given is not None:
        context.meta[_NAME] = given
    name: str | None = context.meta.get(_NAME)
    return name


def timeout_flags(what: str, seconds: float) -> Callable[[F], F]:
    """Add ``--wait`` and ``--timeout``, handed over as ``wait`` and ``seconds``."""

    def decorate(function: F) -> F:
        timeout = click.option(
            "--timeout",
            "seconds",
            type=click.FloatRange(min=0),
            default=seconds,
            show_default=True,
            metavar="SECONDS",
            help="How long to wait.",
        )
        return click.option("--wait/--no-wait", default=True, help=what)(timeout(function))

    return decorate


def overrides_flag(function: F) -> F:
    """Add ``--set``."""
    return click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="PATH=VALUE",
        help="Set one option, e.g. worker.count=4; overrides the file. May be repeated.",
    )(function)


class GroupedCommand(click.Command):
    """A command whose help shows its options in groups: a title, and the names of parameters."""

    def __init__(
        self, *given: Any, option_groups: Mapping[str, Sequence[str]] | None = None, **more: Any
    ) -> None:
        super().__init__(*given, **more)
        self._groups = option_groups or {}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups, then what is in none of them."""
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        left = {one.name: row for one in options if (row := one.get_help_record(ctx))}
        for title, names in self._groups.items():
            rows = [left.pop(name) for name in names if name in left]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        if left:
            with formatter.section("Others" if self._groups else "Options"):
                formatter.write_dl([*left.values()])


class ScriptCommand(GroupedCommand):
    """A command that takes a script and, behind ``--``, the script's own arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read what stands in front of ``--``."""
        own = args[: args.index("--")] if "--" in args else args
        if "--" in args:
            ctx.meta[_ARGUMENTS] = tuple(args[len(own) + 1 :])
        script = next((one for one in own if one.endswith(".py")), None)
        try:
            return super().parse_args(ctx, own)
        except click.NoSuchOption as error:
            if script is None:
                raise
            near = " or ".join(error.possibilities or ())
            raise UsageError(
                f"There is no flag {error.option_name}{f' (did you mean {near}?)' if near else ''};"
                f" arguments of {script} stand behind --: dcos-tensorflow {ctx.info_name} {script}"
                f" -- {error.option_name} ..."
            ) from error


def script_arguments() -> tuple[str, ...] | None:
    """Return what stood behind ``--``; None where nothing did."""
    found: tuple[str, ...] | None = click.get_current_context().meta.get(_ARGUMENTS)
    return found


def script_flags(function: F) -> F:
    """Add what can be said beside a script, but for ``--gpus``; hand over ``said``, ScriptFlags."""

    @functools.wraps(function)
    def call(
        *,
        parameters: tuple[str, ...],
        trials: int | None,
        metric: str | None,
        workers: int | None,
        ps: int | None,
        strategy: str | None,
        tensorflow: str | None,
        name: str | None,
        **given: Any,
    ) -> Any:
        # A tenth of a second, which --help need not wait for.
        from dcos_tensorflow.deploy.job.script_job import ScriptFlags
        from dcos_tensorflow.deploy.job.sweep_flags import sweep_of

        said = ScriptFlags(
            workers=workers,
            ps=ps,
            tensorflow=tensorflow,
            name=name,
            strategy=strategy,
            sweep=sweep_of(parameters, trials, metric),
            arguments=script_arguments(),
        )
        return function(said=said, **given)

    flags = (
        click.option(
            "--workers", type=click.IntRange(1), metavar="N", help="Workers of a script; default 1."
        ),
        click.option(
            "--ps",
            type=click.IntRange(0),
            metavar="N",
            help="Parameter servers of a script; default none.",
        ),
        click.option(
            "--strategy",
            type=click.Choice(["mirrored", "parameter_server"]),
            help="Put a Keras script of one task under a strategy of all tasks, unedited.",
        ),
        click.option("--tensorflow", metavar="VERSION", help="TensorFlow version, such as 2.21.0."),
        click.option("--name", metavar="NAME", help="Name of the service; default the script's."),
        click.option(
            "--sweep",
            "parameters",
            multiple=True,
            metavar="NAME=...",
            help="Search a parameter of a script: lr=log:1e-4:1e-1, units=int:16:256 or"
            " optimizer=adam,sgd. May be repeated.",
        ),
        click.option(
            "--trials", type=click.IntRange(1), metavar="N", help="Trials of a search; default 50."
        ),
        click.option(
            "--metric",
            metavar="NAME",
            help="The goal of a search: val_accuracy (highest), val_loss (lowest).",
        ),
    )
    found: Any = call
    for add in reversed(flags):
        found = add(found)
    return found  # type: ignore[no-any-return]


def gpus_flag(function: F) -> F:
    """Add ``--gpus`` of a script, for commands that start no embedded cluster."""
    text = "GPUs of each worker of a script; else none."
    return click.option("--gpus", type=click.IntRange(0), metavar="N", help=text)(function)


def agent_flags(function: F, *, shown: bool = True) -> F:
    """Add the flags that say how large an embedded cluster is, the rarer ones ``shown`` or not."""
    flags = (
        click.option(
            "--agents", type=int, metavar="N", help="Agents of the embedded cluster.", default=1
        ),
        click.option(
            "--cpus",
            type=click.FloatRange(min=0, min_open=True),
            metavar="N",
            hidden=not shown,
            help="CPUs of each agent.",
        ),
        click.option(
            "--mem",
            type=click.FloatRange(min=1),
            metavar="MB",
            hidden=not shown,
            help="Memory of each agent.",
        ),
        click.option(
            "--disk",
            type=click.FloatRange(min=0),
            metavar="MB",
            hidden=not shown,
            help="Disk of each agent.",
        ),
        click.option(
            "--gpus",
            type=click.IntRange(min=0),
            metavar="N",
            help="GPUs of each worker of a script, else of each agent.",
        ),
        click.option(
            "--attributes",
            default="",
            metavar="K:V;K:V",
            hidden=not shown,
            help="Attributes; several values, rack:r1,r2, go to the agents in turn.",
        ),
    )
    for add in reversed(flags):
        function = add(function)
    return function
