"""Cosmos over HTTP: ``/package/*`` and ``/cosmos/service/*``.

``application`` puts the table behind a server. Here bodies are checked for their form; ``cosmos``,
``service_changes`` and ``uninstall`` carry them out.
"""

from __future__ import annotations

import functools
import mimetypes
import urllib.parse
from collections.abc import Callable
from typing import Any

from local_dcos.cosmos import media_types
from local_dcos.cosmos.cosmos import Cosmos, shown
from local_dcos.cosmos.repositories import Repository
from local_dcos.cosmos.service_changes import ServiceChanges, UpdateRequest
from local_dcos.cosmos.uninstall import Uninstaller
from local_dcos.download_cache import DownloadCache, DownloadError, file_path
from local_dcos.errors import CosmosError
from local_dcos.http_calls import Answer, Call, Table, json_answer

Json = dict[str, Any]

RESOURCE_PATH = "/package/resource"


class Request:
    """A request's body. Each member is asked for by its type; raises CosmosError."""

    def __init__(self, call: Call) -> None:
        try:
            body = call.json()
        except ValueError as error:
            raise _bad(f"the body is no JSON: {error}") from error
        if body is not None and not isinstance(body, dict):
            raise _bad("the body is no JSON object")
        self._body: Json = body or {}

    def text(self, name: str) -> str:
        """Return a text that must be there."""
        found = self.optional(name, str, "text")
        if found is None:
            raise _bad(f"'{name}' is missing")
        return str(found)

    def optional(self, name: str, kind: type, words: str) -> Any:
        """Return a member of a type, None when it is not there."""
        found = self._body.get(name)
        if found is None:
            return None
        if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
            raise _bad(f"'{name}' must be {words}")
        return found

    def integer(self, name: str) -> int | None:
        """Return a number if there is one; as Cosmos does, a text that holds one is taken."""
        found = self._body.get(name)
        if isinstance(found, str) and found.isascii() and found.isdigit():
            return int(found)
        whole = self.optional(name, int, "an integer")
        return None if whole is None else int(whole)

    def version(self) -> str | None:
        """Return the package's version, if one is asked for."""
        found = self.optional("packageVersion", str, "text")
        return None if found is None else str(found)


def _bad(why: str) -> CosmosError:
    return CosmosError("JsonParsingError", f"Unable to read the request: {why}")


