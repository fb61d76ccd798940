"""How a job's end is told."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from dcos_tensorflow.client import ending
from dcos_tensorflow.client.snapshot import snapshot_of
from dcos_tensorflow.client.work_directory import ServiceDirectory
from dcos_tensorflow.core.model.job import JobPhase, Outcome, Verdict
from dcos_tensorflow.core.model.service_state import Evidence, LaunchSettings
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.service_spec import TaskRole
from samples.states import NOW, a_role, a_spec, a_state, failed, gang

SUCCESS = Verdict(Outcome.SUCCEEDED, 0, "worker-0 finished with 0")


def succeeded(**changes):
    job = {"verdict": SUCCESS, "started_at": NOW, "finished_at": NOW + 34, "restarts": 1}
    return a_state(JobPhase.DONE, gang(TaskState.FINISHED), job=job, **changes)


def text(state, tail=None):
    snapshot = snapshot_of(state)
    if tail is not None:
        snapshot = ending.with_last_output(snapshot, tail)
    return "\n".join(ending.lines(ending.document(snapshot, {"checkpoints": "/here"})))


def test_a_success_tells_how_long_it_took_and_where_things_lie():
    told = text(succeeded())
    assert "has succeeded after 34 s and 1 restart" in told
    assert "/here" in told


def test_the_result_is_read_from_the_last_lines_of_the_deciding_task():
    def tail(agent_id, task_id, file):
        assert "worker-0" in task_id
        return ["step 9 loss 0.1", 'result: {"test_accuracy": 0.96}'] if file == "stdout" else []

    assert "test accuracy  0.96" in text(succeeded(), tail)


def test_without_a_result_the_numbers_that_the_deciding_task_told_last_stand_at_the_end():
    def tail(agent_id, task_id, file):
        return ["step 9 loss 0.5 val_loss 0.25"] if file == "stdout" else []

    assert "worker-0     step 9, loss 0.5, val_loss 0.25" in text(succeeded(), tail)


def test_what_its_last_lines_do_not_tell_is_known_from_its_runner():
    state = succeeded()
    (name,) = [n for n in state.tasks if n == "worker-0"]
    progress = {"step": 9, "loss": 0.5, "metrics": {"val_loss": 0.25}}
    told = replace(state.told, reports={state.tasks[name].task_id: {"progress": progress}})
    state = replace(state, told=told)
    assert "step 9, loss 0.5, val_loss 0.25" in text(state, lambda *_: [])


NOTE = "It reported no step and left no file: check that the code calls its training."


def lasted(seconds, **changes):
    job = {"verdict": SUCCESS, "started_at": NOW, "finished_at": NOW + seconds}
    return a_state(JobPhase.DONE, gang(TaskState.FINISHED), job=job, **changes)


@pytest.mark.parametrize("contract", ["script", "function"])
@pytest.mark.parametrize("seconds", [1, 61, 7200])
def test_a_job_that_told_and_left_nothing_is_noted_however_long_it_took(contract, seconds):
    snapshot = snapshot_of(lasted(seconds))
    assert NOTE in ending.lines(ending.document(snapshot, {}, contract=contract))


def test_a_command_that_tells_and_leaves_nothing_is_not_noted():
    snapshot = snapshot_of(lasted(7200))
    assert NOTE not in ending.lines(ending.document(snapshot, {}, contract="command"))


def test_a_tensorboard_beside_the_job_does_not_hide_that_it_told_nothing():
    state = lasted(61)
    reports = {r.task_id: {"contract": "script"} for r in state.tasks.values()}
    reports[next(iter(reports))] = {"contract": "tensorboard"}
    snapshot = snapshot_of(
        a_state(
            JobPhase.DONE,
            state.tasks.values(),
            job={"verdict": SUCCESS, "started_at": NOW, "finished_at": NOW + 61},
            reports=reports,
        )
    )
    assert NOTE in ending.lines(ending.document(snapshot, {}, contract="script"))


def test_output_that_cannot_be_read_does_not_change_the_verdict():
    def tail(agent_id, task_id, file):
        raise OSError("no answer")

    assert "has succeeded" in text(succeeded(), tail)


def test_a_failure_shows_the_last_lines_of_the_failed_task_and_the_hint():
    state = failed()
    task_id = state.tasks["worker-1"].task_id
    evidence = Evidence("No module named 'numpi'. Is it in the image?", ("Traceback", "boom"))
    job = {"verdict": state.job.verdict, "incidents": state.job.incidents}
    told = text(a_state(JobPhase.DONE, state.tasks.values(), job=job, evidence={task_id: evidence}))
    assert "has failed" in told
    assert "Why: No module named 'numpi'. Is it in the image?" in told
    assert "  | boom" in told
    assert told.index("  | boom") < told.index("/here")


def test_the_exit_code_is_the_job_s():
    assert ending.document(snapshot_of(failed()), {})["exit_code"] == 3
    assert ending.document(snapshot_of(succeeded()), {})["exit_code"] == 0


def test_an_incident_that_was_overcome_is_no_failure():
    state = failed()
    job = {"verdict": SUCCESS, "incidents": state.job.incidents}
    found = ending.document(
        snapshot_of(a_state(JobPhase.DONE, gang(TaskState.FINISHED), job=job)), {}
    )
    assert found["failure"] is None
    assert len(found["incidents"]) == 1


def test_the_end_can_be_read_again_until_another_job_runs(tmp_path):
    directory = ServiceDirectory(tmp_path)
    ending.keep(directory, ending.document(snapshot_of(succeeded()), {}))
    assert ending.last(directory)["outcome"] == "succeeded"
    ending.forget(directory)
    assert ending.last(directory) is None


@pytest.mark.parametrize("content", ["", "[]", "{}", "{"])
def test_a_damaged_file_is_no_end(tmp_path, content):
    directory = ServiceDirectory(tmp_path)
    directory.last_end.write_text(content)
    assert ending.last(directory) is None


def sandbox(cluster, task_id):
    path = cluster / f"work/agents/0/slaves/S0/frameworks/F/executors/{task_id}/runs/c1"
    path.mkdir(parents=True)
    (path.parent / "latest").symlink_to("c1")
    return path


def test_each_task_s_sandbox_can_be_found_by_its_name(tmp_path):
    directory = ServiceDirectory(tmp_path)
    there = sandbox(directory.cluster, "job__worker-0__u")
    found = ending.link_sandboxes(
        directory,
        directory.cluster,
        {"worker-0": "job__worker-0__u", "worker-1": "job__worker-1__u"},
    )
    assert (Path(found) / "worker-0").resolve() == there
    assert not (Path(found) / "worker-1").exists()


def test_the_sandboxes_of_slots_are_found_though_these_are_gone(tmp_path):
    directory = ServiceDirectory(tmp_path)
    for number, name in enumerate(("slot-0-worker-0__old", "slot-0-worker-0__new", "worker-9__u")):
        there = sandbox(directory.cluster, f"job__{name}")
        os.utime(there.parents[1], (number, number))
    state = succeeded()
    found = ending.places(state.spec, directory, directory.cluster, snapshot_of(state), "F")
    links = {link.name: link.resolve() for link in Path(found["task logs"]).iterdir()}
    assert [*links] == ["slot-0-worker-0"]
    assert links["slot-0-worker-0"].parents[1].name == "job__slot-0-worker-0__new"


def test_links_of_the_job_before_are_gone(tmp_path):
    directory = ServiceDirectory(tmp_path)
    for task_id in ("a__worker-1__u", "b__worker-0__u"):
        sandbox(directory.cluster, task_id)
    ending.link_sandboxes(directory, directory.cluster, {"worker-1": "a__worker-1__u"})
    found = ending.link_sandboxes(directory, directory.cluster, {"worker-0": "b__worker-0__u"})
    assert [path.name for path in Path(found).iterdir()] == ["worker-0"]


def test_the_path_of_the_sandbox_is_left_out_of_the_last_lines():
    state = failed()
    task_id = state.tasks["worker-1"].task_id
    path = f"/srv/agents/0/slaves/S/frameworks/F/executors/{task_id}/runs/c-1/train.py"
    evidence = Evidence("boom", (f'  File "{path}", line 2, in main',))
    job = {"verdict": state.job.verdict, "incidents": state.job.incidents}
    told = text(a_state(JobPhase.DONE, state.tasks.values(), job=job, evidence={task_id: evidence}))
    assert '|   File "train.py", line 2, in main' in told


def ended(snapshot, **more):
    return "\n".join(ending.lines(ending.document(snapshot, {"task logs": "/logs"}, **more)))


def test_what_tasks_left_in_their_sandboxes_is_named_with_its_place():
    def tail(agent_id, task_id, file):
        assert file == "task-exit.json"
        if "worker-1" in task_id:
            raise OSError("no answer")
        files = [f"{n}.csv" for n in range(8)]
        return json.dumps({"left": {"files": files, "count": 8, "size": 80}}, indent=2).split("\n")

    snapshot = snapshot_of(succeeded())
    left = ending.left_in_sandboxes(snapshot, tail)
    told = ended(snapshot, left=left)
    assert "/logs/worker-0: 0.csv, 1.csv, 2.csv, 3.csv, 4.csv, 5.csv and 2 more files" in told
    assert "run" in told


def at_home(directory):
    state = succeeded(run=3, settings=LaunchSettings(output_dir=str(directory.output)))
    return snapshot_of(state)


def test_the_run_s_output_is_named_and_folders_without_any_are_removed(tmp_path):
    directory = ServiceDirectory(tmp_path)
    for name in ("worker-0", "worker-1"):
        (directory.output / "3" / name).mkdir(parents=True)
    (directory.output / "3" / "worker-0" / "model.keras").touch()
    assert ending.output_of(at_home(directory), directory) == str(directory.output / "3/worker-0")
    assert [each.name for each in (directory.output / "3").iterdir()] == ["worker-0"]
    assert directory.next_run() == 4


def test_a_run_that_left_nothing_leaves_no_folder(tmp_path):
    directory = ServiceDirectory(tmp_path)
    (directory.output / "3" / "worker-0").mkdir(parents=True)
    assert ending.output_of(at_home(directory), directory) == ""
    assert not directory.output.exists()
    assert directory.next_run() == 1


def test_the_curves_of_a_run_that_wrote_some_can_be_seen_with_the_environment_of_its_tasks(
    tmp_path,
):
    directory = ServiceDirectory(tmp_path / "service")
    directory.checkpoints.mkdir(parents=True)
    environment = tmp_path / "environment"
    board = environment / "lib/python3.11/site-packages/tensorboard"
    board.mkdir(parents=True)
    (board / "main.py").touch()
    spec = a_spec(roles=(a_role(TaskRole.WORKER, 1, python=f"{environment}/bin/python"),))
    assert "its curves" not in ending.steps(spec, directory, [])
    (directory.checkpoints / "events.out.tfevents.1").touch()
    found = ending.steps(spec, directory, ["dcos-tensorflow", "run", "my options.json"])
    assert found == {
        "run again": "dcos-tensorflow run 'my options.json'",
        "its logs": "dcos-tensorflow logs --name=tensorflow",
        "its curves": f"{environment}/bin/python -m tensorboard.main"
        f" --logdir {directory.checkpoints}",
    }


@pytest.mark.parametrize(("but", "stays"), [(None, False), (2.0, False), (1.0, True)])
def test_the_end_of_an_earlier_job_is_forgotten_and_the_own_one_stays(
    tmp_path: Path, but: float | None, stays: bool
) -> None:
    directory = ServiceDirectory(tmp_path)
    ending.keep(directory, {"exit_code": 0, "finished_at": 1.0})
    ending.forget(directory, but=but)
    assert (ending.last(directory) is not None) is stays


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("succeeded", "The job late has succeeded after 5 s: it is done"),
        ("failed", "The job late has failed after 5 s: it is done"),
        ("cancelled", "The job late was stopped after 5 s: it is done"),
    ],
)
def test_a_job_elsewhere_ends_as_its_queue_tells(state: str, told: str) -> None:
    job = {"job": "late", "state": state, "why": "it is done", "began_at": 5.0, "ended_at": 10.0}
    assert ending.lines(ending.in_queue(job))[0] == told
