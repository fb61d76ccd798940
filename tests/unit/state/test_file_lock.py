"""The lock on a file: what is asked of it while it is let go."""

import os
from pathlib import Path

import pytest

from dcos_tensorflow.state.file_lock import FileLock
from dcos_tensorflow.state.leadership import UNKNOWN_HOLDER


def test_a_lock_that_another_thread_releases_while_it_is_asked_about_is_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, fstat = FileLock(tmp_path / "lock"), os.fstat
    assert lock.try_acquire(UNKNOWN_HOLDER)

    def released_meanwhile(descriptor: int) -> os.stat_result:
        lock.release()
        return fstat(descriptor)

    monkeypatch.setattr(os, "fstat", released_meanwhile)
    assert not lock.still_ours()
