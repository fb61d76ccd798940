"""Looks at a checkpoint directory and sets a complete checkpoint aside, so that it stays as it is.

``publisher`` calls it. ``layout`` decides which checkpoint is complete; nothing here knows S3.
"""

from __future__ import annotations

import contextlib
import errno
import os
import posixpath
import shutil
import stat
import time
import zipfile
from typing import Dict, Iterator, Mapping, Optional, Tuple

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task import checkpoints
from dcos_tensorflow.task.checkpoints import STATE_FILE
from dcos_tensorflow.task.job_files import open_regular
from dcos_tensorflow.task.storage import layout
from dcos_tensorflow.task.storage.layout import Choice, FileFacts, Listing
from dcos_tensorflow.task.storage.s3.disk import write_text
from dcos_tensorflow.task.storage.s3.errors import storage_error
from untrusted_input import trees

PUBLISH_PREFIX = f"{layout.STAGING_PREFIX}publish-"

_HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
#: The smallest superblock.
_HDF5_LEAST = 48
#: os.link fails so where links are not possible: another file system, or one without them.
_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS, errno.EACCES)
#: A state file is a few lines; something larger is none.
_MAX_STATE = 1 << 20

#: Files whose structure was looked at, by path: their facts then, and whether they were whole.
Looked = Dict[str, Tuple[FileFacts, bool]]


def look(directory: str, looked: Optional[Looked] = None) -> Listing:
    """List ``directory``, with the text of its state files. One that is not there is empty.

    ``looked`` remembers which Keras files were looked into, so that each is opened once per change.
    """
    root = os.path.abspath(directory)
    files = tuple(_files(root))
    states: Dict[str, str] = {}
    unreadable = set()
    remembered = {} if looked is None else looked
    for fact in files:
        if posixpath.basename(fact.path) == STATE_FILE and fact.size <= _MAX_STATE:
            text = _read_text(os.path.join(root, fact.path))
            if text is not None and checkpoints.newest_in(text):
                states[fact.path] = text
        elif not _is_whole(root, fact, remembered):
            unreadable.add(fact.path)
    return Listing(root, files, states, frozenset(unreadable), time.time_ns())


def _files(root: str) -> Iterator[FileFacts]:
    for folder, folders, names in trees.walk(root, strictly=True):
        folders[:] = sorted(n for n in folders if not n.startswith(layout.STAGING_PREFIX))
        for name in sorted(names):
            path = os.path.join(folder, name)
            # What vanished since was no part of a complete checkpoint.
            with contextlib.suppress(FileNotFoundError):
                found = os.stat(path)
                if stat.S_ISREG(found.st_mode):
                    relative = os.path.relpath(path, root)
                    yield FileFacts(relative, found.st_size, found.st_mtime_ns, found.st_ino)


def _read_text(path: str) -> Optional[str]:
    try:
        with open_regular(path) as file:
            return file.read(_MAX_STATE).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return None


def _is_whole(root: str, fact: FileFacts, looked: Looked) -> bool:
    if not fact.path.endswith((".keras", ".h5", ".hdf5")):
        return True
    before = looked.get(fact.path)
    if before is not None and before[0] == fact:
        return before[1]
    whole = _has_whole_structure(os.path.join(root, fact.path), fact.size)
    looked[fact.path] = (fact, whole)
    return whole


def _has_whole_structure(path: str, size: int) -> bool:
    """Say whether a Keras file ends where it says it does: zip, or HDF5."""
    try:
        with open_regular(path) as file:
            head = file.read(64)
            if head[:8] == _HDF5_SIGNATURE:
                return len(head) >= _HDF5_LEAST and _hdf5_end(head) <= size
            return zipfile.is_zipfile(file) if head[:2] == b"PK" else False
    except FileNotFoundError:
        return False


def _hdf5_end(head: bytes) -> int:
    """Return the end-of-file address of an HDF5 superblock (HDF5 file format 3.0, II.A)."""
    version, width_at, addresses_at = head[8], 13, 24
    if version == 1:
        addresses_at = 28
    elif version >= 2:
        width_at, addresses_at = 9, 12
    width = head[width_at]
    # Base address, then one more address, then the end.
    start = addresses_at + 2 * width
    return int.from_bytes(head[start : start + width], "little")


@dataclass(frozen=True)
class SetAside:
    """A checkpoint set aside in ``folder``: its files, and where each one lies now.

    ``facts`` are what they looked like there.
    """

    folder: str
    choice: Choice
    facts: Mapping[str, FileFacts]

    def path(self, name: str) -> str:
        """Return where the file ``name`` of the checkpoint lies now."""
        return os.path.join(self.folder, name)

    def changed(self) -> Optional[str]:
        """Return a file that was changed since it was set aside, or None.

        A link shares its content with the job's file: a job that writes into a file instead of
        replacing it changes both.
        """
        for name, fact in self.facts.items():
            found = os.stat(self.path(name))
            if (found.st_size, found.st_mtime_ns) != (fact.size, fact.modified_ns):
                return name
        return None

    def discard(self) -> None:
        """Remove the folder."""
        trees.remove(self.folder)


def set_aside(directory: str, name: str, choice: Choice) -> Optional[SetAside]:
    """Link the files of ``choice`` into a folder of their own; copy where links are impossible.

    None when a file changed or vanished meanwhile: the caller looks again. Raises StorageError when
    the disk does not take it.
    """
    folder = os.path.join(directory, PUBLISH_PREFIX + name)
    aside: Optional[SetAside] = None
    try:
        trees.remove(folder)
        os.makedirs(folder)
        facts = {}
        for fact in choice.files:
            source = os.path.join(directory, fact.path)
            target = os.path.join(folder, fact.path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if fact.path in choice.texts:
                write_text(target, choice.texts[fact.path])
            else:
                _link_or_copy(source, target)
            facts[fact.path] = _facts(target, fact.path)
        if _same(directory, choice, facts):
            aside = SetAside(folder, choice, facts)
        return aside
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(error, "set a checkpoint aside") from error
    finally:
        if aside is None:
            trees.remove(folder)


def discard_left_behind(directory: str) -> None:
    """Remove the folders of a publisher that was killed."""
    if not os.path.isdir(directory):
        return
    for name in os.listdir(directory):
        if name.startswith(PUBLISH_PREFIX):
            trees.remove(os.path.join(directory, name))


def _same(directory: str, choice: Choice, facts: Mapping[str, FileFacts]) -> bool:
    """Say whether each file still is what the listing said, and so is its copy."""
    for fact in choice.files:
        now = _facts(os.path.join(directory, fact.path), fact.path)
        copy = facts[fact.path]
        if now != fact:
            return False
        if fact.path not in choice.texts and copy.size != fact.size:
            return False
    return True


def _link_or_copy(source: str, target: str) -> None:
    real = os.path.realpath(source)
    try:
        os.link(real, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copy2(real, target)


def _facts(path: str, name: str) -> FileFacts:
    found = os.stat(path)
    return FileFacts(name, found.st_size, found.st_mtime_ns, found.st_ino)
