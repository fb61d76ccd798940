"""The runner's door: one task from its start to its end, and the next attempt after it."""

import json

import pytest

from dcos_tensorflow.task.storage.s3.errors import Cancelled
from dcos_tensorflow.task.storage.s3.location import LocationError
from dcos_tensorflow.task.storage.task_storage import TaskStorage
from dcos_tensorflow.task.storage_spec import (
    CheckpointPlace,
    DirectoryPlace,
    S3Access,
    Storage,
    Writer,
)
from dcos_tensorflow.task.supervise.environment import Directories
from jobs.checkpoint_job import Job, step_in
from waiting import eventually


def storage(
    s3, sandbox, attempt: int | None = 1, directory_of_logs: str = "", follow: bool = False, **kept
) -> TaskStorage:
    logs = directory_of_logs or str(sandbox / "logs")
    checkpoints = CheckpointPlace(
        "s3://bucket/job",
        interval_seconds=0.05,
        writer=Writer("service", attempt, f"chief-0__{attempt}") if attempt else None,
        follow=follow,
    )
    return TaskStorage(
        Storage(checkpoints, s3=S3Access(s3.url, "us-east-1"), **kept),
        Directories(
            str(sandbox), logs, str(sandbox / "checkpoints"), logs, str(sandbox / "output")
        ),
        log=lambda text: None,
    )


def test_a_second_attempt_goes_on_where_the_first_one_ended(s3, tmp_path):
    first = storage(s3, tmp_path / "1")
    assert first.fetch().source == "scratch"
    first.begin()
    job = Job(tmp_path / "1" / "checkpoints")
    job.save(10)
    eventually(lambda: first.status()["checkpoints"]["published_step"] == 10)
    job.save(20)
    assert first.finish(20.0)
    second = storage(s3, tmp_path / "2", attempt=2)
    assert second.fetch().step == 20
    assert second.arriving().startswith("Brings a checkpoint: 100 % of ")
    assert step_in(tmp_path / "2" / "checkpoints") == 20


def test_a_member_that_only_reads_never_writes(s3, tmp_path):
    member = storage(s3, tmp_path, attempt=None)
    member.fetch()
    member.begin()
    assert member.finish(5.0)
    assert s3.count("PUT") == 0


def test_a_fetch_is_shown_from_when_it_is_announced(s3, tmp_path):
    task = storage(s3, tmp_path)
    task.announce_fetch()
    assert task.status()["state"] == "fetching"


def test_a_fetch_that_is_over_is_not_shown_any_more(s3, tmp_path):
    task = storage(s3, tmp_path)
    task.fetch(gate=task.announce_fetch())
    assert task.status()["state"] == "idle"


@pytest.fixture
def given_up(s3, tmp_path):
    """A task whose fetch was given up for another one before it had begun."""
    task = storage(s3, tmp_path)
    gate = task.announce_fetch()
    task.announce_fetch()
    with pytest.raises(Cancelled):
        task.fetch(gate=gate)
    return task


def test_a_fetch_given_up_before_it_began_asks_s3_nothing(given_up, s3):
    assert s3.requests == []


def test_a_fetch_given_up_does_not_hide_that_the_next_one_is_under_way(given_up):
    assert given_up.status()["state"] == "fetching"


def test_an_evaluator_does_not_put_back_what_it_was_brought(s3, tmp_path):
    chief = storage(s3, tmp_path / "1")
    chief.fetch()
    chief.begin()
    job = Job(tmp_path / "1" / "checkpoints")
    job.write("best.txt", b"of the chief")
    job.save(1)
    assert chief.finish(20.0)
    logs = tmp_path / "2" / "checkpoints"
    evaluator = storage(
        s3,
        tmp_path / "2",
        attempt=None,
        follow=True,
        summaries=DirectoryPlace("s3://bucket/logs"),
        directory_of_logs=str(logs),
    )
    assert evaluator.fetch().step == 1
    evaluator.begin()
    assert (logs / "best.txt").read_bytes() == b"of the chief"
    (logs / "events.out.tfevents.1").write_bytes(b"event")
    assert evaluator.finish(10.0)
    assert s3.list_keys("logs/") == ["logs/events.out.tfevents.1"]


def test_what_a_task_leaves_in_its_output_is_kept_whatever_it_is(s3, tmp_path):
    task = storage(s3, tmp_path, attempt=None, output=DirectoryPlace("s3://bucket/out/worker-1"))
    task.fetch()
    task.begin()
    left = tmp_path / "output" / "model"
    left.mkdir(parents=True)
    for name in ("weights.index", "weights.data-00000-of-00001", "labels.csv"):
        (left / name).write_text(name)
    (left / "checkpoint").write_text('model_checkpoint_path: "weights"')
    assert task.finish(10.0)
    names = ("checkpoint", "labels.csv", "weights.data-00000-of-00001", "weights.index")
    assert s3.list_keys("out/") == [f"out/worker-1/model/{name}" for name in names]


def test_a_task_that_leaves_nothing_asks_s3_nothing_for_it(s3, tmp_path):
    task = storage(s3, tmp_path, attempt=None, output=DirectoryPlace("s3://bucket/out/worker-1"))
    task.fetch()
    before = len(s3.requests)
    task.begin()
    assert task.finish(10.0)
    assert len(s3.requests) == before


def test_the_status_is_json(s3, tmp_path):
    task = storage(s3, tmp_path, summaries=DirectoryPlace("s3://bucket/logs"))
    task.fetch()
    task.begin()
    try:
        assert json.loads(json.dumps(task.status()))["restored"]["source"] == "scratch"
    finally:
        task.stop()


def test_a_uri_that_is_none_is_refused_at_once():
    with pytest.raises(LocationError, match="no S3 URI"):
        TaskStorage(
            Storage(CheckpointPlace("bucket/x")),
            Directories("/x", "", "", "", ""),
            log=lambda text: None,
        )
