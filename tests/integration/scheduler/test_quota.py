"""A gang that a quota keeps waiting, on an embedded cluster."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import replace

import pytest

from dcos_tensorflow.scheduler import leading, master_watch
from scheduled_jobs import command_job, done, wait_until

ROLE = "team/vision"


def limit(cluster, cpus: float) -> None:
    """Set the quota of the role above ours, as an operator does."""
    config = {"role": "team", "limits": {"cpus": {"value": cpus}}}
    call = {
        "type": "UPDATE_QUOTA",
        "update_quota": {"force": True, "quota_configs": [config]},
    }
    request = urllib.request.Request(
        f"http://{cluster.master}/api/v1",
        json.dumps(call).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as response:
        assert response.status == 200


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(master_watch, "LOOK_SECONDS", 0.05)
    often = replace(master_watch.QUOTA, every_seconds=0.1)
    monkeypatch.setattr(leading, "QUOTA", often)


def needs_three_cpus():
    job = command_job("echo step 1 loss 0.5", workers=3)
    return replace(
        job,
        mesos_role=ROLE,
        roles=tuple(
            replace(role, resources=replace(role.resources, cpus=1.0)) for role in job.roles
        ),
    )


def test_a_gang_that_waits_for_its_quota_says_so_and_starts_when_it_is_raised(schedule, cluster):
    limit(cluster, 1.0)
    scheduler = schedule(needs_three_cpus())
    wait_until(
        scheduler,
        lambda state: (
            "the quota of the Mesos role team leaves 1 of 1 cpu, and 3 are needed"
            in state.only_gang.why
        ),
    )
    limit(cluster, 3.0)
    assert "quota" not in wait_until(scheduler, done).only_gang.why
