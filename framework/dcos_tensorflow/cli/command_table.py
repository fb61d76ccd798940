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
    "batch": "Show the progress of a batch and its failed shards.",
    "capacity": "Show, plan and give back the machines that a service buys.",
    "cluster": "Show the ClusterSpec of a running job.",
    "completion": "Print the script that completes commands in a shell.",
    "dashboard": "Show the address of the dashboard.",
    "debug": "Look inside the scheduler; always prints JSON.",
    "describe": "Show the options in force, sorted by name, always as JSON.",
    "endpoints": "Show the endpoints, or the addresses of one.",
    "init": "Write a first options file for a script, with comments.",
    "list": "Show all services of this machine, or of a ZooKeeper.",
    "local": "Run an embedded cluster on this machine.",
    "logs": "Show the output of single tasks, roles, or the whole job.",
    "options": "Show the options in force as JSON, without secrets.",
    "package": "Use the DC/OS package on a Marathon without DC/OS.",
    "plan": "Show and control plans, such as deploy and recovery.",
    "plot": "Draw the curves of one or several runs, with their incidents.",
    "pod": "Show and control single tasks: a pod instance is a task.",
    "run": "Run a job, follow it to its end, exit with its exit code.",
    "runs": "Show the former runs of one service, or of all.",
    "scheduler": "Serve a job as a daemon.",
    "state": "Check, save and restore the stored state of a service.",
    "status": "Show the state of a job, or how it ended.",
    "stop": "End a job and give its resources back.",
    "sweep": "Show the leaderboard of a sweep.",
    "tensorboard": "Show the address of TensorBoard.",
    "uninstall": "End a service and remove its tasks, framework and state. Cannot be undone.",
    "update": "Change the options of a running service.",
    "validate": "Show the tasks that a job would run, or all mistakes.",
    "why": "Explain why a job waits, per task and per offer.",
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
