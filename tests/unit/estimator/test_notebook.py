"""What a notebook shows of a job."""

from dataclasses import replace
from typing import Any

from dcos_tensorflow.client.snapshot import Snapshot
from dcos_tensorflow.estimator.notebook import Picture, in_notebook


def snapshot(**task: Any) -> Snapshot:
    job = {
        "service": "digits",
        "run": 2,
        "phase": "running",
        "why": "all tasks <run>",
        "started_at": 100.0,
        "tasks": {"worker-0": task},
    }
    return Snapshot(job, {})


RUNNING = snapshot(
    task_id="id",
    state="running",
    hostname="<host>",
    report={"state": "running", "progress": {"step": 3, "loss": 0.5, "metrics": {"auc": 0.7}}},
)


def test_a_table_tells_where_each_task_stands():
    found = Picture.of(RUNNING, 160.0).html()
    assert "digits  run 2  running  1 min 0 s" in found
    assert "step 3, loss 0.5, auc 0.7" in found


def test_what_tasks_and_machines_say_is_no_markup():
    found = Picture.of(RUNNING, 160.0).html()
    assert "&lt;host&gt;" in found
    assert "&lt;run&gt;" in found


def test_the_same_is_there_as_text():
    assert Picture.of(RUNNING, 160.0).text().splitlines() == [
        "digits  run 2  running  1 min 0 s: all tasks <run>",
        "worker-0 running on <host> step 3, loss 0.5, auc 0.7",
    ]


def test_of_a_sweep_the_heading_tells_how_many_trials_are_done():
    units = {"kind": "trial", "total": 60, "counts": {"succeeded": 12, "running": 4}}
    found = Picture.of(replace(RUNNING, job={**RUNNING.job, "units": units}), 160.0)
    assert found.heading == "digits  run 2  running  1 min 0 s  12 of 60 trials done, 4 running"


def test_the_end_is_told_without_a_look():
    ended = {
        "service": "digits",
        "run": 2,
        "outcome": "succeeded",
        "summary": "worker-0 finished with 0",
        "started_at": 100.0,
        "finished_at": 130.0,
        "tasks": {"worker-0": {"state": "finished"}},
        "numbers": {"worker-0": "step 5, loss 0.25"},
    }
    for last in (Picture.of(RUNNING, 120.0), Picture("", "", ())):
        assert last.at_the_end(ended).text().splitlines() == [
            "digits  run 2  succeeded  30 s: worker-0 finished with 0",
            "worker-0 finished step 5, loss 0.25",
        ]


def test_a_script_is_no_notebook():
    assert not in_notebook()
