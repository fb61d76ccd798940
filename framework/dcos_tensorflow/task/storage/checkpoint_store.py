"""The pointer and the manifests of one place: read by everyone, changed by its one writer.

``publisher`` claims and moves the pointer through it, ``restorer`` reads. Each change of the
pointer is a conditional put on the version that was read: of two writers one loses, always.
"""

from __future__ import annotations

import hashlib
from typing import Dict, List, Optional, Tuple

from dcos_tensorflow.task.storage import manifest
from dcos_tensorflow.task.storage.manifest import DocumentError, Manifest, Pointer, Published
from dcos_tensorflow.task.storage.s3.errors import (
    ConditionFailed,
    DamagedCheckpoint,
    ObjectMissing,
    S3Problem,
    StorageError,
    WriterLost,
    problem_error,
)
from dcos_tensorflow.task.storage.s3.location import Location
from dcos_tensorflow.task.storage.s3.object_store import ObjectStore
from dcos_tensorflow.task.storage_spec import Writer

#: A conditional put that another writer disturbs is judged anew so often.
_TRIES = 8


def read_pointer(store: ObjectStore, place: Location) -> Tuple[Optional[Pointer], str]:
    """Return the pointer of ``place`` and its ETag; None and '' when there is none."""
    try:
        content, etag = store.get(place.key(manifest.POINTER))
    except ObjectMissing:
        return None, ""
    try:
        return manifest.decode_pointer(content), etag
    except DocumentError as error:
        raise problem_error(
            "damaged",
            f"{place.uri}/{manifest.POINTER} cannot be read: {error}",
            "use another prefix, or remove that object to begin anew",
        ) from None


def read_manifest(store: ObjectStore, line: Published) -> Manifest:
    """Return the manifest of a published checkpoint. Raises DamagedCheckpoint."""
    try:
        content, _ = store.get(line.key)
        if hashlib.sha256(content).hexdigest() != line.sha256:
            raise DocumentError("its content differs from the published one")
        return manifest.decode_manifest(content)
    except (ObjectMissing, DocumentError) as error:
        said = f"the manifest of checkpoint {line.id} is damaged: {error}"
        raise DamagedCheckpoint(S3Problem("damaged", False, said)) from error


