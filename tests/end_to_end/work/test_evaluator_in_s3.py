"""An evaluator on a machine of its own sees each checkpoint of a training that is kept in S3."""

import json
from pathlib import Path

import pytest

from command_line import NEWEST, NO_KERAS, OLD
from data_files import PROGRAMS
from waiting import eventually

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(300)]

JOB = PROGRAMS / "s3_evaluated.py"
SMALL = {"cpus": 0.5, "mem": 1024, "disk": 100}
DEADLINE = 120.0


@pytest.mark.parametrize(
    ("version", "api"),
    [(NEWEST, "iterator"), pytest.param(OLD, "sidecar", marks=pytest.mark.soak)],
)
def test_an_evaluator_follows_the_training(
    local_cluster, s3, tmp_path, *, tensorflow, version, api
):
    python, marks = tensorflow(version), tmp_path
    options = {
        "service": {
            "name": f"evaluated-{api}",
            "job_cmd": f"{python}/bin/python {JOB} {marks} {api}",
            "python": python,
            **(NO_KERAS if api == "iterator" else {}),
            "strategy": "independent",
            "outcome_grace_seconds": 1,
            "kill_grace_seconds": 5,
        },
        "checkpoints": {"uri": "s3://bucket/job", "interval_seconds": 1, "keep": 2},
        "s3": s3.options(marks),
        "parameter_server": {"count": 0},
        "worker": {"count": 1, **SMALL},
        "evaluator": {"count": 1, **SMALL},
    }
    file = marks / "options.json"
    file.write_text(json.dumps(options))
    run = local_cluster.start("run", file, "--yes")
    try:
        steps = eventually(
            lambda: found if len(found := evaluated(marks)) >= 4 else [],
            seconds=DEADLINE,
            what="four evaluated checkpoints",
        )
    finally:
        (marks / "finish").touch()
        out, _ = run.communicate(timeout=DEADLINE)
    assert run.returncode == 0, out[-4000:]
    assert steps == sorted(set(steps))


def evaluated(marks: Path) -> list[int]:
    file = marks / "evaluated"
    return [int(line) for line in file.read_text().splitlines()] if file.exists() else []
