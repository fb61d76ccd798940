"""An S3 server, a checkpoint directory, and engines against that server."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dcos_tensorflow.task.storage import manifest
from jobs.checkpoint_job import Engines, Job
from servers.s3_server import KEY_ID, SECRET_KEY, S3Server


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of 64 KiB, so that a large file is a small one; the benchmark has real ones."""
    monkeypatch.setattr(manifest, "PART_SIZE", 64 << 10)
    monkeypatch.setattr("moto.s3.models.S3_UPLOAD_PART_MIN_SIZE", 1)


@pytest.fixture(scope="session")
def server() -> Iterator[S3Server]:
    made = S3Server()
    yield made
    made.close()


@pytest.fixture
def s3(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """The server with an empty bucket and no faults; credentials are in the environment."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    server.fault = lambda request: None
    for upload in server.client.list_multipart_uploads(Bucket="bucket").get("Uploads", ()):
        server.client.abort_multipart_upload(
            Bucket="bucket", Key=upload["Key"], UploadId=upload["UploadId"]
        )
    server.empty()
    server.requests.clear()
    yield server
    server.fault = lambda request: None


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path / "job")


@pytest.fixture(scope="session")
def shared() -> dict[str, object]:
    """The client that the engines share: it takes longer to make than most tests need."""
    return {}


@pytest.fixture
def engines(s3: S3Server, shared: dict[str, object]) -> Engines:
    return Engines(s3, shared)


@pytest.fixture
def fresh(tmp_path: Path) -> Callable[[], Path]:
    """Gives a new empty directory at each call."""
    count = 0

    def make() -> Path:
        nonlocal count
        count += 1
        path = tmp_path / f"fresh-{count}"
        path.mkdir()
        return path

    return make
