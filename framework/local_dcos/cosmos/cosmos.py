"""Cosmos' package service: repositories, search, describe, render, install, list.

``cosmos_calls`` speaks HTTP for it; ``uninstall`` and ``service_changes`` are its other halves.
"""

from __future__ import annotations

import threading
from typing import Any

from local_dcos.cosmos import rendering, repositories
from local_dcos.cosmos.repositories import Package, Repositories, Repository
from local_dcos.errors import CosmosError, InvalidApp, MarathonError
from local_dcos.marathon.app_records import AppRecord
from local_dcos.marathon.marathon import Marathon
from local_dcos.state_file import StateFile

Json = dict[str, Any]

_SECTION = "repositories"
_SCHEMES = ("http://", "https://", "file://")


class Cosmos:
    """The package service. Thread-safe."""

    def __init__(self, state: StateFile, sources: Repositories, marathon: Marathon) -> None:
        """Read the list of repositories."""
        self._state = state
        self._sources = sources
        self._marathon = marathon
        self._lock = threading.Lock()

    # -- repositories --------------------------------------------------------------------------

    def repositories(self) -> list[Repository]:
        """Return the repositories, the first to be asked first."""
        return [Repository(**one) for one in self._state.get(_SECTION, [])]

    def add_repository(self, name: str, uri: str, index: int | None) -> list[Repository]:
        """Add a repository, at the end or at ``index``. Raises CosmosError."""
        new = Repository(name, uri)
        if not uri.startswith(_SCHEMES):
            raise CosmosError(
                "UnsupportedRepositoryUri",
                f"Repository URI [{uri}] uses an unsupported scheme. Only http, https and file are"
                " supported",
                {"uri": uri},
            )
        with self._lock:
            found = self.repositories()
            _check_new(found, new)
            if index is not None and not 0 <= index <= len(found):
                raise CosmosError(
                    "RepositoryAddIndexOutOfBounds",
                    f"Index out of range: {index}; it can be from 0 to {len(found)}",
                    {"attempted": index, "max": len(found)},
                )
            # One that cannot be read would make every other command fail.
            self._sources.read(new)
            found.insert(len(found) if index is None else index, new)
            self._put(found)
            return found

    def delete_repository(self, name: str | None, uri: str | None) -> list[Repository]:
        """Remove a repository by name or URI. Raises CosmosError."""
        with self._lock:
            found = self.repositories()
            left = [one for one in found if one.name != name and one.uri != uri]
            if len(left) == len(found):
                what = f"name [{name}]" if name is not None else f"URI [{uri}]"
                raise CosmosError(
                    "RepositoryNotPresent",
                    f"Repository {what} is not present in the list",
                    {"name": name} if name is not None else {"uri": uri},
                )
            self._put(left)
            return left

    def _put(self, found: list[Repository]) -> None:
        self._state.put(_SECTION, [one.to_json() for one in found])

    # -- packages ------------------------------------------------------------------------------

    def packages(self) -> list[Package]:
        """Return all packages of all repositories. Raises CosmosError."""
        return self._sources.packages(self.repositories())

    def package(self, name: str, version: str | None) -> Package:
        """Return a package. Raises CosmosError."""
        return repositories.find(self.packages(), name, version)

    def search(self, query: str | None) -> list[Json]:
        """Return the packages that fit. Raises CosmosError."""
        return repositories.search(self.packages(), query)

    def versions(self, name: str) -> dict[str, str]:
        """Return a package's versions. Raises CosmosError."""
        packages = self.packages()
        repositories.find(packages, name)
        return repositories.versions(packages, name)

    def render(
        self, name: str, version: str | None, options: Json | None, app_id: str | None
    ) -> Json:
        """Return the app that an installation would give to Marathon. Raises CosmosError."""
        return rendering.rendered(self.package(name, version), options, app_id).app

    def install(
        self, name: str, version: str | None, options: Json | None, app_id: str | None
    ) -> Json:
        """Start a package's app; return the answer's body. Raises CosmosError."""
        package = self.package(name, version)
        app = rendering.rendered(package, options, app_id).app
        try:
            record = self._marathon.create(app)
        except InvalidApp as error:
            raise refused(package, error) from error
        except MarathonError as error:
            if error.status != 409:
                raise
            raise CosmosError(
                "PackageAlreadyInstalled", "Package is already installed", status=409
            ) from error
        return {
            "packageName": package.name,
            "packageVersion": package.version,
            "appId": record.app_id,
        }

    # -- what is installed ---------------------------------------------------------------------

    def installed(self) -> list[tuple[AppRecord, Package]]:
        """Return the apps that came from packages, by app id."""
        found = []
        for record in self._marathon.apps():
            package = rendering.package_of(record.definition["labels"])
            if package is not None:
                found.append((record, package))
        return sorted(found, key=lambda one: one[0].app_id)

    def listed(self, name: str | None, app_id: str | None) -> list[Json]:
        """Return what ``package list`` shows, filtered if asked."""
        wanted = None if app_id is None else rendering.with_slash(app_id)
        return [
            {
                "appId": record.app_id,
                "packageInformation": {
                    "packageDefinition": _definition(package),
                    "resourceDefinition": package.document.get("resource", {}),
                },
            }
            for record, package in self.installed()
            if name in (None, package.name) and wanted in (None, record.app_id)
        ]


def shown(package: Package) -> Json:
    """Return a package as Cosmos describes it."""
    return {"selected": False, **package.document}


def refused(package: Package, error: InvalidApp) -> CosmosError:
    """Return the error for an app that Marathon does not take."""
    return CosmosError(
        "MarathonBadResponse",
        f"Marathon refused the app of package [{package.name}]: {error.text}",
        error.body(),
    )


def _check_new(found: list[Repository], new: Repository) -> None:
    for word, name in (("name", "name"), ("URI", "uri")):
        value = getattr(new, name)
        if any(getattr(one, name) == value for one in found):
            text = f"Repository {word} [{value}] is already present in the list"
            raise CosmosError("RepositoryAlreadyPresent", text, {name: value})


def _definition(package: Package) -> Json:
    # As Cosmos: an entry of the list is without what makes it run.
    left_out = ("config", "marathon", "resource", "releaseVersion", "lastUpdated")
    found = {name: value for name, value in package.document.items() if name not in left_out}
    return {"selected": False, "framework": False, **found}
