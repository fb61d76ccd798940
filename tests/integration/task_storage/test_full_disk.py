"""A disk that is full under a training that goes on: it is not stopped, and made good later."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from waiting import eventually

INTERVAL_SECONDS = 1.0
#: Saves a checkpoint every 20 steps, as TensorFlow does; ``steps`` holds how far it is. It goes on
#: without a checkpoint that the disk does not take: setting one aside may need the last room.
TRAIN = """
import contextlib, itertools, os, time
folder = os.environ["CHECKPOINT_DIR"]
def save(step):
    names = [f"ckpt-{step}.data-00000-of-00001", f"ckpt-{step}.index"]
    for name in names:
        with open(os.path.join(folder, name), "w") as file:
            file.write(f"{name} " * 1000)
    with open(os.path.join(folder, "checkpoint.tmp0"), "w") as file:
        file.write(f'model_checkpoint_path: "{folder}/ckpt-{step}"\\n')
    os.replace(os.path.join(folder, "checkpoint.tmp0"), os.path.join(folder, "checkpoint"))
    for old in os.listdir(folder):
        if old.startswith("ckpt-") and old not in names:
            os.unlink(os.path.join(folder, old))
for step in itertools.count(1):
    if step % 20 == 0:
        with contextlib.suppress(OSError):
            save(step)
    with open("steps.new", "w") as file:
        file.write(str(step))
    os.replace("steps.new", "steps")
    time.sleep(0.01)
"""


class Training:
    """A training whose checkpoints are published every ``INTERVAL_SECONDS``."""

    def __init__(self, task) -> None:
        self.task = task

    def steps(self) -> int:
        path = self.task.sandbox / "steps"
        return int(path.read_text()) if path.exists() else 0

    def goes_on(self) -> None:
        """Wait until it is 50 steps further: it was not stopped."""
        before = self.steps()
        eventually(lambda: self.steps() > before + 50, what="more steps")
        assert self.task.status()["state"] == "running"

    def published(self) -> int:
        return (self.task.status()["storage"]["checkpoints"] or {}).get("published_step") or 0

    def publishes(self) -> None:
        before = self.published()
        eventually(lambda: self.published() > before, what="a newer published checkpoint")

    def problem(self, kind: str, state: str = "blocked") -> dict[str, object]:
        """Wait until the runner tells a problem of this kind; return all it says beside it.

        A problem stays while the next try is made, which has a state of its own.
        """

        def told() -> dict[str, object] | None:
            said = self.task.status()["storage"]["checkpoints"]
            problem = said["problem"]
            return said if problem and (problem["kind"], said["state"]) == (kind, state) else None

        return eventually(told, what=f"the problem {kind}, {state}")

    def recovers(self) -> None:
        self.publishes()
        eventually(
            lambda: self.task.status()["storage"]["checkpoints"]["problem"] is None,
            what="the end of the problem",
        )


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with room for a few files."""
    path = tmp_path / "disk"
    path.mkdir()
    options = f"size=4m,nr_inodes=24,uid={os.getuid()}"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


def test_a_full_disk_is_told_and_made_good(start, tiny_disk, s3):
    task = start(
        TRAIN, checkpoint_dir=str(tiny_disk), checkpoints={"interval_seconds": INTERVAL_SECONDS}
    )
    training = Training(task)
    task.wait_for_state("running")
    training.publishes()
    # The root, a checkpoint of three files, and another while it is saved: one that is set aside
    # needs four, and never finds them.
    eventually(lambda: resized(tiny_disk, 7), what="a smaller disk")
    said = training.problem("disk_full")
    assert said["problem"]["hint"] == "make room on the task's disk"
    training.goes_on()
    assert resized(tiny_disk, 24)
    training.recovers()


def resized(disk: Path, files: int) -> bool:
    """Give the file system room for so many; not while it holds more."""
    command = ["mount", "-o", f"remount,nr_inodes={files}", str(disk)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0
