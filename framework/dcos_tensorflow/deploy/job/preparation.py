"""From a user's options to a scheduler's input: the service, its packed code, and notes.

Called by ``run``, ``scheduler`` and ``validate``. On the embedded cluster three things are settled
that options leave to the cluster elsewhere: which Python runs the tasks, where checkpoints are
kept, and that no container is used. Whatever was settled is told in a note.
"""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.client.work_directory import ServiceDirectory
from dcos_tensorflow.core import contract
from dcos_tensorflow.core.cluster.storage_sections import checkpoints_place
from dcos_tensorflow.core.spec.service_spec import (
    Addressing,
    LinkedData,
    PackagesSpec,
    RoleSpec,
    ServiceSpec,
    TaskRole,
    Uri,
)
from dcos_tensorflow.core.spec.workload_spec import BatchSpec
from dcos_tensorflow.deploy.embedded.interpreters import (
    find_tensorflow,
    found_here,
    tensorflow_version,
    this_interpreter,
)
from dcos_tensorflow.deploy.job.deployment import PreparedJob, SeenCode
from dcos_tensorflow.deploy.job.job_archive import check_sum, pack
from dcos_tensorflow.deploy.job.listed_files import listed, refuse_unlisted
from dcos_tensorflow.deploy.job.local_data import (
    option_path,
    pack_data,
    with_batch_places,
    with_local_data,
)
from dcos_tensorflow.deploy.job.seen_code import (
    environments_are_there,
    inspect_code,
    keras_notes,
    tasks_of,
)
from dcos_tensorflow.deploy.job.unseen_paths import unseen_paths
from dcos_tensorflow.job_code.agreement import keras_doubt
from dcos_tensorflow.options import (
    OptionProblem,
    Options,
    OptionsError,
    notes,
    service_spec,
    task_environment,
    with_task_environment,
)
from dcos_tensorflow.options.sections.images import DEFAULT_TENSORFLOW, version_of_image
from dcos_tensorflow.options.sections.role_models import role_options
from dcos_tensorflow.options.sections.section import GROUP_OF_ROLE
from dcos_tensorflow.options.sections.service_models import Service
from untrusted_input.archives import is_archive

if TYPE_CHECKING:
    from dcos_tensorflow.mesos.service_account import ServiceAccount


#: Options that name what the embedded cluster does not have.
_CONTAINER_OPTIONS = ("tf_image", "gpu_tf_image", "containerizer")

#: The names of the packed local code and data among the files that tasks fetch.
_PACKED_JOB = "packed-job.zip"
_PACKED_DATA = "packed-data.zip"
#: After so long no process begins any more with what was packed for it (seconds).
_LEFT_SECONDS = 30 * 86_400.0


def prepare(
    options: Options,
    directory: ServiceDirectory,
    environ: Mapping[str, str],
    *,
    local: bool,
    links: tuple[Path, ...] = (),
) -> PreparedJob:
    """Return what to run, with local code packed into ``directory``. Raises as ``preview`` does.

    What runs there may be another's: it is packed beside what is kept, which ``archives_in_force``
    replaces once this process has the right to. ``links`` are folders that links in packed ones may
    lead to.
    """
    # Who only looks at options packs nothing.
    from dcos_tensorflow.scheduler.gate import Allowed, Gate

    refuse_unlisted(options)
    found, source = preview(options, directory, environ, local=local)
    directory.prepare()
    archive, gate = None, Gate(Allowed(links=links, everything=local))
    if source is not None:
        apart = (directory.work, *(one.source for one in found.local_data))
        archive = pack(source, _beside(directory.artifacts / _PACKED_JOB), apart=apart, gate=gate)
    data = None
    if found.local_data and not local:
        data = pack_data(found.local_data, _beside(directory.artifacts / _PACKED_DATA), gate)
    return replace(found, archive=archive, data=data)


