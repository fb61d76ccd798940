"""The cluster's own endpoints: its identity, version, logins and names.

``application`` puts the table behind a server. ``dcos cluster setup`` asks most of them.
"""

from __future__ import annotations

import hmac
import html
import json
import os
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from local_dcos import core_cli
from local_dcos.http_calls import (
    HTML,
    Answer,
    Call,
    Table,
    json_answer,
    text_answer,
)
from local_dcos.services import Service
from untrusted_input.other_pages import is_from_another_page, names_an_address

_PROVIDERS = {
    "dcos-users": {
        "authentication-type": "dcos-uid-password",
        "client-method": "dcos-usercredential-post-receive-authtoken",
        "config": {"start_flow_url": "/acs/api/v1/auth/login"},
        "description": "Default DC/OS login provider",
    }
}
_METRONOME = "/service/metronome"
_NO_COMMIT = "0" * 40
# Asked for before a user has logged in, or without a login.
_OPEN = ("/", "/acs/api/v1/auth/providers", "/acs/api/v1/auth/login", core_cli.PATH)


@dataclass(frozen=True)
class Login:
    """The one user that may come in."""

    user: str
    password: str


class Guard:
    """Lets requests in: its own user's, or those with the token that a login gives."""

    def __init__(self, login: Login | None, token: str | None = None) -> None:
        """``token`` is the one to give; a new one each time the daemon starts when None."""
        self._login = login
        self._token = token or secrets.token_urlsafe(24)

    def refuse(self, call: Call) -> Answer | None:
        """Return the refusal of a request, None when it may go on."""
        if is_from_another_page(call.method, call.headers) or not names_an_address(call.headers):
            # Apps are commands: a page in a browser must not be able to install one.
            return text_answer("403 Forbidden: only for clients that mean this machine\n", 403)
        if self._login is None:
            # Apps are commands, and this user would run them.
            whose = os.getuid()
            text = (
                f"403 Forbidden: only for processes of user {whose}, the owner; other users"
                " can log in if it was started with --dcos-login\n"
            )
            return None if call.user == whose else text_answer(text, 403)
        if call.path in _OPEN:
            return None
        given = call.headers.get("authorization", "").removeprefix("token=")
        if hmac.compare_digest(given.encode(), self._token.encode()):
            return None
        return Answer(401, b"", "application/json", (("WWW-Authenticate", "acsjwt"),))

    def log_in(self, call: Call) -> Answer:
        """Answer a login."""
        try:
            body = call.json() or {}
            uid, password = str(body.get("uid", "")), str(body.get("password", ""))
        except (ValueError, AttributeError):
            return json_answer({"title": "Bad Request", "description": "no JSON object"}, 400)
        login = self._login
        if login is None:
            return json_answer({"token": self._token})
        known = hmac.compare_digest(uid.encode(), login.user.encode())
        if not known & hmac.compare_digest(password.encode(), login.password.encode()):
            refusal = {
                "title": "Unauthorized",
                "description": "The user or the password is wrong.",
                "code": "ERR_INVALID_CREDENTIALS",
            }
            return json_answer(refusal, 401)
        return json_answer({"token": self._token})


@dataclass(frozen=True)
class Identity:
    """The cluster's identity. ``variant`` is ``open`` or ``enterprise``."""

    cluster_id: str
    version: str
    variant: str


class ClusterCalls:
    """Answers what concerns the cluster as a whole."""

    def __init__(
        self,
        identity: Identity,
        guard: Guard,
        plugin: bytes,
        services: Callable[[], Sequence[Service]],
    ) -> None:
        self._identity = identity
        self._guard = guard
        self._plugin = plugin
        self._services = services

    def table(self) -> Table:
        """Return what is answered."""
        version = {
            "version": self._identity.version,
            "dcos-variant": self._identity.variant,
            "dcos-image-commit": _NO_COMMIT,
            "bootstrap-id": _NO_COMMIT,
        }
        metadata = {"PUBLIC_IPV4": "127.0.0.1", "CLUSTER_ID": self._identity.cluster_id}
        node = {
            "updated": "2020-01-01T00:00:00.000Z",
            "public_ips": ["127.0.0.1"],
            "private_ip": "127.0.0.1",
            "hostname": "localhost",
        }
        capabilities = {"capabilities": [{"name": "PACKAGE_MANAGEMENT"}]}
        table = Table()
        table.add("GET", "/", self._home)
        table.add("GET", "/metadata", _fixed(metadata))
        table.add("GET", "/dcos-metadata/dcos-version\\.json", _fixed(version))
        table.add("GET", "/pkgpanda/active\\.buildinfo\\.full\\.json", _fixed({}))
        table.add("GET", "/cluster/v1/links", _fixed({"links": []}))
        table.add("GET", "/capabilities", _fixed(capabilities))
        table.add("GET", "/net/v1/nodes", _fixed([node]))
        table.add("GET", "/mesos_dns/v1/hosts/([^/]+)", self._host)
        table.add("GET", "/acs/api/v1/auth/providers", _fixed(_PROVIDERS))
        table.add("POST", "/acs/api/v1/auth/login", self._guard.log_in)
        # There is no Metronome, so no job and nothing queued: in the words of its own clients.
        table.add("GET", f"{_METRONOME}/v1/(?:jobs|queue)", _fixed([]))
        table.add("*", f"{_METRONOME}(?:/.*)?", _no_jobs)
        table.add("GET", core_cli.PATH.replace(".", "\\."), self._core_cli)
        return table

    def _home(self, call: Call) -> Answer:
        rows = "".join(
            f'<li><a href="/service/{html.escape(one.name)}/">{html.escape(one.name)}</a>'
            f"{'' if one.address else ' (starting)'}</li>"
            for one in self._services()
        )
        host = html.escape(call.headers.get("host", "127.0.0.1"))
        page = (
            "<!doctype html><title>Local DC/OS</title><h1>Local DC/OS</h1>"
            f"<p>Attach the DC/OS CLI: <code>dcos cluster setup http://{host}</code></p>"
            f"<h2>Services</h2><ul>{rows or '<li>none</li>'}</ul>"
        )
        return text_answer(page, 200, HTML)

    def _host(self, call: Call, name: str) -> Answer:
        bare = name.rstrip(".")
        known = bare in ("master.mesos", "leader.mesos", "marathon.mesos")
        # Mesos-DNS answers an unknown name with empty texts.
        ip, host = ("127.0.0.1", bare + ".") if known else ("", "")
        return json_answer([{"host": host, "ip": ip}])

    def _core_cli(self, call: Call) -> Answer:
        return Answer(200, self._plugin, "application/octet-stream")


def _no_jobs(call: Call) -> Answer:
    shown = call.method in ("GET", "HEAD")
    message = "Not supported by the local DC/OS: jobs (Metronome)"
    return json_answer({"message": message, "details": []}, 404 if shown else 501)


def _fixed(body: object) -> Callable[[Call], Answer]:
    content = json.dumps(body).encode()
    return lambda call: Answer(200, content, "application/json")
