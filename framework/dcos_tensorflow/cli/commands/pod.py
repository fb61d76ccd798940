"""``pod``: sees and steers single tasks, in the words of the DC/OS SDK."""

from __future__ import annotations

import json
from urllib.parse import quote

import click

from dcos_tensorflow.cli.flags import NamedGroup, asks, asks_about
from dcos_tensorflow.client.asked import Asked
from dcos_tensorflow.client.output import say_lines, show_json
from dcos_tensorflow.plugin.trees import pod_lines, pods_lines


@click.group(cls=NamedGroup)
def pod() -> None:
    """Show and control single tasks: a pod instance is a task."""


@pod.command(name="list")
@asks_about()
def pod_list(asked: Asked) -> int:
    """Show the names of all pod instances, always as JSON."""
    show_json(asked.client().get("/v1/pod"))
    return 0


@pod.command(name="status")
@click.argument("pod_name", metavar="[POD]", required=False)
@asks
def pod_status(asked: Asked, pod_name: str | None) -> int:
    """Show all pods as a tree, or one."""
    path = f"/v1/pod/{quote(pod_name)}/status" if pod_name else "/v1/pod/status"
    found = asked.client().ask("GET", path).found(_what(pod_name))
    if asked.as_json:
        show_json(found)
    else:
        say_lines(pod_lines(found) if pod_name else pods_lines(found))
    return 0


@pod.command(name="info")
@click.argument("pod_name", metavar="POD")
@asks
def pod_info(asked: Asked, pod_name: str) -> int:
    """Show Mesos' data about a pod, always as JSON."""
    answer = asked.client().ask("GET", f"/v1/pod/{quote(pod_name)}/info")
    show_json(answer.found(_what(pod_name)))
    return 0


def _what(pod_name: str | None) -> str:
    return f"pod {pod_name}; see pod list"


def _add_verb(word: str, meaning: str, *, takes_tasks: bool) -> None:
    @asks
    def verb(asked: Asked, pod_name: str, tasks: tuple[str, ...] = ()) -> int:
        body = json.dumps(list(tasks)) if tasks else None
        answer = asked.client().ask("POST", f"/v1/pod/{quote(pod_name)}/{word}", body)
        show_json(answer.found(_what(pod_name)))
        return 0

    if takes_tasks:
        verb = click.option("-t", "--tasks", multiple=True, help="Only this task of the pod.")(verb)
    verb = click.argument("pod_name", metavar="POD")(verb)
    pod.command(name=word, help=meaning)(verb)


_add_verb("restart", "Start a task's process again, in its container.", takes_tasks=False)
_add_verb("replace", "Give a task a new container, elsewhere if it can.", takes_tasks=False)
_add_verb("pause", "Stop a task's process and keep its container.", takes_tasks=True)
_add_verb("resume", "Start the process of a paused task again.", takes_tasks=True)
