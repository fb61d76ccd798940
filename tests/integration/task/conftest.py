"""Starts the packed task runner as Mesos would."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dcos_tensorflow.task.pack import build_zipapp
from runner_process import Starter


@pytest.fixture(scope="session")
def zipapp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_zipapp(tmp_path_factory.mktemp("zipapp") / "task-runner.pyz")


@pytest.fixture
def start(tmp_path: Path, zipapp: Path) -> Iterator[Starter]:
    """Return a function that starts a task; everything that it started is gone afterwards."""
    starter = Starter(tmp_path, [str(zipapp)])
    yield starter
    starter.close()


@pytest.fixture(scope="module")
def start_lasting(tmp_path_factory: pytest.TempPathFactory, zipapp: Path) -> Iterator[Starter]:
    """Return a function that starts a task which all tests of a module ask, and none changes."""
    starter = Starter(tmp_path_factory.mktemp("lasting"), [str(zipapp)])
    yield starter
    starter.close()
