"""A turn tells what it was about by names, a bounded number of them, and by no values."""

import pytest

from dcos_tensorflow.core.model.actions import Accept, Acknowledge, Decline, LaunchTask, Reconcile
from dcos_tensorflow.core.model.events import (
    ConfigurationChanged,
    OffersReceived,
    PlanCommand,
    PlanVerb,
    RunnerReported,
    StopRequested,
    TaskUpdate,
)
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.resources import Resources
from samples.states import NOW, a_spec, a_state
from samples.turns import a_turn, turned

CANARY = "c4n4ry"


def launched(task_id: str) -> LaunchTask:
    env = {"PASSWORD": CANARY}
    return LaunchTask(task_id, "worker-0", "a1", Resources(), (), f"run {CANARY}", env, env)


@pytest.mark.parametrize(
    ("event", "name"),
    [
        (OffersReceived(()), "OffersReceived"),
        (TaskUpdate("t1", TaskState.FAILED, message=CANARY), "TaskUpdate t1"),
        (RunnerReported("t1", {"progress": CANARY}), "RunnerReported t1"),
        (PlanCommand("deploy", PlanVerb.PAUSE), "PlanCommand deploy"),
        (ConfigurationChanged(a_spec(principal=CANARY)), "ConfigurationChanged"),
    ],
)
def test_an_event_is_named_with_whom_it_is_about(event: object, name: str) -> None:
    assert a_turn(a_state(), events=(event,)).named()["events"] == [name]


@pytest.mark.parametrize(
    ("action", "name"),
    [
        (Accept(("o1",), "a1", (launched("t1"), launched("t2")), 5.0), "Accept t1, t2"),
        (Decline(("o1", "o2"), 5.0), "Decline o1, o2"),
        (Reconcile((("t1", "a1"), ("t2", ""))), "Reconcile t1, t2"),
        (Acknowledge("a1", "t1", "uuid"), "Acknowledge t1"),
    ],
)
def test_a_call_is_named_with_whom_it_is_about(action: object, name: str) -> None:
    assert a_turn(a_state(), action).named()["calls"] == [name]


def test_what_is_committed_is_named_by_its_paths() -> None:
    turn = turned(a_state(), StopRequested("enough"), at=NOW)
    assert [*turn.named()["writes"]] == [write.path for write in turn.decision.writes] != []


def test_of_very_many_the_first_are_named() -> None:
    events = [TaskUpdate(f"t{number}", TaskState.RUNNING) for number in range(500)]
    names = a_turn(a_state(), events=events).named()["events"]
    assert (len(names), names[0], names[-1]) == (21, "TaskUpdate t0", "and 480 more")


def test_the_same_twice_is_counted() -> None:
    events = [TaskUpdate("t1", TaskState.RUNNING)] * 3
    assert a_turn(a_state(), events=events).named()["events"] == ["TaskUpdate t1 (3 times)"]
