"""The output of a shard: written under a name of its own, and found under the final one when whole.

``starts`` asks for a place before the process starts and gives up an unpublished one;
``unit_work`` publishes after a success. Several attempts of a shard may write at the same time: the
first whole output stays, whatever the others do, and their files are removed.
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import Callable, Optional

from dcos_tensorflow.task.job_files import create, open_regular
from dcos_tensorflow.task.supervise.environment import is_url
from dcos_tensorflow.task.supervise.shard_record import path_of

#: Beside the final outputs: here each attempt has a folder of its own. So that no final name is
#: ever half written, it must be on the file system of the final names.
FOLDER = ".unfinished"
#: In the sandbox, for what goes to S3.
_SANDBOX_FOLDER = os.path.join(".task-runner", "shard-output")
#: Another attempt may remove the common folder whenever it is empty.
_TRIES = 100
#: What a file system answers that knows no hard links.
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)


class NothingWritten(Exception):
    """The process has left nothing where its output was to be."""


class ShardOutput:
    """One attempt's output. ``final`` is a path, or a place in S3; ``owner`` names the attempt.

    ``record`` says which inputs it is of, and is kept beside it (``shard_record``); empty for none.
    ``path`` is where the process writes, SHARD_OUTPUT. Its last part is that of ``final``, so that
    code which goes by a file's ending finds it.
    """

    def __init__(self, final: str, sandbox: str, owner: str, record: str = "") -> None:
        self._record = record
        self.is_in_s3 = is_url(final)
        self.final = final if self.is_in_s3 else os.path.join(sandbox, final)
        folder, self._name = os.path.split(self.final)
        self._common = os.path.join(
            *((sandbox, _SANDBOX_FOLDER) if self.is_in_s3 else (folder, FOLDER))
        )
        self._own = os.path.join(self._common, f"{self._name}~{owner}")
        self.path = os.path.join(self._own, self._name)

    def prepare(self) -> None:
        """Make the folder that the process writes into, empty. Raises OSError."""
        _remove(self._own)
        for left in reversed(range(_TRIES)):
            try:
                os.makedirs(self._own)
            except FileNotFoundError:
                if not left:
                    raise
            else:
                return

    def publish(self, put: Optional[Callable[[str, str, str], bool]] = None) -> bool:
        """Let the output be found under its final name; False where another one is found there.

        ``put`` does so in S3, for a file, a place and a record. Raises OSError, NothingWritten, and
        what ``put`` raises.
        """
        if not (os.path.isfile(self.path) or os.path.isdir(self.path)):
            raise NothingWritten(self.path)
        if put is not None:
            published = put(self.path, self.final, self._record)
        else:
            self._keep_record()
            publish = _publish_folder if os.path.isdir(self.path) else _publish_file
            published = publish(self.path, self.final)
        self._tidy_up()
        return published

    def _keep_record(self) -> None:
        """Write the record, before the output that it is of is found."""
        if self._record and not os.path.lexists(self.final):
            path = path_of(self.final)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            beside = f"{path}~{os.path.basename(self._own).rpartition('~')[2]}"
            with create(beside) as file:
                file.write(self._record.encode())
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)

    def discard(self) -> None:
        """Remove what was not published."""
        _remove(self._own)
        with contextlib.suppress(OSError):
            os.rmdir(self._common)

    def _tidy_up(self) -> None:
        """Remove what this attempt and others of the same shard have left: none is needed."""
        with contextlib.suppress(OSError):
            for name in os.listdir(self._common):
                if name.startswith(f"{self._name}~"):
                    _remove(os.path.join(self._common, name))
        self.discard()


def _publish_file(path: str, final: str) -> bool:
    # What is found must be whole even after the machine has lost its power.
    with open_regular(path) as file:
        os.fsync(file.fileno())
    try:
        os.link(path, final, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # Between the two another attempt's whole output may come, and is replaced by this one.
        if os.path.lexists(final):
            return False
        os.rename(path, final)
    return True


def _publish_folder(path: str, final: str) -> bool:
    """Rename a folder: no system lets that replace anything but an empty one."""
    try:
        os.rename(path, final)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            return False
        raise
    return True


def _remove(folder: str) -> None:
    """Remove an attempt's folder; one that is not there does not matter."""
    path = os.path.join(folder, os.path.basename(folder).rpartition("~")[0])
    try:
        # The usual case: nothing, or one file.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        os.rmdir(folder)
    except FileNotFoundError:
        return
    except OSError:
        from untrusted_input import trees

        trees.remove(folder)
