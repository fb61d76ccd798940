"""Cosmos' service half: describes an installed service, and changes its options or version.

``cosmos_calls`` speaks HTTP for it. On open DC/OS another version is refused, as there; the
variant ``enterprise`` allows it where the package says so.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from local_dcos.cosmos import rendering
from local_dcos.cosmos.cosmos import Cosmos, refused, shown
from local_dcos.cosmos.repositories import Package
from local_dcos.cosmos.uninstall import UNINSTALL_VARIABLE
from local_dcos.errors import AppChanged, CosmosError, InvalidApp, MarathonError
from local_dcos.integration import Integration
from local_dcos.marathon.app_records import AppRecord
from local_dcos.marathon.marathon import Marathon
from local_dcos.services import Services
from untrusted_input.package_options import defaults, merge

Json = dict[str, Any]


@dataclass(frozen=True)
class UpdateRequest:
    """What ``update start`` asks for. ``replace`` drops the stored options."""

    app_id: str
    options: Json | None
    package_version: str | None
    replace: bool


class ServiceChanges:
    """Describes and updates services. Thread-safe."""

    def __init__(
        self,
        cosmos: Cosmos,
        marathon: Marathon,
        services: Services,
        integration: Integration,
        *,
        upgrades: bool,
    ) -> None:
        """``upgrades`` allows other versions, as Enterprise DC/OS does."""
        self._integration = integration
        self._cosmos = cosmos
        self._marathon = marathon
        self._services = services
        self._upgrades = upgrades

    def describe(self, app_id: str) -> Json:
        """Return a service's package and options. Raises CosmosError."""
        record, package = self._service(app_id)
        options = self._options(record)
        schema = package.document.get("config")
        found: Json = {
            "package": shown(package),
            "upgradesTo": self._reachable(package, "upgradesTo") if self._upgrades else [],
            "downgradesTo": self._reachable(package, "downgradesTo") if self._upgrades else [],
            "resolvedOptions": merge(defaults(schema or {}), options or {}),
        }
        if options is not None:
            found["userProvidedOptions"] = options
        return found

    def update(self, request: UpdateRequest) -> Json:
        """Change a service; return the answer's body. Raises CosmosError; then nothing changed.

        Another change that comes meanwhile is not undone: this one is laid over it.
        """
        while True:
            with contextlib.suppress(AppChanged):
                return self._update(request)

    def _update(self, request: UpdateRequest) -> Json:
        record, package = self._service(request.app_id)
        if UNINSTALL_VARIABLE in record.definition["env"]:
            raise CosmosError(
                "ServiceUnderUninstall",
                f"Service [{record.app_id}] is being uninstalled, which cannot be reversed",
                {"appId": record.app_id},
            )
        target = self._target(package, request.package_version)
        rendered = rendering.rendered(target, self._wanted(record, request))
        if rendered.app_id != record.app_id:
            raise CosmosError(
                "AppIdChanged",
                f"The new appId {rendered.app_id} must be equal to the old appId {record.app_id}",
                {"newAppId": rendered.app_id, "oldAppId": record.app_id},
            )
        try:
            changed = self._marathon.update(
                record.app_id, rendered.app, whole=True, force=True, made_from=record.version
            )
        except InvalidApp as error:
            raise refused(target, error) from error
        deployment = changed.deployment
        return {
            "package": shown(target),
            "resolvedOptions": rendered.options,
            "marathonDeploymentId": "" if deployment is None else deployment.deployment_id,
        }

    def _service(self, app_id: str) -> tuple[AppRecord, Package]:
        wanted = rendering.with_slash(app_id)
        try:
            record = self._marathon.app(wanted)
        except MarathonError as error:
            raise CosmosError(
                "MarathonAppNotFound",
                f"Unable to locate service with marathon appId: '{wanted}'",
                {"appId": wanted},
            ) from error
        package = rendering.package_of(record.definition["labels"])
        if package is None:
            raise CosmosError(
                "MarathonAppNotFound",
                f"The service with marathon appId '{wanted}' did not come from a package",
                {"appId": wanted},
            )
        return record, package

    def _options(self, record: AppRecord) -> Json | None:
        """Return the options that a service has; None when the app does not tell any.

        They are those that were given, but for what its scheduler has refused of them. Cosmos
        itself asks no scheduler, and shows that too.
        """
        stored = rendering.options_of(record.definition["labels"])
        if stored is None:
            return None
        return self._integration.options_in_force(
            stored, lambda path: self._services.ask(record.app_id, path)
        )

    def _wanted(self, record: AppRecord, request: UpdateRequest) -> Json:
        if request.replace:
            return request.options or {}
        stored = self._options(record)
        if stored is None:
            raise CosmosError(
                "OptionsNotStored",
                f"No options are stored with service [{record.app_id}]; give all of them and"
                " --replace",
                {"appId": record.app_id},
            )
        return merge(stored, request.options or {})

    def _target(self, package: Package, version: str | None) -> Package:
        if version is None or version == package.version:
            return package
        if not self._upgrades:
            raise CosmosError(
                "VersionUpgradeNotSupportedInOpen",
                "Version Upgrades are an Enterprise DC/OS feature only",
                {"requested": version, "actual": package.version},
            )
        valid = [*self._reachable(package, "upgradesTo"), *self._reachable(package, "downgradesTo")]
        if version not in valid:
            raise CosmosError(
                "BadVersionUpdate",
                f"Version [{package.version}] of package [{package.name}] cannot be updated to"
                f" [{version}]",
                {"updateVersion": version, "validVersions": sorted({package.version, *valid})},
            )
        return self._cosmos.package(package.name, version)

    def _reachable(self, package: Package, way: str) -> list[str]:
        """Return the versions that the package can be updated to, newest first."""
        own = package.release_version

        def fits(one: Package) -> bool:
            if way == "upgradesTo":
                newer = one.release_version > own
                return newer and _names(one, "upgradesFrom", package.version)
            return one.release_version < own and _names(package, "downgradesTo", one.version)

        same = (one for one in self._cosmos.packages() if one.name == package.name)
        ordered = sorted(filter(fits, same), key=lambda one: -one.release_version)
        return list(dict.fromkeys(one.version for one in ordered))


def _names(package: Package, member: str, version: str) -> bool:
    listed = package.document.get(member, [])
    return "*" in listed or version in listed
