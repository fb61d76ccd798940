"""A batch's manifest and output on this machine: beside the options, like other paths.

Called by ``preparation``. The manifest is read by the scheduler, the output written by the tasks.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.client.work_directory import expanded
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.core.spec.workload_spec import BatchSpec

_MANIFEST, _OUTPUT = "batch.inputs.manifest", "batch.output"


def with_batch_places(spec: ServiceSpec, base: Path | None, *, local: bool) -> ServiceSpec:
    """Return the service with whole paths for its batch; ``base`` is the folder of the options.

    ``local`` says that the tasks run on this machine, as this user: else a manifest lies beside the
    options, because tasks get what is in it, and the author of options is not trusted with every
    file here. Raises UsageError for one that does not, or is not there, and for an output that no
    other machine could find.
    """
    work = spec.workload
    if not isinstance(work, BatchSpec):
        return spec
    folder, listing, output = base or Path.cwd(), work.listing, work.output
    if listing and "://" not in listing:
        path = folder / _path(listing, _MANIFEST)
        from dcos_tensorflow.scheduler.gate import Allowed, Gate

        # First: whether a file is there that may not be read is not told either.
        refused = Gate(Allowed(folder=base, everything=local)).manifest_refusal(path)
        if refused:
            raise UsageError(f"{_MANIFEST}: {refused}.")
        if not path.is_file():
            raise UsageError(f"{_MANIFEST}: there is no file {path}.")
        listing = str(path.resolve())
    if "://" not in output:
        path = _path(output, _OUTPUT)
        if not path.is_absolute() and not local:
            raise UsageError(
                f"{_OUTPUT}: {output} is a path beside the options, and tasks run on other"
                " machines; give a path that all of them share, or a place in S3."
            )
        output = str((folder / path).absolute())
    return replace(spec, workload=replace(work, listing=listing, output=output))


def _path(text: str, option: str) -> Path:
    try:
        return expanded(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}.") from error