class OwnedPointer:
    """The pointer as its writer holds it. One thread uses it."""

    def __init__(self, store: ObjectStore, place: Location, writer: Writer) -> None:
        self.store = store
        self._place = place
        self._writer = writer
        self._etag = ""
        self._manifests: Dict[str, Manifest] = {}
        self.pointer: Optional[Pointer] = None
        #: Whether a task wrote here before: then there may be something to sweep.
        self.was_used = True

    def claim(self) -> Pointer:
        """Take the place for this writer, once. Raises WriterLost when a newer one has it."""
        if self.pointer is not None:
            return self.pointer
        for _ in range(_TRIES):
            found, etag = read_pointer(self.store, self._place)
            why = manifest.unusable_reason(found, self._writer)
            if why:
                raise self._lost(why, found)
            wanted = manifest.claimed(found, self._writer)
            if found == wanted or self._replace(wanted, etag):
                self._etag = etag if found == wanted else self._etag
                self._check_conditions(wanted)
                self.pointer = wanted
                self.was_used = found is not None
                return wanted
        changing = f"{self._place.uri}: other writers kept changing {manifest.POINTER}"
        raise StorageError(S3Problem("contended", True, changing))

    def publish(self, made: Manifest, keep: int) -> Tuple[Published, ...]:
        """Make ``made`` the newest checkpoint; return those that are not published any more.

        The manifest is written first, and the pointer last. Raises WriterLost.
        """
        pointer = self.claim()
        content = manifest.encode_manifest(made)
        line = Published(
            id=made.id,
            key=self._place.key(manifest.MANIFESTS, f"{made.id}.json"),
            sha256=hashlib.sha256(content).hexdigest(),
            step=made.step,
            size=made.size,
            at=made.created_at,
        )
        try:
            self.store.put(line.key, content, if_absent=True)
        except ConditionFailed:
            # Ids are never given twice, so this is our own put, whose answer was lost.
            if self.store.get(line.key)[0] != content:
                raise
        wanted = manifest.with_newest(pointer, line, keep)
        if not self._replace(wanted, self._etag):
            self._judge_lost_race(wanted)
        self._manifests[made.id] = made
        self.pointer = wanted
        kept = {other.id for other in wanted.published}
        return tuple(other for other in pointer.published if other.id not in kept)

    def manifest(self, line: Published) -> Manifest:
        """Return the manifest of a published checkpoint."""
        if line.id not in self._manifests:
            self._manifests[line.id] = read_manifest(self.store, line)
        return self._manifests[line.id]

    def forget(self, lines: Tuple[Published, ...]) -> None:
        """Drop what is remembered of checkpoints that are gone."""
        for line in lines:
            self._manifests.pop(line.id, None)

    def newest(self) -> Optional[Manifest]:
        """Return the manifest of the newest checkpoint; None without one, or when it is damaged."""
        if self.pointer is None or not self.pointer.published:
            return None
        try:
            return self.manifest(self.pointer.published[0])
        except DamagedCheckpoint:
            return None

    def kept(self) -> List[Manifest]:
        """Return the manifests of all published checkpoints that can be read.

        Raises DamagedCheckpoint when one cannot: nothing may be deleted then.
        """
        lines = self.pointer.published if self.pointer else ()
        return [self.manifest(line) for line in lines]

    def sweep(self, token: str) -> int:
        """Delete what earlier writers began and never published; return how much it was.

        ``token`` is that of this writer's own ids. Whatever a newer writer has begun stays.
        """
        pointer = self.claim()
        used = {key for made in self.kept() for key in made.keys}
        used.update(line.key for line in pointer.published)
        folders = [self._place.key(manifest.DATA), self._place.key(manifest.MANIFESTS)]
        gone = [
            listed.key
            for folder in folders
            for listed in self.store.list(f"{folder}/")
            if listed.key not in used
            and manifest.is_left_behind(listed.key, folders, pointer, self._writer, token)
        ]
        self.store.delete(gone)
        uploads = [
            upload
            for upload in self.store.uploads(f"{folders[0]}/")
            if manifest.is_left_behind(upload.key, folders, pointer, self._writer, token)
        ]
        for upload in uploads:
            self.store.abort_upload(upload)
        return len(gone) + len(uploads)

    def _replace(self, wanted: Pointer, etag: str) -> bool:
        """Write the pointer over the version ``etag`` ('' for none); say whether that worked."""
        key = self._place.key(manifest.POINTER)
        try:
            content = manifest.encode_pointer(wanted)
            self._etag = self.store.put(key, content, if_match=etag, if_absent=not etag)
            return True
        except (ConditionFailed, ObjectMissing):
            found, now = read_pointer(self.store, self._place)
            if found != wanted:
                return False
            # The put had worked and its answer was lost; trying again met our own pointer.
            self._etag = now
            return True

    def _judge_lost_race(self, wanted: Pointer) -> None:
        found, _ = read_pointer(self.store, self._place)
        if found is None:
            # Another program emptied the place: the published data is gone, and is uploaded again.
            self.pointer, self._etag = None, ""
            self._manifests.clear()
            gone = f"{self._place.uri} was emptied by another program"
            raise StorageError(S3Problem("emptied", True, gone, "it is filled again"))
        if found.writer != wanted.writer:
            raise self._lost(
                manifest.unusable_reason(found, self._writer)
                or f"{found.writer.owner} of another service publishes here",
                found,
            )
        self.pointer, self._etag = None, ""
        changed = f"{self._place.uri}/{manifest.POINTER} was changed by another program"
        raise StorageError(S3Problem("contended", True, changed, "only the chief may write there"))

    def _check_conditions(self, held: Pointer) -> None:
        """Make sure that the endpoint does not ignore conditions: it must refuse this put."""
        key = self._place.key(manifest.POINTER)
        try:
            self.store.put(key, manifest.encode_pointer(held), if_absent=True)
        except ConditionFailed:
            return
        raise problem_error(
            "unsupported",
            "the S3 endpoint ignores conditional writes (If-None-Match), so two writers could "
            "destroy each other's checkpoints",
            "use AWS S3, or a release of the endpoint's software that knows them",
        )

    def _lost(self, why: str, found: Optional[Pointer]) -> WriterLost:
        text = f"this attempt may not publish to {self._place.uri}: {why}"
        if found is not None and found.writer.lineage == self._writer.lineage:
            hint = "the newer attempt goes on with the training; this one ends"
            return WriterLost(S3Problem("newer_attempt", False, text, hint))
        hint = "it trains on, but its checkpoints are not kept; give another service its own URI"
        return WriterLost(S3Problem("lost", False, text, hint))
