"""The REST API of an MLflow tracking server, as far as runs are told to it.

``tracking`` calls it, on a thread of its own. No redirect is followed, so that a token reaches no
other server, and of an answer a part is read that no true one exceeds.

Source: mlflow.org/docs/latest/api_reference/rest-api.html (2.0 of the API, which MLflow 1 to 3
have).
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from dcos_tensorflow.plugin.plain_text import escaped
from untrusted_input.json_text import read_json

#: The server limits what one request tells.
MOST_METRICS, MOST_PARAMETERS = 1000, 100
#: Older servers keep no longer value.
MOST_LETTERS = 500
_SECONDS = 10.0
_MOST_BYTES = 4 << 20
_MISSING = "RESOURCE_DOES_NOT_EXIST"
_THERE = "RESOURCE_ALREADY_EXISTS"


class TrackingError(Exception):
    """The server was not reached, or does not do what it is asked; the text says what and why."""

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code


class MlflowServer:
    """A server. All methods block, and raise TrackingError.

    ``secret`` goes with each request: a token, or with a colon in it a login; empty for none.
    """

    def __init__(self, uri: str, secret: str = "") -> None:
        self.uri = uri
        self._parts = urlsplit(uri)
        self._headers = {"Content-Type": "application/json"}
        if ":" in secret:
            packed = base64.b64encode(secret.encode()).decode()
            self._headers["Authorization"] = f"Basic {packed}"
        elif secret:
            self._headers["Authorization"] = f"Bearer {secret}"

    def experiment(self, name: str) -> str:
        """Return the id of an experiment, which is made where it is missing."""
        try:
            found = self._ask(
                "GET", f"experiments/get-by-name?experiment_name={quote(name, safe='')}"
            )
            return self._in(found, "experiment", "experiment_id")
        except TrackingError as error:
            if error.code != _MISSING:
                raise
        try:
            found = self._ask("POST", "experiments/create", {"name": name})
            return self._in(found, "experiment_id")
        except TrackingError as error:
            if error.code != _THERE:
                raise
        # Another scheduler was faster.
        return self.experiment(name)

    def run_tagged(self, experiment: str, tag: str, value: str) -> str:
        """Return the id of the run that has this value of a tag; empty where there is none."""
        wanted = {
            "experiment_ids": [experiment],
            "filter": f"tags.`{tag}` = '{value}'",
            "max_results": 1,
        }
        runs = self._ask("POST", "runs/search", wanted).get("runs") or []
        return self._in(runs[0], "info", "run_id") if runs else ""

    def begin_run(
        self, experiment: str, name: str, began_at: float, tags: Mapping[str, str]
    ) -> str:
        """Begin a run, and return its id."""
        told = {
            "experiment_id": experiment,
            "run_name": name,
            "start_time": _milliseconds(began_at),
        }
        found = self._ask("POST", "runs/create", {**told, "tags": _pairs(tags)})
        return self._in(found, "run", "info", "run_id")

    def tell(
        self,
        run: str,
        *,
        metrics: Sequence[tuple[str, float | str, float, int]] = (),
        parameters: Mapping[str, str] | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Add metrics (name, value, unix seconds, step), parameters and tags to a run."""
        told = {
            "run_id": run,
            "metrics": [
                {"key": name, "value": value, "timestamp": _milliseconds(at), "step": step}
                for name, value, at, step in metrics
            ],
            "params": _pairs(parameters or {}),
            "tags": _pairs(tags or {}),
        }
        self._ask("POST", "runs/log-batch", told)

    def end_run(self, run: str, status: str, ended_at: float) -> None:
        """End a run as FINISHED, FAILED or KILLED."""
        told = {"run_id": run, "status": status, "end_time": _milliseconds(ended_at)}
        self._ask("POST", "runs/update", told)

    def _in(self, found: Any, *path: str) -> str:
        """Return what an answer has there."""
        for name in path:
            found = found.get(name) if isinstance(found, Mapping) else None
        if not isinstance(found, str) or not found:
            raise TrackingError(f"{self.uri} answers in another way than MLflow does")
        return found

    def _ask(self, method: str, path: str, body: Any = None) -> Mapping[str, Any]:
        parts = self._parts
        host, whole = parts.hostname or "", f"{parts.path.rstrip('/')}/api/2.0/mlflow/{path}"
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(
                host, parts.port, timeout=_SECONDS, context=context
            )
        else:
            connection = http.client.HTTPConnection(host, parts.port, timeout=_SECONDS)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, whole, text, self._headers)
            answer = connection.getresponse()
            content = answer.read(_MOST_BYTES)
        except (OSError, http.client.HTTPException, ValueError) as error:
            why = getattr(error, "strerror", "") or str(error) or type(error).__name__
            raise TrackingError(f"{self.uri} cannot be reached: {why}") from None
        finally:
            connection.close()
        found = _object(content)
        if answer.status != http.client.OK:
            code = str(found.get("error_code", ""))
            told = escaped(str(found.get("message") or answer.reason)[:MOST_LETTERS])
            raise TrackingError(f"{self.uri} answers {answer.status}: {told}", code)
        return found


def _object(content: bytes) -> Mapping[str, Any]:
    try:
        found = read_json(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _pairs(told: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": name, "value": value[:MOST_LETTERS]} for name, value in told.items()]


def _milliseconds(at: float) -> int:
    return int(at * 1000)
