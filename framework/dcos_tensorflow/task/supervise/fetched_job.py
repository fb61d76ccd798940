"""Holds the job that was fetched against its sum, and unpacks it: before anything of it is used.

``main`` calls it where ``service.job_sha256`` is set, before it looks for the job's code. The
fetcher has not unpacked the file then, and put it where nothing finds it. A file with another
digest is removed, and ends the job: another try would fetch the same.
"""

from __future__ import annotations

import hashlib
import os
import stat
from typing import IO

from dcos_tensorflow.core import contract
from dcos_tensorflow.job_code.modules import JobUnusable
from dcos_tensorflow.task.spec import FetchedJob
from untrusted_input import archives

_BLOCK_BYTES = 1 << 20
#: More is no job. Bytes.
MAX_BYTES = 64e9


def take(job: FetchedJob, sandbox: str) -> None:
    """Put the job into the sandbox, as the fetcher would. Raises JobUnusable, and OSError."""
    path = os.path.join(sandbox, contract.UNCHECKED_JOB_FILE)
    # Whatever lies there: a link is not followed, and a pipe is not waited for.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with open(os.open(path, flags), "rb") as file:
            _check(file, job)
            # Of the file that was looked at, and no other that may be there by now.
            _unpack(file, job.name, sandbox)
    except JobUnusable:
        os.unlink(path)
        raise
    target = os.path.join(sandbox, job.name)
    if os.path.lexists(target) and not archives.is_archive(job.name):
        os.unlink(path)
        raise JobUnusable(f"service.job_url brings {job.name}, which is in the sandbox already")
    os.replace(path, target)


def _check(file: IO[bytes], job: FetchedJob) -> None:
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BYTES:
        raise JobUnusable(f"{job.name} of service.job_url is no file of at most 64 GB")
    digest = hashlib.sha256()
    while True:
        block = file.read(_BLOCK_BYTES)
        if not block:
            break
        digest.update(block)
    file.seek(0)
    if digest.hexdigest() != job.sha256:
        raise JobUnusable(
            f"{job.name} of service.job_url is not the file that service.job_sha256 names: its "
            f"SHA-256 is {digest.hexdigest()}, and {job.sha256} is wanted",
            "nothing of it was used; set service.job_sha256 to the sum of the file that is meant, "
            "or have that one served",
        )


def _unpack(file: IO[bytes], name: str, sandbox: str) -> None:
    try:
        archives.unpack(file, name, sandbox)
    except archives.ArchiveRefused as error:
        raise JobUnusable(f"{name} of service.job_url {error}") from error
