"""HTTP to one service of a DC/OS cluster, and to the cluster's package manager.

Called by ``commands``. The address of the cluster and the user's login come from the environment
that the ``dcos`` command sets. That of DC/OS 1.11 leaves it to its plugins to read the command's
own files (``with_cluster``).
"""

from __future__ import annotations

import glob
import http.client
import json
import os
import re
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Dict, Mapping, Optional, Tuple


class CommandError(Exception):
    """A command that could not be carried out; the text is for the person who typed it."""


class NotNow(CommandError):
    """No scheduler answers for the service now; that may pass."""


_SECONDS = 60.0
_TYPE = "application/vnd.dcos.%s.%s-%s+json;charset=utf-8;version=v1"
_LOCAL = ("localhost", "127.0.0.1", "::1")


class HttpAnswer:
    """Status and body of an HTTP answer."""

    def __init__(self, status: int, reason: str, body: bytes) -> None:
        self.status = status
        self.reason = reason
        self.body = body

    @property
    def text(self) -> str:
        """Return the body as text."""
        return self.body.decode("utf-8", "replace")

    @property
    def message(self) -> str:
        """Return what a JSON body says as a sentence; empty where it says nothing so."""
        try:
            found = json.loads(self.text)
        except (ValueError, RecursionError):
            return ""
        told = found.get("message") if isinstance(found, dict) else None
        text = told.strip() if isinstance(told, str) else ""
        return f"{text.rstrip('.')}." if text else ""

    def json(self) -> Any:
        """Return the body as JSON. Raises CommandError."""
        try:
            return json.loads(self.text)
        except ValueError:
            raise CommandError(
                f"The answer is not JSON (status {self.status}): {self.text[:200]}"
            ) from None


class _OwnRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects; the token goes along within the cluster's own address only."""

    def redirect_request(self, req: Any, *more: Any) -> Any:
        """Return the request for where a redirect leads."""
        following = super().redirect_request(req, *more)
        if following is not None and _origin(following.full_url) != _origin(req.full_url):
            following.remove_header("Authorization")
        return following


def _origin(url: str) -> Tuple[str, str]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.netloc


