"""``sweep`` and ``batch``: the progress of many units of work, and their outcome."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from dcos_tensorflow.cli.commands.run import SERVICE_SETTINGS, deployed, run_flags
from dcos_tensorflow.cli.drawing import check_picture_file, draw
from dcos_tensorflow.cli.flags import GroupWithDefault, takes_service
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.output import say, say_formatted, say_lines, show_json
from dcos_tensorflow.client.service_choice import ServiceChoice
from dcos_tensorflow.client.units import batch_lines, board_as_csv, board_lines, units_document
from dcos_tensorflow.client.wording import table, value_text
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.workloads.sweep.leaderboard import board_of
from dcos_tensorflow.workloads.sweep.picture import picture

_BOARD = "board"
_COMMAND_LINE = ParameterSource.COMMANDLINE


@click.group(cls=GroupWithDefault, default=_BOARD)
def sweep() -> None:
    """Show the leaderboard of a sweep.

    sweep NAME means sweep board NAME.
    """


@sweep.command(name=_BOARD)
@click.option("--all", "-a", "whole", is_flag=True, help="Show all trials, not the first 20.")
@click.option("--csv", "as_csv", is_flag=True, help="Print all trials as comma-separated values.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.svg|FILE.png",
    help="Draw the best value over time, and the finished trials in parallel coordinates.",
)
@takes_service()
def sweep_board(choice: ServiceChoice, whole: bool, as_csv: bool, plot: Path | None) -> int:
    """Show all trials, the best first."""
    check_picture_file(plot)
    document = units_document(choice, "trial")
    board = board_of(document)
    if plot is not None:
        title = f"{board.metric}, {board.goal}, {counted(len(board.rows), 'trial')}"
        draw(picture(board, title), plot)
    if as_csv:
        say_formatted(board_as_csv(board).rstrip("\n"))
    elif choice.as_json:
        show_json(document)
    elif plot is None:
        say_lines(board_lines(board, None if whole else 20))
    return 0


@sweep.command(name="best")
@click.option("--run", "again", is_flag=True, help="Train with them in full, as a job of its own.")
@run_flags(SERVICE_SETTINGS)
@takes_service()
def sweep_best(choice: ServiceChoice, again: bool, overrides: tuple[str, ...], **flags: Any) -> int:
    """Show the parameters of the best trial, or train with them once more.

    With --run the sweep's job runs with these parameters and without a search, as the service
    NAME-best; all other flags are those of the command run.
    """
    context = click.get_current_context()
    of_run = ("overrides", *flags)
    said = [name for name in of_run if context.get_parameter_source(name) is _COMMAND_LINE]
    if said and not again:
        option = next(one for one in context.command.params if one.name == said[0])
        raise UsageError(f"{'/'.join([*option.opts, *option.secondary_opts])} is for --run.")
    board = board_of(units_document(choice, "trial"))
    best = board.best
    if best is None:
        ended = counted(len(board.finished), "trial")
        diverged = f"{ended} ended, and none with a finite {board.metric}: NaN or infinity is none."
        raise CliError(diverged if board.finished else "No trial has finished yet.")
    if again:
        service = choice.service()
        from dcos_tensorflow.deploy.job.best_trial import given_options
        from dcos_tensorflow.deploy.job.kept_options import master_of

        told = f"{service.name}: trial {best.number} is the best."
        say(told, sys.stderr if choice.as_json else sys.stdout)
        return deployed(
            lambda _: given_options(
                service, best, overrides, choice.work, fresh=bool(flags["fresh"])
            ),
            choice.work,
            flags,
            as_json=choice.as_json,
            master=master_of(service, is_said=bool(flags["local"] or flags["master"])),
        )
    if choice.as_json:
        show_json(dict(best.parameters))
    else:
        say_lines(table([(name, value_text(value)) for name, value in best.parameters.items()]))
    return 0


@click.command()
@takes_service()
def batch(choice: ServiceChoice) -> int:
    """Show the progress of a batch and its failed shards."""
    if choice.as_json:
        show_json(units_document(choice, "shard"))
    else:
        # Of ten thousand shards those are asked for that are told one by one.
        say_lines(batch_lines(units_document(choice, "shard", "failed")))
    return 0
