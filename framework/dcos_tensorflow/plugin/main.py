"""The arguments of ``dcos tensorflow``, and the way to the command that they name.

The ``dcos`` command calls the file as ``<file> tensorflow <arguments>``, and once with ``--info``
when it is installed (facts: dcos-cli, design/plugin.md).
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from typing import Any, Callable, Mapping, Optional, Sequence

from dcos_tensorflow.plugin import commands
from dcos_tensorflow.plugin.client import CommandError, DcosCluster, with_cluster
from dcos_tensorflow.plugin.logs import logs
from dcos_tensorflow.plugin.plain_text import escaped
from dcos_tensorflow.plugin.sdk_verbs import GROUPS, VERBS, SdkVerb

INFO = "Manage distributed TensorFlow jobs"
_PROGRAM = "dcos-tensorflow"


class _Parser(argparse.ArgumentParser):
    """A parser that ends with 1 on wrong arguments, as the commands of DC/OS services do."""

    def error(self, message: str) -> Any:
        self.exit(1, f"{_PROGRAM}: error: {message}, try --help\n")


def main() -> int:
    """Run the command of this process. Return its exit code."""
    if hasattr(signal, "SIGPIPE"):
        # The reader of the output may stop before its end.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    return run(sys.argv[1:], os.environ)


def run(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run one command and return its exit code."""
    given = list(arguments)
    # The dcos command gives each of its plugins the name of the command first.
    named = bool(given) and not given[0].startswith("-")
    module = given.pop(0) if named else "tensorflow"
    if "--info" in given:
        print(INFO)
        return 0
    parsed = parser(f"dcos {module}").parse_args(given)
    if parsed.command is None:
        # Which prints the help and ends.
        parser(f"dcos {module}").parse_args([*parsed.of, "--help"])
    argument: str = getattr(parsed, "service", None) or ""
    if argument and parsed.name and argument != parsed.name:
        which = f"Which service is meant, {argument} or {parsed.name}?"
        print(f"{_PROGRAM}: error: {which}", file=sys.stderr)
        return 1
    service = (
        argument
        or parsed.name
        or environ.get("DCOS_TENSORFLOW_SERVICE_NAME", "")
        or (module[len("beta-") :] if module.startswith("beta-") else module)
    )
    # The dcos command sets the variable for its own -v.
    told = parsed.verbose or environ.get("DCOS_VERBOSITY", "0") not in ("", "0")
    try:
        parsed.command(DcosCluster(service, with_cluster(environ), verbose=told), parsed)
    except CommandError as error:
        print(f"{_PROGRAM}: error: {escaped(str(error), lines=True)}", file=sys.stderr)
        return 1
    except RecursionError:
        print(f"{_PROGRAM}: error: JSON is nested too deeply to be read.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def parser(program: str) -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    whole = _Parser(prog=program, description=INFO)
    _everywhere(whole)
    whole.set_defaults(name="", verbose=False)
    whole.add_argument("--info", action="store_true", help="describe this command in one line")
    tree = _below(whole)
    # As in the SDK's own client.
    asked = _add(tree, "help", "show the help of all commands, or of one", None)
    asked.add_argument("of", nargs="*", metavar="COMMAND")
    _alone(_add(tree, "describe", "show the options of the service", commands.describe))
    trees = {"": tree}
    for words, meaning in GROUPS.items():
        trees[words] = _group(trees[words.rpartition(" ")[0]], words.split()[-1], _phrase(meaning))
    for verb in VERBS:
        _sdk_verb(trees[verb.group], verb)
    _update(trees["update"])
    _alone(_add(tree, "why", "explain why the job waits", commands.why))
    _alone(_add(tree, "options", "show the options that the scheduler uses", commands.options))
    board = _alone(
        _add(tree, "tensorboard", "show the address of TensorBoard", commands.tensorboard)
    )
    board.add_argument("--open", action="store_true", help="open it in a browser")
    output = _add(tree, "logs", "show the output of the tasks", logs)
    output.add_argument("tasks", nargs="*", metavar="TASK", help="such as worker-0; default all")
    output.add_argument(
        "-f", "--follow", action="store_true", help="go on until all tasks have ended"
    )
    output.add_argument("--lines", type=_count, default=10, help="number of last lines")
    output.add_argument("--file", default="stdout", help="stdout, stderr or another file")
    _alone(_add(tree, "cluster", "the ClusterSpec and its version", commands.cluster_spec))
    return whole


def _sdk_verb(tree: Any, verb: SdkVerb) -> None:
    """Add a verb of the SDK, under each of its names."""
    for name in filter(None, (verb.name, verb.alias)):
        command = _add(tree, name, _phrase(verb.meaning), commands.sdk_verb)
        command.set_defaults(verb=verb)
        for argument, required in verb.arguments:
            command.add_argument(argument, nargs=None if required else "?")
        if verb.body == "tasks":
            command.add_argument("-t", "--tasks", action="append", metavar="TASK")
        elif verb.body == "parameters":
            command.add_argument(
                *("-p", "--params"), dest="parameters", action="append", metavar="NAME=VALUE"
            )
        if not verb.arguments:
            _alone(command)


def _update(tree: Any) -> None:
    start = _alone(_add(tree, "start", "start an update", commands.update_start))
    start.add_argument("--options", metavar="FILE", help="options to merge into those in force")
    start.add_argument("--package-version", metavar="VERSION")
    start.add_argument("--replace", action="store_true", help="replace the options in force")
    versions = "show the versions of the package"
    _alone(_add(tree, "package-versions", versions, commands.package_versions))


def _phrase(sentence: str) -> str:
    """Return a sentence as argparse's own help is written."""
    return sentence[:1].lower() + sentence[1:].rstrip(".")


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


def _below(above: argparse.ArgumentParser) -> Any:
    tree = above.add_subparsers(metavar="COMMAND", parser_class=_Parser)
    tree.required = True
    tree.dest = "name of a command"
    return tree


def _group(tree: Any, name: str, meaning: str) -> Any:
    group = tree.add_parser(name, help=meaning)
    _everywhere(group)
    return _below(group)


def _everywhere(above: argparse.ArgumentParser) -> None:
    """Add the flags that may stand before or after any word, as in DC/OS' own commands.

    Without a default: that of a command would win over what was given before it.
    """
    above.add_argument(
        "--name", default=argparse.SUPPRESS, help="name of the service; default tensorflow"
    )
    above.add_argument(
        *("-v", "--verbose"),
        action="store_true",
        default=argparse.SUPPRESS,
        help="print each request to standard error",
    )


def _alone(command: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Let a command without another argument name its service in place of ``--name``."""
    command.add_argument("service", nargs="?", metavar="SERVICE", help="as --name")
    return command


def _add(
    tree: Any, name: str, meaning: str, command: Optional[Callable[..., None]]
) -> argparse.ArgumentParser:
    added: argparse.ArgumentParser = tree.add_parser(name, help=meaning)
    added.set_defaults(command=command)
    added.add_argument("--json", action="store_true", help="answer in JSON")
    _everywhere(added)
    return added


if __name__ == "__main__":
    sys.exit(main())
