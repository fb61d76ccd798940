"""Why a gang waits that its Mesos role's quota keeps from growing."""

import pytest

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.quota import Quota, shortage
from dcos_tensorflow.core.spec.resources import Resources
from simulated.mesos import Cluster
from simulated.scheduler import Scheduler, begun, small_job

USED_UP = Quota("team", {"cpus": 4.0}, {"cpus": 3.0})
TWO = (Resources(cpus=1, mem=512), Resources(cpus=1, mem=512))


def waiting(quota: Quota | None) -> Scheduler:
    """Return a scheduler whose gang of three tasks has no room, and knows of a quota."""
    cluster = Cluster(agents=1, resources=Resources(cpus=2, mem=8192, disk=10000))
    scheduler = Scheduler(small_job(), cluster)
    cluster.subscribe()
    scheduler.handle(events.QuotaSeen(quota))
    scheduler.run(3)
    return scheduler


def test_what_is_left_of_a_quota_is_told_beside_what_is_needed():
    assert shortage(USED_UP, TWO) == "team leaves 1 of 4 cpus, and 2 are needed"


def test_every_limit_that_is_too_low_is_told():
    quota = Quota("team", {"cpus": 1.0, "mem": 512.0, "disk": 10.0})
    assert shortage(quota, TWO) == (
        "team leaves 1 of 1 cpu, and 2 are needed, 512 of 512 MB mem, and 1024 are needed"
    )


@pytest.mark.parametrize(
    "quota",
    [
        None,
        Quota("team"),
        Quota("team", {"cpus": 4.0}, {"cpus": 2.0}),
        Quota("team", {"gpus": 0.0}),
    ],
)
def test_a_quota_that_is_enough_is_not_spoken_of(quota):
    assert shortage(quota, TWO) == ""


def test_more_is_used_than_a_lowered_quota_allows():
    quota = Quota("team", {"cpus": 1.0}, {"cpus": 3.0})
    assert shortage(quota, TWO) == "team leaves 0 of 1 cpu, and 2 are needed"


def test_the_newest_quota_takes_the_place_of_the_one_before():
    scheduler = waiting(Quota("team", {"cpus": 2.0}))
    scheduler.handle(events.QuotaSeen(Quota("team", {"cpus": 1.0})))
    assert scheduler.state.only_gang.why.endswith("team leaves 1 of 1 cpu, and 3 are needed")


def test_a_raised_quota_is_not_spoken_of_any_more():
    scheduler = waiting(Quota("team", {"cpus": 2.0}))
    scheduler.handle(events.QuotaSeen(Quota("team", {"cpus": 9.0})))
    assert "quota" not in scheduler.state.only_gang.why


def test_a_gang_that_waits_says_what_the_quota_leaves():
    scheduler = waiting(Quota("*", {"cpus": 2.0}))
    assert "the quota of the Mesos role * leaves 2 of 2 cpus, and 3 are needed" in (
        scheduler.state.only_gang.why
    )


def test_a_gang_that_gets_no_offers_says_what_the_quota_leaves():
    cluster = Cluster(agents=0)
    scheduler = begun(small_job(), cluster, seconds=1)
    scheduler.handle(events.QuotaSeen(Quota("*", {"cpus": 2.0})))
    assert "leaves 2 of 2 cpus" in scheduler.state.only_gang.why


def test_a_gang_that_waits_for_room_does_not_speak_of_quotas():
    assert "quota" not in waiting(None).state.job.why


def test_a_state_that_only_repeats_itself_is_not_written_again():
    scheduler = waiting(Quota("*", {"cpus": 2.0}))
    before = len(scheduler.decisions)
    scheduler.run(3)
    assert not any(d.writes for d in scheduler.decisions[before:])
