"""``endpoints``, ``options``, ``describe``, ``tensorboard`` and ``debug``: what a service tells.

The words and outputs are those of the DC/OS SDK's service command line where it has the command.
Called by ``commands``; everything is asked of the service's scheduler over its HTTP API.
"""

from __future__ import annotations

import json
import webbrowser
from typing import Any
from urllib.parse import quote

from dcos_tensorflow.cli.client import Answer
from dcos_tensorflow.cli.errors import CliError
from dcos_tensorflow.cli.output import say, show_json
from dcos_tensorflow.cli.steering import Asked

_ELEMENT_NOT_FOUND = "Element not found"


def endpoints(asked: Asked, name: str | None) -> int:
    """Show the names of all endpoints, or where one of them is."""
    if name is None:
        show_json(asked.client().get("/v1/endpoints"))
        return 0
    answer = asked.client().ask("GET", f"/v1/endpoints/{quote(name, safe='')}")
    found = _found(answer, f"endpoint {name}; see endpoints")
    if asked.as_json:
        show_json(found)
    else:
        say(answer.text)
    return 0


def options(asked: Asked) -> int:
    """Show the options in force, all of them; secrets are hidden."""
    show_json(_options(asked))
    return 0


def describe(asked: Asked) -> int:
    """Show the same, sorted by name as the SDK does."""
    say(json.dumps(_options(asked), indent=2, sort_keys=True))
    return 0


def _options(asked: Asked) -> Any:
    found = asked.client().get("/v1/configurations/target").get("options")
    if not found:
        raise CliError("The scheduler does not know its options: it was started without them.")
    return found


def tensorboard(asked: Asked, *, in_browser: bool) -> int:
    """Show where TensorBoard is, and open it if that is asked for."""
    client = asked.client()
    answer = client.ask("GET", "/v1/endpoints/tensorboard")
    if answer.text.strip() == _ELEMENT_NOT_FOUND:
        raise CliError(
            f"{client.registration.service} has no TensorBoard: set service.use_tensorboard."
        )
    addresses = answer.expected()["address"]
    if not addresses:
        waits = client.get("/v1/why")["tasks"].get("tensorboard-0", {}).get("why", "")
        raise CliError(f"TensorBoard does not run{': ' + waits if waits else ''}.")
    url = f"http://{addresses[0]}"
    if asked.as_json:
        show_json({"url": url})
    else:
        say(url)
    if in_browser and not webbrowser.open(url):
        raise CliError(f"No browser could be opened; the address is {url}.")
    return 0


def debug(asked: Asked, path: str, what: str, item: str | None, method: str) -> int:
    """Show a part of the scheduler's configuration or state: ``what`` it is, for messages."""
    full = f"/v1/{path}" + (f"/{quote(item, safe='')}" if item is not None else "")
    show_json(_found(asked.client().ask(method, full), f"{what} {item or ''}".strip()))
    return 0


def _found(answer: Answer, what: str) -> Any:
    if answer.text.strip() == _ELEMENT_NOT_FOUND:
        raise CliError(f"There is no {what}.")
    return answer.expected()
