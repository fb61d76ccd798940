"""The commands: each is in the module of its name in ``commands/``, imported when it is named.

Used by ``main``. ``--help`` and a key press for completion show the short texts of the table and
import no command: they must not wait for the whole program. This is click's way to load commands
lazily (its manual, "Lazily Loading Subcommands"), without its import of each for the list.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click
from click.shell_completion import CompletionItem

from dcos_tensorflow.cli.flags import NamedGroup

#: A shell sets it when it asks for completions; click makes its name of the program's.
COMPLETION_VARIABLE = "_DCOS_TENSORFLOW_COMPLETE"

#: The first sentence of each command's help; a test compares them.
COMMANDS: Mapping[str, str] = {
    "batch": "Show how far a batch is, and which shards have failed.",
    "capacity": "Show the machines that are bought for a service, plan them, give them back.",
    "cluster": "Show the ClusterSpec of a running job.",
    "completion": "Print the script that completes commands, flags and names of services in a"
    " shell.",
    "dashboard": "Show where the dashboard is.",
    "debug": "Look inside the scheduler; everything is JSON in any case.",
    "describe": "Show the options in force sorted by name, as JSON in any case.",
    "endpoints": "Show the names of the endpoints, or where the tasks of one listen.",
    "init": "Write a first options file for a script, with the options that matter and why.",
    "list": "Show all services of this machine, or of a ZooKeeper.",
    "local": "Keep an embedded cluster running on this machine.",
    "logs": "Show what tasks print: the named ones, those of a role, or all of them interleaved.",
    "options": "Show the options in force, defaults included and secrets hidden, as JSON in any"
    " case.",
    "package": "Look at the DC/OS package, and use it on a Marathon without DC/OS.",
    "plan": "See and steer plans: deploy, recovery, update, decommission.",
    "plot": "Draw the curves of a run, or of several over each other, with the incidents.",
    "pod": "See and steer single tasks: a pod instance is a task.",
    "run": "Deploy a job, follow it to its end, and exit as it did.",
    "runs": "Show the runs that are kept, of all services of this machine or of one.",
    "scheduler": "Serve a job as a daemon.",
    "state": "Look at what is kept of a service, save it to a file, and put it back.",
    "status": "Show where a job stands, or how it ended.",
    "stop": "End a job: its tasks are ended and its resources given back.",
    "sweep": "Show the leaderboard of a sweep.",
    "tensorboard": "Show where TensorBoard is.",
    "uninstall": "End a service and leave nothing behind: tasks, framework and state. Cannot be"
    " taken back.",
    "update": "Change the options of a service that runs.",
    "validate": "Show what a job would run, or everything that is wrong with its options.",
    "why": "Say why a job is not further, per task and per offer.",
}


class CommandTable(NamedGroup):
    """The group of all commands."""

    def __init__(self, **more: Any) -> None:
        # What ``commands`` holds is shown and proposed; none of it does anything.
        shown = [click.Command(name, help=text) for name, text in COMMANDS.items()]
        super().__init__(commands=shown, **more)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, importing it; None when there is none of the name."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"dcos_tensorflow.cli.commands.{cmd_name}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands into the help."""
        click.Group(commands=self.commands).format_commands(ctx, formatter)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return what may stand for an incomplete command or flag."""
        found = [
            CompletionItem(name, help=command.get_short_help_str())
            for name, command in self.commands.items()
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]
