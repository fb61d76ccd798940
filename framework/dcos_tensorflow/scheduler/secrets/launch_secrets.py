"""Adds to a launch, on its way out, the secrets that it only refers to.

Used by ``scheduler.scheduler``. It is the one place where the options' references are followed:
secrets of the tasks, and credentials of S3.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from dcos_tensorflow.core.cluster import storage_sections
from dcos_tensorflow.core.model.actions import Accept, Action, Decline
from dcos_tensorflow.core.model.events import CallFailed, Event
from dcos_tensorflow.core.spec.container_spec import TaskSecret
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.core.spec.storage_spec import CredentialsReference
from dcos_tensorflow.core.spec.tracking_spec import TrackingSpec
from dcos_tensorflow.options.errors import OptionProblem
from dcos_tensorflow.scheduler.gate import Gate, GateError
from dcos_tensorflow.scheduler.secrets.s3_credentials import CredentialsReader
from dcos_tensorflow.scheduler.secrets.secret_sources import SecretSources

log = logging.getLogger(__name__)

_TRACKING = "mlflow.token"


class LaunchSecrets:
    """See the module. The arguments are those of ``SecretSources``."""

    def __init__(self, gate: Gate, directory: Path | None = None, *, store: bool = True) -> None:
        self._sources = SecretSources(gate, directory, store=store)
        self._credentials = CredentialsReader(gate)

    def problems(self, spec: ServiceSpec) -> list[OptionProblem]:
        """Return what the first task would fail of, each once, by its option."""
        found: dict[str, str] = {}
        reference = spec.storage.s3.credentials
        if reference is not None and not reference.secret:
            found["s3.credentials"] = self._credentials.problem(reference)
        for role in spec.roles:
            for secret in (*role.secrets, *storage_sections.secrets(spec, role.role)):
                found.setdefault(secret.option, self._sources.problem(secret))
        if spec.tracking is not None:
            try:
                self.tracking(spec.tracking)
            except GateError as error:
                found[_TRACKING] = str(error).removeprefix(f"{_TRACKING}: ")
        return [OptionProblem(option, text) for option, text in found.items() if text]

    def texts(self) -> frozenset[str]:
        """Return what may be seen of the secrets that were read: each whole, and each line of it.

        From any thread. What is no text cannot be read by eye.
        """
        found = set(self._credentials.values())
        for content in self._sources.read():
            text = content.decode("utf-8", "replace").strip()
            found.update({text, *map(str.strip, text.splitlines())})
        return frozenset(found - {""})

    def perform(
        self, action: Action, perform: Callable[[Action], None], emit: Callable[[Event], None]
    ) -> None:
        """Perform ``action`` with its secrets.

        Where a secret is missing the tasks of an ACCEPT are not launched: their offers go back, and
        the core hears why.
        """
        try:
            complete = self.complete(action)
        except GateError as error:
            assert isinstance(action, Accept)
            log.error("nothing is launched: %s", error)
            perform(Decline(action.offer_ids, action.refuse_seconds))
            tasks = tuple(launch.task_id for launch in action.launches)
            emit(CallFailed("ACCEPT", str(error), False, action.offer_ids, tasks))
        else:
            perform(complete)

    def credentials(self, reference: CredentialsReference) -> Mapping[str, str]:
        """Return the variables of credentials, for ourselves; none where only Mesos has them."""
        return {} if reference.secret else self._credentials.variables(reference)

    def tracking(self, spec: TrackingSpec) -> str:
        """Return the secret for a tracking server, for ourselves; empty where none is named.

        Raises GateError.
        """
        if not spec.token:
            return ""
        found = self._sources.values((TaskSecret(spec.token, option=_TRACKING),))
        if spec.token not in found:
            raise GateError(
                f"{_TRACKING}: {spec.token} is in the secret store of Mesos, which tasks alone can"
                " read; name file:/path or env:NAME"
            )
        text = found[spec.token].decode("utf-8", "replace").strip()
        if not text or not text.isascii() or not text.isprintable():
            # It stands in a header: what breaks one would be told whole in the error.
            raise GateError(f"{_TRACKING}: {spec.token} is no token: one line of plain letters")
        return text

    def complete(self, action: Action) -> Action:
        """Return ``action`` with the secrets that its launches refer to, if it is one that has any.

        Raises GateError for a secret without which its task must not start.
        """
        if not isinstance(action, Accept):
            return action
        found = {
            reference: self._credentials.variables(reference) if reference is not None else {}
            for reference in {launch.credentials for launch in action.launches}
        }
        launches = tuple(
            replace(
                launch,
                secret_env={**launch.secret_env, **found[launch.credentials]},
                secret_values=self._sources.values(launch.secrets),
            )
            for launch in action.launches
        )
        return replace(action, launches=launches)
