"""Describing and updating a service whose cluster's package manager cannot: through Marathon.

Open clusters have packages, but not all of them have ``/cosmos/service``. Called by ``commands``
when that is missing. It takes the steps of the package manager in the same order, and nothing
changes before all of them have succeeded:

1. the options in force are taken from the app's labels, the given ones laid over them;
2. the package manager renders the app with them, which checks them by the package's rules;
3. the service's scheduler is asked whether it can go over to them (``/v1/job/check``);
4. Marathon gets the app.
"""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any, Dict, Mapping, Optional

from dcos_tensorflow.plugin.client import CommandError, DcosCluster, HttpAnswer
from dcos_tensorflow.plugin.update_check import check, problem_in
from untrusted_input.package_options import defaults, merge

_OPTIONS = "DCOS_PACKAGE_OPTIONS"
_PREFIX = "DCOS_PACKAGE_"

Json = Dict[str, Any]


class InstalledApp:
    """An app that came from a package, as its labels tell."""

    def __init__(self, app: Mapping[str, Any]) -> None:
        self.app_id = str(app.get("id", ""))
        self.labels: Dict[str, str] = dict(app.get("labels") or {})
        if "DCOS_PACKAGE_NAME" not in self.labels:
            raise CommandError(f"The app {self.app_id} did not come from a package.")
        self.name = self.labels["DCOS_PACKAGE_NAME"]
        self.version = self.labels.get("DCOS_PACKAGE_VERSION", "")

    @property
    def options(self) -> Optional[Json]:
        """The options that it was installed with; None when they cannot be told."""
        try:
            found = json.loads(base64.b64decode(self.labels[_OPTIONS]))
        except (KeyError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    @property
    def defaults(self) -> Json:
        """The defaults of the package that it came from; empty when they cannot be told."""
        try:
            packed = json.loads(base64.b64decode(self.labels["DCOS_PACKAGE_DEFINITION"]))
            package = json.loads(gzip.decompress(base64.b64decode(packed["data"])))
        except (KeyError, ValueError, TypeError, OSError, EOFError):
            return {}
        config = package.get("config") if isinstance(package, dict) else None
        return defaults(config) if isinstance(config, dict) else {}


def installed(cluster: DcosCluster) -> InstalledApp:
    """Return the app of the service. Raises CommandError."""
    answer = cluster.marathon("GET", f"v2/apps/{cluster.service_path}")
    if answer.status == 404:
        raise CommandError(f"There is no service {cluster.service} on this cluster.")
    _expect(answer, "Marathon")
    return InstalledApp(answer.json().get("app") or {})


def describe(cluster: DcosCluster) -> Json:
    """Return what the package manager would tell of the service. Raises CommandError."""
    found = installed(cluster)
    described: Json = {"package": {"name": found.name, "version": found.version}}
    if found.options is not None:
        described["userProvidedOptions"] = found.options
        described["resolvedOptions"] = merge(found.defaults, found.options)
    return described


def update(cluster: DcosCluster, given: Mapping[str, Any], *, replace: bool) -> Json:
    """Change the options of the service, and return Marathon's answer. Raises CommandError.

    ``replace`` forgets the options in force.
    """
    found = installed(cluster)
    options = _over_those_in_force(found, given, replace)
    app = _rendered(cluster, found, options)
    check(cluster, merge(found.defaults, options))
    answer = cluster.marathon(
        "PUT", f"v2/apps/{cluster.service_path}", app, force="true", partialUpdate="false"
    )
    _expect(answer, "Marathon")
    changed: Json = answer.json()
    return changed


def refusal(service: str, problem: Mapping[str, Any]) -> str:
    """Return in words why the package manager refuses options."""
    rows = [
        f"  {error.get('instance', {}).get('pointer', '')}: {error.get('message', '')}"
        for error in (problem.get("data") or {}).get("errors", ())
    ]
    return "\n".join([f"The options do not fit {service}: {problem.get('message', '')}", *rows])


def _over_those_in_force(found: InstalledApp, given: Mapping[str, Any], replace: bool) -> Json:
    if replace:
        return dict(given)
    if found.options is None:
        raise CommandError(
            f"The app {found.app_id} does not tell the options that it runs with: give all of them,"
            " and --replace."
        )
    return merge(found.options, given)


def _rendered(cluster: DcosCluster, found: InstalledApp, options: Json) -> Json:
    body: Json = {"packageName": found.name, "options": options}
    if found.version:
        body["packageVersion"] = found.version
    answer = cluster.packages("render", body)
    if answer.status != 200:
        problem = problem_in(answer)
        if problem.get("type") == "JsonSchemaMismatch":
            raise CommandError(refusal(cluster.service, problem))
        raise CommandError(f"The package cannot be rendered: {problem.get('message')}")
    app: Json = answer.json()["marathonJson"]
    new_id = "/" + str(app.get("id", "")).strip("/")
    if new_id != found.app_id:
        raise CommandError(
            f"The name of an installed service cannot change from {found.app_id} to {new_id}: set"
            f" service.name to {found.app_id}."
        )
    kept = {name: text for name, text in found.labels.items() if name.startswith(_PREFIX)}
    told = base64.b64encode(json.dumps(options, sort_keys=True).encode()).decode()
    return {**app, "labels": {**kept, **(app.get("labels") or {}), _OPTIONS: told}}


def _expect(answer: HttpAnswer, who: str) -> None:
    if answer.status in (401, 403):
        raise CommandError(
            f"The cluster refuses this ({answer.status}); log in with 'dcos auth login'."
        )
    if answer.status >= 300:
        told = answer.message or answer.text.strip()[:200]
        raise CommandError(f"{who} answers {answer.status} {answer.reason}: {told}")
