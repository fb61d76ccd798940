"""A training that saves checkpoints as TensorFlow does, and engines that are quick to try again.

For the tests of ``task.storage``: every byte of a checkpoint says which step it is of, so a mixture
of two cannot be taken for one.
"""

import os
from pathlib import Path

from dcos_tensorflow.task.storage.publisher import Publisher, PublishPlan
from dcos_tensorflow.task.storage.restorer import Restorer
from dcos_tensorflow.task.storage.s3.location import Location, S3Settings
from dcos_tensorflow.task.storage.s3.object_store import Connection
from dcos_tensorflow.task.storage.s3.retry import RetryBackoff
from dcos_tensorflow.task.storage_spec import Writer
from servers.s3_server import S3Server

PREFIX = "job/checkpoints"
PLACE = Location("bucket", PREFIX)


class Job:
    """A training that saves checkpoints the way TensorFlow does."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def save(self, step: int, size: int = 64, keep: int = 1, shards: int = 1) -> None:
        """Data, index, state file by a rename; then the older checkpoints go."""
        for shard in range(shards):
            name = f"ckpt-{step}.data-{shard:05d}-of-{shards:05d}"
            self.write(name, content(step, shard, size))
        self.write(f"ckpt-{step}.index", content(step, 999, 40))
        state = self.directory / "checkpoint.tmp0"
        state.write_text(f'model_checkpoint_path: "{self.directory}/ckpt-{step}"\n')
        state.replace(self.directory / "checkpoint")
        old = step - keep
        for path in self.directory.glob(f"ckpt-{old}.*"):
            path.unlink()

    def write(self, name: str, data: bytes) -> None:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def content(step: int, shard: int, size: int) -> bytes:
    """What a file of a step holds: every byte says whose it is."""
    line = f"step {step} shard {shard};".encode()
    return (line * (size // len(line) + 1))[:size]


def step_in_nothing(directory: Path) -> bool:
    """Say whether ``directory`` holds no checkpoint that could be restored."""
    return not (directory / "checkpoint").exists()


def step_in(directory: Path) -> int | None:
    """The step that ``directory`` holds, after a look at every byte; None when it is empty."""
    if not (directory / "checkpoint").exists():
        assert [name for name in os.listdir(directory) if name.startswith("ckpt")] == []
        return None
    named = (directory / "checkpoint").read_text().partition('"')[2].partition('"')[0]
    step = int(named.rpartition("-")[2])
    assert named == f"ckpt-{step}"
    found = sorted(path.name for path in directory.iterdir() if path.name != "checkpoint")
    shards = sum(".data-" in name for name in found)
    assert f"ckpt-{step}.index" in found
    assert shards == int(next(name for name in found if ".data-" in name)[-5:])
    for name in found:
        assert name.startswith(f"ckpt-{step}."), found
        data = (directory / name).read_bytes()
        shard = int(name.rpartition(".data-")[2][:5]) if ".data-" in name else 999
        assert data == content(step, shard, len(data))
    return step


class Engines:
    """Makes engines against one server, and remembers what they log."""

    def __init__(self, s3: S3Server, shared: dict[str, object]) -> None:
        self.s3 = s3
        self.log: list[str] = []
        self._shared = shared

    def connection(self, attempts: int = 8, threads: int = 4, **settings: object) -> Connection:
        plain = not settings
        made = Connection(
            S3Settings(
                endpoint_url=self.s3.url,
                region="us-east-1",
                read_timeout=float(settings.pop("read_timeout", 5.0)),  # type: ignore[arg-type]
                threads=threads,
                **settings,  # type: ignore[arg-type]
            ),
            backoff=RetryBackoff(first=0.001, longest=0.01, attempts=attempts),
            log=self.log.append,
            client=self._shared.get("client") if plain else None,
        )
        if plain and made.client is None:
            made.store("bucket")
            self._shared["client"] = made.client
        return made

    def publisher(
        self,
        directory: Path,
        *,
        attempt: int = 1,
        owner: str = "",
        lineage: str = "service",
        place: Location = PLACE,
        connection: Connection | None = None,
        **plan: object,
    ) -> Publisher:
        writer = Writer(lineage, attempt, owner or f"chief-0__{attempt}")
        plan.setdefault("quiet_seconds", 0.0)
        return Publisher(
            PublishPlan(str(directory), place, writer, **plan),  # type: ignore[arg-type]
            connection or self.connection(),
        )

    def restorer(self, place: Location = PLACE, **connection: object) -> Restorer:
        return Restorer(place, self.connection(**connection))  # type: ignore[arg-type]
