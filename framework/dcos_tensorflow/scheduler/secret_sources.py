"""Where secrets come from that the scheduler reads itself: files, its environment, a folder.

Used by ``launch_secrets`` for what options name, and by ``credentials`` for keys of S3. Options may
come from somebody whom the scheduler's operator need not trust with all that this process can read:
so the operator says which of it may reach tasks (``AllowedSources``). They are
read again for each launch, so that a changed secret reaches the next one. What was read is never
logged, stored or part of a message; it is kept in memory for as long as the scheduler runs.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from dcos_tensorflow.core.model.container_spec import ENVIRONMENT_SOURCE, FILE_SOURCE, TaskSecret
from dcos_tensorflow.records import dataclass

log = logging.getLogger(__name__)

#: What stands in the scheduler's environment for itself.
_OWN_VARIABLES = ("DCOS_TENSORFLOW_", "DCOS_SERVICE_ACCOUNT_CREDENTIAL")
#: Through these, every process shows what it has in memory, the scheduler too.
_KERNEL_FOLDERS = tuple(map(Path, ("/proc", "/sys", "/dev")))
#: As much as DC/OS keeps in a secret; a file that is larger is none.
_MOST_BYTES = 1_000_000


@dataclass(frozen=True)
class AllowedSources:
    """Which of the scheduler's variables and files may reach tasks."""

    #: Names of variables.
    variables: frozenset[str] = frozenset()
    #: Files below it; None for none.
    directory: Path | None = None
    #: What boto3 finds for the scheduler itself, for what is read and written in S3 on its side.
    own_s3: bool = False
    #: Whatever is not the scheduler's own: its tasks run as its user on its machine.
    everything: bool = False

    def check_variable(self, name: str) -> None:
        """Raise SecretError for a variable that may reach no task."""
        if name.startswith(_OWN_VARIABLES):
            raise SecretError(f"{name} is the scheduler's own, and reaches no task")
        if not self.everything and name not in self.variables:
            raise SecretError(
                f"the scheduler's variable {name} may reach no task: its operator allows that by "
                f"--task-secret-env {name}"
            )

    def check_own_s3(self, endpoint: str) -> None:
        """Raise SecretError where S3 may not be asked with what the scheduler itself has.

        An ``endpoint`` that options name gets it in no case: it could be anywhere.
        """
        if self.everything:
            return
        if endpoint:
            raise SecretError(
                f"S3 at {endpoint} is asked with no credentials but those that options name: set"
                " s3.credentials"
            )
        if not self.own_s3:
            raise SecretError(
                "options may not have S3 asked with what the scheduler itself may read: set"
                " s3.credentials, or its operator allows that by --lend-storage"
            )

    def check_file(self, path: Path) -> None:
        """Raise SecretError for a file that may reach no task; links count as what they mean."""
        real = path.resolve()
        if any(real.is_relative_to(folder) for folder in _KERNEL_FOLDERS):
            raise SecretError(f"{path} is the kernel's, and reaches no task")
        if self.everything:
            return
        if self.directory is None or not real.is_relative_to(self.directory.resolve()):
            raise SecretError(
                f"{path} may reach no task: the scheduler's operator allows the files of one "
                "folder by --task-secrets-dir"
            )


#: What an operator who says nothing allows.
NOTHING_ALLOWED = AllowedSources()


class SecretError(Exception):
    """A secret cannot be had from where it should be; the text says why and holds none."""


#: So many secrets are known for what they are; one that is read anew each hour for days among them.
_MOST_SEEN = 1000


def read_file(path: Path, most_bytes: int = _MOST_BYTES) -> bytes:
    """Return what is in a file that holds a secret. Raises SecretError."""
    try:
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
    except OSError as error:
        raise SecretError(f"{path} cannot be read: {error.strerror or error}") from None
    if len(content) > most_bytes:
        raise SecretError(f"{path} is too large for a secret: more than {most_bytes} bytes")
    return content


class SecretSources:
    """Follows sources.

    ``environ`` is the scheduler's own environment, of which options get what is ``allowed``; the
    same goes for files. ``directory`` holds a file for each path of the
    secret store; None where Mesos has a store. ``store``: Mesos can be asked for what is not here.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        directory: Path | None = None,
        *,
        store: bool = True,
        allowed: AllowedSources = NOTHING_ALLOWED,
    ) -> None:
        self._environ = environ
        self._allowed = allowed
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
        except SecretError as error:
            return str(error)
        return ""

    def values(self, secrets: tuple[TaskSecret, ...]) -> dict[str, bytes]:
        """Return what is read here, by source; what is left out is for Mesos to find.

        What cannot be read now is as it was at the launch before: a file that is being replaced
        must not hold up a restart. Raises SecretError where there was none.
        """
        found = {}
        for secret in secrets:
            if not self._is_ours(secret) or secret.source in found:
                continue
            try:
                self._last[secret.source] = self._read(secret)
            except SecretError as error:
                if secret.source not in self._last:
                    raise SecretError(f"{secret.option}: {error}") from None
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
            path = Path(source.removeprefix(FILE_SOURCE))
            self._allowed.check_file(path)
            content = read_file(path)
        elif self._directory is not None:
            content = read_file(self._directory / source.strip("/"))
        else:
            raise SecretError(
                f"{source} is a path of a secret store, and this cluster has none: use "
                "file:/path or env:NAME, or name a folder with such files in --secrets-dir"
            )
        if secret.env and b"\x00" in content:
            raise SecretError(f"{source} holds a NUL byte, which no variable can have: use file")
        self._seen[content] = None
        if len(self._seen) > _MOST_SEEN:
            del self._seen[next(iter(self._seen))]
        return content

    def _variable(self, name: str) -> bytes:
        self._allowed.check_variable(name)
        if name not in self._environ:
            raise SecretError(f"the scheduler has no variable {name}")
        return self._environ[name].encode("utf-8", "surrogateescape")