def _beside(kept: Path) -> Path:
    """Return where to pack what may replace ``kept``; what was left there long ago goes.

    Not by the process: options may be read by one, and the job served by another.
    """
    for left in kept.parent.glob(f"{kept.stem}-*{kept.suffix}"):
        if time.time() - left.stat().st_mtime > _LEFT_SECONDS:
            left.unlink(missing_ok=True)
    return kept.with_name(f"{kept.stem}-{uuid.uuid4().hex[:12]}{kept.suffix}")


def archives_in_force(
    prepared: PreparedJob, directory: ServiceDirectory, in_force: bool
) -> tuple[Path | None, Path | None]:
    """Return the packed code and data of the options in force, None where there are none.

    Called by the leader of the service alone. Where the options of ``prepared`` are ``in_force``
    what was packed for them is kept from now on; else it is removed, and what was kept stays.
    """
    found = []
    for packed, name in ((prepared.archive, _PACKED_JOB), (prepared.data, _PACKED_DATA)):
        kept = directory.artifacts / name
        own = packed is not None and packed.name.startswith(f"{kept.stem}-")
        own = own and packed is not None and packed.parent == kept.parent
        if in_force and packed is None:
            kept.unlink(missing_ok=True)
        elif in_force and packed is not None and packed != kept:
            # An archive of the user's is copied: it may change.
            mine = packed if own else Path(shutil.copyfile(packed, _beside(kept)))
            mine.replace(kept)
        elif own and packed is not None:
            packed.unlink(missing_ok=True)
        found.append(kept if kept.is_file() else None)
    return found[0], found[1]


def preview(
    options: Options, directory: ServiceDirectory, environ: Mapping[str, str], *, local: bool
) -> tuple[PreparedJob, Path | None]:
    """Return what would run, and where its code lies on this machine; nothing is written.

    ``local`` says that the tasks run on this machine, on the embedded cluster. Raises UsageError
    for what can never run, OptionsError for TASKCFG_* variables that make no sense.
    """
    spec = with_task_environment(service_spec(options), task_environment(environ))
    is_listed = not options.batch.inputs.files
    if not is_listed:
        listed(options, local=local)
    base, lists = options.base_directory, directory.inputs
    spec = with_batch_places(spec, base, local=local, lists=lists, is_listed=is_listed)
    told = list(notes(options, shares_directory=local))
    source = local_source(spec, options.base_directory, local=local)
    check_sum(source, spec.job.sha256)
    code = inspect_code(spec, source)
    spec, data = with_local_data(spec, options, local=local)
    if local:
        spec, more = _for_this_machine(spec, options, directory, code)
        told += more
    else:
        _check_fetchable(spec, options)
        told += _unsaid_tensorflow(spec, code.contract)
    told += code.notes
    versions = _versions(spec, options, local=local)
    told += keras_notes(spec, code, versions)
    base = options.base_directory or Path.cwd()
    told += unseen_paths(code.facts.paths, spec, source, base, local=local)
    return PreparedJob(spec, None, code, tuple(told), versions, local_data=data), source


def _versions(spec: ServiceSpec, options: Options, *, local: bool) -> dict[TaskRole, str]:
    """Return the TensorFlow that each role runs with: its image's, or that of its Python here."""
    found = {}
    for role in spec.roles:
        image = role.container.image if role.container is not None else ""
        version = version_of_image(image) or role.packages.tensorflow
        if local and role.python and not version:
            version = tensorflow_version(role.python)
        found[role.role] = version or options.service.tensorflow_version
    return found


def _unsaid_tensorflow(spec: ServiceSpec, found: str) -> list[str]:
    """Return what to say of tasks that run with whatever their agents have."""
    bare = [str(role.role) for role in spec.roles if role.container is None and not role.python]
    if not bare or found == contract.CONTRACT_COMMAND:
        return []
    return [
        f"Nothing says which TensorFlow: {', '.join(bare)} run with the python3 of their agents,"
        " which must have it. Name an image by service.tensorflow_version or service.tf_image"
        " (service.gpu_tf_image), or a Python of the agents in service.python."
    ]


