"""Parameter servers without a shared disk: saving through the chief works, all else is told.

Each job does first what works, and, when that has been published, what does not.
"""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import EXAMPLES, NEWEST, NO_KERAS, CommandLine
from data_files import PROGRAMS
from servers.s3_server import S3Server
from waiting import eventually

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(300)]

#: An interpreter that sees of all sandboxes only its own, as on a machine of its own.
ALONE = """#!/bin/sh
exec unshare --mount sh -c '
set -e
own=$(mktemp -d)
mount --bind "$MESOS_SANDBOX" "$own"
mount -t tmpfs none "{agents}"
mkdir -p "$MESOS_SANDBOX"
mount --bind "$own" "$MESOS_SANDBOX"
cd "$MESOS_SANDBOX"
exec "{python}" "$@"' sh "$@"
"""
SMALL = {"cpus": 0.5, "mem": 1024, "disk": 100}
DEADLINE = 120.0
IN_PARTS = "A checkpoint was written in parts to the private disks of several tasks"
CHIEF = 'experimental_io_device="/job:chief/replica:0/task:0/cpu:0"'


class Job:
    """A job with two parameter servers, each with a disk of its own, and what it has published."""

    def __init__(self, home: CommandLine, s3: S3Server, folder: Path, python: str) -> None:
        self.s3 = s3
        self._go = folder / "go"
        self.run: subprocess.Popen[str]
        self._home = home
        self._folder = folder
        self._python = python

    def start(self, **service: object) -> None:
        alone = self._folder / "python"
        agents = self._home.home / "local/work/agents"
        alone.write_text(ALONE.format(agents=agents, python=f"{self._python}/bin/python"))
        alone.chmod(0o755)
        options = {
            "service": {
                "name": "servers",
                "python": self._python,
                **NO_KERAS,
                "outcome_grace_seconds": 1,
                "kill_grace_seconds": 2,
                **service,
            },
            "checkpoints": {"uri": "s3://bucket/job", "interval_seconds": 1},
            "s3": self.s3.options(self._folder),
            "retry": {"limit": 0},
            "parameter_server": {"count": 2, "python": str(alone), **SMALL},
            "worker": {"count": 1, **SMALL},
        }
        if service["strategy"] == "parameter_server":
            options["chief"] = {"count": 1, **SMALL}
        file = self._folder / "options.json"
        file.write_text(json.dumps(options))
        self.run = self._home.start("run", file, "--yes")

    def saves(self, files: list[str]) -> None:
        """Wait until the newest checkpoint in S3 has these data files; then the job may go on."""
        eventually(
            lambda: self.published() == files or self.run.poll() is not None, seconds=DEADLINE
        )
        assert self.run.poll() is None, self.run.communicate()[0][-4000:]
        self._go.touch()

    def fails(self, *sentences: str) -> None:
        """Wait for its end, and check what is said of it."""
        out, _ = self.run.communicate(timeout=DEADLINE)
        assert self.run.returncode == 1, out[-4000:]
        assert [each for each in sentences if each not in out] == [], out[-4000:]

    def close(self) -> None:
        if self.run.poll() is None:
            self._home.ask("stop", "servers")
            self.run.communicate(timeout=DEADLINE)

    def by_strategy(self, *how: str) -> dict[str, object]:
        words = [f"{self._python}/bin/python", PROGRAMS / "ps_checkpoints.py", self._go, *how]
        return {"strategy": "parameter_server", "job_cmd": " ".join(map(str, words))}

    def by_session(self) -> dict[str, object]:
        return {
            "strategy": "between_graph",
            "job_url": str(PROGRAMS / "ps_sessions.py"),
            "job_name": "ps_sessions",
            "job_context": json.dumps({"go": str(self._go)}),
        }

    def by_keras(self) -> dict[str, object]:
        code = {"job_url": str(EXAMPLES / "keras"), "job_name": "train"}
        return {"strategy": "parameter_server", **code, "legacy_keras": False, "env": {}}

    def published(self) -> list[str]:
        """Return the data files of the newest checkpoint in S3."""
        if not self.s3.list_keys("job/latest.json"):
            return []
        published = self._document("job/latest.json")["published"]
        manifest = self._document(published[0]["key"]) if published else {"files": []}
        return sorted(file["path"] for file in manifest["files"] if ".data-" in file["path"])

    def _document(self, key: str) -> Any:
        return json.loads(self.s3.client.get_object(Bucket="bucket", Key=key)["Body"].read())


@pytest.fixture
def job(
    local_cluster: CommandLine, s3: S3Server, tmp_path: Path, tensorflow: Callable[[str], str]
) -> Iterator[Job]:
    can_mount = subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True)
    if can_mount.returncode != 0:
        pytest.skip("no disk of its own for each task: that needs root")
    made = Job(local_cluster, s3, tmp_path, tensorflow(NEWEST))
    yield made
    made.close()


def test_the_chiefs_whole_device_saves_on_the_chief_and_nothing_else_does(job):
    job.start(**job.by_strategy("device", "nothing"))
    # One shard for each device that has variables, and one of the chief's; all on its disk.
    job.saves([f"ckpt-2.data-{shard:05d}-of-00003" for shard in range(3)])
    job.fails(IN_PARTS, CHIEF)


@pytest.mark.soak
def test_a_device_that_names_the_job_alone_ends_with_what_to_do(job):
    job.start(**job.by_strategy("job"))
    job.fails("read or written on a device that does not exist", CHIEF)


@pytest.mark.soak
def test_a_backup_of_keras_which_takes_no_device_ends_with_what_to_do(job):
    job.start(**job.by_keras())
    job.fails(IN_PARTS, "service.shared_filesystem")


def test_a_session_saves_on_the_chief_unless_it_has_a_sharded_saver(job):
    job.start(**job.by_session())
    job.saves(["model.ckpt-10.data-00000-of-00001"])
    job.fails("in parts to the private disks of several tasks", "Saver(sharded=False)")
