"""Uninstalls packages: services of the DC/OS SDK let go of everything first, others are deleted.

``cosmos_calls`` asks. The request is answered at once; the work goes on behind, and an unfinished
one is taken up again when the daemon comes back. The steps for a service with the label
``DCOS_COMMONS_UNINSTALL`` are those of Cosmos (ServiceUninstaller.scala): ask the scheduler for
its framework id, start it again with ``SDK_UNINSTALL=true``, wait until its ``deploy`` plan is
complete (status 200) and it names the same id or none, delete the app.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from local_dcos.cosmos.rendering import with_slash
from local_dcos.cosmos.repositories import Package
from local_dcos.errors import CosmosError, MarathonError
from local_dcos.marathon.app_records import AppRecord
from local_dcos.marathon.marathon import Marathon
from local_dcos.mesos.mesos_client import MesosClient
from local_dcos.services import Services
from local_dcos.state_file import StateFile
from untrusted_input.json_text import read_json

Json = dict[str, Any]
log = logging.getLogger(__name__)

UNINSTALL_LABEL = "DCOS_COMMONS_UNINSTALL"
UNINSTALL_VARIABLE = "SDK_UNINSTALL"
_VERSION_LABEL = "DCOS_COMMONS_API_VERSION"
_FRAMEWORK_LABEL = "DCOS_PACKAGE_FRAMEWORK_NAME"
_SECTION = "uninstalls"


@dataclass(frozen=True)
class Uninstall:
    """One that is under way. ``framework_ids`` are what the scheduler named before."""

    app_id: str
    framework_ids: tuple[str, ...]


class Uninstaller:
    """Carries out uninstalls. Thread-safe. ``start`` and ``stop`` are called once each."""

    def __init__(
        self,
        state: StateFile,
        installed: Callable[[], Sequence[tuple[AppRecord, Package]]],
        marathon: Marathon,
        services: Services,
        mesos: MesosClient,
        *,
        interval: float,
    ) -> None:
        """Read what is under way; ``interval`` is the time in seconds between two looks."""
        self._state = state
        self._installed = installed
        self._marathon = marathon
        self._services = services
        self._mesos = mesos
        self._interval = interval
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name="uninstaller", daemon=True)

    def start(self) -> None:
        """Take up what was left."""
        self._thread.start()

    def stop(self) -> None:
        """Stop looking; what is not done is taken up by the next ``start``."""
        self._stopping.set()
        self._woken.set()
        self._thread.join()

    def uninstall(self, name: str, app_id: str | None, *, every: bool) -> list[Json]:
        """Begin to uninstall; return the results that the client prints. Raises CosmosError."""
        chosen = _chosen(list(self._installed()), name, app_id, every)
        for record, _ in chosen:
            self._begin(record)
        self._woken.set()
        return [_result(record, package) for record, package in chosen]

    def _begin(self, record: AppRecord) -> None:
        labels = record.definition["labels"]
        if UNINSTALL_LABEL not in labels:
            framework = self._framework_of(labels)
            self._marathon.delete(record.app_id, force=True)
            if framework is not None:
                self._mesos.teardown(framework)
            return
        if UNINSTALL_VARIABLE in record.definition["env"]:
            # It is under way. Asked again, the scheduler might name no id any more.
            if record.app_id not in {one.app_id for one in self._under_way()}:
                self._put([*self._under_way(), Uninstall(record.app_id, ())])
            return
        ids = self._named(record) or set()
        with self._lock:
            others = [one for one in self._under_way() if one.app_id != record.app_id]
            self._put([*others, Uninstall(record.app_id, tuple(sorted(ids)))])
        env = {**record.definition["env"], UNINSTALL_VARIABLE: "true"}
        self._marathon.update(record.app_id, {"env": env}, whole=False, force=True)

    def _framework_of(self, labels: Json) -> str | None:
        name = labels.get(_FRAMEWORK_LABEL)
        ids = [] if name is None else self._mesos.framework_ids(name)
        if len(ids) > 1:
            raise CosmosError(
                "MultipleFrameworkIds",
                f"Uninstalled package, but did not shut down frameworks of the name [{name}]:"
                f" there are several, [{', '.join(ids)}]",
                {"frameworkName": name, "ids": ids},
            )
        return ids[0] if ids else None

    # -- behind --------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            for one in self._under_way():
                try:
                    done = self._look(one)
                except MarathonError as error:
                    # A user deleted the app by hand: nothing is left to be done.
                    log.info("uninstall of %s: %s", one.app_id, error)
                    done = True
                if done:
                    self._forget(one)
            self._woken.clear()
            if not self._stopping.is_set():
                self._woken.wait(self._interval if self._under_way() else None)

    def _look(self, one: Uninstall) -> bool:
        record = self._marathon.app(one.app_id)
        if record.deleting:
            return True
        if UNINSTALL_VARIABLE not in record.definition["env"]:
            # The daemon died between writing this down and telling Marathon.
            env = {**record.definition["env"], UNINSTALL_VARIABLE: "true"}
            self._marathon.update(one.app_id, {"env": env}, whole=False, force=True)
            return False
        if record.deployment is not None:
            return False
        plan = self._services.ask(one.app_id, f"/{_api(record)}/plans/deploy")
        if plan is None or plan[0] != 200:
            return False
        ids = self._named(record)
        if ids is not None and ids != set(one.framework_ids):
            return False
        self._marathon.delete(one.app_id, force=True)
        return True

    def _named(self, record: AppRecord) -> set[str] | None:
        """Return the framework ids that the scheduler names, None when they cannot be read."""
        path = f"/{_api(record)}/state/frameworkId"
        answer = self._services.ask(record.app_id, path)
        if answer is None or answer[0] != 200:
            return None
        try:
            found = read_json(answer[1])
        except ValueError:
            return None
        return set(map(str, found)) if isinstance(found, list) else None

    def _under_way(self) -> list[Uninstall]:
        stored = self._state.get(_SECTION, [])
        return [Uninstall(one["app_id"], tuple(one["framework_ids"])) for one in stored]

    def _forget(self, done: Uninstall) -> None:
        with self._lock:
            self._put([one for one in self._under_way() if one.app_id != done.app_id])

    def _put(self, found: Sequence[Uninstall]) -> None:
        self._state.put(_SECTION, [asdict(one) for one in found])


def _api(record: AppRecord) -> str:
    return str(record.definition["labels"].get(_VERSION_LABEL, "v1"))


def _chosen(
    installed: Sequence[tuple[AppRecord, Package]], name: str, app_id: str | None, every: bool
) -> list[tuple[AppRecord, Package]]:
    named = [(record, package) for record, package in installed if package.name == name]
    if not named:
        raise CosmosError(
            "PackageNotInstalled", f"Package [{name}] is not installed", {"packageName": name}
        )
    if app_id is not None:
        wanted = with_slash(app_id)
        chosen = [one for one in named if one[0].app_id == wanted]
        if not chosen:
            raise CosmosError(
                "UninstallNonExistentAppForPackage",
                f"Package [{name}] with id [{wanted}] is not installed",
                {"packageName": name, "appId": wanted},
            )
        return chosen
    if len(named) > 1 and not every:
        ids = [record.app_id for record, _ in named]
        raise CosmosError(
            "AmbiguousAppId",
            f"Multiple apps named [{name}] are installed: [{', '.join(ids)}]",
            {"packageName": name, "appIds": ids},
        )
    return named


def _result(record: AppRecord, package: Package) -> Json:
    found: Json = {
        "packageName": package.name,
        "appId": record.app_id,
        "packageVersion": package.version,
    }
    notes = package.document.get("postUninstallNotes")
    if notes is not None:
        found["postUninstallNotes"] = notes
    return found