def packed_job(directory: ServiceDirectory, url: str) -> Path | None:
    """Return the code at ``url`` as it was packed for a service; None where it was not."""
    packed = directory.artifacts / _PACKED_JOB
    scheme = urlsplit(url).scheme if "://" in url else ""
    is_packed = scheme in ("", "file") and not is_archive(url) and packed.is_file()
    return packed if is_packed else None


def prepare_name(options: Options, directory: ServiceDirectory) -> PreparedJob:
    """Return what goes by the service's name alone: what an uninstall needs, and a scheduler whose
    options cannot be had. Code that was packed for those of before is still there."""
    directory.prepare()
    archive, data = directory.artifacts / _PACKED_JOB, directory.artifacts / _PACKED_DATA
    return PreparedJob(
        service_spec(options),
        archive if archive.is_file() else None,
        SeenCode(""),
        (),
        data=data if data.is_file() else None,
    )


def changed_spec(
    options: Options,
    directory: ServiceDirectory,
    environ: Mapping[str, str],
    running: ServiceSpec,
    *,
    local: bool,
    restarted: bool = False,
) -> ServiceSpec:
    """Return the service of changed options, as ``prepare`` made that of the ``running`` one.

    Raises OptionsError. Code that lies beside the scheduler was packed when it started: only a
    scheduler that starts again brings other code. With ``restarted`` one does, and this one reads
    nothing of that code for the author of the options.
    """
    spec = with_task_environment(service_spec(options), task_environment(environ))
    try:
        refuse_unlisted(options)
        base, lists = options.base_directory, directory.inputs
        spec = with_batch_places(spec, base, local=local, lists=lists)
        if not local and not restarted and _manifest(spec) not in ("", _manifest(running)):
            raise UsageError(
                "batch.inputs.manifest: a file of the scheduler's machine is named when it starts;"
                " start it again with these options, or put the manifest into S3."
            )
        source = local_source(spec, options.base_directory, local=local)
        if source is not None and spec.job.uri != running.job.uri:
            if not restarted:
                raise UsageError(
                    "service.job_url: code on the scheduler's machine is packed when it starts;"
                    " start the scheduler again with these options."
                )
            source = None
        check_sum(source, spec.job.sha256)
        packed = directory.artifacts / _PACKED_JOB
        if source is not None and not is_archive(source.name) and packed.is_file():
            source = packed
        code = inspect_code(spec, source)
        spec, _ = with_local_data(spec, options, local=local)
        if not local and not restarted and _packed(spec) != _packed(running):
            raise UsageError(
                "data: files beside the options are packed when the scheduler starts; start it"
                " again with these options."
            )
        if local:
            spec, _ = _for_this_machine(spec, options, directory, code)
        else:
            _check_fetchable(spec, options)
    except UsageError as error:
        raise OptionsError([OptionProblem("", str(error))]) from error
    return replace(spec, principal=running.principal)


def _manifest(spec: ServiceSpec) -> str:
    """Return the path of the batch's manifest on the scheduler's machine; empty where none is."""
    listing = spec.workload.listing if isinstance(spec.workload, BatchSpec) else ""
    return "" if "://" in listing else listing


def _packed(spec: ServiceSpec) -> tuple[LinkedData, ...]:
    return tuple(link for link in spec.job.links if not link.source.startswith("/"))


def with_principal(
    prepared: PreparedJob, principal: str, account: ServiceAccount | None = None
) -> PreparedJob:
    """Return the job under the principal that the settings name, if they name one.

    A service account is the only principal of its login: Mesos refuses a
    framework whose principal is another than that of its login. Raises UsageError.
    """
    wanted = principal or prepared.spec.principal
    if account is not None and wanted and wanted != account.uid:
        raise UsageError(
            f"service.service_account: {wanted} is not the service account of"
            f" service.service_account_secret, which is {account.uid}."
        )
    wanted = wanted or (account.uid if account is not None else "")
    if not wanted:
        return prepared
    return replace(prepared, spec=replace(prepared.spec, principal=wanted))


