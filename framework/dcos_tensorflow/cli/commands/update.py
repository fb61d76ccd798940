"""``update``: takes a service that runs over to other options, and steers how.

The words and messages are those of the DC/OS SDK's service command line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from dcos_tensorflow.cli.commands.plans_and_pods import SdkGroup
from dcos_tensorflow.cli.flags import overrides_flag, takes_service, takes_service_flags
from dcos_tensorflow.client.api_client import SchedulerAnswer
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.output import say, show_json
from dcos_tensorflow.client.service_choice import ServiceChoice
from dcos_tensorflow.client.wording import sentence
from dcos_tensorflow.core.counted import they

#: The SDK's verbs act on the plan deploy: it shows the update while there is one.
update = SdkGroup("update")


@update.command(name="start")
@click.option(
    "--options",
    "options_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Options to merge into those in force; - reads standard input.",
)
@overrides_flag
@click.option("--replace", is_flag=True, help="Replace the options in force: FILE has all options.")
@click.option(
    "--published-defaults",
    is_flag=True,
    help="Run 2 parameter servers and 3 workers if FILE does not name these roles.",
)
@takes_service()
def update_start(
    choice: ServiceChoice,
    *,
    options_file: Path | None,
    overrides: tuple[str, ...],
    replace: bool,
    published_defaults: bool,
) -> int:
    """Change the options; restart the tasks that the change concerns."""
    from dcos_tensorflow.options import as_given, given_part, load

    if options_file is None and (replace or not overrides):
        raise UsageError("Nothing to change: give --options, or --set for single options.")
    source: Path | str = options_file or "{}"
    if str(options_file) == "-":
        source = sys.stdin.read()
    path = "/v1/job/update"
    if replace:
        read = load(source, overrides=overrides, published_defaults=published_defaults)
        options = as_given(read)
    else:
        # What is right beside those in force the scheduler says.
        options = given_part(source, overrides, published_defaults=published_defaults)
        path += "?merge=true"
    answer = choice.client().ask("POST", path, json.dumps(options))
    if answer.status == 400:
        raise _options_error(answer)
    if answer.status == 409:
        raise CliError(f"{sentence(answer.message)[:-1]}, with --replace.")
    return _started(choice, answer)


@update.command(name="rollback")
@click.argument("configuration", metavar="[ID]", required=False)
@takes_service_flags
def update_rollback(choice: ServiceChoice, configuration: str | None) -> int:
    """Go back to an earlier configuration; without an id to the only other one."""
    body = json.dumps({"id": configuration}) if configuration else None
    answer = choice.client().ask("POST", "/v1/job/rollback", body)
    if answer.is_missing:
        raise CliError(f"There is no configuration {configuration}; see update configurations.")
    return _started(choice, answer)


@update.command(name="configurations", hidden=True)
@takes_service()
def update_configurations(choice: ServiceChoice) -> int:
    """Show the ids of all configurations, the target's first, always as JSON."""
    show_json(choice.client().get("/v1/configurations"))
    return 0


def _started(choice: ServiceChoice, answer: SchedulerAnswer) -> int:
    if answer.status == 417:
        raise CliError(f"{answer.message[:1].upper()}{answer.message[1:]}.")
    body = answer.expected()
    if choice.as_json:
        show_json(body)
        return 0
    if answer.status == 208:
        say(f"{answer.service} has these options already; nothing changes.")
        return 0
    restarts = ", ".join(body["restarts"]) or "no running task"
    say(f"Update started: configuration {body['id']}; new containers: {restarts}.")
    told = [
        they(body.get(part) or (), do) + more
        for part, do, more in (
            ("along", "start", " again in place"),
            ("joining", "join", " when there is room"),
            ("leaving", "leave", ""),
        )
        if body.get(part)
    ]
    if told:
        say(f"{'; '.join(told)}.")
    say(f"Please use `dcos-tensorflow update status --name={answer.service}` to view progress.")
    return 0


def _options_error(answer: SchedulerAnswer) -> Exception:
    """Return the scheduler's findings in the form of our own."""
    from dcos_tensorflow.options import OptionProblem, OptionsError

    problems = answer.document.get("problems") if isinstance(answer.document, Mapping) else None
    if not problems:
        return CliError(f"{answer.message}.")
    known = ("path", "message", "given", "allowed", "suggestion")
    return OptionsError(
        OptionProblem(**{key: str(problem.get(key, "")) for key in known}) for problem in problems
    )
