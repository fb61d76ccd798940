"""Publishes the checkpoints of one directory: looks, sets aside, uploads, points, prunes.

The chief's runner makes one, calls ``start`` before the user's process and ``finish`` after its
end. Everything happens on a thread of its own; nothing here raises into the runner. ``layout``
decides which checkpoint is complete, ``manifest`` whether it may be written.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Dict, Optional, Tuple

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.storage import layout, manifest, snapshot, status
from dcos_tensorflow.task.storage.checkpoint_store import OwnedPointer
from dcos_tensorflow.task.storage.layout import Choice, FileFacts, Patience
from dcos_tensorflow.task.storage.manifest import FileEntry, Manifest, Published
from dcos_tensorflow.task.storage.rounds import Uploading
from dcos_tensorflow.task.storage.s3.errors import (
    Cancelled,
    DamagedCheckpoint,
    S3Problem,
    StorageError,
    WriterLost,
    storage_error,
)
from dcos_tensorflow.task.storage.s3.location import Location
from dcos_tensorflow.task.storage.s3.object_store import Connection, ObjectStore
from dcos_tensorflow.task.storage.s3.upload import CheckpointUpload, SourceChanged
from dcos_tensorflow.task.storage.snapshot import SetAside
from dcos_tensorflow.task.storage_spec import Writer

#: A checkpoint that changed while it was set aside is looked at again so often, at once.
_LOOKS = 50
#: While files are being written, the directory is looked at this often (seconds) or more.
_LOOK_AGAIN = 1.0
#: So often a deletion is tried; the next checkpoint's tries it again.
_DELETE_ATTEMPTS = 2


@dataclass(frozen=True)
class PublishPlan:
    """What to publish, where, and how often. Seconds."""

    directory: str
    place: Location
    writer: Writer
    interval_seconds: float = 60.0
    keep: int = 5
    quiet_seconds: float = 2.0


@dataclass
class _Pending:
    """A checkpoint whose upload has begun."""

    id: str
    aside: SetAside
    upload: CheckpointUpload
    made: Optional[Manifest] = None


class Publisher(Uploading):
    """Publishes one directory. ``start`` and ``finish``, or ``publish_once`` without the thread."""

    def __init__(self, plan: PublishPlan, connection: Connection) -> None:
        super().__init__("publisher", plan.interval_seconds, connection)
        self._plan = plan
        self._token = os.urandom(4).hex()
        self._sequence = 0
        self._owned: Optional[OwnedPointer] = None
        self._swept = False
        self._pending: Optional[_Pending] = None
        self._published: Dict[str, Tuple[FileFacts, FileEntry]] = {}
        self._published_texts: Dict[str, str] = {}
        self._dropped: Tuple[Published, ...] = ()
        self._looked: snapshot.Looked = {}
        self._restless_since: Optional[float] = None
        self._departure = status.Transfer()

    def leaving(self) -> str:
        """Return how much of the checkpoint that is published is in S3; '' while nothing is."""
        return self._departure.told()

    def publish_soon(self) -> None:
        """Have the thread look at once instead of at the end of its interval."""
        self._wake.set()

    def publish_once(self, ended: bool = False) -> bool:
        """Look, and publish if there is something new; say whether a checkpoint was published.

        ``ended``: the user's process has ended. Raises nothing; see ``status``.
        """
        if self._board.read().state == status.STATE_LOST:
            return False
        try:
            published = self._publish(ended)
        except WriterLost as lost:
            self._board.failed(lost.problem)
            self._board.change(state=status.STATE_LOST)
            self._connection.log(f"checkpoints: {lost.problem.text}")
            self._drop_pending(take_back=False)
            return False
        except Cancelled as cancelled:
            if self._board.read().problem is None:
                self._board.failed(cancelled.problem)
            return False
        except StorageError as error:
            if error.problem.kind == "emptied":
                self._published.clear()
                self._drop_pending(take_back=False)
            self._failed(error.problem)
            return False
        except Exception as error:  # Training must go on whatever this was.
            self._failed(storage_error(error, "publish a checkpoint").problem)
            return False
        self._board.recovered(status.STATE_IDLE)
        return published

    _round = publish_once

    def _before_rounds(self) -> None:
        snapshot.discard_left_behind(self._plan.directory)

    def _wait_seconds(self) -> float:
        wait = self._plan.interval_seconds
        return wait if self._restless_since is None else min(wait, _LOOK_AGAIN)

    def _last(self) -> None:
        # What is newest counts now, not what was begun before.
        self._drop_pending(take_back=False)
        super()._last()
        self._drop_pending(take_back=False)

    def _publish(self, ended: bool) -> bool:
        # First the look: what waits is to be seen in the status even where S3 cannot be reached,
        # or nothing may be sent any more.
        choice = self._newest(ended)
        self._gate.check()
        owned = self._own()
        if self._pending is not None and not self._pending.upload.has_progress:
            self._drop_pending(take_back=False)
        if self._pending is None:
            self._pending = self._begin(choice, ended)
        if self._pending is None:
            return False
        self._board.change(state=status.STATE_PUBLISHING)
        began = time.monotonic()
        made = self._transfer(self._pending)
        if made is None:
            return False
        newest = owned.newest()
        if newest is not None and manifest.same_content(newest, made):
            # Written again with the same content, or just restored: it is there already.
            self._remember(newest)
            return False
        dropped = owned.publish(made, self._plan.keep)
        self._remember(made)
        self._announce(owned, made, time.monotonic() - began)
        self._prune(owned, dropped)
        return True

    def _own(self) -> OwnedPointer:
        if self._owned is None:
            store = self._connection.store(self._plan.place.bucket)
            self._owned = OwnedPointer(store, self._plan.place, self._plan.writer)
        self._owned.claim()
        return self._owned

    def _newest(self, ended: bool) -> Optional[Choice]:
        """Return the newest complete checkpoint that is not published; None when there is none."""
        patience = self._patience(ended)
        choice = self._look(patience)
        self._restless(not choice.ready and choice.why != layout.NOTHING_YET)
        self._saw_end = self._saw_end or ended
        if not choice.ready:
            if patience.given_up and choice.why != layout.NOTHING_YET:
                self._warn(f"nothing can be published: {choice.why}")
            return None
        if self._is_published(choice):
            self._board.unpublished(None)
            return None
        self._board.unpublished(time.monotonic())
        return choice

    def _look(self, patience: Patience) -> Choice:
        """Return what ``layout`` chooses; a listing that was torn by a save is made again."""
        listing = self._looked_at(self._plan.directory, self._looked)
        choice = layout.choose(listing, patience)
        for _ in range(_LOOKS):
            if not choice.torn:
                break
            again = self._looked_at(self._plan.directory, self._looked)
            if again.files == listing.files:
                break
            listing, choice = again, layout.choose(again, patience)
        return choice

    def _begin(self, choice: Optional[Choice], ended: bool) -> Optional[_Pending]:
        """Set ``choice`` aside; where it was replaced meanwhile, what is newest then."""
        for _ in range(_LOOKS):
            if choice is None:
                return None
            self._sequence += 1
            name = manifest.checkpoint_id(self._plan.writer, self._sequence, self._token)
            aside = snapshot.set_aside(self._plan.directory, name, choice)
            if aside is not None:
                return _Pending(name, aside, self._upload(name, aside))
            self._gate.check()
            choice = self._newest(ended)
        raise StorageError(
            S3Problem("restless", True, "each checkpoint was replaced before it could be set aside")
        )

    def _patience(self, ended: bool) -> Patience:
        waited = 0.0
        if self._restless_since is not None:
            waited = time.monotonic() - self._restless_since
        return Patience(
            quiet_seconds=self._plan.quiet_seconds,
            given_up=waited >= max(self._plan.interval_seconds, 2 * self._plan.quiet_seconds),
            ended=ended,
        )

    def _restless(self, restless: bool) -> None:
        if not restless:
            self._restless_since = None
        elif self._restless_since is None:
            self._restless_since = time.monotonic()

    def _is_published(self, choice: Choice) -> bool:
        # TensorFlow rewrites a state file without changing what it says.
        here = {fact.path: fact for fact in choice.files if fact.path not in choice.texts}
        there = {
            path: fact
            for path, (fact, _) in self._published.items()
            if path not in self._published_texts
        }
        return here == there and dict(choice.texts) == self._published_texts

    def _upload(self, name: str, aside: SetAside) -> CheckpointUpload:
        owned = self._own()
        newest = owned.newest()
        still = newest.keys if newest else frozenset()
        unchanged: Dict[str, FileEntry] = {}
        for fact in aside.choice.files:
            known = self._published.get(fact.path)
            if known is not None and known[0] == fact and known[1].key in still:
                unchanged[fact.path] = known[1]
        likely = {entry.path: entry for entry in newest.files} if newest else {}
        to_go = (fact.size for path, fact in aside.facts.items() if path not in unchanged)
        self._departure.begin("", sum(to_go))
        return CheckpointUpload(
            self._connection.store(self._plan.place.bucket),
            settings=self._connection.settings,
            folder=self._plan.place.below(manifest.DATA, name),
            sources={path: (aside.path(path), fact.size) for path, fact in aside.facts.items()},
            unchanged=unchanged,
            likely=likely,
            on_bytes=self._gone,
        )

    def _gone(self, count: int) -> None:
        self._board.add_bytes(count)
        self._departure.add(count)

    def _transfer(self, pending: _Pending) -> Optional[Manifest]:
        """Upload what is pending; None when a file was changed meanwhile, so that it is void."""
        changed: Optional[str] = None
        entries: Tuple[FileEntry, ...] = ()
        try:
            entries = pending.upload.run()
            changed = pending.aside.changed()
        except SourceChanged as error:
            changed = error.problem.summary
        if changed is not None:
            self._drop_pending(take_back=True)
            self._restless(True)
            self._connection.log(f"checkpoints: {changed} was written while it was uploaded")
            return None
        if pending.made is None:
            choice = pending.aside.choice
            pending.made = Manifest(pending.id, choice.step, choice.kind, time.time(), entries)
        return pending.made

    def _remember(self, made: Manifest) -> None:
        """Note that what was set aside is published as ``made``."""
        assert self._pending is not None
        choice = self._pending.aside.choice
        facts = {fact.path: fact for fact in choice.files}
        self._published = {entry.path: (facts[entry.path], entry) for entry in made.files}
        self._published_texts = dict(choice.texts)
        self._drop_pending(take_back=False)
        self._departure.begin("", 0)
        warning = ""
        if choice.left_out:
            warning = f"left out, because it kept changing: {', '.join(choice.left_out[:5])}"
        self._board.unpublished(None)
        self._board.change(
            published_id=made.id,
            published_step=made.step,
            published_at=made.created_at,
            warning=warning,
        )

    def _announce(self, owned: OwnedPointer, made: Manifest, seconds: float) -> None:
        count = len(owned.pointer.published) if owned.pointer else 0
        self._board.change(checkpoints=count)
        step = "" if made.step is None else f" of step {made.step}"
        warning = self._board.read().warning
        self._connection.log(
            f"checkpoints: published {made.id}{step}: {len(made.files)} files, "
            f"{made.size / 1e6:.1f} MB in {seconds:.1f} s" + (f"; {warning}" if warning else "")
        )

    def _prune(self, owned: OwnedPointer, dropped: Tuple[Published, ...]) -> None:
        """Delete what no published checkpoint uses. A failure is shown and made good later."""
        self._dropped += dropped
        try:
            kept = owned.kept()
            if self._dropped:
                old = [owned.manifest(line) for line in self._dropped]
                keys = sorted(manifest.garbage(kept, old))
                self._deleting_store().delete([*keys, *(line.key for line in self._dropped)])
                owned.forget(self._dropped)
                self._dropped = ()
            if not self._swept and owned.was_used:
                owned.sweep(self._token)
                self._swept = True
        except Cancelled:
            return
        except DamagedCheckpoint as error:
            # What the damaged one used is not known: the sweep of a later attempt gets the rest.
            self._dropped, self._swept = (), True
            self._warn(f"nothing is deleted: {error.problem.summary}")
        except StorageError as error:
            self._warn(f"old checkpoints cannot be deleted: {error.problem.text}")

    def _deleting_store(self) -> ObjectStore:
        """Return a store that gives up soon: what is newest must not wait for what is old."""
        patience = replace(self._connection.backoff, attempts=_DELETE_ATTEMPTS)
        connection = replace(self._connection, backoff=patience)
        return connection.store(self._plan.place.bucket)

    def _warn(self, text: str) -> None:
        if self._board.read().warning != text:
            self._connection.log(f"checkpoints: {text}")
        self._board.change(warning=text)

    def _failed(self, problem: S3Problem) -> None:
        before = self._board.read()
        self._board.failed(problem)
        if before.problem is None or before.problem.kind != problem.kind or not before.published_at:
            self._connection.log(f"checkpoints: {problem.text}; training goes on")

    def _drop_pending(self, take_back: bool) -> None:
        """Forget the upload that has begun; ``take_back`` what is in the bucket of it as well."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        pending.aside.discard()
        if take_back:
            try:
                pending.upload.abandon()
            except StorageError as error:
                self._warn(f"an unfinished upload is left behind: {error.problem.summary}")
