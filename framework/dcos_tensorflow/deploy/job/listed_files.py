"""The files of a batch: a folder or a pattern of this machine, as a manifest that stays as it is.

Called by ``deploy.run`` before a batch is prepared, and by ``preparation`` to look. What is listed
is kept in the service's folder until the batch has ended: whatever comes meanwhile, a scheduler
that starts again finds the same list.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.client.registry import write_private
from dcos_tensorflow.client.work_directory import ServiceDirectory, expanded, make_folder
from dcos_tensorflow.deploy.job.given_options import GivenOptions

if TYPE_CHECKING:
    from dcos_tensorflow.core.model.service_state import ServiceState
    from dcos_tensorflow.options import Options

_OPTION = "batch.inputs.files"


def with_listed_files(
    given: GivenOptions,
    options: Options,
    directory: ServiceDirectory,
    known: ServiceState | None,
    *,
    local: bool,
) -> GivenOptions:
    """Return the options with a manifest in the place of a pattern. Raises UsageError, CliError.

    ``known`` is the service as it is stored: a batch that has not ended keeps its list.
    """
    from dcos_tensorflow.core.model.job import JobPhase

    pattern = _whole(options)
    manifest = directory.inputs / f"{hashlib.sha256(pattern.encode()).hexdigest()[:12]}.txt"
    under_way = known is not None and known.job.phase is not JobPhase.DONE
    if not under_way or not manifest.is_file():
        files = listed(options, local=local)
        directory.prepare()
        make_folder(directory.inputs)
        write_private(manifest, "".join(f"{file}\n" for file in files))
        if not under_way:
            for other in directory.inputs.iterdir():
                if other != manifest:
                    other.unlink()
    inputs = {"manifest": str(manifest), "per_shard": options.batch.inputs.per_shard}
    return given.with_override(f"batch.inputs={json.dumps(inputs)}")


def listed(options: Options, *, local: bool) -> list[str]:
    """Return the paths of the files that the options mean, sorted. Raises UsageError.

    ``local`` says that the tasks run on this machine. A folder is all files below it, and what is
    hidden is left out, as in a shell.
    """
    given, pattern = options.batch.inputs.files, _whole(options)
    if not local:
        raise UsageError(
            f"{_OPTION}: {given} is of this machine, and tasks run on other ones. Name paths that"
            " all machines share in a manifest beside the options (batch.inputs.manifest), or put"
            " the files into S3 (batch.inputs.s3_prefix)."
        )
    if os.path.isfile(pattern) and not glob.has_magic(given):
        raise UsageError(
            f"{_OPTION}: {given} is one file, and the inputs are a folder or a pattern such as"
            " data/*.csv. If its lines are the inputs, it is a manifest: batch.inputs.manifest."
        )
    below = f"{glob.escape(pattern)}/**" if os.path.isdir(pattern) else pattern
    found = sorted(path for path in glob.iglob(below, recursive=True) if os.path.isfile(path))
    if not found:
        what = "no file in the folder" if os.path.isdir(pattern) else "no file that matches"
        raise UsageError(f"{_OPTION}: there is {what} {pattern}.")
    for path in found:
        if len(path.splitlines()) > 1 or path != path.strip():
            raise UsageError(
                f"{_OPTION}: the name {path!r} would be another one as a line of a list: rename"
                " the file."
            )
    return found


def refuse_unlisted(options: Options) -> None:
    """Raise UsageError where files are still to be listed: a scheduler begins with a list."""
    if options.batch.inputs.files:
        raise UsageError(
            f"{_OPTION}: the command run makes a list of the files, which stays as it is; a"
            " scheduler that is started without it takes a list, batch.inputs.manifest."
        )


def _whole(options: Options) -> str:
    """Return the pattern as an absolute one. Raises UsageError."""
    try:
        path = expanded(options.batch.inputs.files)
    except ValueError as error:
        raise UsageError(f"{_OPTION}: {error}.") from error
    return os.path.normpath((options.base_directory or Path.cwd()) / path)
