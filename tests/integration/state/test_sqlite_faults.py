"""The SQLite store on files and directories that are not as they should be."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.state.errors import (
    FencedOut,
    StateAccessDenied,
    StateCorrupt,
    StateError,
    StateStorageFull,
    StateTooNew,
    StateUnavailable,
)
from dcos_tensorflow.state.sqlite import SqliteStore
from dcos_tensorflow.state.store import StateStore, open_store

FRAMEWORK = Path(__file__).resolve().parents[3] / "framework"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path, "tf", timeout_seconds=0.2)
    yield store
    store.close()


def lead(store: StateStore) -> None:
    store.lead("test", 5, lambda why: None)


def test_a_file_that_is_no_database_is_called_damaged_with_what_to_do(path: Path) -> None:
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(StateCorrupt, match="restore it from a backup"):
        open_store(f"sqlite:///{path}", "tf")


def test_a_file_of_no_bytes_is_called_damaged_and_stays_as_it_is(
    path: Path, store: SqliteStore
) -> None:
    lead(store)
    store.commit([Write("FrameworkID", b"f-1")])
    store.close()
    os.truncate(path, 0)
    with pytest.raises(StateCorrupt, match=r"it has no bytes.*restore it from a backup"):
        open_store(f"sqlite:///{path}", "tf")
    assert path.stat().st_size == 0


def test_a_process_that_died_while_it_made_the_file_is_in_no_later_ones_way(path: Path) -> None:
    path.with_name("state.db.new").write_bytes(b"half")
    path.with_name("state.db.lock").write_bytes(b"")
    store = SqliteStore(path, "tf")
    lead(store)
    store.commit([Write("FrameworkID", b"f-1")])
    assert store.load() == {"FrameworkID": b"f-1"}
    store.close()
    assert not path.with_name("state.db.new").exists()
    assert not path.with_name("state.db.lock").exists()


def test_a_link_is_followed_to_a_file_that_is_not_there_yet(path: Path) -> None:
    path.symlink_to("elsewhere.db")
    SqliteStore(path, "tf").close()
    assert path.with_name("elsewhere.db").stat().st_size


def test_many_that_open_a_new_file_at_once_make_one(path: Path) -> None:
    many = 8
    together = threading.Barrier(many)

    def first(number: int) -> None:
        together.wait(10)
        store = SqliteStore(path, f"tf{number}")
        lead(store)
        store.commit([Write("FrameworkID", b"%d" % number)])
        store.close()

    with ThreadPoolExecutor(many) as pool:
        list(pool.map(first, range(many)))
    for number in range(many):
        store = SqliteStore(path, f"tf{number}")
        assert store.load() == {"FrameworkID": b"%d" % number}
        store.close()


def test_a_database_with_damaged_pages_is_called_damaged(path: Path, store: SqliteStore) -> None:
    lead(store)
    store.commit([Write(f"Tasks/{i}/TaskInfo", b"x" * 500) for i in range(200)])
    store.close()
    with path.open("r+b") as file:
        file.seek(4096 * 5)
        file.write(os.urandom(4096 * 10))
    with pytest.raises(StateCorrupt, match="damaged"):
        open_store(f"sqlite:///{path}", "tf")


def test_a_database_of_another_program_is_left_alone(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs (x)")
    other.commit()
    other.close()
    with pytest.raises(StateCorrupt, match="another program"):
        open_store(f"sqlite:///{path}", "tf")


def test_a_file_format_of_a_newer_release_is_refused(path: Path, store: SqliteStore) -> None:
    store.close()
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(StateTooNew, match="format 99"):
        open_store(f"sqlite:///{path}", "tf")


@pytest.mark.parametrize("before", [None, 0o644])
def test_no_other_user_may_read_it(path: Path, before: int | None) -> None:
    if before is not None:
        SqliteStore(path, "tf").close()
        path.chmod(before)
    store = SqliteStore(path, "tf")
    assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}
    store.close()


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"directory .*/missing .*does not exist"):
        open_store(f"sqlite:///{tmp_path}/missing/state.db", "tf")


def test_an_absolute_path_with_three_slashes_gets_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    with pytest.raises(StateError, match=rf"four slashes: sqlite:///{tmp_path}/state.db"):
        open_store(f"sqlite://{tmp_path}/state.db", "tf")


def test_a_relative_path_is_taken_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    open_store("sqlite:///state.db", "tf").close()
    assert (tmp_path / "state.db").is_file()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user without rights")
def test_a_read_only_directory_is_refused_clearly() -> None:
    folder = Path(tempfile.mkdtemp())  # tmp_path is closed to other users on its whole way
    folder.chmod(0o555)
    code = (
        "import encodings.ascii, os, sys, dcos_tensorflow.state.sqlite\n"
        "from dcos_tensorflow.state.errors import StateAccessDenied\n"
        "from dcos_tensorflow.state.store import open_store\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "try: open_store(sys.argv[1], 'tf')\n"
        "except StateAccessDenied as error: print(error)"
    )
    try:
        answer = subprocess.run(
            [sys.executable, "-c", code, f"sqlite:///{folder}/state.db"],
            env={**os.environ, "PYTHONPATH": str(FRAMEWORK), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        shutil.rmtree(folder)
    assert f"{folder}/state.db" in answer.stdout
    assert "must be able to write the file and its directory" in answer.stdout


def test_a_lock_file_that_cannot_be_made_is_named(path: Path, store: SqliteStore) -> None:
    path.with_name("state.db.tf.lock").mkdir()
    with pytest.raises(StateAccessDenied, match=r"state\.db\.tf\.lock"):
        lead(store)


def test_a_full_disk_is_said_and_nothing_is_written(store: SqliteStore) -> None:
    lead(store)
    store.commit([Write("Epoch", b"1")])
    pages = store._database.execute("PRAGMA page_count").fetchone()[0]
    store._database.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(StateStorageFull, match="nothing of the commit was written"):
        store.commit([Write("Epoch", b"2"), Write("Configurations/big", b"x" * 100_000)])
    assert store.load() == {"Epoch": b"1"}
    store.commit([Write("Epoch", b"3")])
    assert store.load() == {"Epoch": b"3"}


def test_a_database_locked_by_another_program_is_unavailable(
    path: Path, store: SqliteStore
) -> None:
    lead(store)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StateUnavailable, match="kept it locked"):
        store.commit([Write("Epoch", b"1")])
    other.execute("ROLLBACK")
    other.close()
    store.commit([Write("Epoch", b"2")])
    assert store.load() == {"Epoch": b"2"}


def test_a_leader_whose_lock_file_was_removed_is_fenced_out_and_told_once(
    path: Path, store: SqliteStore
) -> None:
    losses: list[str] = []
    store.lead("stale", 5, losses.append)
    path.with_name("state.db.tf.lock").unlink()
    successor = SqliteStore(path, "tf")
    lead(successor)
    successor.commit([Write("Epoch", b"new")])
    for _attempt in range(2):
        with pytest.raises(FencedOut):
            store.commit([Write("Epoch", b"stale")])
    assert len(losses) == 1
    assert successor.load() == {"Epoch": b"new"}
    successor.close()


def test_an_erase_leaves_no_lock_file(path: Path, store: SqliteStore) -> None:
    lead(store)
    store.erase()
    assert not path.with_name("state.db.tf.lock").exists()


def test_commits_are_synced_to_disk(store: SqliteStore) -> None:
    full = 2
    assert store._database.execute("PRAGMA synchronous").fetchone()[0] == full
    assert store._database.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
