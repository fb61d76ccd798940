"""The one gate for all that the scheduler reads, lends or asks on behalf of options.

Used by ``scheduler.scheduler`` and its parts, and by the command line before the start. In
these rooms nothing else opens a file, a variable, S3 or a provider of machines that options name
(``tests/unit/scheduler/test_gate.py``). Options may come from an author whom the scheduler's
operator need not trust with all that this process can read and do: ``Allowed`` has the
operator's permissions; a table in ``docs/security.md`` lists everything that options can ask for.
The gate keeps nothing, and never decides about the use of its answers.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec, CommandSpec
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.core.spec.storage_spec import S3Spec
from dcos_tensorflow.core.spec.workload_spec import OUTPUT_INDEX, BatchSpec
from dcos_tensorflow.options.errors import OptionProblem
from dcos_tensorflow.records import dataclass

if TYPE_CHECKING:
    from dcos_tensorflow.capacity.provider import Provider
    from dcos_tensorflow.core.spec.tracking_spec import TrackingSpec
    from dcos_tensorflow.history.mlflow import MlflowServer
    from dcos_tensorflow.options import Options
    from dcos_tensorflow.task.storage.s3.object_store import ObjectStore

#: Where machines come from, in the words of ``--machines-from``: a program is named by its path.
EC2 = "ec2"
ANYWHERE = "*"
#: What stands in the scheduler's environment for itself.
_OWN_VARIABLES = ("DCOS_TENSORFLOW_", "DCOS_SERVICE_ACCOUNT_CREDENTIAL")
#: Through these, every process shows what it has in memory, the scheduler too.
_KERNEL_FOLDERS = tuple(map(Path, ("/proc", "/sys", "/dev")))
#: As much as DC/OS keeps in a secret; a file that is larger is none.
_MOST_SECRET_BYTES = 1_000_000
#: A record of a shard is shorter: a unit's payload is.
_MOST_RECORD_BYTES = 65_536
_S3 = "s3://"
_PORTS = {"http": 80, "https": 443}
#: The credentials' owner asks again later, and says meanwhile what is waited for.
_ATTEMPTS = 3


class GateError(Exception):
    """What options ask for may not be had, or cannot be; the text says why and holds none of it."""


@dataclass(frozen=True)
class Allowed:
    """What the scheduler's operator allows options to ask of it; nothing, if nothing is said."""

    #: Names of variables.
    variables: frozenset[str] = frozenset()
    #: Files below it may reach tasks as secrets; None for none.
    directory: Path | None = None
    #: Places as ``s3://bucket/prefix``, where the scheduler's own rights may be used, and endpoints
    #: by their URL.
    s3: frozenset[str] = frozenset()
    #: ``ec2``, URLs and paths of programs.
    machines: frozenset[str] = frozenset()
    #: URLs of tracking servers.
    tracking: frozenset[str] = frozenset()
    #: Where the options lie that the scheduler was started with, manifests beside; None: nowhere.
    folder: Path | None = None
    #: Where the service's own lists of files lie, which were made of patterns in options.
    lists: Path | None = None
    #: Where links may lead that lead out of a folder which is packed; ``/`` is anywhere.
    links: tuple[Path, ...] = ()
    #: Whatever is not the scheduler's own: its tasks run as its user on its machine.
    everything: bool = False


NOTHING = Allowed()