def local_source(spec: ServiceSpec, base: Path | None, *, local: bool) -> Path | None:
    """Return the file or folder on this machine that ``service.job_url`` names, None for a URL.

    Raises UsageError when it should be here and is not.
    """
    uri = spec.job.uri
    scheme = urlsplit(uri).scheme if "://" in uri else ""
    if not uri or scheme not in ("", "file"):
        return None
    path = option_path(unquote(urlsplit(uri).path) if scheme else uri, "service.job_url")
    if path.is_absolute() and not local and not path.exists():
        # A path of the agents' own: only they can tell whether it is there.
        return None
    path = path if path.is_absolute() else (base or Path.cwd()) / path
    if not path.exists():
        raise UsageError(f"service.job_url: there is no file or folder {path}.")
    return path.resolve()


def _for_this_machine(
    spec: ServiceSpec, options: Options, directory: ServiceDirectory, code: SeenCode
) -> tuple[ServiceSpec, list[str]]:
    """Return the service as it runs here, and what to say of it."""
    tensorflow = options.service.tensorflow_version or code.tensorflow
    if not tensorflow and _needs_tensorflow(spec, options, code):
        tensorflow = DEFAULT_TENSORFLOW
    if not tensorflow:
        tensorflow = _needs_keras_2(spec, options, code)
    if spec.addressing is Addressing.DNS:
        raise UsageError(
            "cluster_spec.addressing: dns needs the names that DC/OS gives to tasks, and the"
            " embedded cluster gives none; use offer."
        )
    if spec.network is not None:
        raise UsageError(
            f"service.virtual_network_enabled: true asks for the network {spec.network.name}, and"
            " the embedded cluster has no container networks; use false."
        )
    told = []
    images = [f"service.{name}" for name in _CONTAINER_OPTIONS if _differs(options, name)]
    if images:
        told.append(f"{', '.join(images)}: not used here, the embedded cluster runs no containers.")
    if (_differs(options, "user") and options.service.user) or any(
        role.user for role in spec.roles
    ):
        told.append("service.user: not used here, the tasks run as you.")
    if options.service.service_account_secret:
        told.append("service.service_account_secret: not used here, there is no login.")
    if any(role.shm_size for role in spec.roles):
        raise UsageError(
            "service.shm_size: the embedded cluster cannot give tasks a /dev/shm of their own;"
            " leave it out, here and in the roles."
        )
    python, note = _python(spec, options, directory, tensorflow)
    if note:
        told.append(note)
    roles = tuple(
        replace(
            role,
            container=None,
            user="",
            python=_own_python(role.python, options, _python_option(options, role)) or python,
            packages=_packages_here(role, options, directory, tensorflow),
        )
        for role in spec.roles
    )
    job = spec.job
    if not checkpoints_place(spec):
        job = replace(job, checkpoint_dir=str(directory.checkpoints))
    extra = tuple(
        _absolute(uri, options.base_directory, _uri_option(options, number))
        for number, uri in enumerate(job.extra_uris)
    )
    return replace(spec, roles=roles, user="", job=replace(job, extra_uris=extra)), told


def _differs(options: Options, name: str) -> bool:
    """Say whether an option of ``service`` has another value than its default.

    What has that counts as not given: the app of a package, and options that were shown by
    ``describe``, hold every option.
    """
    return bool(getattr(options.service, name) != Service.model_fields[name].default)


def _packages_here(
    role: RoleSpec, options: Options, directory: ServiceDirectory, tensorflow: str
) -> PackagesSpec:
    """Return what is installed for a role on this machine, where no container has it."""
    if role.role is TaskRole.TENSORBOARD and options.tensorboard.python:
        return role.packages
    # A Python that the options name is taken with the TensorFlow that is in it.
    version = "" if role.python else tensorflow
    return replace(role.packages, tensorflow=version, directory=str(directory.work))


