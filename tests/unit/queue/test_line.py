"""Who is admitted, who waits and why, who gives way: a queue of a few hosts, minute by minute."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dcos_tensorflow.core.kept.codec import decode, encode
from dcos_tensorflow.queue.kept import KeptJob, KeptTeam, kept_job, kept_teams, restore
from dcos_tensorflow.queue.line import Queue
from dcos_tensorflow.queue.model import (
    Host,
    Interval,
    JobProgress,
    JobState,
    QueueDecision,
    QueuedJob,
    Rules,
    TaskNeed,
    Team,
)

GPU = TaskNeed(1_000, 1_024, 1_000)
HOUR = 3_600.0
BOTH = (Team("red", guarantee=0.5), Team("blue", guarantee=0.5))


def hosts(count: int = 2, gpus: int = 4) -> list[Host]:
    return [Host(f"host-{k}", 16_000, 65_536, 1_000 * gpus) for k in range(count)]


def queue_of(
    teams: tuple[Team, ...] = BOTH, rules: Rules | None = None, machines: list[Host] | None = None
) -> Queue:
    queue = Queue(rules or Rules(), teams, 0.0)
    queue.hosts_are(machines or hosts(), 0.0)
    return queue


def job(name: str, team: str = "red", gpus: int = 1, **more: object) -> QueuedJob:
    """Return a job of so many tasks of one GPU each."""
    wanted = QueuedJob(name, team, ((GPU, gpus),), 0.0)
    return replace(wanted, **more)  # type: ignore[arg-type]


def submit(queue: Queue, *jobs: QueuedJob, now: float = 0.0) -> None:
    for wanted in jobs:
        assert queue.submit(wanted, now) is None


def admitted(decision: QueueDecision) -> set[str]:
    return {admission.job for admission in decision.admit}


def asked(decision: QueueDecision) -> set[str]:
    return {asked.job for asked in decision.give_way}


def saved(queue: Queue, *names: str, at: float) -> None:
    for name in names:
        queue.told(name, JobProgress(at, Interval(HOUR, HOUR, HOUR), 0.0))


def test_a_job_with_room_is_admitted_at_once() -> None:
    queue = queue_of()
    submit(queue, job("a"))
    decision = queue.decide(0.0)
    assert admitted(decision) == {"a"}
    assert queue.entries["a"].state is JobState.RUNNING


def test_a_gang_is_placed_whole_or_not_at_all() -> None:
    queue = queue_of()
    submit(queue, job("small", gpus=3))
    queue.decide(0.0)
    submit(queue, job("large", "blue", gpus=6), now=1.0)
    assert admitted(queue.decide(1.0)) == set()
    assert queue.why("large").kind == "room"


def test_the_team_that_is_least_ahead_is_next() -> None:
    queue = queue_of()
    submit(
        queue, *(job(f"red-{k}") for k in range(6)), job("blue-0", "blue"), job("blue-1", "blue")
    )
    queue.decide(0.0)
    running = {entry.job.id for entry in queue.running()}
    assert {"blue-0", "blue-1"} <= running


def test_a_team_that_had_much_is_behind_one_that_had_nothing() -> None:
    queue = queue_of((Team("red"), Team("blue")))
    submit(queue, job("early", gpus=8))
    queue.decide(0.0)
    submit(queue, job("red-next", gpus=8, submitted_at=1.0), now=1.0)
    submit(queue, job("blue-next", "blue", gpus=8, submitted_at=2.0), now=2.0)
    queue.ended("early", JobState.SUCCEEDED, 20 * HOUR)
    assert admitted(queue.decide(20 * HOUR)) == {"blue-next"}


def test_of_one_team_the_higher_priority_is_first_then_the_older() -> None:
    queue = queue_of()
    submit(queue, job("running", gpus=8))
    queue.decide(0.0)
    submit(
        queue,
        job("young", gpus=8, submitted_at=3.0),
        job("old", gpus=8, submitted_at=2.0),
        job("urgent", gpus=8, submitted_at=4.0, priority=1),
        now=5.0,
    )
    assert [entry.job.id for entry in queue.waiting()] == ["urgent", "old", "young"]


def test_a_job_that_ends_in_time_starts_before_a_large_one_that_waits() -> None:
    queue = queue_of()
    submit(queue, job("running", gpus=6, time_limit=HOUR))
    queue.decide(0.0)
    submit(queue, job("large", gpus=8, submitted_at=1.0), now=1.0)
    submit(queue, job("short", gpus=2, submitted_at=2.0, time_limit=600.0), now=2.0)
    assert admitted(queue.decide(2.0)) == {"short"}


def test_a_job_that_would_delay_a_large_one_waits() -> None:
    queue = queue_of()
    submit(queue, job("running", gpus=6, time_limit=HOUR))
    queue.decide(0.0)
    submit(queue, job("large", gpus=8, submitted_at=1.0), now=1.0)
    submit(queue, job("long", gpus=2, submitted_at=2.0, time_limit=9 * HOUR), now=2.0)
    assert admitted(queue.decide(2.0)) == set()
    assert queue.why("long").kind == "reserved"


def test_a_team_has_back_what_is_its_own_within_the_bound() -> None:
    queue = queue_of()
    submit(queue, *(job(f"red-{k}") for k in range(8)))
    queue.decide(0.0)
    saved(queue, *(f"red-{k}" for k in range(8)), at=HOUR)
    submit(queue, job("blue", "blue", gpus=4, submitted_at=HOUR), now=HOUR)
    assert asked(queue.decide(HOUR)) == set()
    going = asked(queue.decide(HOUR + Rules().reclaim_after))
    assert len(going) == 4
    now = HOUR + 400
    for name in going:
        assert admitted(queue.decide(now)) == set(), "two jobs in one place"
        queue.gave_way(name, now)
    assert "blue" in admitted(queue.decide(now))


def test_those_that_lose_least_give_way() -> None:
    queue = queue_of()
    submit(queue, *(job(f"red-{k}") for k in range(8)))
    queue.decide(0.0)
    for k in range(8):
        queue.told(
            f"red-{k}", JobProgress(HOUR, Interval(HOUR, HOUR, HOUR), 1_800.0, can_save=k == 5)
        )
    submit(queue, job("blue", "blue"), now=HOUR)
    queue.decide(HOUR)
    assert asked(queue.decide(HOUR + 400)) == {"red-5"}


def test_a_job_that_has_just_begun_does_not_give_way() -> None:
    queue = queue_of()
    submit(queue, *(job(f"red-{k}") for k in range(8)))
    queue.decide(0.0)
    submit(queue, job("blue", "blue"), now=1.0)
    queue.decide(1.0)
    assert asked(queue.decide(Rules().least_run - 1)) == set()
    assert len(asked(queue.decide(Rules().least_run + 1))) == 1


def test_a_team_keeps_what_is_its_own() -> None:
    queue = queue_of()
    submit(queue, *(job(f"red-{k}") for k in range(4)), *(job(f"b{k}", "blue") for k in range(4)))
    queue.decide(0.0)
    submit(queue, job("more", "blue"), now=HOUR)
    queue.decide(HOUR)
    assert asked(queue.decide(3 * HOUR)) <= {f"b{k}" for k in range(4)} | {"red-0"}
    assert not any(name.startswith("red") for name in asked(queue.decide(1.5 * HOUR)))


def test_a_gang_larger_than_what_is_its_teams_own_is_borrowed_as_a_whole() -> None:
    queue = queue_of((Team("red", guarantee=0.25), Team("blue", guarantee=0.5)))
    submit(queue, job("large", gpus=8))
    queue.decide(0.0)
    saved(queue, "large", at=HOUR)
    submit(queue, job("blue", "blue", submitted_at=HOUR), now=HOUR)
    queue.decide(HOUR)
    assert asked(queue.decide(HOUR + Rules().reclaim_after)) == {"large"}


def test_the_first_in_line_does_not_wait_for_ever_for_a_whole_machine() -> None:
    queue = queue_of((Team("red"), Team("blue")), machines=hosts(1, gpus=4))
    submit(queue, *(job(f"red-{k}") for k in range(3)))
    queue.decide(0.0)
    saved(queue, "red-0", "red-1", "red-2", at=1.0)
    for k in range(3):
        queue.told(f"red-{k}", JobProgress(1.0, Interval(9 * HOUR, 9 * HOUR, 9 * HOUR), 0.0))
    submit(queue, job("whole", "blue", gpus=4, submitted_at=1.0), now=1.0)
    assert asked(queue.decide(1.0)) == set()
    assert asked(queue.decide(1.0 + Rules().patience)) == {"red-0", "red-1", "red-2"}


def test_a_job_that_gave_way_keeps_its_place_in_the_line() -> None:
    queue = queue_of()
    submit(queue, *(job(f"red-{k}", submitted_at=float(k)) for k in range(8)))
    queue.decide(0.0)
    submit(queue, job("late", submitted_at=100.0), job("blue", "blue"), now=HOUR)
    queue.decide(HOUR)
    (name,) = asked(queue.decide(HOUR + 400))
    queue.gave_way(name, HOUR + 460)
    queue.decide(HOUR + 460)
    assert [entry.job.id for entry in queue.waiting()] == [name, "late"]


def test_a_team_never_has_more_than_its_limit() -> None:
    queue = queue_of((Team("red", limit=0.25), Team("blue")))
    submit(queue, *(job(f"red-{k}") for k in range(4)))
    assert len(admitted(queue.decide(0.0))) == 2
    assert queue.why("red-3").kind == "limit"


def test_a_job_that_no_machine_can_hold_is_refused_by_what_it_wants() -> None:
    refused = queue_of().submit(replace(job("a"), gang=((TaskNeed(1_000, 1_024, 5_000), 1),)), 0.0)
    assert refused is not None
    assert "5 GPUs" in refused


def test_a_job_of_no_team_is_refused_with_the_teams() -> None:
    refused = queue_of().submit(job("a", "green"), 0.0)
    assert refused is not None
    assert "red, blue" in refused


def test_a_held_job_waits_until_it_is_released() -> None:
    queue = queue_of()
    submit(queue, job("a"))
    queue.hold("a")
    assert admitted(queue.decide(0.0)) == set()
    assert queue.why("a").kind == "held"
    queue.release("a", 1.0)
    assert admitted(queue.decide(1.0)) == {"a"}


def test_a_job_after_another_waits_for_its_success() -> None:
    queue = queue_of()
    submit(queue, job("first"), job("second", after="first"))
    assert admitted(queue.decide(0.0)) == {"first"}
    queue.ended("first", JobState.SUCCEEDED, 5.0)
    assert admitted(queue.decide(5.0)) == {"second"}


def test_a_job_after_one_that_failed_fails() -> None:
    queue = queue_of()
    submit(queue, job("first"), job("second", after="first"))
    queue.decide(0.0)
    queue.ended("first", JobState.FAILED, 5.0)
    assert queue.entries["second"].state is JobState.FAILED


def test_a_job_near_its_deadline_goes_before_higher_priorities() -> None:
    queue = queue_of()
    submit(queue, job("running", gpus=8))
    queue.decide(0.0)
    submit(
        queue,
        job("important", gpus=8, priority=9),
        job("promised", gpus=8, time_limit=HOUR, deadline=10 * HOUR),
    )
    queue.decide(9 * HOUR)
    assert next(iter(queue.waiting())).job.id == "promised"


def test_a_job_whose_time_is_over_is_ended() -> None:
    queue = queue_of()
    submit(queue, job("a", time_limit=60.0))
    queue.decide(0.0)
    assert asked(queue.decide(59.0)) == set()
    assert asked(queue.decide(60.0)) == {"a"}


@pytest.mark.parametrize("reason", ["frozen", "drained"])
def test_nothing_new_starts_of_a_frozen_team_or_a_drained_queue(reason: str) -> None:
    queue = queue_of()
    if reason == "frozen":
        queue.teams_are([replace(team, frozen=True) for team in BOTH], 0.0)
    else:
        queue.rules = replace(queue.rules, drained=True)
    submit(queue, job("a"))
    assert admitted(queue.decide(0.0)) == set()
    assert queue.why("a").kind == reason


def test_a_sweep_grows_into_room_that_no_other_job_can_use() -> None:
    queue = queue_of()
    submit(queue, job("sweep", slots=20))
    decision = queue.decide(0.0)
    assert [(change.job, change.slots) for change in decision.resize] == [("sweep", 8)]


def test_a_sweep_gives_back_slots_before_it_ends() -> None:
    queue = queue_of()
    submit(queue, job("sweep", slots=8))
    queue.decide(0.0)
    submit(queue, job("blue", "blue", gpus=3), now=HOUR)
    queue.decide(HOUR)
    decision = queue.decide(HOUR + 400)
    assert [(change.job, change.slots) for change in decision.resize] == [("sweep", 5)]
    assert asked(decision) == set()
    queue.resized("sweep", 5, HOUR + 410)
    assert admitted(queue.decide(HOUR + 410)) == {"blue"}


def test_a_team_runs_on_its_machines_alone() -> None:
    machines = [Host("old", 8_000, 8_192, 8_000), Host("new", 8_000, 8_192, 1_000, {"zone": "b"})]
    queue = queue_of((Team("red", where=(("zone", ("b",)),)),), machines=machines)
    submit(queue, job("a"), job("b"))
    assert [a.placement[0][0] for a in queue.decide(0.0).admit] == ["new"]


def test_tasks_without_gpus_stay_off_machines_that_have_some() -> None:
    machines = [Host("gpus", 8_000, 8_192, 4_000), Host("none", 8_000, 8_192)]
    queue = queue_of(machines=machines)
    submit(queue, replace(job("a"), gang=((TaskNeed(1_000, 512), 2),)))
    assert {name for name, _, _ in queue.decide(0.0).admit[0].placement} == {"none"}


def test_the_tasks_of_a_lost_machine_have_another_place() -> None:
    queue = queue_of()
    submit(queue, job("a", gpus=4))
    (admission,) = queue.decide(0.0).admit
    left = [host for host in hosts() if host.name != admission.placement[0][0]]
    queue.hosts_are(left, 1.0)
    (holding,) = queue.entries["a"].holdings
    assert {name for name, _, _ in holding.placement} == {left[0].name}


def test_a_queue_that_is_made_of_what_was_kept_decides_the_same() -> None:
    queue = queue_of()
    submit(queue, *(job(f"red-{k}") for k in range(8)), job("held"), job("after", after="red-0"))
    queue.hold("held")
    queue.decide(0.0)
    submit(queue, job("blue", "blue", gpus=2), job("later", "blue"), now=HOUR)
    queue.decide(HOUR)
    going = asked(queue.decide(HOUR + 400))
    jobs = [decode(KeptJob, encode(kept_job(entry))) for entry in queue.entries.values()]
    teams = {n: decode(KeptTeam, encode(team)) for n, team in kept_teams(queue).items()}
    again = restore(queue_of(), jobs, teams, HOUR + 410)
    for name in going:
        queue.gave_way(name, HOUR + 420)
        again.gave_way(name, HOUR + 420)
    assert again.decide(HOUR + 421) == queue.decide(HOUR + 421)
    assert (again.places.used == queue.places.used).all()


def test_a_team_that_is_owed_what_is_its_own_goes_before_one_that_would_borrow() -> None:
    rules = Rules(reclaim_after=60.0, least_run=10_000.0)
    queue = queue_of((Team("red", guarantee=0.75), Team("blue")), rules, hosts(1))
    # Red had the machine for long, so that blue is less ahead.
    submit(queue, job("old", gpus=4))
    queue.decide(0.0)
    queue.ended("old", JobState.SUCCEEDED, 50_000.0)
    submit(queue, job("b1", "blue", gpus=4), now=50_000.0)
    queue.decide(50_000.0)
    submit(queue, job("b2", "blue", gpus=4), job("r1", gpus=2), now=50_001.0)
    queue.decide(50_001.0)
    queue.decide(50_100.0)
    queue.ended("b1", JobState.SUCCEEDED, 50_200.0)
    assert admitted(queue.decide(50_200.0)) == {"r1"}


def test_what_no_host_holds_waits_for_machines_where_some_may_come() -> None:
    queue = queue_of(rules=Rules(grows=True))
    submit(queue, job("large", gpus=12), job("small"))
    assert admitted(queue.decide(1.0)) == {"small"}
    assert queue.why("large").kind == "machines"
    assert [entry.job.id for entry in queue.short_of_room(5)] == ["large"]
    queue.hosts_are(hosts(4), 2.0)
    assert admitted(queue.decide(2.0)) == {"large"}


def test_a_job_that_waits_for_machines_keeps_no_room_from_others() -> None:
    queue = queue_of(rules=Rules(grows=True))
    submit(queue, job("large", gpus=12), job("first", gpus=8))
    queue.decide(1.0)
    submit(queue, job("second", gpus=8, priority=-1), now=2.0)
    assert queue.why("first").kind == "running"
    queue.ended("first", JobState.SUCCEEDED, 3.0)
    assert admitted(queue.decide(3.0)) == {"second"}


def test_a_queue_without_machines_waits_for_the_first_ones() -> None:
    queue = Queue(Rules(grows=True), BOTH, 0.0)
    submit(queue, job("one"))
    assert admitted(queue.decide(1.0)) == set()
    assert [entry.job.id for entry in queue.short_of_room(5)] == ["one"]
    queue.hosts_are(hosts(1), 2.0)
    assert admitted(queue.decide(2.0)) == {"one"}


def test_jobs_that_have_a_checkpoint_leave_hosts_that_go_the_newest_first() -> None:
    queue = queue_of()
    submit(queue, *(job(name) for name in ("old", "new", "none")))
    queue.decide(0.0)
    places = [queue.entries[name].holdings[0].placement[0][0] for name in ("old", "new", "none")]
    assert len(set(places)) == 1
    queue.told("old", JobProgress(10.0, None, 300.0))
    queue.told("new", JobProgress(10.0, None, 5.0))
    queue.told("none", JobProgress(10.0, None, None, can_save=False))
    queue.hosts_are([replace(host, goes=host.name == places[0]) for host in hosts()], 10.0)
    decision = queue.decide(10.0)
    assert [asked.job for asked in decision.give_way] == ["new", "old"]
    assert queue.entries["none"].state is JobState.RUNNING
    assert not queue.decide(11.0).give_way
    for name in ("old", "new"):
        queue.gave_way(name, 12.0)
    moved = {found.job: found.placement[0][0] for found in queue.decide(12.0).admit}
    assert set(moved) == {"old", "new"}
    assert places[0] not in moved.values()


def test_a_host_that_goes_is_given_to_no_job() -> None:
    queue = queue_of(machines=[replace(host, goes=True) for host in hosts()])
    assert queue.submit(job("a"), 0.0) is not None
