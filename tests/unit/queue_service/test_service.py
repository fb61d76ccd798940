"""The service of a queue: what becomes of jobs and requests, and of a queue that dies between."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.queue.model import JobProgress, Team
from dcos_tensorflow.queue_service.cluster_view import ClusterView
from dcos_tensorflow.queue_service.jobs import Refused
from dcos_tensorflow.state.errors import StateUnavailable
from simulated.played_queue import BLUE, HOSTS, OPERATOR, RED, PlayedQueue, request

SWEEP = {
    "sweep": {
        "objective": {"metric": "loss", "goal": "minimize"},
        "max_trials": 20,
        "parameters": {"lr": {"uniform": [0.1, 1.0]}},
    }
}


def test_an_admitted_job_has_a_scheduler_and_ends_as_that_says(queue: PlayedQueue) -> None:
    queue.submit("job")
    queue.turn()
    assert queue.schedulers.starts == ["job"]
    queue.clock.now += 5.0
    queue.schedulers.end("job", "succeeded", "worker-0 finished with 0")
    queue.turn(times=2)
    assert queue.state("job") == "succeeded"
    assert queue.service.line_of(OPERATOR, "job")["why"] == "worker-0 finished with 0"


def test_a_job_without_room_waits_and_says_why(queue: PlayedQueue) -> None:
    queue.submit("first", cpus=4.0)
    queue.submit("second")
    queue.turn()
    found = queue.service.line_of(RED, "second")
    assert (found["state"], found["place"], found["kind"]) == ("waiting", 1, "room")
    assert queue.schedulers.starts == ["first"]


def test_a_job_that_waits_says_why_no_machine_is_bought_for_it(queue: PlayedQueue) -> None:
    queue.submit("first", cpus=4.0)
    queue.submit("second")
    queue.turn()
    queue.schedulers.no_machine = "the budget is spent"
    assert queue.service.line_of(RED, "second")["why"].endswith("the budget is spent")
    assert "budget" not in queue.service.line_of(RED, "first")["why"]


def test_a_scheduler_that_was_killed_is_started_again(queue: PlayedQueue) -> None:
    queue.submit("job")
    queue.turn()
    queue.schedulers.serving.clear()
    queue.turn(1.0)
    assert queue.schedulers.starts == ["job", "job"]


def test_a_scheduler_that_cannot_start_now_is_started_when_that_has_passed(
    queue: PlayedQueue,
) -> None:
    queue.submit("job")
    queue.schedulers.broken = CliError("the disk is full")
    queue.turn(60.0, times=20)
    found = queue.service.line_of(OPERATOR, "job")
    assert found["state"] == "running"
    assert "the disk is full" in found["why"]
    queue.schedulers.broken = None
    queue.turn(60.0)
    assert queue.schedulers.starts == ["job"]


def test_a_borrower_gives_way_and_goes_on_when_there_is_room(queue: PlayedQueue) -> None:
    for name in ("r1", "r2"):
        queue.submit(name)
    queue.turn()
    queue.submit("b1", BLUE)
    queue.turn(4.0, times=6)
    assert queue.state("b1") == "running"
    (waiting,) = [name for name in ("r1", "r2") if queue.state(name) == "waiting"]
    queue.schedulers.end("b1", "succeeded")
    queue.turn(1.0, times=3)
    assert queue.state(waiting) == "running"
    assert queue.schedulers.starts.count(waiting) == 2
    assert queue.service.line_of(RED, waiting)["times_given_way"] == 1


def test_the_history_tells_who_gave_way_and_why_to_its_team(queue: PlayedQueue) -> None:
    for name in ("r1", "r2"):
        queue.submit(name)
    queue.turn()
    queue.submit("b1", BLUE)
    queue.turn(4.0, times=6)
    queue.begin()
    told = queue.service.history(RED, 0.0)
    (gave_way,) = [event for event in told if event["what"] == "gave way"]
    assert "b1 of team blue" in gave_way["why"]
    assert {event.get("team", "red") for event in told} == {"red"}
    assert [event["shares"]["red"] for event in told if event["what"] == "shares"]


def test_the_history_tells_the_end_of_jobs_that_follow_one_that_failed(queue: PlayedQueue) -> None:
    queue.submit("first")
    queue.submit("second", after="first")
    queue.submit("third", after="second")
    queue.turn()
    queue.clock.now += 1.0
    queue.schedulers.end("first", "failed", "worker-0 failed with exit code 1")
    queue.turn(times=2)
    ends = [
        (event["job"], event["why"])
        for event in queue.service.history(RED, 0.0)
        if event["what"] == "failed"
    ]
    assert ends == [
        ("first", "worker-0 failed with exit code 1"),
        ("second", "first did not succeed"),
        ("third", "second did not succeed"),
    ]


def test_a_time_limit_ends_a_job_as_failed(queue: PlayedQueue) -> None:
    queue.submit("job", time_limit=60.0)
    queue.turn()
    queue.turn(61.0, times=2)
    queue.turn(1.0)
    assert queue.state("job") == "failed"
    assert "time limit" in queue.service.line_of(RED, "job")["why"]


def test_a_job_that_an_operator_stops_is_cancelled(queue: PlayedQueue) -> None:
    queue.submit("job")
    queue.turn()
    queue.clock.now += 1.0
    queue.schedulers.end("job", "stopped", "stopped from the command line")
    queue.turn(times=2)
    assert queue.state("job") == "cancelled"


def test_a_running_job_is_ended_before_its_place_is_free(queue: PlayedQueue) -> None:
    queue.submit("first", cpus=4.0)
    queue.submit("second", cpus=4.0)
    queue.turn()
    queue.service.cancel(RED, "first")
    assert queue.state("first") == "running"
    queue.turn(1.0)
    assert queue.state("second") == "waiting"
    queue.turn(1.0, times=2)
    assert (queue.state("first"), queue.state("second")) == ("cancelled", "running")


def test_a_held_job_waits_until_it_is_released(queue: PlayedQueue) -> None:
    queue.submit("job")
    queue.service.hold(RED, "job")
    queue.turn()
    assert (queue.state("job"), queue.schedulers.starts) == ("held", [])
    queue.service.release(RED, "job")
    queue.turn()
    assert queue.schedulers.starts == ["job"]


@pytest.mark.parametrize("verb", ["cancel", "hold", "release"])
def test_a_team_neither_sees_nor_touches_jobs_of_another(queue: PlayedQueue, verb: str) -> None:
    queue.submit("job")
    assert queue.service.lines(BLUE) == []
    with pytest.raises(Refused, match="there is no job"):
        getattr(queue.service, verb)(BLUE, "job")


def test_a_team_submits_for_itself_alone(queue: PlayedQueue) -> None:
    with pytest.raises(Refused) as refused:
        queue.submit("job", BLUE, team="red")
    assert refused.value.status == 403


@pytest.mark.parametrize(
    ("cpus", "told"), [(8.0, "no machine of team red has"), (2.0, "is in the queue already")]
)
def test_what_can_never_run_is_refused_when_it_is_submitted(
    queue: PlayedQueue, cpus: float, told: str
) -> None:
    queue.submit("job")
    with pytest.raises(Refused, match=told):
        queue.service.submit(RED, request("other" if cpus > 4 else "job", cpus))


def test_a_queue_that_dies_goes_on_from_its_records(queue: PlayedQueue) -> None:
    queue.submit("runs", cpus=4.0)
    queue.submit("waits", cpus=4.0)
    queue.turn()
    queue.begin()
    assert (queue.state("runs"), queue.state("waits")) == ("running", "waiting")
    queue.turn(1.0)
    # Its scheduler has gone on meanwhile, and was found.
    assert queue.schedulers.starts == ["runs"]
    queue.clock.now += 1.0
    queue.schedulers.end("runs", "succeeded")
    queue.turn(1.0, times=3)
    assert queue.state("waits") == "running"


def test_a_queue_that_dies_between_its_record_and_the_start_starts_the_job(
    queue: PlayedQueue,
) -> None:
    queue.submit("job")
    queue.service._bringing.attend = lambda job, team: None  # type: ignore[method-assign]
    queue.turn()
    queue.begin()
    queue.turn()
    assert queue.schedulers.starts == ["job"]


def test_nothing_is_begun_that_cannot_be_stored_and_nothing_of_it_is_forgotten(
    queue: PlayedQueue,
) -> None:
    queue.submit("job")
    store = queue.store
    assert store is not None
    commit = store.commit

    def away(writes: object) -> None:
        raise StateUnavailable("the servers do not answer")

    store.commit = away  # type: ignore[method-assign]
    with pytest.raises(StateUnavailable):
        queue.turn()
    assert queue.schedulers.starts == []
    store.commit = commit  # type: ignore[method-assign]
    queue.turn()
    assert queue.schedulers.starts == ["job"]
    queue.begin()
    assert queue.state("job") == "running"


def test_nothing_is_done_before_the_cluster_is_known(queue: PlayedQueue) -> None:
    queue.submit("job")
    service = queue.begin(knows_cluster=False)
    queue.turn()
    assert queue.schedulers.starts == []
    with pytest.raises(Refused, match="is starting"):
        service.cancel(RED, "job")


def test_a_sweep_grows_into_idle_machines_and_shrinks_for_others(queue: PlayedQueue) -> None:
    given = {**request("sweep", 1.0).options, **SWEEP}
    queue.service.submit(RED, request("sweep").model_copy(update={"options": given}))
    queue.turn(1.0, times=3)
    assert queue.service.line_of(RED, "sweep")["slots"] == 4
    queue.submit("b1", BLUE)
    queue.turn(4.0, times=6)
    assert queue.service.line_of(RED, "sweep")["slots"] == 2


def test_a_frozen_team_starts_nothing_new(queue: PlayedQueue) -> None:
    frozen = replace(queue.teams(), teams=(Team("red", guarantee=0.5, frozen=True), Team("blue")))
    queue.service.teams_are(frozen)
    queue.submit("job")
    queue.turn()
    assert (queue.state("job"), queue.schedulers.starts) == ("waiting", [])


def test_an_uninstall_ends_what_runs_and_waits(queue: PlayedQueue) -> None:
    queue.submit("runs", cpus=4.0)
    queue.submit("waits", cpus=4.0)
    queue.turn()
    assert not queue.service.is_emptied()
    queue.turn(1.0, times=3)
    assert queue.service.is_emptied()


def test_a_job_with_a_checkpoint_leaves_a_machine_whose_budget_is_spent(queue: PlayedQueue) -> None:
    queue.submit("job")
    queue.turn()
    entry = queue.service._jobs.queue.entries["job"]
    queue.service._jobs.queue.told("job", JobProgress(queue.clock.now, None, 1.0))
    queue.schedulers.going = frozenset({"bought.example"})
    bought = replace(HOSTS[0], attributes={"hostname": "Bought.example"})
    queue.service.cluster_is(ClusterView((bought,), {}))
    queue.turn(times=3)
    assert (entry.times_given_way, queue.state("job")) == (1, "waiting")
