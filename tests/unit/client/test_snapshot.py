"""What each task is said to do."""

import json

import pytest

from dcos_tensorflow.client.snapshot import snapshot_of
from dcos_tensorflow.client.wording import numbers
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.task import TaskState
from samples.states import TOKEN_KEY, a_record, a_state, an_incident, failed, gang, running


def line(state, name):
    return next(task for task in snapshot_of(state).tasks if task.name == name)


def reported(of, name, **report):
    reports = {of.tasks[name].task_id: report}
    return a_state(of.job.phase, of.tasks.values(), reports=reports)


def test_an_unplaced_task_says_why_it_waits():
    found = line(a_state(misfits={"worker-0": "needs 2 gpus, best agent a7 offers 1"}), "worker-0")
    assert (found.doing, found.detail) == ("placing", "needs 2 gpus, best agent a7 offers 1")


def test_a_reason_does_not_repeat_the_task_s_name():
    state = a_state(misfits={"worker-0": "worker-0: needs 2 gpus"})
    assert line(state, "worker-0").detail == "needs 2 gpus"


@pytest.mark.parametrize("state", [TaskState.LAUNCHING, TaskState.STAGING, TaskState.STARTING])
def test_a_launched_task_starts(state):
    assert line(a_state(JobPhase.STARTING, gang(state)), "worker-0").doing == "starting"


def test_a_task_runs_once_its_runner_says_so():
    state = reported(running(), "worker-0", state="running")
    assert line(state, "worker-0").doing == "running"
    assert line(state, "worker-1").doing == "starting"


def test_a_task_that_waits_for_its_peers_names_them():
    records = gang()
    peer = f"{records[0].address}:{records[0].ports[0]}"
    state = reported(running(), "worker-0", state="waiting", waiting_for=[peer])
    assert line(state, "worker-0").detail == "for ps-0"


def test_progress_is_what_the_runner_told():
    progress = {"step": 12, "loss": 0.5, "accuracy": 0.75, "epoch": 1, "epochs": 2}
    found = line(reported(running(), "worker-0", state="running", progress=progress), "worker-0")
    assert (found.step, found.loss, found.accuracy, found.epoch) == (12, 0.5, 0.75, 1)
    assert found.has_progress


def test_a_loss_that_is_not_finite_is_shown_by_its_name():
    progress = {"step": 12, "loss": "NaN", "metrics": {"auc": "Infinity", "word": "x"}}
    found = line(reported(running(), "worker-0", state="running", progress=progress), "worker-0")
    assert numbers(found) == "step 12, loss nan, auc inf"


def test_a_task_that_was_ended_says_why():
    found = line(failed(), "ps-0")
    assert (found.doing, found.detail, found.failed) == ("ended", "the job is ending", False)


def test_a_task_whose_process_failed_before_its_container_was_ended_has_failed():
    killed = a_record("worker-0", TaskState.KILLED, kill_reason="the job is ending")
    state = reported(a_state(JobPhase.DONE, [killed]), "worker-0", state="failed", exit_code=3)
    found = line(state, "worker-0")
    assert (found.doing, found.detail, found.failed) == ("failed", "with exit code 3", True)


def test_the_task_that_ended_the_job_has_failed_whatever_its_runner_said_last():
    state = failed(incidents=(an_incident("worker-0"),))
    found = line(state, "worker-0")
    assert (found.doing, found.detail, found.failed) == ("failed", "with exit code 3", True)
    assert line(state, "ps-0").doing == "ended"


def test_a_failed_task_says_how():
    found = line(failed(), "worker-1")
    assert (found.doing, found.detail, found.failed) == ("failed", "exited with status 3", True)


def test_an_unreachable_task_names_its_agent():
    records = [a_record("worker-0", TaskState.UNREACHABLE)]
    assert "node1" in line(a_state(JobPhase.RUNNING, records), "worker-0").detail


def test_the_result_is_the_deciding_task_s():
    state = running()
    reports = {
        state.tasks["worker-1"].task_id: {"result": {"test_accuracy": 0.1}},
        state.tasks["worker-0"].task_id: {"result": {"test_accuracy": 0.9}},
    }
    state = a_state(JobPhase.RUNNING, state.tasks.values(), reports=reports)
    assert snapshot_of(state).result() == {"test_accuracy": 0.9}


def test_no_secret_is_in_a_snapshot():
    found = snapshot_of(running())
    assert TOKEN_KEY not in json.dumps([found.job, found.why])
