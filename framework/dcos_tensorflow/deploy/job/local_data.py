"""Input data of this machine, as ``data`` names it: linked where tasks run here, packed elsewhere.

Called by ``preparation``. A path beside the options file, or below the home folder, is one of this
machine; an absolute one is one of the machine that a task runs on.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.client.work_directory import expanded
from dcos_tensorflow.core.spec.service_spec import LinkedData, ServiceSpec
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
