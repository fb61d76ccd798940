"""``completion``: the script that turns completion on in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.client.output import say_formatted

#: A shell sets it when it asks for completions; click makes its name of the program's.
COMPLETION_VARIABLE = "_DCOS_TENSORFLOW_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


@click.command(hidden=True)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Print the script that completes commands in a shell."""
    root = context.find_root()
    made = get_completion_class(shell)
    if made is None:
        raise UsageError(f"There is no completion for {shell}.")
    program = root.info_name or "dcos-tensorflow"
    say_formatted(made(root.command, {}, program, COMPLETION_VARIABLE).source())
    return 0
