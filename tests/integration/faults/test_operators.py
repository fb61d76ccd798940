"""What people do to a running job: its grace, its options, the machines under it."""

import contextlib
import copy
import time
from pathlib import Path
from typing import Any

import pytest

from waiting import eventually

from .conftest import MakeTraining
from .training import ScheduledTraining

pytestmark = pytest.mark.timeout(180)

WITHOUT_PS = ("chief-0", "worker-0", "worker-1")
#: Waits to be ended, and takes a moment for it, as a job that saves a last checkpoint does.
SAVING = (
    "trap 'sleep 0.5; echo $$ >> {marks}/$TASK_NAME.saved; exit 0' TERM;"
    " echo $$ > {marks}/$TASK_NAME.pid;"
    " while [ ! -e {marks}/finish ]; do sleep 0.05; done"
)
STUBBORN = (
    "trap '' TERM; echo $$ > {marks}/$TASK_NAME.pid;"
    " while [ ! -e {marks}/finish ]; do sleep 0.05; done"
)


def runs(training: ScheduledTraining) -> None:
    """Wait for the first start of a job that does not train."""
    training.waits_for("running")
    everybody = set(training.gang)
    eventually(lambda: training.running_pids().keys() == everybody, seconds=60, what="all of it")
    training.pids = training.running_pids()


def restarted(training: ScheduledTraining, name: str) -> None:
    eventually(
        lambda: training.running_pids().get(name, 0) not in (0, training.pids[name]),
        seconds=60,
        what=f"a new process of {name}",
    )
    training.waits_for("running")
    others = {n: p for n, p in training.pids.items() if n != name}
    assert {n: p for n, p in training.running_pids().items() if n != name} == others


def variable_of(pid: int, name: str) -> str:
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0"):
            if entry.startswith(f"{name}="):
                return entry.partition("=")[2]
    return ""


def with_greeting(training: ScheduledTraining, words: str) -> dict[str, Any]:
    """Return the job's options with another environment of its workers."""
    options = copy.deepcopy(training.options)
    options["worker"]["env"] = {"GREETING": words}
    return options


def test_a_process_has_its_grace_to_save(make_training: MakeTraining, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    training = make_training(
        service={
            "job_cmd": SAVING.format(marks=marks),
            "kill_grace_seconds": 20,
            "strategy": "independent",
        },
        parameter_server={"count": 0},
    )
    training.gang = WITHOUT_PS
    runs(training)
    training.order("/v1/pod/worker-1/restart")
    restarted(training, "worker-1")
    assert (marks / "worker-1.saved").read_text() == f"{training.pids['worker-1']}\n"
    training.order("/v1/job/stop")
    training.waits_for("done")
    assert all((marks / f"{name}.saved").exists() for name in training.gang)


def test_a_process_that_does_not_end_is_killed_after_its_grace(
    make_training: MakeTraining, tmp_path: Path
) -> None:
    training = make_training(
        service={
            "job_cmd": STUBBORN.format(marks=tmp_path / "marks"),
            "kill_grace_seconds": 1,
            "strategy": "independent",
        },
        parameter_server={"count": 0},
    )
    training.gang = WITHOUT_PS
    runs(training)
    ordered_at = time.monotonic()
    training.order("/v1/pod/worker-1/restart")
    restarted(training, "worker-1")
    assert time.monotonic() - ordered_at >= 1
    assert training.incidents() == []
    training.order("/v1/job/stop")
    training.waits_for("done")


def test_the_options_change(training: ScheduledTraining) -> None:
    answer = training.order("/v1/job/update", with_greeting(training, "hello"))
    assert answer["restarts"] == ["worker-0", "worker-1"]
    workers = ("worker-0", "worker-1")
    # The chief must know of them, unless they found a place at their old addresses.
    training.recovers(*workers, moved=workers, perhaps=("chief-0",))
    for name in ("worker-0", "worker-1"):
        assert variable_of(training.running_pids()[name], "GREETING") == "hello"
    assert training.incidents() == []
    training.ends_right()


def test_the_options_change_while_an_agent_is_cut_off(make_training: MakeTraining) -> None:
    training = make_training(service={"replace_after_seconds": 600})
    training.look()
    agent = training.agent_of("worker-1")
    training.cluster.faults.partition_agent(agent)
    training.says(lambda job: job["tasks"]["worker-1"]["state"] == "unreachable", "unreachable")
    training.order("/v1/job/update", with_greeting(training, "hello"))
    eventually(
        lambda: variable_of(training.running_pids().get("worker-0", 0), "GREETING") == "hello",
        seconds=60,
        what="worker-0 with the new options",
    )
    training.cluster.faults.heal_agent(agent)
    workers = ("worker-0", "worker-1")
    # The chief must know of them, unless they found a place at their old addresses.
    training.recovers(*workers, moved=workers, perhaps=("chief-0",))
    assert variable_of(training.running_pids()["worker-1"], "GREETING") == "hello"
    training.ends_right()


def test_an_agent_is_drained(training: ScheduledTraining) -> None:
    drained = training.agent_of("worker-1")
    training.cluster.faults.drain_agent(drained, max_grace_seconds=1)
    job = training.recovers("worker-1", "chief-0", moved=("worker-1",))
    assert [(i["task"], i["charged"]) for i in job["incidents"]] == [("worker-1", False)]
    assert training.agent_of("worker-1") != drained
    training.ends_right()


def test_tasks_leave_an_agent_before_its_maintenance_begins(training: ScheduledTraining) -> None:
    leaving = training.agent_of("worker-1")
    training.cluster.faults.schedule_maintenance([leaving], start_in_seconds=200)
    training.recovers("worker-1", "chief-0", moved=("worker-1",))
    assert training.agent_of("worker-1") != leaving
    assert training.incidents() == [], "nothing has failed: it left in time"
    training.look()
    training.cluster.faults.start_maintenance([leaving])
    training.is_untouched()
    training.ends_right()
