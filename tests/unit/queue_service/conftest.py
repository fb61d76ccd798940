"""The queue that the tests of this folder play with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from simulated.played_queue import PlayedQueue


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[PlayedQueue]:
    made = PlayedQueue(tmp_path)
    yield made
    assert made.store is not None
    made.store.close()