class DcosCluster:
    """A DC/OS cluster as the ``dcos`` command describes it, and one service on it."""

    def __init__(self, service: str, environ: Mapping[str, str], *, verbose: bool = False) -> None:
        """``verbose`` tells each request and its status on standard error."""
        self.service = service
        self._verbose = verbose
        self._url = environ.get("DCOS_URL", "").rstrip("/")
        self._token = environ.get("DCOS_ACS_TOKEN", "")
        self._opener = self._open_with(environ) if self._url else None

    def scheduler(
        self, method: str, path: str, body: Optional[Any] = None, **query: Optional[str]
    ) -> HttpAnswer:
        """Ask the service's scheduler for ``/v1/<path>``. Raises CommandError.

        Answers of the scheduler itself are returned whatever their status; what says that there is
        no scheduler to ask is an error.
        """
        given = {key: value for key, value in query.items() if value is not None}
        suffix = "?" + urllib.parse.urlencode(given) if given else ""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        answer = self._ask(method, f"/service/{self.service_path}/v1/{path}{suffix}", body, headers)
        if answer.status in (500, 502, 503, 504):
            if answer.message:
                kind = CommandError if answer.status == 500 else NotNow
                raise kind(f"The scheduler of {self.service} cannot answer: {answer.message}")
            raise NotNow(
                f"The scheduler of {self.service} does not answer ({answer.status}"
                f" {answer.reason}); it may still be starting."
            )
        if answer.status in (401, 403):
            raise CommandError(
                f"The cluster refuses this ({answer.status} {answer.reason}); log in with"
                " 'dcos auth login'."
            )
        own = answer.message or answer.text.strip() == "Element not found"
        if answer.status == 404 and not own:
            raise NotNow(
                f"There is no service {self.service} on this cluster (404 {answer.reason}). Name"
                " it with --name=<name>, or once for all with"
                " 'dcos config set tensorflow.service_name <name>'."
            )
        return answer

    def package_manager(self, verb: str, body: Mapping[str, Any]) -> HttpAnswer:
        """Ask for ``/cosmos/service/<verb>``. Raises CommandError."""
        return self._ask("POST", f"/cosmos/service/{verb}", body, _types("service", verb))

    def packages(self, verb: str, body: Mapping[str, Any]) -> HttpAnswer:
        """Ask for ``/package/<verb>``. Raises CommandError."""
        return self._ask("POST", f"/package/{verb}", body, _types("package", verb))

    def marathon(
        self, method: str, path: str, body: Optional[Any] = None, **query: str
    ) -> HttpAnswer:
        """Ask Marathon. Raises CommandError."""
        suffix = "?" + urllib.parse.urlencode(query) if query else ""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        return self._ask(method, f"/service/marathon/{path}{suffix}", body, headers)

    def scheduler_if_up(self, method: str, path: str, body: Any) -> Optional[HttpAnswer]:
        """Ask the service's scheduler for ``/v1/<path>``; None when there is none to ask.

        The path may end with a query.

        Raises CommandError when the cluster itself cannot be reached.
        """
        headers = {"Content-Type": "application/json"}
        answer = self._ask(method, f"/service/{self.service_path}/v1/{path}", body, headers)
        return None if answer.status >= 500 else answer

    @property
    def service_path(self) -> str:
        """The service's name as a part of a path."""
        return urllib.parse.quote(self.service.strip("/"))

    def log(self, task_id: str, file: str, lines: int) -> HttpAnswer:
        """Ask for the last lines of a file in a task's sandbox. Raises CommandError."""
        headers = {"Accept": "text/plain"}
        return self._ask("GET", _log_path(task_id, file, lines), None, headers)

    def follow(self, task_id: str, file: str, lines: int, after: str) -> Any:
        """Return the open event stream of a file; what follows the event ``after`` when given.

        Raises OSError: a command that follows tries again.
        """
        if self._opener is None:
            raise _no_cluster()
        request = urllib.request.Request(self._url + _log_path(task_id, file, lines))
        request.add_header("Accept", "text/event-stream")
        if after:
            request.add_header("Last-Event-ID", after)
        if self._token:
            request.add_header("Authorization", f"token={self._token}")
        return self._opener.open(request, timeout=_SECONDS)

    def _ask(
        self, method: str, path: str, body: Optional[Any], headers: Dict[str, str]
    ) -> HttpAnswer:
        if self._opener is None:
            raise _no_cluster()
        data = None if body is None else json.dumps(body).encode("utf-8")
        request = urllib.request.Request(self._url + path, data, headers, method=method)
        if self._token:
            request.add_header("Authorization", f"token={self._token}")
        answer = self._answer(request)
        if self._verbose:
            told = f"{method} {self._url}{path}: {answer.status} {answer.reason}"
            print(told, file=sys.stderr)
        return answer

    def _answer(self, request: urllib.request.Request) -> HttpAnswer:
        assert self._opener is not None
        try:
            with self._opener.open(request, timeout=_SECONDS) as response:
                return HttpAnswer(response.status, response.reason, response.read())
        except urllib.error.HTTPError as error:
            with error:
                return HttpAnswer(error.code, error.reason, error.read())
        except (OSError, ValueError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise NotNow(f"{self._url} cannot be reached: {reason}.") from error

    def _open_with(self, environ: Mapping[str, str]) -> urllib.request.OpenerDirector:
        handlers: Tuple[urllib.request.BaseHandler, ...] = (
            _OwnRedirects(),
            urllib.request.HTTPSHandler(context=_tls(environ)),
        )
        if urllib.parse.urlsplit(self._url).hostname in _LOCAL:
            # A proxy cannot reach this machine's own addresses.
            handlers += (urllib.request.ProxyHandler({}),)
        return urllib.request.build_opener(*handlers)


def _log_path(task_id: str, file: str, lines: int) -> str:
    task, name = urllib.parse.quote(task_id, safe=""), urllib.parse.quote(file)
    return f"/system/v1/logs/v2/task/{task}/file/{name}?cursor=END&skip=-{lines}"


def _types(service: str, verb: str) -> Dict[str, str]:
    return {
        "Accept": _TYPE % (service, verb, "response"),
        "Content-Type": _TYPE % (service, verb, "request"),
    }


def _no_cluster() -> CommandError:
    return CommandError(
        "Which cluster? This is a command of the DC/OS command line: run it as"
        " 'dcos tensorflow', or set DCOS_URL."
    )


def _tls(environ: Mapping[str, str]) -> ssl.SSLContext:
    authority = environ.get("DCOS_TLS_CA_PATH", "")
    try:
        context = ssl.create_default_context(cafile=authority or None)
    except OSError as error:
        raise CommandError(f"DCOS_TLS_CA_PATH: {authority} cannot be read: {error}.") from error
    if environ.get("DCOS_TLS_INSECURE", "") == "1":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


_LINE = re.compile(r"""^\s*(\w+)\s*=\s*(?:"([^"\\]*)"|'([^']*)'|(true|false))\s*$""")


def with_cluster(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return ``environ``, with address and token of the attached cluster where it has none."""
    folder = environ.get("DCOS_DIR") or os.path.join(environ.get("HOME", ""), ".dcos")
    if environ.get("DCOS_URL") or not os.path.isabs(folder):
        return environ
    attached = glob.glob(os.path.join(glob.escape(folder), "clusters", "*", "attached"))
    if len(attached) != 1:
        return environ
    try:
        path = os.path.join(os.path.dirname(attached[0]), "dcos.toml")
        with open(path, encoding="utf-8") as file:
            core = _core(file.read())
    except (OSError, ValueError):
        return environ
    found = {"DCOS_URL": core.get("dcos_url", ""), "DCOS_ACS_TOKEN": core.get("dcos_acs_token", "")}
    verify = core.get("ssl_verify", "")
    if verify == "false":
        found["DCOS_TLS_INSECURE"] = "1"
    elif verify not in ("", "true"):
        found["DCOS_TLS_CA_PATH"] = verify
    return {**environ, **found}


def _core(text: str) -> Dict[str, str]:
    found: Dict[str, str] = {}
    section = ""
    for line in text.splitlines():
        if line.strip().startswith("["):
            section = line.strip().strip("[]").strip()
            continue
        match = _LINE.match(line)
        if section == "core" and match:
            found[match[1]] = match[2] or match[3] or match[4] or ""
    return found
