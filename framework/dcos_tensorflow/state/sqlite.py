"""The state store in one SQLite file, for a laptop and for tests of everything above it.

Made by :func:`dcos_tensorflow.state.store.open_store`. Several services and several processes may
share a file; each service has its own lock file beside it. It must lie on a local disk: SQLite's
write-ahead log does not work over NFS. It never makes directories.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.state import errors, layout
from dcos_tensorflow.state.file_lock import FileLock
from dcos_tensorflow.state.leadership import UNKNOWN_HOLDER, Holder, Leadership, this_process

#: Written into the file's header; a file of another program is refused, not filled.
APPLICATION_ID = 0x44_54_46_53
FORMAT_VERSION = 1
LOCK_POLL_SECONDS = 0.05
#: What a disk says that does not answer now.
_DISK_AWAY = frozenset({errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EHOSTDOWN})

_TABLES = """
CREATE TABLE state_value (
    service TEXT NOT NULL, path TEXT NOT NULL, value BLOB NOT NULL,
    PRIMARY KEY (service, path)) WITHOUT ROWID;
CREATE TABLE leader (service TEXT PRIMARY KEY, token TEXT NOT NULL) WITHOUT ROWID;
"""


def lock_of(path: Path, folder: str) -> Path:
    """Return the lock file of a service in a database."""
    return path.with_name(f"{path.name}.{folder}.lock")


class SqliteStore:
    """See :class:`dcos_tensorflow.state.store.StateStore`; usable from any thread.

    A commit is one transaction, whatever its size, with ``synchronous=FULL``: what it returned
    from survives a power cut. Leadership is a file lock plus a token in the database, compared in
    each transaction, so that a leader whose lock file was removed cannot write either.
    """

    def __init__(self, path: Path, service: str, *, timeout_seconds: float = 5.0) -> None:
        self.service = service
        self.path = path.absolute()
        self._folder = layout.folder_name(service)
        self._timeout_seconds = timeout_seconds
        self._mutex = threading.RLock()
        self._closed = threading.Event()
        self._leadership: Leadership | None = None
        self._token = ""
        self._lock = FileLock(lock_of(self.path, self._folder))
        self._database = self._open()

    def __repr__(self) -> str:
        return f"SqliteStore({str(self.path)!r}, service={self.service!r})"

    def load(self) -> dict[str, bytes]:
        """Every value of the service, read in one transaction."""
        with self._mutex, self._translated():
            self._check_schema()
            rows = self._execute(
                "SELECT path, value FROM state_value WHERE service = ?", self._folder
            ).fetchall()
        return {path: value for path, value in rows if path not in layout.RESERVED}

    def commit(self, writes: Sequence[Write]) -> None:
        """Apply all writes in order, or none."""
        with self._mutex, self._translated(), self._fenced_transaction():
            self._execute(
                "UPDATE state_value SET value = ? WHERE service = ? AND path = ? AND value <> ?",
                *(layout.current_schema(), self._folder, layout.SCHEMA_VERSION),
                layout.current_schema(),
            )
            for write in writes:
                self._apply(write)

    def erase(self) -> None:
        """Remove all values of the service, then its lock file; the leadership ends."""
        with self._mutex:
            leadership = self._leadership
            with self._translated(), self._fenced_transaction():
                self._execute("DELETE FROM state_value WHERE service = ?", self._folder)
                self._execute("DELETE FROM leader WHERE service = ?", self._folder)
            if leadership is not None:
                leadership.end_silently()
            self._lock.release(remove=True)

    def lead(
        self,
        identity: str,
        timeout_seconds: float | None,
        on_lost: Callable[[str], None],
        on_waiting: Callable[[Holder], None] = lambda holder: None,
    ) -> Leadership:
        """Wait for the file lock; see the protocol for what it raises."""
        if self._leadership is not None and self._leadership.held:
            raise errors.StateError(f"this store already leads service {self.service!r}")
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        leader: Holder | None = None
        was_led = False
        with self._translated():
            while not self._lock.try_acquire(holder := this_process(identity)):
                # First of all: a process that is told that we wait may erase the service then.
                with contextlib.suppress(errors.StateUnavailable):
                    was_led = was_led or self._is_led()
                now_leading = self._lock.read_holder()
                if now_leading not in (leader, UNKNOWN_HOLDER):
                    on_waiting(leader := now_leading)
                if deadline is not None and time.monotonic() >= deadline:
                    raise errors.LeadershipTaken(
                        self.service, self._lock.read_holder(), timeout_seconds or 0.0
                    )
                if self._closed.wait(LOCK_POLL_SECONDS):
                    raise errors.StateError("the state store was closed while waiting to lead")
        try:
            erased = was_led and not self._is_led()
            self._take_over()
        except BaseException:
            self._lock.release()
            raise
        self._leadership = Leadership(holder, self._lock.release, on_lost)
        self._leadership.after_erase = erased
        return self._leadership

    def confirm(self) -> None:
        """Look whether the lock is still this process's: the kernel keeps it while it lives."""
        leadership = self._leadership
        if leadership is None or not leadership.held or not self._lock.still_ours():
            raise errors.FencedOut(f"this process does not lead service {self.service!r}")

    def close(self) -> None:
        """Release the leadership and close the file. May be called twice."""
        self._closed.set()
        if self._leadership is not None:
            self._leadership.release()
        with self._mutex:
            self._database.close()

    def _open(self) -> sqlite3.Connection:
        if not self.path.parent.is_dir():
            raise errors.StateError(self._missing_directory())
        with self._translated():
            with contextlib.suppress(PermissionError):  # SQLite says better than we what is wrong.
                self._begin_file()
            database = self._connect(self.path)
            try:
                self._check(database)
            except BaseException:
                database.close()
                raise
        self._keep_private()
        return database

    def _begin_file(self) -> None:
        """Make the file where there is none, whole at once: one of no bytes has lost its content.

        Raises StateCorrupt, and what ``_translated`` knows.
        """
        path = Path(os.path.realpath(self.path))
        lock = FileLock(path.with_name(f"{path.name}.lock"))
        deadline = time.monotonic() + self._timeout_seconds
        while not path.exists():
            if lock.try_acquire(this_process("")):
                try:
                    if not path.exists():
                        self._make_file(path)
                finally:
                    lock.release(remove=True)
            elif time.monotonic() >= deadline:
                raise errors.StateUnavailable(f"{path}: another process is making it all the time")
            else:
                self._closed.wait(LOCK_POLL_SECONDS)
        if not path.stat().st_size:
            raise errors.StateCorrupt(self._corrupt("it has no bytes"))

    def _make_file(self, path: Path) -> None:
        new = path.with_name(f"{path.name}.new")
        new.unlink(missing_ok=True)
        os.close(os.open(new, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with contextlib.closing(self._connect(new)) as database:
            database.execute("PRAGMA synchronous = FULL")
            database.execute("BEGIN IMMEDIATE")
            for statement in _TABLES.split(";"):
                database.execute(statement)
            database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            database.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
            database.execute("COMMIT")
        new.rename(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _connect(self, path: Path) -> sqlite3.Connection:
        """Open a file that is there: SQLite makes none."""
        return sqlite3.connect(
            f"file:{quote(str(path))}?mode=rw",
            uri=True,
            timeout=self._timeout_seconds,
            isolation_level=None,
            check_same_thread=False,
        )

    def _keep_private(self) -> None:
        """Let this user alone read the file and those that SQLite has beside it."""
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                self.path.with_name(self.path.name + suffix).chmod(0o600)

    def _missing_directory(self) -> str:
        text = f"directory {self.path.parent} of the state file does not exist"
        here = Path.cwd()
        if self.path.is_relative_to(here):
            absolute = Path("/") / self.path.relative_to(here)
            if absolute.parent.is_dir():
                text += f"; for {absolute} write four slashes: sqlite:///{absolute}"
        return text

    def _check(self, database: sqlite3.Connection) -> None:
        database.execute("PRAGMA synchronous = FULL")
        database.execute("PRAGMA journal_mode = WAL")
        version: int = database.execute("PRAGMA user_version").fetchone()[0]
        application: int = database.execute("PRAGMA application_id").fetchone()[0]
        if application != APPLICATION_ID:
            raise errors.StateCorrupt(f"{self.path} is a database of another program")
        if version > FORMAT_VERSION:
            raise errors.StateTooNew(
                f"{self.path} has format {version}; this release knows formats up to "
                f"{FORMAT_VERSION}. Use the release that wrote it, or a newer one"
            )
        verdict: str = database.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise errors.StateCorrupt(self._corrupt(verdict))
        self._check_schema(database)

    def _check_schema(self, database: sqlite3.Connection | None = None) -> None:
        row = (
            (database or self._database)
            .execute(
                "SELECT value FROM state_value WHERE service = ? AND path = ?",
                (self._folder, layout.SCHEMA_VERSION),
            )
            .fetchone()
        )
        if row is not None:
            layout.check_schema(row[0], f"{self.path}, service {self.service!r}")

    def _is_led(self) -> bool:
        """Say whether a process leads the service, or did and left it: an erase forgets that."""
        with self._mutex, self._translated():
            query = "SELECT 1 FROM leader WHERE service = ?"
            return self._execute(query, self._folder).fetchone() is not None

    def _take_over(self) -> None:
        token = uuid.uuid4().hex
        with self._mutex, self._translated(), self._transaction():
            self._check_schema()
            self._execute("INSERT OR REPLACE INTO leader VALUES (?, ?)", self._folder, token)
            self._execute(
                "INSERT OR IGNORE INTO state_value VALUES (?, ?, ?)",
                *(self._folder, layout.SCHEMA_VERSION, layout.current_schema()),
            )
        self._token = token

    def _apply(self, write: Write) -> None:
        layout.check_path(write.path)
        self._refuse_value_and_folder(write.path)
        if write.value is None:
            self._execute(
                "DELETE FROM state_value WHERE service = ? AND path = ?", self._folder, write.path
            )
            return
        layout.check_value(write.path, write.value)
        self._execute(
            "INSERT OR REPLACE INTO state_value VALUES (?, ?, ?)",
            *(self._folder, write.path, write.value),
        )

    def _refuse_value_and_folder(self, path: str) -> None:
        # "0" is the character after "/": this is the range of all paths below.
        below = self._execute(
            "SELECT 1 FROM state_value WHERE service = ? AND path > ? AND path < ? LIMIT 1",
            *(self._folder, path + "/", path + "0"),
        ).fetchone()
        if below:
            raise layout.is_a_folder(path)
        for parent in layout.parents(path):
            if self._execute(
                "SELECT 1 FROM state_value WHERE service = ? AND path = ?", self._folder, parent
            ).fetchone():
                raise layout.is_below_a_value(path, parent)

    @contextlib.contextmanager
    def _fenced_transaction(self) -> Iterator[None]:
        leadership = self._leadership
        if leadership is None or not leadership.held:
            raise errors.FencedOut(f"this process does not lead service {self.service!r}")
        with self._transaction():
            row = self._execute(
                "SELECT token FROM leader WHERE service = ?", self._folder
            ).fetchone()
            if row != (self._token,) or not self._lock.still_ours():
                why = f"another process took over service {self.service!r} in {self.path}"
                leadership.lose(why)
                raise errors.FencedOut(f"{why}; nothing was written")
            yield

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            # SQLite has rolled back already after some errors, such as a full disk.
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise

    def _execute(self, statement: str, *parameters: str | bytes) -> sqlite3.Cursor:
        return self._database.execute(statement, parameters)

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._translate(error) from error
        except OSError as error:
            text = f"cannot lock {self._lock.path}: {error.strerror}"
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise errors.StateStorageFull(text) from error
            if error.errno in _DISK_AWAY:
                raise errors.StateUnavailable(f"{text}; look at the disk") from error
            raise errors.StateAccessDenied(text) from error

    def _translate(self, error: sqlite3.Error) -> errors.StateError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        text = f"{self.path}: {error}"
        if code == sqlite3.SQLITE_FULL:
            return errors.StateStorageFull(f"{text}; nothing of the commit was written")
        if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            return errors.StateUnavailable(
                f"{text}; another process kept it locked for {self._timeout_seconds:g} s"
            )
        if code in {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM}:
            return errors.StateAccessDenied(
                f"{text}; this user must be able to write the file and its directory"
            )
        if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
            return errors.StateCorrupt(self._corrupt(str(error)))
        if code == sqlite3.SQLITE_IOERR:
            return errors.StateUnavailable(f"{text}; look at the disk")
        return errors.StateError(text)

    def _corrupt(self, why: str) -> str:
        return (
            f"the state file {self.path} is damaged ({why}). Stop all schedulers that use it, then "
            f"restore it from a backup, or move it away together with {self.path.name}-wal and "
            f"{self.path.name}-shm: the services in it then start anew and do not know the tasks "
            "that they left running"
        )
