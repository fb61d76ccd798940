"""The whole life of a job on EC2: bought, trained, taken back with notice, replaced, ended, paid.

The gate trains without TensorFlow. Prices are high: a second costs about a cent.
"""

import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

import pytest

from command_line import NEWEST, NO_KERAS, ROOT
from jobs.ec2_job import KIND, Ec2Job, all_given_back
from servers.metadata_service import MetadataService
from servers.s3_server import S3Server
from waiting import eventually

TRAINERS = ROOT / "tests" / "end_to_end" / "programs"
NOTICE = "spot/instance-action"
#: Of a machine an hour. The first zone has no room.
PRICES = {"us-east-1c": 20.0, "us-east-1a": 30.0, "us-east-1b": 36.0}
#: Older than they are by the scheduler's clock: both are paid by the provider's. The first is taken
#: back in its third hour, the second in its first, which is free then.
AGES = (timedelta(hours=2, minutes=7, seconds=41), timedelta(minutes=31))
DEADLINE = 120.0


@pytest.fixture
def s3() -> Iterator[S3Server]:
    server = S3Server()
    server.empty()
    yield server
    server.close()


class Life:
    def __init__(self, folder: Path, s3: S3Server, served: MetadataService, python: str) -> None:
        self.marks = folder / "marks"
        self.marks.mkdir()
        trainer = "s3_files.py" if python == sys.prefix else "s3_trainer.py"
        self.job = Ec2Job(
            folder,
            {
                "job_cmd": f"{python}/bin/python {TRAINERS / trainer} {self.marks}",
                "python": python,
                **NO_KERAS,
                "strategy": "multi_worker",
                "kill_grace_seconds": 5,
            },
            {},
            {
                "checkpoints": {"uri": "s3://bucket/job", "interval_seconds": 2},
                "s3": s3.options(folder),
            },
            {"AWS_EC2_METADATA_SERVICE_ENDPOINT": served.url},
        )
        self.job.ec2.spot_prices = PRICES
        self.job.ec2.full = {"us-east-1c"}
        self.scheduler = self.job.scheduler()

    def lines(self, name: str) -> list[list[str]]:
        file = self.marks / name
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        eventually(
            condition,
            seconds=DEADLINE,
            what=lambda: f"{what}: {self.scheduler.log[-3000:]}",
        )

    def wait_for_saves(self, count: int) -> None:
        enough = len(self.lines("saves")) + count
        self.wait_for(lambda: len(self.lines("saves")) >= enough, f"{count} more checkpoints")


@pytest.fixture
def served() -> Iterator[MetadataService]:
    with MetadataService() as made:
        yield made


def paid(instances: list[Any], said_ended: dict[str, int]) -> Decimal:
    """Return what EC2 bills for instances, by its own times: half up to the cent."""
    total = Fraction(0)
    for each in instances:
        began = each.launch_time.replace(tzinfo=UTC, microsecond=0)
        taken_back = each._reason == "Server.SpotInstanceTermination"
        if taken_back:
            ended = datetime.fromtimestamp(said_ended[each.id], UTC)
        else:
            said = each._reason.removeprefix("User initiated (").removesuffix(" UTC)")
            ended = datetime.fromisoformat(f"{said}+00:00")
        seconds = ceil((ended - began).total_seconds())
        if taken_back and seconds < 3600:
            continue
        total += Fraction(max(60, seconds)) * Fraction(PRICES[each.placement.zone]) / 3600
    exact = Decimal(total.numerator) / Decimal(total.denominator)
    return exact.quantize(Decimal("0.01"), ROUND_HALF_UP)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "version",
    [
        pytest.param(None, id="without"),
        pytest.param(NEWEST, id="tensorflow", marks=[pytest.mark.tensorflow, pytest.mark.soak]),
    ],
)
def test_a_job_lives_on_spot_machines_to_its_end_and_its_bill(
    version: str | None, tmp_path: Path, s3: S3Server, served: MetadataService
) -> None:
    python = str(ROOT / ".venvs" / f"tensorflow-{version}") if version else sys.prefix
    if not Path(python, "bin", "python").exists():
        pytest.skip(f"no virtual environment of TensorFlow {version}: run 'make soak'")
    life = Life(tmp_path, s3, served, python)
    job, ec2 = life.job, life.job.ec2
    try:
        life.wait_for_saves(3)
        first = job.instances
        assert [each.placement.zone for each in first] == ["us-east-1a"] * 2
        assert job.with_tasks() == {each.id for each in first}
        for each, age in zip(first, AGES, strict=True):
            each.launch_time -= age

        ec2.full.add("us-east-1a")
        served.interrupt()
        life.wait_for(lambda: served.told.count(NOTICE) >= 2, "the runners have read the notice")
        # The next machines have one of their own.
        del served.facts[NOTICE]
        old = {each.id for each in first}
        life.wait_for(lambda: not old & job.with_tasks(), "the machines are empty")
        saved = int(life.lines("saves")[-1][1])
        assert s3.list_keys("job/")
        ec2.take_back(old)
        life.wait_for(lambda: len(life.lines("restored")) >= 4, "the training goes on")
        # From S3: the machines and their files are gone, and nothing was trained in vain.
        # The process may have ended between its last save and the note of it.
        (restored,) = {int(step) for _, step in life.lines("restored")[2:4]}
        assert restored >= saved
        assert [each.placement.zone for each in job.alive] == ["us-east-1b"] * 2

        life.wait_for_saves(1)
        (life.marks / "finishing").write_text("0")
        (life.marks / "finishing").rename(life.marks / "finish")
        life.scheduler.wait_for("done")
        found = all_given_back(life.scheduler)
        assert not job.alive
        assert {machine["instance_type"] for machine in found["ended"]} == {KIND}
        bill = found["bill"]["total"]
        assert bill["machines"] == 4
        assert bill["paid"] == str(paid(job.instances, ec2.said_ended))
        # Both machines that went have cost the same pause.
        assert 0 < bill["lost_seconds"] < 120
    finally:
        job.close()
