"""Task runners that keep their state in S3, on a server with an empty bucket."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.task.pack import build_zipapp
from runner_process import Starter, Task
from servers.s3_server import KEY_ID, SECRET_KEY, S3Server


@pytest.fixture(scope="session")
def zipapp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_zipapp(tmp_path_factory.mktemp("zipapp") / "task-runner.pyz", storage=True)


@pytest.fixture(scope="session")
def server() -> Iterator[S3Server]:
    made = S3Server()
    yield made
    made.close()


@pytest.fixture
def s3(server: S3Server) -> Iterator[S3Server]:
    server.fault = lambda request: None
    server.empty()
    server.requests.clear()
    yield server
    server.fault = lambda request: None


@pytest.fixture
def start(tmp_path: Path, zipapp: Path, s3: S3Server) -> Iterator[Callable[..., Task]]:
    """Return a function that starts a task of the service; ``writer`` is its attempt, or None."""
    starter = Starter(tmp_path, [str(zipapp)])

    def start_task(
        source: str = "", *, writer: int | None = 1, lineage: str = "service", **spec: Any
    ) -> Task:
        checkpoints: dict[str, Any] = {
            "uri": "s3://bucket/job",
            "interval_seconds": 0.2,
            "keep": 5,
            "writer": None,
            **spec.pop("checkpoints", {}),
        }
        if writer is not None:
            owner = f"chief-0__{writer}"
            checkpoints["writer"] = {"lineage": lineage, "generation": writer, "owner": owner}
        variables = {
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_EC2_METADATA_DISABLED": "true",
            "HOME": os.environ.get("HOME", "/"),
            **spec.pop("variables", {}),
        }
        document = {
            "checkpoint_dir": "checkpoints",
            "log_dir": "checkpoints",
            "hold_on_failure": True,
            "checkpoints": checkpoints,
            "s3": {"endpoint_url": s3.url, "region": "us-east-1"},
            **spec,
        }
        return starter(source, variables=variables, **document)

    yield start_task
    starter.close()
