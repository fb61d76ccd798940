"""Where secrets come from that the scheduler reads itself: files, its environment, a folder.

Used by ``launch_secrets`` for the secrets that options name; the gate says which may reach tasks.
They are read again for each launch, so that a changed secret reaches the next one. A secret is
never logged, stored or part of a message; it is kept in memory while the scheduler runs.
"""

from __future__ import annotations

import logging
from pathlib import Path

from dcos_tensorflow.core.spec.container_spec import ENVIRONMENT_SOURCE, FILE_SOURCE, TaskSecret
from dcos_tensorflow.scheduler.gate import Gate, GateError

log = logging.getLogger(__name__)

#: So many secrets are known for what they are; one that is read anew each hour for days among them.
_MOST_SEEN = 1000


class SecretSources:
    """Follows sources.

    ``directory`` holds a file for each path of the secret store; None where Mesos has a store.
    ``store``: Mesos can be asked for what is not here.
    """

    def __init__(self, gate: Gate, directory: Path | None = None, *, store: bool = True) -> None:
        self._gate = gate
        self._directory = directory
        self._store = store
        self._last: dict[str, bytes] = {}
        #: All that was read, the newest last: tasks of before have what another launch has not.
        self._seen: dict[bytes, None] = {}

    def problem(self, secret: TaskSecret) -> str:
        """Return why ``secret`` cannot be had now; '' when it can, as far as is seen from here."""
        try:
            if self._is_ours(secret):
                self._read(secret)
        except GateError as error:
            return str(error)
        return ""

    def values(self, secrets: tuple[TaskSecret, ...]) -> dict[str, bytes]:
        """Return what is read here, by source; what is left out is for Mesos to find.

        What cannot be read now is as it was at the launch before: a file that is being replaced
        must not hold up a restart. Raises GateError where there was none.
        """
        found = {}
        for secret in secrets:
            if not self._is_ours(secret) or secret.source in found:
                continue
            try:
                self._last[secret.source] = self._read(secret)
            except GateError as error:
                if secret.source not in self._last:
                    raise GateError(f"{secret.option}: {error}") from None
                log.warning("%s: tasks get that of the launch before: %s", secret.option, error)
            found[secret.source] = self._last[secret.source]
        return found

    def read(self) -> tuple[bytes, ...]:
        """Return what was read so far, also to see whether it can be. From any thread."""
        return tuple(self._seen)

    def _is_ours(self, secret: TaskSecret) -> bool:
        return not secret.in_store or self._directory is not None or not self._store

    def _read(self, secret: TaskSecret) -> bytes:
        source = secret.source
        if source.startswith(ENVIRONMENT_SOURCE):
            content = self._variable(source.removeprefix(ENVIRONMENT_SOURCE))
        elif source.startswith(FILE_SOURCE):
            content = self._gate.file(Path(source.removeprefix(FILE_SOURCE)))
        elif self._directory is not None:
            content = self._gate.stored(self._directory, source)
        else:
            raise GateError(
                f"{source} is a path of a secret store, and this cluster has none: use "
                "file:/path or env:NAME, or name a folder with such files in --secrets-dir"
            )
        if secret.env and b"\x00" in content:
            raise GateError(f"{source} holds a NUL byte, which no variable can have: use file")
        self._seen[content] = None
        if len(self._seen) > _MOST_SEEN:
            del self._seen[next(iter(self._seen))]
        return content

    def _variable(self, name: str) -> bytes:
        value = self._gate.variable(name)
        if value is None:
            raise GateError(f"the scheduler has no variable {name}")
        return value.encode("utf-8", "surrogateescape")
