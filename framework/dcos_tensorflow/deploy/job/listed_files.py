"""The files of a batch: a folder or a pattern of this machine, as a manifest that stays as it is.

Called by ``deploy.run`` before a batch is prepared, and by ``preparation`` to look. The list
is kept in the service's folder until the batch has ended: whatever comes meanwhile, a scheduler
that starts again finds the same list. For tasks on other machines the folder of the files becomes
one of ``data``: it is packed, and fetched by each task, as any data beside the options is.
"""

from __future__ import annotations

import glob
import hashlib
import itertools
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.client.registry import write_private
from dcos_tensorflow.client.work_directory import ServiceDirectory, expanded, make_folder
from dcos_tensorflow.deploy.job.given_options import GivenOptions
from dcos_tensorflow.deploy.job.job_archive import MAX_BYTES

if TYPE_CHECKING:
    from dcos_tensorflow.core.model.service_state import ServiceState
    from dcos_tensorflow.options import Options

_OPTION = "batch.inputs.files"
_ELSEWHERE = (
    "Name paths that all machines share in a manifest beside the options (batch.inputs.manifest),"
    " or put the files into S3 (batch.inputs.s3_prefix)."
)


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
        # Other machines find them at the same place below the sandbox, where a task works.
        lines = files if local else [os.path.relpath(file, _base(options)) for file in files]
        write_private(manifest, "".join(f"{line}\n" for line in lines))
        if not under_way:
            for other in directory.inputs.iterdir():
                if other != manifest:
                    other.unlink()
    inputs = {"manifest": str(manifest), "per_shard": options.batch.inputs.per_shard}
    given = given.with_override(f"batch.inputs={json.dumps(inputs)}")
    folder = "" if local else _folder_beside(options)
    if not folder or any(item.path == folder for item in options.data):
        return given
    data = [item.model_dump(exclude_unset=True) for item in options.data]
    return given.with_override(f"data={json.dumps([*data, {'uri': folder, 'path': folder}])}")


def listed(options: Options, *, local: bool) -> list[str]:
    """Return the paths of the files that the options mean, sorted. Raises UsageError.

    ``local`` says that the tasks run on this machine. A folder is all files below it, and what is
    hidden is left out, as in a shell.
    """
    given, pattern = options.batch.inputs.files, _whole(options)
    if not local and not _folder_beside(options):
        raise UsageError(
            f"{_OPTION}: tasks run on other machines, and get a folder beside the options such as"
            f" data/*.csv, which {given} is not. {_ELSEWHERE}"
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
    size = 0 if local else sum(map(os.path.getsize, found))
    if size > MAX_BYTES:
        raise UsageError(
            f"{_OPTION}: {given} is {size / 1e9:.1f} GB, of which every task would fetch all; at"
            f" most {MAX_BYTES / 1e9:g} GB are packed. {_ELSEWHERE}"
        )
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
    return os.path.normpath(_base(options) / path)


def _folder_beside(options: Options) -> str:
    """Return the folder that a pattern begins with, below that of the options; empty for none."""
    parts = os.path.normpath(options.batch.inputs.files).split("/")
    fixed = list(itertools.takewhile(lambda part: not glob.has_magic(part), parts))
    # It may name no folder: then that is told.
    is_plain = not {"", ".", ".."} & set(fixed) and not parts[0].startswith("~")
    return "/".join(fixed) if is_plain else ""


def _base(options: Options) -> Path:
    return options.base_directory or Path.cwd()
