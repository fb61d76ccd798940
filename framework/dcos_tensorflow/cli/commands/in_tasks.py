"""``exec`` and ``cp``: a command in a task's container, and files out of its sandbox."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from dcos_tensorflow.cli.flags import ScriptCommand, script_arguments, takes_service_flags
from dcos_tensorflow.cli.names import task_names
from dcos_tensorflow.client.api_client import SchedulerAway
from dcos_tensorflow.client.errors import EXIT_INTERRUPTED, CliError, UsageError
from dcos_tensorflow.client.output import complain, say, say_formatted, show_json
from dcos_tensorflow.client.service_choice import KnownService, ServiceChoice
from dcos_tensorflow.client.wording import size
from dcos_tensorflow.core.contract import COMMAND_SECONDS
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.plugin.plain_text import escaped

#: An answer is held back for five seconds, and the scheduler asks the task's runner for it.
_ANSWER_SECONDS = 30.0
_AGAIN_SECONDS = 1.0


@click.command(name="exec", cls=ScriptCommand)
@click.argument(
    "tasks", metavar="[SERVICE] TASK -- COMMAND...", nargs=-1, shell_complete=task_names
)
@click.option(
    "--timeout",
    "seconds",
    type=click.FloatRange(min=0, min_open=True, max=COMMAND_SECONDS),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="How long the command may run; then it is killed.",
)
@takes_service_flags
def execute(choice: ServiceChoice, tasks: tuple[str, ...], seconds: float) -> int:
    """Run a command in a task: exec TASK -- COMMAND.

    It runs beside the task's process, with its user, folder and variables. The exit code is the
    command's.
    """
    words = script_arguments()
    if not words:
        raise UsageError("The command stands behind --: dcos-tensorflow exec worker-0 -- ls -l")
    service, named = choice.service_in(tasks)
    if len(named) != 1:
        raise UsageError("Which task is meant? Name one, such as worker-0.")
    return _Execution(service, named[0], as_json=choice.as_json).run(list(words), seconds)


class _Execution:
    """One command in one task, and what it prints, as it comes."""

    def __init__(self, service: KnownService, task: str, *, as_json: bool) -> None:
        self._service = service
        self._task = task
        self._path = f"/v1/pod/{quote(task, safe='')}/exec"
        self._as_json = as_json
        self._printed = {"stdout": "", "stderr": ""}
        self._told_away = ""

    def run(self, words: list[str], seconds: float) -> int:
        body = json.dumps({"command": words, "timeout_seconds": seconds})
        asked = self._service.connect().ask("POST", self._path, body, seconds=_ANSWER_SECONDS)
        identifier = str(asked.found(f"task {self._task}")["id"])
        try:
            ended = self._followed(identifier, time.monotonic() + seconds + _ANSWER_SECONDS)
        except KeyboardInterrupt:
            self._service.connect().ask("POST", f"{self._path}/{identifier}/stop").expected()
            return EXIT_INTERRUPTED
        if self._as_json:
            told = {"task": self._task, "exit_code": ended["exit_code"], **self._printed}
            show_json({**told, "timed_out": ended["timed_out"]})
        elif ended["timed_out"]:
            complain(f"{words[0]} was killed: it ran for {seconds:g} s; --timeout gives it longer.")
        return int(ended["exit_code"])

    def _followed(self, identifier: str, until: float) -> dict[str, Any]:
        """Show what the command prints, and return its last answer. Raises CliError."""
        after = 0
        while True:
            path = f"{self._path}/{identifier}?after={after}"
            try:
                answer = self._service.connect().ask("GET", path, seconds=_ANSWER_SECONDS)
                news = answer.found(f"task {self._task}")
            except SchedulerAway as away:
                # The command goes on, and another scheduler can be asked about it.
                self._wait_for(away, until)
                continue
            for stream, text in news["output"]:
                self._show(stream, text)
            after = news["next"]
            if news["exit_code"] is not None:
                return dict(news)

    def _wait_for(self, away: SchedulerAway, until: float) -> None:
        if time.monotonic() > until:
            raise away
        if str(away) != self._told_away:
            self._told_away = str(away)
            complain(f"{away} Waiting for it to come back.")
        time.sleep(_AGAIN_SECONDS)

    def _show(self, stream: str, text: str) -> None:
        if self._as_json:
            self._printed[stream] += text
            return
        to = sys.stderr if stream == "stderr" else sys.stdout
        say_formatted(escaped(text, lines=True) if to.isatty() else text, to, end="")


@click.command(name="cp")
@click.argument("words", metavar="[SERVICE] TASK:PATH [LOCAL]", nargs=-1)
@takes_service_flags
def copy(choice: ServiceChoice, words: tuple[str, ...]) -> int:
    """Copy a file or folder of a task's sandbox: cp TASK:PATH LOCAL."""
    from dcos_tensorflow.client.kept import sandbox_copy

    at = next((number for number, word in enumerate(words) if ":" in word), None)
    if at is None or at > 1 or len(words) > at + 2:
        raise UsageError("Name the files to copy: cp worker-0:checkpoints . copies a folder.")
    service, left = choice.service_in(words[:at])
    if left:
        raise CliError(f"There is no service {left[0]} here.")
    task, _, path = words[at].partition(":")
    target = Path(words[at + 1] if len(words) > at + 1 else ".")
    copied = sandbox_copy.copy(service, task, path, target)
    if choice.as_json:
        show_json({"path": str(copied.path), "files": copied.files, "bytes": copied.size})
    else:
        told = f"{counted(copied.files, 'file')}, {size(copied.size)}"
        say(f"{words[at]} is copied to {copied.path}: {told}.")
    return 0
