"""Asking the leading master of a cluster from a command or a service that is no scheduler."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.deploy.embedded import cluster as embedded
from dcos_tensorflow.deploy.settings import Settings
from dcos_tensorflow.mesos.address import Address
from dcos_tensorflow.mesos.agent_files import AgentFilesError, AgentUnreachable, HttpAccess
from dcos_tensorflow.mesos.gateway import MesosConfig
from dcos_tensorflow.scheduler.former_life import leading_masters

#: So long a master is looked for.
_MASTER_SECONDS = 10.0


class MasterAccess:
    """The way to whichever master leads, with the credentials of the settings."""

    def __init__(self, masters: str, access: HttpAccess) -> None:
        self._masters = masters
        self._access = access

    def get(self, path: str) -> Any:
        """Return the JSON at ``path`` of the leading master. Raises AgentFilesError."""
        return self._at_the_master(lambda master: self._access.get(master, path))

    def post(self, path: str, body: dict[str, Any]) -> None:
        """Post JSON to the leading master. Raises AgentFilesError."""
        self._at_the_master(lambda master: self._access.post(master, path, body))

    def _at_the_master(self, act: Callable[[Address], Any]) -> Any:
        trouble: AgentFilesError = AgentUnreachable(f"no master of {self._masters} answers")
        deadline = time.monotonic() + _MASTER_SECONDS

        def goes_on(seconds: float) -> bool:
            time.sleep(seconds)
            return time.monotonic() < deadline

        for address in leading_masters(self._masters, False, goes_on):
            if address is None:
                continue
            try:
                return act(address)
            except AgentFilesError as error:
                trouble = error
        raise trouble


def master_of(settings: Settings, work: WorkDirectory, *, local: bool) -> MasterAccess:
    """Return the way to the masters that settings name, or to the embedded cluster's.

    Raises CliError.
    """
    masters = settings["master"]
    principal, secret = settings["principal"], settings.secret("secret")
    if local:
        status = embedded.running(work.local)
        if status is None:
            raise CliError(f"No embedded cluster runs in {work.local}.")
        who = embedded.EmbeddedCluster.at(work.local, status, own=False).credential
        masters, principal, secret = status.master, who.principal, who.secret
    if not masters:
        raise UsageError("Which cluster? Name its masters with --master, or use --local.")
    config = MesosConfig(
        masters=masters,
        principal=principal,
        secret=secret,
        ca_file=settings["ca_file"],
        client_cert=settings["client_cert"],
        client_key=settings["client_key"],
        verify=settings["verify"],
    )
    tls = config.tls()
    return MasterAccess(
        masters, HttpAccess(config.authentication(tls), tls, config.timeout_seconds)
    )
