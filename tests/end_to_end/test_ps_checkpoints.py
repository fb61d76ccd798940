"""Parameter servers without a shared disk: saving through the chief works, all else is told."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import NEWEST, CommandLine, Ended
from s3_server import S3Server

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(300)]

HERE = Path(__file__).parent
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
Run = Callable[..., Ended]


@pytest.fixture
def run(local_cluster: CommandLine, s3: S3Server, tmp_path: Path, tensorflow) -> Run:
    """Run a job with two parameter servers, each with a disk of its own."""
    can_mount = subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True)
    if can_mount.returncode != 0:
        pytest.skip("no disk of its own for each task: that needs root")
    python = f"{tensorflow(NEWEST)}/bin/python"
    alone = tmp_path / "python"
    alone.write_text(ALONE.format(agents=local_cluster.home / "local/work/agents", python=python))
    alone.chmod(0o755)

    def run_job(**service: object) -> Ended:
        options = {
            "service": {
                "name": "servers",
                "python": tensorflow(NEWEST),
                "outcome_grace_seconds": 1,
                "kill_grace_seconds": 2,
                **service,
            },
            "checkpoints": {"uri": "s3://bucket/job", "interval_seconds": 1},
            "s3": s3.options(tmp_path),
            "retry": {"limit": 0},
            "parameter_server": {"count": 2, "python": str(alone), **SMALL},
            "worker": {"count": 1, **SMALL},
        }
        if service.get("strategy") == "parameter_server":
            options["chief"] = {"count": 1, **SMALL}
        file = tmp_path / "options.json"
        file.write_text(json.dumps(options))
        return local_cluster("run", file, "--yes", timeout=240)

    return run_job


def by_strategy(tensorflow: Callable[[str], str], how: str) -> dict[str, object]:
    command = f"{tensorflow(NEWEST)}/bin/python {HERE / 'ps_checkpoints.py'} {how}"
    return {"strategy": "parameter_server", "job_cmd": command}


def by_session(**context: object) -> dict[str, object]:
    return {
        "strategy": "between_graph",
        "job_url": str(HERE / "ps_sessions.py"),
        "job_name": "ps_sessions",
        "job_context": json.dumps(context),
    }


def published(s3: S3Server) -> list[str]:
    body = s3.client.get_object(Bucket="bucket", Key="job/latest.json")["Body"].read()
    newest = json.loads(body)["published"][0]
    manifest = s3.client.get_object(Bucket="bucket", Key=newest["key"])["Body"].read()
    return sorted(file["path"] for file in json.loads(manifest)["files"])


def test_the_chiefs_whole_device_saves_on_the_chief(run, s3, tensorflow):
    ended = run(**by_strategy(tensorflow, "device"))
    assert ended.code == 0, ended.out[-4000:]
    # One shard for each device that has variables, and one of the chief's; all on its disk.
    shards = [f"ckpt-2.data-{shard:05d}-of-00003" for shard in range(3)]
    assert published(s3) == ["checkpoint", *shards, "ckpt-2.index"]


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ("nothing", "A checkpoint was written in parts to the private disks of several tasks"),
        pytest.param(
            *("job", "A checkpoint is to be read or written on a device that does not exist"),
            marks=pytest.mark.soak,
        ),
    ],
)
def test_what_does_not_work_ends_with_what_to_do(run, tensorflow, how, what):
    ended = run(**by_strategy(tensorflow, how))
    assert ended.code == 1
    assert what in ended.out, ended.out[-4000:]
    assert 'experimental_io_device="/job:chief/replica:0/task:0/cpu:0"' in ended.out


def test_a_session_without_a_saver_of_its_own_saves_on_the_chief(run, s3):
    ended = run(**by_session())
    assert ended.code == 0, ended.out[-4000:]
    parts = [path for path in published(s3) if ".data-" in path]
    assert parts == ["model.ckpt-10.data-00000-of-00001"]


# ``test_task_contracts`` has the same without a scheduler.
@pytest.mark.soak
def test_a_session_with_a_sharded_saver_ends_with_what_to_do(run):
    ended = run(**by_session(own_saver=True))
    assert ended.code == 1
    assert "in parts to the private disks of several tasks" in ended.out, ended.out[-4000:]
    assert "Saver(sharded=False)" in ended.out
