"""``plan``, ``pod``, ``update`` and ``uninstall``: what steers a service that runs.

The words, trees and messages are those of the DC/OS SDK's service command line. Called by
``commands.steering``; everything is asked of the service's scheduler over its HTTP API.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import click

from dcos_tensorflow.cli import registry
from dcos_tensorflow.cli.client import Answer, SchedulerAway, SchedulerClient, connect
from dcos_tensorflow.cli.errors import CliError, UsageError
from dcos_tensorflow.cli.output import say, say_lines, show_json
from dcos_tensorflow.cli.stored import stored_state
from dcos_tensorflow.cli.work_directory import WorkDirectory
from dcos_tensorflow.options import OptionProblem, OptionsError, load
from dcos_tensorflow.plugin.trees import plan_lines, pod_lines, pods_lines

#: The plan that ``update`` acts on: it shows the update while there is one, as in the SDK.
DEPLOY = "deploy"

_LOOK_SECONDS = 0.5

_ALREADY = "Cannot execute command. Command has already been issued or the plan has completed"
_UNKNOWN_ELEMENT = "Plan, phase, and/or step does not exist"
_ELEMENT_NOT_FOUND = "Element not found"

_UNFINISHED = "What it left is removed by dcos-tensorflow scheduler OPTIONS.json --uninstall."

#: What has been done to a plan, a phase or a step, by the last part of the verb's path.
_DONE = {
    "interrupt": "paused",
    "continue": "resumed",
    "restart": "restarted",
    "forceComplete": "forced to complete",
}


@dataclass(frozen=True)
class Asked:
    """Of which service something is asked, and how the answer is wanted."""

    work: WorkDirectory
    name: str | None
    as_json: bool = False

    def client(self) -> SchedulerClient:
        """Return a client of its scheduler. Raises SchedulerAway."""
        service, directory = registry.choose(self.work, self.name)
        return connect(directory, service)


def plan_list(asked: Asked) -> int:
    """Show the names of all plans."""
    show_json(asked.client().get("/v1/plans"))
    return 0


def plan_status(asked: Asked, plan: str, *, reasons: bool) -> int:
    """Show one plan."""
    answer = asked.client().ask("GET", f"/v1/plans/{quote(plan)}")
    if answer.text.strip() == _ELEMENT_NOT_FOUND:
        raise CliError(f"{_UNKNOWN_ELEMENT}.")
    # 417 says that the plan has errors: they are shown with it.
    body = answer.document if answer.status == 417 else answer.expected()
    if asked.as_json:
        show_json(body)
    else:
        say_lines(plan_lines(plan, body, reasons=reasons))
    return 0


def plan_verb(asked: Asked, plan: str, word: str, phase: str = "", step: str = "") -> int:
    """Pause, resume, restart or complete a plan, one of its phases or steps."""
    query = urlencode({k: v for k, v in (("phase", phase), ("step", step)) if v})
    path = f"/v1/plans/{quote(plan)}/{word}" + (f"?{query}" if query else "")
    body = _ordered(asked.client(), path)
    if asked.as_json or word not in _DONE:
        show_json(body)
        return 0
    say(f'"{plan}" plan{_part(phase, step)} has been {_DONE[word]}.')
    return 0


def _part(phase: str, step: str) -> str:
    if step:
        return f': step "{step}" in phase "{phase}"'
    return f': phase "{phase}"' if phase else ""


def _ordered(client: SchedulerClient, path: str, body: str | None = None) -> Any:
    """Return the answer to a verb. Raises CliError in the SDK's words where it has some."""
    answer = client.ask("POST", path, body)
    if answer.status == 208:
        raise CliError(f"{_ALREADY}: {answer.message}.")
    if answer.text.strip() == _ELEMENT_NOT_FOUND:
        raise CliError(f"{_UNKNOWN_ELEMENT}.")
    return answer.expected()


def pod_list(asked: Asked) -> int:
    """Show the names of all pod instances."""
    show_json(asked.client().get("/v1/pod"))
    return 0


def pod_status(asked: Asked, pod: str | None) -> int:
    """Show all pods, or one."""
    path = f"/v1/pod/{quote(pod)}/status" if pod else "/v1/pod/status"
    found = _found(asked.client().ask("GET", path), pod)
    if asked.as_json:
        show_json(found)
    else:
        say_lines(pod_lines(found) if pod else pods_lines(found))
    return 0


def pod_info(asked: Asked, pod: str) -> int:
    """Show TaskInfo and TaskStatus of a pod's task."""
    show_json(_found(asked.client().ask("GET", f"/v1/pod/{quote(pod)}/info"), pod))
    return 0


def pod_verb(asked: Asked, pod: str, word: str, tasks: Sequence[str] = ()) -> int:
    """Restart, replace, pause or resume a pod."""
    body = json.dumps(list(tasks)) if tasks else None
    show_json(_found(asked.client().ask("POST", f"/v1/pod/{quote(pod)}/{word}", body), pod))
    return 0