class CosmosCalls:
    """Answers the requests of Cosmos' clients."""

    def __init__(
        self,
        cosmos: Cosmos,
        services: ServiceChanges | None,
        uninstaller: Uninstaller,
        cache: DownloadCache,
    ) -> None:
        """Without ``services`` there is no ``/cosmos/service``, as on old open clusters."""
        self._cosmos = cosmos
        self._services = services
        self._uninstaller = uninstaller
        self._cache = cache

    def table(self) -> Table:
        """Return what is answered."""
        table = Table()
        package: dict[str, Callable[[Request, Call], Json]] = {
            "repository/list": lambda request, call: _listed(self._cosmos.repositories()),
            "repository/add": self._repository_add,
            "repository/delete": self._repository_delete,
            "search": self._search,
            "describe": self._describe,
            "list-versions": self._list_versions,
            "render": self._render,
            "install": self._install,
            "list": self._list,
            "uninstall": self._uninstall,
        }
        for verb, work in package.items():
            table.add("POST", f"/package/{verb}", _handler("package", verb, work))
        if self._services is not None:
            for verb, serve in _SERVICE_VERBS.items():
                handler = _handler("service", verb, functools.partial(serve, self._services))
                table.add("POST", f"(?:/cosmos)?/service/{verb}", handler)
        table.add("GET", RESOURCE_PATH, self._resource)
        return table

    # -- repositories --------------------------------------------------------------------------

    def _repository_add(self, request: Request, call: Call) -> Json:
        return _listed(
            self._cosmos.add_repository(
                request.text("name"), request.text("uri"), request.integer("index")
            )
        )

    def _repository_delete(self, request: Request, call: Call) -> Json:
        name = request.optional("name", str, "text")
        uri = request.optional("uri", str, "text")
        if name is None and uri is None:
            raise _bad("'name' or 'uri' is missing")
        return _listed(self._cosmos.delete_repository(name, uri))

    # -- packages ------------------------------------------------------------------------------

    def _search(self, request: Request, call: Call) -> Json:
        found = self._cosmos.search(request.optional("query", str, "text"))
        return {"packages": [_reachable(one, call) for one in found]}

    def _describe(self, request: Request, call: Call) -> Json:
        package = self._cosmos.package(request.text("packageName"), request.version())
        return _package_reachable({"package": shown(package)}, call)

    def _list_versions(self, request: Request, call: Call) -> Json:
        return {"results": self._cosmos.versions(request.text("packageName"))}

    def _render(self, request: Request, call: Call) -> Json:
        return {"marathonJson": self._cosmos.render(*_installation(request))}

    def _install(self, request: Request, call: Call) -> Json:
        return self._cosmos.install(*_installation(request))

    def _list(self, request: Request, call: Call) -> Json:
        name = request.optional("packageName", str, "text")
        app_id = request.optional("appId", str, "text")
        return {"packages": self._cosmos.listed(name, app_id)}

    def _uninstall(self, request: Request, call: Call) -> Json:
        app_id = request.optional("appId", str, "text")
        every = bool(request.optional("all", bool, "true or false"))
        name = request.text("packageName")
        return {"results": self._uninstaller.uninstall(name, app_id, every=every)}

    # -- files of packages ---------------------------------------------------------------------

    def _resource(self, call: Call) -> Answer:
        """Give a file that a package names: clients on other machines cannot read ``file://``."""
        url = call.query.get("url", "")
        if not any(url in _urls(package.document) for package in self._cosmos.packages()):
            raise CosmosError("ResourceNotFound", f"No package names the URL [{url}]", status=404)
        path = file_path(url)
        try:
            content = (path if path is not None else self._cache.get(url)).read_bytes()
        except (OSError, DownloadError) as error:
            raise CosmosError("ResourceNotFound", f"[{url}]: {error}", status=404) from error
        kind = mimetypes.guess_type(url)[0] or "application/octet-stream"
        return Answer(200, content, kind)


def _described(services: ServiceChanges, request: Request, call: Call) -> Json:
    return _package_reachable(services.describe(request.text("appId")), call)


def _updated(services: ServiceChanges, request: Request, call: Call) -> Json:
    wanted = UpdateRequest(
        app_id=request.text("appId"),
        options=request.optional("options", dict, "an object"),
        package_version=request.version(),
        replace=bool(request.optional("replace", bool, "true or false")),
    )
    return _package_reachable(services.update(wanted), call)


_SERVICE_VERBS = {"describe": _described, "update": _updated}


def _installation(request: Request) -> tuple[str, str | None, Json | None, str | None]:
    return (
        request.text("packageName"),
        request.version(),
        request.optional("options", dict, "an object"),
        request.optional("appId", str, "text"),
    )


def _handler(
    room: str, verb: str, work: Callable[[Request, Call], Json]
) -> Callable[[Call], Answer]:
    def handle(call: Call) -> Answer:
        media_types.check_request(room, verb, call.headers.get("content-type"))
        body = work(Request(call), call)
        kind = media_types.response(room, verb, call.headers.get("accept", ""))
        return json_answer(body, content_type=kind)

    return handle


def _listed(found: list[Repository]) -> Json:
    return {"repositories": [one.to_json() for one in found]}


def _package_reachable(answer: Json, call: Call) -> Json:
    """Return ``answer`` with the URLs of its package's own files as URLs of this server.

    The options beside it belong to the user: a client sends them back with its next update.
    """
    return {**answer, "package": _reachable(answer["package"], call)}


def _reachable(value: Any, call: Call) -> Any:
    """Return a package's document in which every ``file://`` URL is one of this server."""
    if isinstance(value, dict):
        return {name: _reachable(one, call) for name, one in value.items()}
    if isinstance(value, list):
        return [_reachable(one, call) for one in value]
    if isinstance(value, str) and value.startswith("file://"):
        host = call.headers.get("host", "127.0.0.1")
        return f"http://{host}{RESOURCE_PATH}?url={urllib.parse.quote(value, safe='')}"
    return value


def _urls(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set().union(*map(_urls, value.values()))
    if isinstance(value, list):
        return set().union(*map(_urls, value))
    return {value} if isinstance(value, str) and "://" in value else set()
