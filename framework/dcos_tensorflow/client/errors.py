"""The errors that end a command with a message for its user, and the exit codes.

Raised anywhere in this room; ``main`` prints the message on stderr and exits with the code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

EXIT_FAILED = 1
#: Wrong options, flags or settings; click uses the same.
EXIT_USAGE = 2
#: Another process has the service: the DC/OS SDK's code for it.
EXIT_LOCKED = 8
#: The service was uninstalled, or is to be: the DC/OS SDK's code for it.
EXIT_UNINSTALLED = 11
#: Ctrl-C: 128 + SIGINT.
EXIT_INTERRUPTED = 130
#: 128 + SIGTERM.
EXIT_TERMINATED = 143
#: An error of ours: sysexits.h EX_SOFTWARE.
EXIT_SOFTWARE = 70
#: 128 + SIGPIPE.
EXIT_PIPE = 141

#: What each code means, of all commands; docs/cli.md has the same table. ``run``, ``status
#: --follow`` and ``scheduler --exit-when-done`` also end with the code of a failed job's process.
EXIT_CODES: Mapping[int, str] = {
    0: "done; of a job: it succeeded",
    EXIT_FAILED: "the command failed, or nothing changed; the message gives the reason",
    EXIT_USAGE: "the options, flags or settings are wrong",
    EXIT_LOCKED: "another process has the service, or the state store fails",
    9: "the API that tasks fetch from could not be served",
    EXIT_UNINSTALLED: "the service is being uninstalled, and its scheduler was started without"
    " --uninstall; or it was uninstalled while the scheduler ran",
    EXIT_SOFTWARE: "a mistake in dcos-tensorflow; the message says where the details are",
    78: "the job as given can never run, e.g. its module is not in the archive",
    EXIT_INTERRUPTED: "Ctrl-C; of a job: it was stopped",
    EXIT_PIPE: "the reader of the output has closed the pipe",
    EXIT_TERMINATED: "SIGTERM ended the command, the job goes on",
}


class CliError(Exception):
    """A command cannot do what was asked. The text is one that a person can act on."""

    def __init__(self, message: str, exit_code: int = EXIT_FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class UsageError(CliError):
    """What was asked for makes no sense as it was given."""

    def __init__(self, message: str) -> None:
        super().__init__(message, EXIT_USAGE)


@contextmanager
def explaining_refusals(told: str) -> Iterator[None]:
    """Add to a UsageError what may be all that is wrong; nothing where ``told`` is empty."""
    try:
        yield
    except UsageError as error:
        if not told:
            raise
        raise UsageError(f"{error} {told}") from error