def _found(answer: Answer, pod: str | None) -> Any:
    if answer.text.strip() == _ELEMENT_NOT_FOUND:
        raise CliError(f"There is no pod {pod}; see pod list.")
    return answer.expected()


def update_start(asked: Asked, file: Path, overrides: tuple[str, ...]) -> int:
    """Make other options the target. Raises OptionsError when they are wrong."""
    source = sys.stdin.read() if str(file) == "-" else file
    options = load(source, overrides=overrides).model_dump(mode="json", exclude_unset=True)
    client = asked.client()
    answer = client.ask("POST", "/v1/job/update", json.dumps(options))
    if answer.status == 400:
        raise _options_error(answer)
    return _update_started(asked, client, answer)


def update_rollback(asked: Asked, identifier: str | None) -> int:
    """Make a configuration of before the target again."""
    client = asked.client()
    body = json.dumps({"id": identifier}) if identifier else None
    answer = client.ask("POST", "/v1/job/rollback", body)
    if answer.text.strip() == _ELEMENT_NOT_FOUND:
        raise CliError(f"There is no configuration {identifier}; see update configurations.")
    return _update_started(asked, client, answer)


def update_configurations(asked: Asked) -> int:
    """Show the ids of all stored configurations, the target's first."""
    show_json(asked.client().get("/v1/configurations"))
    return 0


def _update_started(asked: Asked, client: SchedulerClient, answer: Answer) -> int:
    if answer.status == 417:
        raise CliError(f"{answer.message[:1].upper()}{answer.message[1:]}.")
    body = answer.expected()
    if asked.as_json:
        show_json(body)
        return 0
    service = client.registration.service
    if answer.status == 208:
        say(f"{service} has these options already; nothing changes.")
        return 0
    restarts = ", ".join(body["restarts"]) or "no running task"
    say(f"Update started: configuration {body['id']}; new containers: {restarts}.")
    say(
        f"Please use `dcos-tensorflow update status --name={service}` to view progress.",
    )
    return 0


def _options_error(answer: Answer) -> Exception:
    """Return the scheduler's findings in the form of our own."""
    problems = answer.document.get("problems") if isinstance(answer.document, Mapping) else None
    if not problems:
        return CliError(f"{answer.message}.")
    known = ("path", "message", "given", "allowed", "suggestion")
    return OptionsError(
        OptionProblem(**{key: str(problem.get(key, "")) for key in known}) for problem in problems
    )


def uninstall(asked: Asked, *, yes: bool, wait: bool, seconds: float) -> int:
    """End a service and leave nothing of it behind. It cannot be taken back."""
    try:
        client = asked.client()
    except SchedulerAway as away:
        raise CliError(f"{away} {_UNFINISHED}") from away
    service = client.registration.service
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"Uninstalling {service} cannot be taken back: say --yes.")
        click.confirm(
            f"End every task of {service}, and forget it? This cannot be taken back.", abort=True
        )
    answer = client.ask("POST", "/v1/uninstall", json.dumps({"why": "from the command line"}))
    body = answer.expected()
    if not wait and asked.as_json:
        show_json({"service": service, "uninstalled": False, **body})
        return 0
    if not wait:
        say(f"{service} is being uninstalled; see dcos-tensorflow plan status deploy.")
        return 0
    return _await_uninstall(asked, client, service, seconds)


def _await_uninstall(asked: Asked, client: SchedulerClient, service: str, seconds: float) -> int:
    deadline = time.monotonic() + seconds
    given_up: list[str] = []
    while time.monotonic() < deadline:
        try:
            # Until the order is carried out the plan is that of the deployment, complete as it is.
            begun = client.get("/v1/job")["uninstalling"]
            done = begun and client.ask("GET", "/v1/plans/deploy").status == 200
            given_up = list(client.get("/v1/job")["given_up"])
        except SchedulerAway as away:
            # It goes when its work is done: then nothing is stored any more.
            if stored_state(client.registration.state, service) is not None:
                raise CliError(f"{away} {_UNFINISHED}") from away
            return _uninstalled(asked, service, given_up)
        if done:
            return _uninstalled(asked, service, given_up)
        time.sleep(_LOOK_SECONDS)
    raise CliError(
        f"{service} was asked to leave and has not within {seconds:g} s; see"
        f" dcos-tensorflow plan status deploy --name={service} --reasons."
    )


def _uninstalled(asked: Asked, service: str, given_up: list[str]) -> int:
    if asked.as_json:
        show_json({"service": service, "uninstalled": True, "given_up": given_up})
        return 0
    say(f"{service} is uninstalled.")
    for left in given_up:
        say(f"Given up, because nobody answered: {left}")
    return 0
