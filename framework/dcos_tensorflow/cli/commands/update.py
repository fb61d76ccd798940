"""``update``: takes a service that runs over to other options, and steers how.

The words and messages are those of the DC/OS SDK's service command line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from dcos_tensorflow.cli.commands.plan import SdkGroup, add_verbs, reasons_flag, show_plan
from dcos_tensorflow.cli.errors import CliError
from dcos_tensorflow.cli.flags import asks, overrides_flag
from dcos_tensorflow.cli.output import say, show_json
from dcos_tensorflow.cli.services.asked import Asked
from dcos_tensorflow.cli.services.client import Answer

#: The plan that is acted on: it shows the update while there is one, as in the SDK.
_DEPLOY = "deploy"


@click.group(cls=SdkGroup)
def update() -> None:
    """Change the options of a service that runs."""


@update.command(name="start")
@click.option(
    "--options",
    "options_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path, allow_dash=True),
    required=True,
    metavar="FILE",
    help="The options, all of them; - reads standard input.",
)
@overrides_flag
@asks
def update_start(asked: Asked, options_file: Path, overrides: tuple[str, ...]) -> int:
    """Make other options the target: what differs is restarted."""
    from dcos_tensorflow.options import load

    source = sys.stdin.read() if str(options_file) == "-" else options_file
    options = load(source, overrides=overrides).model_dump(mode="json", exclude_unset=True)
    answer = asked.client().ask("POST", "/v1/job/update", json.dumps(options))
    if answer.status == 400:
        raise _options_error(answer)
    return _started(asked, answer)


@update.command(name="rollback")
@click.argument("configuration", metavar="[ID]", required=False)
@asks
def update_rollback(asked: Asked, configuration: str | None) -> int:
    """Go back to a configuration of before; without an id to the only other one."""
    body = json.dumps({"id": configuration}) if configuration else None
    answer = asked.client().ask("POST", "/v1/job/rollback", body)
    if answer.is_missing:
        raise CliError(f"There is no configuration {configuration}; see update configurations.")
    return _started(asked, answer)


@update.command(name="configurations")
@asks
def update_configurations(asked: Asked) -> int:
    """Show the ids of all configurations, the target's first, as JSON in any case."""
    show_json(asked.client().get("/v1/configurations"))
    return 0


@update.command(name="status")
@reasons_flag
@asks
def update_status(asked: Asked, reasons: bool) -> int:
    """Show how far an update is."""
    return show_plan(asked, _DEPLOY, reasons=reasons)


add_verbs(
    update,
    (
        ("pause", "interrupt", 0, "Keep the tasks that have not gone over yet as they are."),
        ("resume", "continue", 0, "Go on with an update, or approve of its canary."),
        ("force-restart", "restart", 2, "Start the tasks of an update, a phase or a step again."),
        ("force-complete", "forceComplete", 2, "Leave a task as it is until the next update."),
    ),
    _DEPLOY,
)


def _started(asked: Asked, answer: Answer) -> int:
    if answer.status == 417:
        raise CliError(f"{answer.message[:1].upper()}{answer.message[1:]}.")
    body = answer.expected()
    if asked.as_json:
        show_json(body)
        return 0
    if answer.status == 208:
        say(f"{answer.service} has these options already; nothing changes.")
        return 0
    restarts = ", ".join(body["restarts"]) or "no running task"
    say(f"Update started: configuration {body['id']}; new containers: {restarts}.")
    say(
        f"Please use `dcos-tensorflow update status --name={answer.service}` to view progress.",
    )
    return 0


def _options_error(answer: Answer) -> Exception:
    """Return the scheduler's findings in the form of our own."""
    from dcos_tensorflow.options import OptionProblem, OptionsError

    problems = answer.document.get("problems") if isinstance(answer.document, Mapping) else None
    if not problems:
        return CliError(f"{answer.message}.")
    known = ("path", "message", "given", "allowed", "suggestion")
    return OptionsError(
        OptionProblem(**{key: str(problem.get(key, "")) for key in known}) for problem in problems
    )
