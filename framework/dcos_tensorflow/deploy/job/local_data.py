"""Input data of this machine, as ``data`` names it: linked where tasks run here, packed elsewhere.

So are the manifest of a batch, which the scheduler reads, and its output. Called by
``preparation``. A path beside the options file, or below the home folder, is one of this machine;
an absolute one is one of the machine that a task runs on.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.client.work_directory import expanded
from dcos_tensorflow.core.spec.service_spec import LinkedData, ServiceSpec
from dcos_tensorflow.core.spec.workload_spec import BatchSpec
from dcos_tensorflow.deploy.job.deployment import LocalData
from dcos_tensorflow.deploy.job.job_archive import MAX_BYTES, files_of, pack_files

if TYPE_CHECKING:
    from dcos_tensorflow.options import Options
    from dcos_tensorflow.scheduler.gate import Gate


def with_local_data(
    spec: ServiceSpec, options: Options, *, local: bool
) -> tuple[ServiceSpec, tuple[LocalData, ...]]:
    """Return the service with the data that is linked, and all data that lies on this machine.

    ``local`` says that the tasks run here. Raises UsageError for what should be here and is not.
    """
    found = tuple(_on_this_machine(options, local=local))
    if local:
        links = tuple(LinkedData(str(one.source), one.path) for one in found)
        spec = replace(spec, job=replace(spec.job, links=links))
    return spec, found


def _on_this_machine(options: Options, *, local: bool) -> list[LocalData]:
    # Where there are options they have been imported; who knows what was found needs none.
    from dcos_tensorflow.options.sections.storage import linked_data

    found = []
    names = {one.path: f"data.{number}.uri" for number, one in enumerate(options.data)}
    for link in linked_data(options):
        if link.source.startswith("/") and not local:
            continue
        option = names[link.path]
        try:
            path = expanded(link.source)
        except ValueError as error:
            raise UsageError(f"{option}: {error}.") from error
        path = (options.base_directory or Path.cwd()) / path
        if not path.exists():
            raise UsageError(f"{option}: there is no file or folder {path}.")
        found.append(LocalData(path.resolve(), link.path, option))
    return found


def pack_data(found: tuple[LocalData, ...], target: Path, gate: Gate) -> Path:
    """Return an archive of all this data, each where tasks find it. Raises UsageError, CliError."""
    files = [
        (f"{one.path}/{name}", path)
        for one in found
        for name, path in files_of(one.source, gate=gate, option=one.option)
    ]
    names = ", ".join(one.option for one in found)
    return pack_files(
        files,
        target,
        option=names,
        place=", ".join(str(one.source) for one in found),
        too_large=f"{names}: the data is larger than {MAX_BYTES / 1e9:g} GB, and every task would"
        " fetch all of it from the scheduler; put it into S3 (s3://bucket/prefix), or into a"
        " directory that all machines share, and give its absolute path",
    )


_MANIFEST, _OUTPUT = "batch.inputs.manifest", "batch.output"


def with_batch_places(
    spec: ServiceSpec,
    base: Path | None,
    *,
    local: bool,
    lists: Path | None = None,
    is_listed: bool = True,
) -> ServiceSpec:
    """Return the service with whole paths for its batch; ``base`` is the folder of the options.

    ``local`` says that the tasks run on this machine, as this user: else a manifest lies beside the
    options, or among the service's own ``lists``, because tasks get what is in it, and the author
    of options is not trusted with every file here. Files that are still to be listed
    (``listed_files``) are none yet. Raises UsageError for one that does not, or is not there, and
    for an output that no other machine could find.
    """
    work = spec.workload
    if not isinstance(work, BatchSpec):
        return spec
    folder, listing, output = base or Path.cwd(), work.listing, work.output
    if is_listed and listing and "://" not in listing:
        path = folder / option_path(listing, _MANIFEST)
        from dcos_tensorflow.scheduler.gate import Allowed, Gate

        # First: whether a file is there that may not be read is not told either.
        refused = Gate(Allowed(folder=base, lists=lists, everything=local)).manifest_refusal(path)
        if refused:
            raise UsageError(f"{_MANIFEST}: {refused}.")
        if not path.is_file():
            raise UsageError(f"{_MANIFEST}: there is no file {path}.")
        listing = str(path.resolve())
    if "://" not in output:
        path = option_path(output, _OUTPUT)
        if not path.is_absolute() and not local:
            raise UsageError(
                f"{_OUTPUT}: {output} is a path beside the options, and tasks run on other"
                " machines; give a path that all of them share, or a place in S3."
            )
        output = str((folder / path).absolute())
    return replace(spec, workload=replace(work, listing=listing, output=output))


def option_path(text: str, option: str) -> Path:
    """Return an option's path without a ``~``. Raises UsageError."""
    try:
        return expanded(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}.") from error
