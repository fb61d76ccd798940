"""Package repositories: reads Universe's repository JSON and answers which packages there are.

``cosmos`` asks. A repository is a stub universe (``{"packages": [...]}``) behind ``http(s)://`` or
``file://``. Each question reads it anew, so that a package built a moment ago is seen; the first
repository in the list that has a package wins, as with Cosmos.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from local_dcos.download_cache import DownloadCache, DownloadError, file_path
from local_dcos.errors import CosmosError
from untrusted_input.json_text import read_json

Json = dict[str, Any]

#: The media type of a repository with packages up to packaging version 4.0.
REPOSITORY_TYPE = "application/vnd.dcos.universe.repo+json;charset=utf-8;version=v4"
# Universe chooses what it serves by the version in this header.
_HEADERS = {"Accept": REPOSITORY_TYPE, "User-Agent": "dcos/2.1.0"}


@dataclass(frozen=True)
class Repository:
    """Where packages come from."""

    name: str
    uri: str

    def to_json(self) -> Json:
        """Return it as Cosmos shows it."""
        return {"name": self.name, "uri": self.uri}


@dataclass(frozen=True)
class Package:
    """One version of a package. ``document`` is its entry in the repository, ``source`` whose."""

    document: Json
    source: str

    @property
    def name(self) -> str:
        """Return its name."""
        return str(self.document["name"])

    @property
    def version(self) -> str:
        """Return its version."""
        return str(self.document["version"])

    @property
    def release_version(self) -> int:
        """Return its place among the package's versions; higher is newer."""
        return int(self.document["releaseVersion"])

    @property
    def template(self) -> str | None:
        """Return the base64 of the app template, None when it installs no app."""
        found = self.document.get("marathon", {}).get("v2AppMustacheTemplate")
        return None if found is None else str(found)


class Repositories:
    """Reads repositories. Thread-safe; holds no list of them."""

    def __init__(self, cache: DownloadCache, built_in: Sequence[Package] = ()) -> None:
        self._cache = cache
        self._built_in = tuple(built_in)

    def read(self, repository: Repository) -> list[Package]:
        """Return a repository's packages. Raises CosmosError."""
        try:
            path = file_path(repository.uri)
            if path is None:
                path = self._cache.get(repository.uri, _HEADERS)
            document = read_json(path.read_bytes())
        except (DownloadError, OSError) as error:
            raise _unreadable(repository, "RepositoryUriConnection", error) from error
        except ValueError as error:
            raise _unreadable(
                repository, "RepositoryNotJson", f"it is not JSON ({error})"
            ) from error
        return parse(document, repository)

    def packages(self, repositories: Iterable[Repository]) -> list[Package]:
        """Return all packages, those of the first repository first. Raises CosmosError."""
        found: list[Package] = []
        for repository in repositories:
            found.extend(self.read(repository))
        return [*found, *self._built_in]


def parse(document: Any, repository: Repository) -> list[Package]:
    """Return the packages of a repository's JSON. Raises CosmosError, which names the entry."""
    entries = document.get("packages") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise _unreadable(repository, "RepositoryNotJson", "it has no list 'packages'")
    found = []
    for index, entry in enumerate(entries):
        problem = _problem(entry)
        if problem is not None:
            where = f"packages[{index}]"
            raise _unreadable(repository, "RepositoryNotJson", f"{where}: {problem}")
        found.append(Package(entry, repository.uri))
    return found


def _problem(entry: Any) -> str | None:
    if not isinstance(entry, dict):
        return "is no object"
    for name in ("name", "version"):
        if not isinstance(entry.get(name), str):
            return f"has no text '{name}'"
    release = entry.get("releaseVersion")
    if not isinstance(release, int) or isinstance(release, bool):
        return "has no integer 'releaseVersion'"
    for name in ("config", "marathon", "resource"):
        if not isinstance(entry.get(name, {}), dict):
            return f"has a '{name}' that is no object"
    return None


def _unreadable(repository: Repository, kind: str, why: object) -> CosmosError:
    return CosmosError(
        kind,
        f"Could not access data at URI [{repository.uri}] of repository [{repository.name}]: {why}",
        repository.to_json(),
    )


def find(packages: Iterable[Package], name: str, version: str | None = None) -> Package:
    """Return a package: this version, else the newest of the first repository that has it.

    Raises CosmosError when there is none.
    """
    named = [one for one in packages if one.name == name]
    if not named:
        raise CosmosError("PackageNotFound", f"Package [{name}] not found", {"packageName": name})
    if version is not None:
        for one in named:
            if one.version == version:
                return one
        raise CosmosError(
            "VersionNotFound",
            f"Version [{version}] of package [{name}] not found",
            {"packageName": name, "packageVersion": version},
        )
    first = [one for one in named if one.source == named[0].source]
    return max(first, key=lambda one: one.release_version)


def versions(packages: Iterable[Package], name: str) -> dict[str, str]:
    """Return version -> release version of a package, both texts, as Cosmos lists them."""
    found: dict[str, str] = {}
    for one in packages:
        if one.name == name:
            found.setdefault(one.version, str(one.release_version))
    return found


def search(packages: Sequence[Package], query: str | None) -> list[Json]:
    """Return the packages whose name, description or tags hold ``query``; ``*`` is any text."""
    names: dict[str, None] = dict.fromkeys(one.name for one in packages)
    newest = [find(packages, name) for name in names]
    wanted = [one for one in newest if query is None or _matches(one, query)]
    wanted.sort(key=lambda one: (not one.document.get("selected", False), one.name))
    return [_found(one, packages) for one in wanted]


def _matches(package: Package, query: str) -> bool:
    from fnmatch import fnmatchcase

    wanted = query.lower()
    pattern = wanted if "*" in wanted else f"*{wanted}*"
    texts = [
        package.name,
        str(package.document.get("description", "")),
        *map(str, package.document.get("tags", [])),
    ]
    return any(fnmatchcase(text.lower(), pattern) for text in texts)


def _found(package: Package, packages: Sequence[Package]) -> Json:
    document = package.document
    return {
        "name": package.name,
        "currentVersion": package.version,
        "versions": versions(packages, package.name),
        "description": document.get("description", ""),
        "framework": bool(document.get("framework", False)),
        "tags": document.get("tags", []),
        "selected": bool(document.get("selected", False)),
        "images": document.get("resource", {}).get("images", {}),
    }
