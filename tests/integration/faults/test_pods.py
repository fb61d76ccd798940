"""What people do to the pods of a running job."""

import pytest

from waiting import eventually

from .training import ScheduledTraining

pytestmark = pytest.mark.timeout(180)


def test_a_pod_is_restarted_in_its_container(shared: ScheduledTraining) -> None:
    assert shared.order("/v1/pod/worker-1/restart") == {"pod": "worker-1", "tasks": ["worker-1"]}
    shared.recovers("worker-1")
    assert shared.incidents() == []


def test_a_pod_of_a_ps_is_restarted_together_with_the_chief(shared: ScheduledTraining) -> None:
    shared.order("/v1/pod/ps-0/restart")
    shared.recovers("ps-0", "chief-0")
    assert shared.incidents() == []


def test_a_pod_is_replaced_on_another_agent(shared: ScheduledTraining) -> None:
    before = shared.agent_of("worker-1")
    shared.order("/v1/pod/worker-1/replace")
    shared.recovers("worker-1", "chief-0", moved=("worker-1",))
    assert shared.agent_of("worker-1") != before
    assert shared.incidents() == []


def test_a_pod_is_paused_and_resumed(shared: ScheduledTraining) -> None:
    shared.order("/v1/pod/worker-1/pause")
    eventually(lambda: "worker-1" not in shared.running_pids(), seconds=60, what="its end")
    shared.waits_for("running")
    assert shared.job()["paused"] == ["worker-1"]
    shared.trains()
    assert shared.running_attempts() == shared.attempts, "it keeps its container"
    shared.order("/v1/pod/worker-1/resume")
    shared.recovers("worker-1")
    assert shared.job()["paused"] == []
    assert shared.incidents() == []
