"""What ends a command with a message for a person, and the exit codes of the commands.

Raised anywhere in this room; ``main`` prints the message on stderr and exits with the code.
"""

from __future__ import annotations

EXIT_FAILED = 1
#: Wrong options, flags or settings; click uses the same.
EXIT_USAGE = 2
#: Another process has the service: the DC/OS SDK's code for it.
EXIT_LOCKED = 8
#: Ctrl-C: 128 + SIGINT.
EXIT_INTERRUPTED = 130
#: 128 + SIGTERM.
EXIT_TERMINATED = 143
#: An error of ours: sysexits.h EX_SOFTWARE.
EXIT_SOFTWARE = 70


class CliError(Exception):
    """A command cannot do what was asked. The text is one that a person can act on."""

    def __init__(self, message: str, exit_code: int = EXIT_FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class UsageError(CliError):
    """What was asked for makes no sense as it was given."""

    def __init__(self, message: str) -> None:
        super().__init__(message, EXIT_USAGE)
