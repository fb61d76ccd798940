"""S3 as the scheduler itself reaches it: where tasks do, with the credentials that they get.

Used for a batch's inputs and for the history of runs. All of it may block.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dcos_tensorflow.core.model.spec import ServiceSpec
from dcos_tensorflow.scheduler.secret_sources import AllowedSources, SecretError

if TYPE_CHECKING:
    from dcos_tensorflow.task.storage.object_store import ObjectStore

_ATTEMPTS = 3


def connected(
    spec: ServiceSpec, credentials: Mapping[str, str], bucket: str, allowed: AllowedSources
) -> ObjectStore:
    """Return the objects of a bucket. Raises StorageError.

    ``credentials`` are variables as boto3 reads them. With none boto3 finds those of the scheduler
    itself, which options get the use of where that is ``allowed``.
    """
    from dcos_tensorflow.task.storage.connection import Connection
    from dcos_tensorflow.task.storage.errors import Problem, StorageError
    from dcos_tensorflow.task.storage.location import S3Settings
    from dcos_tensorflow.task.storage.object_store import connect
    from dcos_tensorflow.task.storage.retry import Backoff
    from dcos_tensorflow.task.storage_spec import S3Access

    s3 = spec.storage.s3
    if not credentials:
        try:
            allowed.check_own_s3(s3.endpoint_url)
        except SecretError as error:
            raise StorageError(Problem("denied", False, str(error))) from None
    # A file of certificates that only a task's sandbox has is not here.
    ca_file = s3.ca_file if os.path.isabs(s3.ca_file) else ""
    settings = S3Settings.of(S3Access(s3.endpoint_url, s3.region, s3.path_style, ca_file), "")
    # Whoever asks comes again later, and says meanwhile what it waits for.
    backoff = Backoff(attempts=_ATTEMPTS)
    client = connect(settings, credentials)
    return Connection(settings, backoff=backoff, client=client).store(bucket)