def _python(
    spec: ServiceSpec, options: Options, directory: ServiceDirectory, version: str
) -> tuple[str, str]:
    """Return the Python of the roles that name none, and what to say about it.

    Where there is none with the ``version`` that is named, theirs is made by the task runner.
    """
    if all(role.python for role in spec.roles):
        return "", ""
    python = find_tensorflow(_places(options), version)
    if python is not None:
        return str(python), found_here(str(python))
    if version:
        gpus = [role.resources.gpus for role in spec.roles if not role.python]
        if environments_are_there(directory.work, version, gpus):
            told = f"The tasks run with TensorFlow {version}, which was installed for tasks before."
        else:
            told = (
                f"No Python with TensorFlow {version} was found: the tasks make an environment"
                " with it, once for this machine, which takes a minute or a few."
            )
        return str(this_interpreter()), told
    own = this_interpreter()
    return str(own), f"No TensorFlow was found; the command finds {own} as its python."


def _needs_tensorflow(spec: ServiceSpec, options: Options, code: SeenCode) -> bool:
    """Say whether there is no Python with TensorFlow here for the roles that name none."""
    if all(role.python for role in spec.roles) or code.contract == contract.CONTRACT_COMMAND:
        return False
    return find_tensorflow(_places(options)) is None


def _needs_keras_2(spec: ServiceSpec, options: Options, code: SeenCode) -> str:
    """Return the version of the TensorFlow here that the code needs the Keras 2 of; else none.

    Where a version is asked for, its Keras 2 is installed beside it, unless it is there.
    """
    python = find_tensorflow(_places(options))
    version = tensorflow_version(str(python)) if python else ""
    return version if keras_doubt(code.facts, tasks_of(spec), version) else ""


def _places(options: Options) -> list[Path]:
    """Return where a Python with TensorFlow is looked for, beside our own."""
    return [place for place in (options.base_directory, Path.cwd()) if place is not None]


def _python_option(options: Options, role: RoleSpec) -> str:
    group = GROUP_OF_ROLE[role.role]
    return f"{group}.python" if role_options(options, group).python else "service.python"


def _uri_option(options: Options, number: int) -> str:
    given = len(options.service.job_uris)
    return f"service.job_uris.{number}" if number < given else "service.hdfs.config_uri"


def _own_python(given: str, options: Options, option: str) -> str:
    """Return a role's Python as a path that tasks find from anywhere. Raises UsageError."""
    if not given:
        return ""
    if "/" not in given:
        if shutil.which(given) is None:
            raise UsageError(f"{option}: there is no {given} on this machine's PATH.")
        return given
    path = option_path(given, option)
    path = path if path.is_absolute() else (options.base_directory or Path.cwd()) / path
    if path.is_dir() and not (path / "bin" / "python").exists():
        raise UsageError(f"{option}: {path} is no virtual environment: it has no bin/python.")
    if not path.exists():
        raise UsageError(f"{option}: there is no {path} on this machine.")
    return str(path.absolute())


def _check_fetchable(spec: ServiceSpec, options: Options) -> None:
    """Refuse files beside the options where agents fetch them. Raises UsageError."""
    for number, uri in enumerate(spec.job.extra_uris):
        if "://" not in uri.value and not Path(uri.value).is_absolute():
            raise UsageError(
                f"{_uri_option(options, number)}: agents cannot fetch {uri.value}, a path beside"
                " the options file; give a URI, a path that all agents have, or put it beside the"
                " code in service.job_url."
            )


def _absolute(uri: Uri, base: Path | None, option: str) -> Uri:
    if "://" in uri.value or Path(uri.value).is_absolute():
        return uri
    path = (base or Path.cwd()) / uri.value
    if not path.exists():
        raise UsageError(f"{option}: there is no file {path}.")
    return replace(uri, value=str(path.resolve()))
