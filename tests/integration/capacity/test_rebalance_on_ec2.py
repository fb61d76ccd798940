"""EC2 calls machines more likely than others to be taken back, long before it takes any."""

from pathlib import Path

import pytest

from jobs.ec2_job import Ec2Job
from servers.metadata_service import MetadataService
from waiting import eventually

REBALANCE = "events/recommendations/rebalance"


@pytest.mark.timeout(300)
@pytest.mark.soak
def test_who_is_told_to_leaves_for_machines_that_are_bought_instead(tmp_path: Path) -> None:
    with MetadataService() as served:
        job = Ec2Job(
            tmp_path,
            {"job_cmd": "sleep 600", "leave_on_rebalance": True, "kill_grace_seconds": 1},
            {"idle_seconds": 1},
            worker_environment={"AWS_EC2_METADATA_SERVICE_ENDPOINT": served.url},
        )
        try:
            scheduler = job.scheduler()
            scheduler.wait_for("running")
            old = job.with_tasks()
            served.facts[REBALANCE] = '{"noticeTime": "2026-11-23T17:00:00Z"}'
            eventually(lambda: served.told.count(REBALANCE) >= 2, seconds=60, what="that both know")
            # The next machines are as good as any.
            del served.facts[REBALANCE]
            eventually(
                lambda: len(job.with_tasks() - old) == 2,
                seconds=90,
                what=lambda: f"that both have moved: {scheduler.log[-2000:]}",
            )
            eventually(
                lambda: old.isdisjoint(i.id for i in job.alive),
                seconds=90,
                what=lambda: f"that the old machines are given back: {scheduler.log[-2000:]}",
            )
        finally:
            job.close()
