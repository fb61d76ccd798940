"""A gang that may be smaller goes on without a lost worker, and takes it back later."""

import pytest

from .conftest import MakeTraining
from .training import ScheduledTraining

pytestmark = pytest.mark.timeout(180)


def spare_of(training: ScheduledTraining) -> int:
    used = {training.agent_of(name) for name in training.gang}
    return next(a for a in range(len(training.cluster.agents)) if a not in used)


def test_a_gang_shrinks_when_an_agent_is_lost_and_grows_when_it_returns(
    make_training: MakeTraining,
) -> None:
    training = make_training(
        worker={"min_count": 1},
        gang={"wait_seconds": 1, "grow_seconds": 0, "hold_seconds": 2, "retry_seconds": 0.5},
    )
    training.look()
    training.cluster.faults.deactivate_agent(spare_of(training))
    lost = training.agent_of("worker-1")
    training.cluster.faults.lose_machine(lost)
    training.says(lambda job: job["absent"] == ["worker-1"], "that it goes on without worker-1")
    training.waits_for("running")
    training.trains()
    small = training.running_pids()
    assert {n for n in ("ps-0", "worker-0") if small[n] != training.pids[n]} == set()
    training.cluster.faults.replace_machine(lost)
    training.says(lambda job: job["absent"] == [], "that worker-1 is back")
    training.recovers("worker-1", "chief-0", moved=("worker-1",))
    training.ends_right()


def test_a_gang_that_may_not_be_smaller_says_what_it_waits_for(
    make_training: MakeTraining,
) -> None:
    training = make_training()
    training.look()
    training.cluster.faults.deactivate_agent(spare_of(training))
    lost = training.agent_of("worker-1")
    training.cluster.faults.lose_machine(lost)
    training.waits_for("placing")
    _, why = training.ask("/v1/why")
    assert "worker-1" in why["tasks"]
    training.cluster.faults.replace_machine(lost)
    training.recovers("worker-1", "chief-0", moved=("worker-1",))
    training.ends_right()