class Gate:
    """See the module. ``environ`` is the scheduler's own environment.

    A text of a refusal is made for a person who knows the options and not the operator's settings.
    """

    def __init__(
        self, allowed: Allowed = NOTHING, environ: Mapping[str, str] | None = None
    ) -> None:
        self._allowed = allowed
        self._environ = os.environ if environ is None else environ

    def problems(self, spec: ServiceSpec) -> list[OptionProblem]:
        """Return what of a service may not be had, each by its option, secrets apart."""
        found = list(self._machines(spec.capacity))
        if spec.tracking is not None and (why := self._tracking_refusal(spec.tracking.uri)):
            found.append(OptionProblem("mlflow.tracking_uri", why))
        work, s3 = spec.workload, spec.storage.s3
        if isinstance(work, BatchSpec):
            has_own = s3.credentials is not None and not s3.credentials.secret
            inputs = f"batch.inputs.{'s3_prefix' if work.listing.endswith('/') else 'manifest'}"
            for option, place in ((inputs, work.listing), ("batch.output", work.output)):
                if place.startswith(_S3):
                    why = self._s3_refusal(s3, place, has_own=has_own)
                else:
                    why = self.manifest_refusal(Path(place)) if place and option is inputs else ""
                if why:
                    found.append(OptionProblem(option, why))
        return found

    def folder(self) -> Path | None:
        """Return where relative paths in changed options start; None where no folder is known."""
        return self._allowed.folder

    # Variables and files that reach tasks.

    def variable(self, name: str) -> str | None:
        """Return a variable; None where there is none. Raises GateError where it may not be had."""
        if name.startswith(_OWN_VARIABLES):
            raise GateError(f"{name} is the scheduler's own, and reaches no task")
        if not self._allowed.everything and name not in self._allowed.variables:
            raise GateError(
                f"the scheduler's variable {name} may reach no task: its operator allows that by "
                f"--task-secret-env {name}"
            )
        return self._environ.get(name)

    def has_variable(self, name: str) -> bool:
        """Say whether there is a variable that may be asked for or not."""
        return name in self._environ

    def file(self, path: Path, most_bytes: int = _MOST_SECRET_BYTES) -> bytes:
        """Return what is in a file that reaches tasks; links count as what they mean.

        Raises GateError.
        """
        why = kernels(path)
        if why:
            raise GateError(f"{path} is the kernel's, and reaches no task")
        directory, real = self._allowed.directory, path.resolve()
        within = directory is not None and real.is_relative_to(directory.resolve())
        if not (self._allowed.everything or within):
            raise GateError(
                f"{path} may reach no task: the scheduler's operator allows the files of one "
                "folder by --task-secrets-dir"
            )
        return _read(path, most_bytes)

    def stored(self, store: Path, path: str) -> bytes:
        """Return a secret of the folder that stands for the secret store. Raises GateError."""
        file = Path(os.path.normpath(store / path.strip("/")))
        if not file.is_relative_to(store):
            raise GateError(f"{path} is no path of a secret store")
        return _read(file, _MOST_SECRET_BYTES)

    def task_environment(self, options: Options) -> ServiceSpec:
        """Return the service of options, with the variables that the SDK gives to tasks.

        Raises OptionsError.
        """
        from dcos_tensorflow.options import service_spec, task_environment, with_task_environment

        return with_task_environment(service_spec(options), task_environment(self._environ))

    # What is packed for tasks.

    def link_refusal(self, root: Path, path: Path) -> str:
        """Return why ``path`` leads where it may not; empty where it may.

        It lies below ``root``, a folder that is packed.
        """
        real = path.resolve()
        if kernels(path):
            return f"{path} leads to {real}, which is the kernel's, and reaches no task"
        places = (root, *self._allowed.links)
        if self._allowed.everything or any(real.is_relative_to(p.resolve()) for p in places):
            return ""
        return (
            f"{path} leads to {real}, out of {root}: copy its target there, or allow the link by"
            f" --job-links-to {real if real.is_dir() else real.parent}"
        )

    # What a batch finds.

    def manifest(self, path: Path, most_bytes: int) -> bytes:
        """Return a manifest of this machine. Raises GateError, and OSError."""
        why = self.manifest_refusal(path)
        if why:
            raise GateError(why)
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
        if len(content) > most_bytes:
            raise GateError(f"{path} is too large for a manifest: more than {most_bytes} bytes")
        return content

    def outputs(self, pattern: str) -> Collection[str]:
        """Return which outputs of a batch are there, by the names that they would have."""
        parts: list[str] = []
        end = 0
        for found in OUTPUT_INDEX.finditer(pattern):
            parts += (glob.escape(pattern[end : found.start()]), "*")
            end = found.end()
        looked_for = "".join((*parts, glob.escape(pattern[end:])))
        return {
            path
            for path in glob.iglob(looked_for, include_hidden=True)
            if os.path.lexists(path) and not kernels(Path(path))
        }

    def shard_record(self, path: Path) -> bytes | None:
        """Return what is kept of the inputs of an output; None where there is no such record."""
        if kernels(path) or not _is_plain(path):
            return None
        try:
            return _read(path, _MOST_RECORD_BYTES)
        except GateError:
            return None

    def input_file(self, path: Path) -> tuple[int, int] | None:
        """Return the size of a file that a manifest names, and when it was changed.

        None where there is none, and where the options' author may not learn of it.
        """
        if not self._allowed.everything:
            return None
        try:
            found = path.stat()
        except (OSError, ValueError):
            return None
        return found.st_size, found.st_mtime_ns

    # S3, and machines.

    def objects(self, s3: S3Spec, credentials: Mapping[str, str], place: str) -> ObjectStore:
        """Return the bucket of ``place``, which is as ``s3://bucket/prefix``, as tasks reach it.

        ``credentials`` are variables as boto3 reads them; with none it finds the scheduler's own,
        where that is allowed. Blocks. Raises StorageError, with one that may be tried again where
        the operator has to allow it first: a job that runs waits for that.
        """
        from dcos_tensorflow.task.storage.s3.errors import S3Problem, StorageError
        from dcos_tensorflow.task.storage.s3.location import S3Settings
        from dcos_tensorflow.task.storage.s3.object_store import Connection, connect
        from dcos_tensorflow.task.storage.s3.retry import RetryBackoff
        from dcos_tensorflow.task.storage_spec import S3Access

        # A file of certificates that only a task's sandbox has is not here.
        ca_file = s3.ca_file if os.path.isabs(s3.ca_file) else ""
        why = self._s3_refusal(s3, place, has_own=bool(credentials))
        if not why and ca_file and (kernels(Path(ca_file)) or not _is_plain(Path(ca_file))):
            why = f"s3.ca_file: {ca_file} is no file of certificates on the scheduler's machine"
        if why:
            raise StorageError(S3Problem("not_allowed", True, why))
        access = S3Access(s3.endpoint_url, s3.region, s3.path_style, ca_file)
        settings = S3Settings.of(access, "")
        client = connect(settings, credentials)
        connection = Connection(settings, backoff=RetryBackoff(attempts=_ATTEMPTS), client=client)
        return connection.store(_bucket(place))

    def provider(self, spec: CapacitySpec, owner: str) -> Provider:
        """Return where machines of this owner come from. Raises ProviderError."""
        from dcos_tensorflow.capacity.provider import ProviderError
        from dcos_tensorflow.scheduler.machines.machine_provider import provider_for

        for problem in self._machines(spec):
            raise ProviderError(str(problem))
        return provider_for(spec, owner)

    def tracking_server(self, spec: TrackingSpec, secret: str) -> MlflowServer:
        """Return the server that is told of runs, which hears this secret. Raises GateError."""
        from dcos_tensorflow.history.mlflow import MlflowServer

        why = self._tracking_refusal(spec.uri)
        if why:
            raise GateError(why)
        return MlflowServer(spec.uri, secret)

    # What may not be had, and why.

    def _tracking_refusal(self, uri: str) -> str:
        allowed = self._allowed
        if allowed.everything or ANYWHERE in allowed.tracking or _is_among(uri, allowed.tracking):
            return ""
        return (
            f"the scheduler may tell {uri} nothing: its operator allows that by"
            f" --mlflow-servers {uri}"
        )

    def _machines(self, spec: CapacitySpec | None) -> Iterator[OptionProblem]:
        """Give why options may have no machines bought so.

        The program runs as this process, what is bought is on its operator's bill, and an endpoint
        gets the operator's session token: the author of options is trusted with none of it.
        """
        if spec is None or self._allowed.everything or ANYWHERE in self._allowed.machines:
            return
        given = spec.provider
        if isinstance(given, CommandSpec):
            option, source = "capacity.command.cmd", given.cmd[0]
            allowed = source in self._allowed.machines
        elif given.endpoint_url:
            option, source = "capacity.ec2.endpoint_url", given.endpoint_url
            allowed = _is_among(source, self._allowed.machines)
        else:
            option, source = "capacity.provider", EC2
            allowed = source in self._allowed.machines
        if not allowed:
            text = f"the scheduler's operator allows that by --machines-from {source}"
            yield OptionProblem(option, f"{source} may be asked for no machines: {text}")

    def _s3_refusal(self, s3: S3Spec, place: str, *, has_own: bool) -> str:
        """Return why the scheduler may not ask S3 for this; empty where it may."""
        allowed = self._allowed
        named = s3.endpoint_url if s3.endpoint_url not in self._own_endpoints() else ""
        brings = has_own or not named
        if allowed.everything or (ANYWHERE in allowed.s3 and brings):
            return ""
        fixed = place.partition("{")[0]
        bound = fixed if fixed.count("/") < 3 else fixed.rpartition("/")[0]
        if not has_own and named:
            return (
                f"the scheduler looks into {bound} without s3.credentials that it can read, and its"
                " own are for no endpoint that options name"
            )
        if named and not _is_among(named, allowed.s3):
            return (
                f"the scheduler may not ask {named} (s3.endpoint_url): its operator"
                f" allows that by --s3-places {named}"
            )
        if not has_own and not any(_is_below(place, each) for each in allowed.s3):
            return (
                f"the scheduler may not look into {bound} with its own rights: name s3.credentials"
                f" that it can read, or its operator allows that by --s3-places {bound}"
            )
        return ""

    def _own_endpoints(self) -> Collection[str]:
        """Return where the scheduler's own keys are for, as boto3 reads it."""
        names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
        return [self._environ[name] for name in names if self._environ.get(name)]

    def manifest_refusal(self, path: Path) -> str:
        """Return why a file may be no manifest, whose lines reach tasks; empty where it may."""
        if kernels(path):
            return f"{path} is the kernel's, and no manifest"
        if self._allowed.everything:
            return ""
        folders = filter(None, (self._allowed.folder, self._allowed.lists))
        if any(path.resolve().is_relative_to(folder.resolve()) for folder in folders):
            return ""
        return f"{path} is not beside the options; put it there, or into S3"


def kernels(path: Path) -> bool:
    """Say whether a path means something in the kernel's folders."""
    real = path.resolve()
    return any(real.is_relative_to(folder) for folder in _KERNEL_FOLDERS)


def _is_plain(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def _read(path: Path, most_bytes: int) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
    except OSError as error:
        raise GateError(f"{path} cannot be read: {error.strerror or error}") from None
    if len(content) > most_bytes:
        raise GateError(f"{path} is too large for a secret: more than {most_bytes} bytes")
    return content


def _bucket(place: str) -> str:
    return place.removeprefix(_S3).partition("/")[0]


def _is_below(place: str, allowed: str) -> bool:
    """Say whether a place in S3 is below an allowed one, whose name ends at a slash."""
    return allowed.startswith(_S3) and place.startswith(f"{allowed.rstrip('/')}/")


def _is_among(url: str, allowed: Collection[str]) -> bool:
    """Say whether an endpoint is one of the allowed ones: scheme, host and port decide."""
    return any(_endpoint(url) == _endpoint(each) for each in allowed if "://" in each)


def _endpoint(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme)
