"""The command ``dcos-tensorflow``: the door to its commands, and the last line of defence.

Every error becomes one message on standard error and an exit code. A crash of ours is written to a
log file, and the message says where; no user is shown a traceback.
"""

from __future__ import annotations

import errno
import io
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class

from dcos_tensorflow import __version__
from dcos_tensorflow.cli.commands import ends, in_tasks, inspection, plans_and_pods, units_of_work
from dcos_tensorflow.cli.commands import open as opening
from dcos_tensorflow.cli.commands.capacity import capacity
from dcos_tensorflow.cli.commands.init import init
from dcos_tensorflow.cli.commands.list import list as list_command
from dcos_tensorflow.cli.commands.local import local
from dcos_tensorflow.cli.commands.logs import logs
from dcos_tensorflow.cli.commands.package import package
from dcos_tensorflow.cli.commands.queue import cancel, hold, queue, release, submit
from dcos_tensorflow.cli.commands.run import resume, run, scheduler
from dcos_tensorflow.cli.commands.runs import plot, runs
from dcos_tensorflow.cli.commands.state import state
from dcos_tensorflow.cli.commands.status import status, top, why
from dcos_tensorflow.cli.commands.update import update
from dcos_tensorflow.cli.commands.validate import validate
from dcos_tensorflow.cli.flags import NamedGroup
from dcos_tensorflow.client.errors import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_PIPE,
    EXIT_SOFTWARE,
    EXIT_USAGE,
    CliError,
    UsageError,
)
from dcos_tensorflow.client.output import OutputLost, complain, say_formatted, show_json
from dcos_tensorflow.client.work_directory import work_directory

if TYPE_CHECKING:
    from dcos_tensorflow.options import OptionsError

_PROGRAM = "dcos-tensorflow"
#: A shell sets it when it asks for completions; click makes its name of the program's.
COMPLETION_VARIABLE = "_DCOS_TENSORFLOW_COMPLETE"
SHELLS = ("bash", "zsh", "fish")

#: Other names of commands, which no list shows.
_ALIASES = {"ps": "list", "delete": "uninstall", "rm": "uninstall"}
#: What the machine refuses of a file, a folder or a disk: the user can mend that.
_REFUSED = {
    *(errno.EACCES, errno.EROFS, errno.ENOTDIR, errno.ENAMETOOLONG),
    *(errno.ENOSPC, errno.EDQUOT, errno.EMFILE),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    _complete_standard_streams()
    given = sys.argv[1:] if arguments is None else arguments
    sys.exit(run_command_line(given))


def _complete_standard_streams() -> None:
    """Open what is closed of standard input, output and error, on nothing.

    Else the next file that is opened, a database even, would get what is printed. What an encoding
    of the terminal's cannot say is written out.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free: this one.
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def run_command_line(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    # What a library logs outside a command's log is no message to a person.
    logging.lastResort = logging.NullHandler()
    try:
        code = cli.main(
            list(arguments), prog_name=_PROGRAM, standalone_mode=False, obj=tuple(arguments)
        )
        sys.stdout.flush()
        return int(code or 0)
    except click.ClickException as error:
        error.show(sys.stderr)
        return error.exit_code
    except click.Abort:
        complain("Aborted.")
        return EXIT_INTERRUPTED
    except CliError as error:
        if isinstance(error, OutputLost):
            _forget_output()
        complain(f"Error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except SystemExit as ended:
        if COMPLETION_VARIABLE in os.environ:
            return int(ended.code or 0)
        # click's way to end when the reader of our output has gone; it exits with 1 by itself.
        return EXIT_PIPE
    except BrokenPipeError:
        # The reader of our output has gone.
        _forget_output()
        return EXIT_PIPE
    except Exception as error:
        return _ended_by(error, "--json" in arguments)


def _forget_output() -> None:
    """Let go of what could not be written: Python would complain once more while it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _ended_by(error: Exception, as_json: bool) -> int:
    # Only a command that has read options can have found wrong ones: that room is large, and is
    # not to be imported for the sake of an error that cannot be.
    if "dcos_tensorflow.options.errors" in sys.modules:
        from dcos_tensorflow.options.errors import OptionsError

        if isinstance(error, OptionsError):
            _complain_about_options(error, as_json)
            return EXIT_USAGE
    if isinstance(error, OSError) and error.errno in _REFUSED:
        where = f"{error.filename}: " if error.filename else ""
        complain(f"Error: {where}{error.strerror}.")
        return EXIT_FAILED
    return _crashed(error)


def _complain_about_options(error: OptionsError, as_json: bool) -> None:
    if as_json:
        show_json({"valid": False, "problems": [found.document() for found in error.problems]})
    else:
        complain(f"Error: {error}")


def _crashed(error: Exception) -> int:
    """Write what is needed to mend it where it can be found, and say where."""
    path: Path | None = None
    try:
        path = work_directory(None, os.environ).crash_log
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(path, "a", encoding="utf-8") as log:
            log.write(f"{datetime.now(UTC).isoformat()} {_PROGRAM} {__version__}\n")
            log.write("".join(traceback.format_exception(error)) + "\n")
        where = f"the details are in {path}"
    except (OSError, CliError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else problem
        where = f"the details could not be written{f' to {path}' if path else ''}: {why}"
    complain(f"Error: this is a mistake of {_PROGRAM}: {type(error).__name__}: {error}; {where}.")
    return EXIT_SOFTWARE


#: The lists of the help: a command is in one of them.
SECTIONS = {
    "Jobs": ("init", "validate", "run", "stop", "resume", "update", "uninstall", "prune"),
    "Looking at a job": (
        *("status", "why", "logs", "open", "list", "runs", "plot", "sweep", "batch"),
        *("top", "exec", "cp", "options", "plan", "pod"),
    ),
    "A cluster shared by teams": ("submit", "queue", "cancel", "hold", "release"),
    "Operators": ("local", "scheduler", "dashboard", "capacity", "state"),
}


class _Commands(NamedGroup):
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(len(name) for names in SECTIONS.values() for name in names)
        for title, names in SECTIONS.items():
            rows = [
                (f"{name:<{width}}", command.get_short_help_str(formatter.width - width - 4))
                for name in names
                if (command := self.get_command(ctx, name)) is not None
            ]
            with formatter.section(title):
                formatter.write_dl(rows)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name, or by the one that other tools give it."""
        return super().get_command(ctx, _ALIASES.get(cmd_name, cmd_name))


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "--version", prog_name=_PROGRAM)
def cli() -> None:
    """Distributed TensorFlow on Apache Mesos and DC/OS from one options JSON."""


@click.command(hidden=True)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Print the script that completes commands in a shell."""
    root = context.find_root()
    made = get_completion_class(shell)
    if made is None:
        raise UsageError(f"There is no completion for {shell}.")
    say_formatted(made(root.command, {}, root.info_name or _PROGRAM, COMPLETION_VARIABLE).source())
    return 0


for _command in (
    *(capacity, completion, init, list_command, local, logs, package, plot, resume, run, runs),
    *(scheduler, state, status, top, update, validate, why),
    *(cancel, hold, queue, release, submit),
    *(ends.prune, ends.stop, ends.uninstall, in_tasks.copy, in_tasks.execute),
    *(inspection.cluster, inspection.describe, inspection.options),
    *(opening.dashboard, opening.open, opening.tensorboard),
    *(plans_and_pods.debug, plans_and_pods.endpoints, plans_and_pods.plan, plans_and_pods.pod),
    *(units_of_work.batch, units_of_work.sweep),
):
    cli.add_command(_command)


if __name__ == "__main__":
    main()
