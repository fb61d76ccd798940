"""The commands: each is in a module of ``commands/``, imported when it is named.

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
    "init": "Write a first options file for a script, with comments.",
    "list": "Show all services of this machine, or of a ZooKeeper.",
    "local": "Run an embedded cluster on this machine.",
    "logs": "Show the output of single tasks, roles, or the whole job.",
    "open": "Open a dashboard or a TensorBoard in the browser.",
    "options": "Show the options in force as JSON, without secrets.",
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
    "uninstall": "End a service and remove its tasks, framework and state. Cannot be undone.",
    "update": "Change the options of a running service.",
    "validate": "Show the tasks that a job would run, or all mistakes.",
    "why": "Explain why a job waits, per task and per offer.",
}

#: The module of a command in ``commands/``, where that is not called as the command.
_MODULES: Mapping[str, str] = {
    **dict.fromkeys(("options", "cluster", "describe"), "inspection"),
    **dict.fromkeys(("plan", "pod", "debug", "endpoints"), "plans_and_pods"),
    **dict.fromkeys(("sweep", "batch"), "units_of_work"),
    **dict.fromkeys(("stop", "uninstall"), "ends"),
    **dict.fromkeys(("dashboard", "tensorboard"), "open"),
    "plot": "runs",
    "why": "status",
}
#: Other names of commands, which no list shows.
_ALIASES: Mapping[str, str] = {"ps": "list", "delete": "uninstall"}
#: Commands that no list shows: older names, words of the SDK's client, and what is typed once.
_HIDDEN = frozenset(
    {"completion", "dashboard", "debug", "describe", "endpoints", "package", "tensorboard"}
)


class CommandTable(NamedGroup):
    """The group of all commands."""

    def __init__(self, **more: Any) -> None:
        # What ``commands`` holds is shown and proposed; none of it does anything.
        shown = [click.Command(name, help=text) for name, text in COMMANDS.items()]
        hidden = [click.Command(name, hidden=True) for name in (*_ALIASES, *sorted(_HIDDEN))]
        super().__init__(commands=[*shown, *hidden], **more)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, importing it; None when there is none of the name."""
        if cmd_name not in self.commands:
            return None
        name = _ALIASES.get(cmd_name, cmd_name)
        place = "completion" if name == "completion" else f"commands.{_MODULES.get(name, name)}"
        module = importlib.import_module(f"dcos_tensorflow.cli.{place}")
        command: click.Command = getattr(module, name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands into the help."""
        click.Group(commands=self.commands).format_commands(ctx, formatter)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return what may stand for an incomplete command or flag."""
        found = [
            CompletionItem(name, help=command.get_short_help_str())
            for name, command in self.commands.items()
            if name.startswith(incomplete) and not command.hidden
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]
