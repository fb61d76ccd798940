"""``plan``, ``pod``, ``debug`` and ``endpoints``: the verbs of the DC/OS SDK, out of one table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import zip_longest
from typing import Any

import click

from dcos_tensorflow.cli.flags import NamedGroup, takes_service, takes_service_flags
from dcos_tensorflow.cli.names import endpoint_names, plan_names
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.output import say_lines, show_json
from dcos_tensorflow.client.service_choice import ServiceChoice
from dcos_tensorflow.client.wording import columns
from dcos_tensorflow.core.counted import listed
from dcos_tensorflow.plugin.sdk_verbs import ALIASES, GROUPS, VERBS, SdkVerb

_Lines = Callable[[Mapping[str, Any], Any, str], list[str]]
_NAMES = {alias: name for name, alias in ALIASES.items()}
#: What lists show, beside all of ``debug``. The others are words of the SDK's client, and those of
#: ``update`` are what ``plan`` does with the plan deploy.
_SHOWN = frozenset({*("plan status", "plan pause", "plan resume"), *("pod restart", "pod replace")})
_COMPLETIONS = {"plan": plan_names, "endpoint": endpoint_names}


class SdkGroup(NamedGroup):
    """A group with the verbs of the SDK that begin with its words."""

    def __init__(self, words: str, **more: Any) -> None:
        super().__init__(words.rpartition(" ")[2], help=GROUPS[words], **more)
        for verb in VERBS:
            if verb.group == words:
                is_shown = words.startswith("debug") or f"{words} {verb.name}" in _SHOWN
                self.add_command(_command(verb, hidden=not is_shown))
        for below in GROUPS:
            if below.rpartition(" ")[0] == words:
                self.add_command(SdkGroup(below))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name or its other name."""
        found = super().get_command(ctx, cmd_name)
        return found or super().get_command(ctx, _NAMES.get(cmd_name, ""))


def _command(verb: SdkVerb, *, hidden: bool = False) -> click.Command:
    def run(choice: ServiceChoice, **given: Any) -> int:
        return _carry_out(verb, choice, given)

    decorated = takes_service_flags(run) if verb.arguments else takes_service()(run)
    if verb.shows_a_plan:
        reasons = click.option("--reasons", is_flag=True, help="Say why each step is not complete.")
        decorated = reasons(decorated)
    if verb.body == "tasks":
        decorated = click.option("-t", "--tasks", multiple=True, help="Only this task of the pod.")(
            decorated
        )
    for name, required in reversed(verb.arguments):
        decorated = click.argument(
            name,
            metavar=name.upper() if required else f"[{name.upper()}]",
            required=required,
            shell_complete=_COMPLETIONS.get(name),
        )(decorated)
    return click.command(verb.name, help=verb.meaning, hidden=hidden)(decorated)


def _carry_out(verb: SdkVerb, choice: ServiceChoice, given: Mapping[str, Any]) -> int:
    """Ask the scheduler, and show its answer. Raises CliError."""
    body = json.dumps(given[verb.body]) if given.get(verb.body) else None
    answer = choice.client().ask(verb.method, f"/v1/{verb.path_for(given)}", body)
    if refusal := verb.refusal(given, answer):
        raise CliError(refusal)
    has_errors = verb.shows_a_plan and answer.status == 417
    document = answer.document if has_errors else answer.expected()
    lines = _FOR_PEOPLE.get(" ".join(verb.words), verb.lines)
    if lines is None or choice.as_json:
        show_json(document)
    else:
        say_lines(lines(given, document, answer.text))
    return 0


def _told(sentence: str) -> _Lines:
    return lambda given, document, text: [sentence.format(given["pod"])]


def _endpoints(given: Mapping[str, Any], document: Any, text: str) -> list[str]:
    if not given["endpoint"]:
        names = listed(document)
        return [f"{names}: endpoints NAME shows where." if document else "Nothing listens yet."]
    # The address by number and the one by name are those of the same task.
    return list(columns([*zip_longest(document["address"], document["dns"], fillvalue="")]))


#: What the SDK's client shows as JSON, and a person is told here; --json is the SDK's.
_FOR_PEOPLE: Mapping[str, _Lines] = {
    "endpoints": _endpoints,
    "pod restart": _told("The process of {} starts again, in its container."),
    "pod replace": _told("{} gets a new container."),
    "debug pod pause": _told("The process of {} stops, and its container stays."),
    "debug pod resume": _told("The process of {} starts again."),
}


plan = SdkGroup("plan")
pod = SdkGroup("pod")
debug = SdkGroup("debug", hidden=True)

for _verb in VERBS:
    if _verb.words == ["endpoints"]:
        endpoints = _command(_verb, hidden=True)
    elif _verb.group == "debug pod":
        pod.add_command(_command(_verb, hidden=True))
