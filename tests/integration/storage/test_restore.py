"""Checkpoints come down: the newest that is whole, the same for everyone, and nothing else."""

import os

import pytest

from dcos_tensorflow.task.storage.initial import InitialState
from dcos_tensorflow.task.storage.restorer import Restorer
from dcos_tensorflow.task.storage.s3.errors import DamagedCheckpoint, StorageError
from dcos_tensorflow.task.storage.s3.location import Location
from jobs.checkpoint_job import PREFIX, step_in
from servers.s3_server import Fault


def published(engines, job, *steps):
    publisher = engines.publisher(job.directory)
    for step in steps:
        job.save(step)
        assert publisher.publish_once()


def damage(s3, name: str, content: bytes | None = None) -> None:
    """Replace, or remove, the newest object that ends with ``name``."""
    key = sorted(key for key in s3.list_keys() if key.endswith(name))[-1]
    if content is None:
        s3.client.delete_object(Bucket="bucket", Key=key)
    else:
        s3.client.put_object(Bucket="bucket", Key=key, Body=content)


def test_with_nothing_published_training_starts_from_scratch(engines, fresh):
    assert engines.restorer().restore(str(fresh())).source == "scratch"


def test_the_state_file_has_a_relative_name(engines, job, fresh):
    published(engines, job, 5)
    target = fresh()
    engines.restorer().restore(str(target))
    assert (target / "checkpoint").read_text().startswith('model_checkpoint_path: "ckpt-5"\n')


def test_own_older_and_newer_files_make_way(engines, job, fresh):
    published(engines, job, 5)
    target = fresh()
    type(job)(target).save(9)
    (target / "best").mkdir()
    (target / "best" / "weights.bin").write_bytes(b"mine")
    engines.restorer().restore(str(target))
    assert step_in(target) == 5
    assert sorted(os.listdir(target)) == [
        "checkpoint",
        "ckpt-5.data-00000-of-00001",
        "ckpt-5.index",
    ]


def test_event_files_stay(engines, job, fresh):
    published(engines, job, 5)
    target = fresh()
    (target / "events.out.tfevents.1.host").write_bytes(b"events")
    engines.restorer().restore(str(target))
    assert (target / "events.out.tfevents.1.host").exists()


def test_what_is_there_already_is_not_fetched_again(engines, job, fresh):
    published(engines, job, 5)
    target = fresh()
    engines.restorer().restore(str(target))
    assert engines.restorer().restore(str(target)).bytes_fetched == 0
    assert step_in(target) == 5


def test_a_local_file_with_another_content_is_replaced(engines, job, fresh):
    published(engines, job, 5)
    target = fresh()
    engines.restorer().restore(str(target))
    path = target / "ckpt-5.index"
    path.write_bytes(b"x" * path.stat().st_size)
    engines.restorer().restore(str(target))
    assert step_in(target) == 5


@pytest.mark.parametrize("content", [b"short", b"x" * 64, None])
def test_a_damaged_newest_checkpoint_falls_back_to_the_one_before(engines, s3, job, fresh, content):
    published(engines, job, 5, 6)
    damage(s3, "data-00000-of-00001", content)
    target = fresh()
    restored = engines.restorer().restore(str(target))
    assert (restored.step, step_in(target)) == (5, 5)
    assert "damaged" in restored.warnings[0]


@pytest.mark.parametrize("content", [b"{}", b"", None])
def test_a_damaged_manifest_falls_back_too(engines, s3, job, fresh, content):
    published(engines, job, 5, 6)
    damage(s3, ".json", content) if content is None else None
    key = sorted(s3.list_keys(f"{PREFIX}/manifests/"))[-1]
    if content is not None:
        s3.client.put_object(Bucket="bucket", Key=key, Body=content)
    elif len(s3.list_keys(f"{PREFIX}/manifests/")) == 2:
        s3.client.delete_object(Bucket="bucket", Key=key)
    target = fresh()
    assert engines.restorer().restore(str(target)).step == 5


def test_a_byte_that_the_network_changed_is_fetched_again(engines, s3, job, fresh):
    published(engines, job, 5, 6)
    once = iter([Fault(corrupt=True)])
    s3.fault = lambda request: next(once, None) if "data-0" in request.path else None
    target = fresh()
    restored = engines.restorer().restore(str(target))
    assert (restored.step, restored.warnings, step_in(target)) == (6, (), 6)


def test_when_all_are_damaged_nothing_is_started_silently_from_scratch(engines, s3, job, fresh):
    published(engines, job, 5)
    damage(s3, ".index")
    with pytest.raises(DamagedCheckpoint, match="all 1"):
        engines.restorer().restore(str(fresh()))


def test_every_member_gets_the_checkpoint_that_was_pinned(engines, job, fresh):
    published(engines, job, 5)
    pinned = engines.restorer().published()[0].id
    job.save(6)
    engines.publisher(job.directory, attempt=2).publish_once()
    target = fresh()
    assert engines.restorer().restore(str(target), pinned=pinned).id == pinned
    assert step_in(target) == 5


def test_a_pinned_checkpoint_that_is_damaged_is_never_replaced_by_another(engines, s3, job, fresh):
    published(engines, job, 5, 6)
    pinned = engines.restorer().published()[0].id
    damage(s3, "ckpt-6.index")
    with pytest.raises(DamagedCheckpoint):
        engines.restorer().restore(str(fresh()), pinned=pinned)


def test_a_pinned_checkpoint_that_is_gone_is_named(engines, fresh):
    with pytest.raises(DamagedCheckpoint, match="not published"):
        engines.restorer().restore(str(fresh()), pinned="x")


def test_a_newer_local_state_stays_where_that_is_asked_for(engines, job):
    published(engines, job, 5)
    job.save(6)
    restored = engines.restorer().restore(str(job.directory), prefer_local=True)
    assert (restored.source, restored.step, step_in(job.directory)) == ("local", 6, 6)


def test_an_older_local_state_does_not_stay(engines, job, fresh):
    published(engines, job, 5)
    target = fresh()
    type(job)(target).save(4)
    assert engines.restorer().restore(str(target), prefer_local=True).step == 5


def test_a_failed_restore_leaves_the_directory_as_it_was(engines, s3, job, fresh):
    published(engines, job, 5)
    target = fresh()
    type(job)(target).save(3)
    s3.fault = lambda request: Fault(503) if "data-0" in request.path else None
    with pytest.raises(StorageError):
        engines.restorer(attempts=2).restore(str(target))
    engines.s3.fault = lambda request: None
    assert (target / "ckpt-3.index").exists()


def test_a_disk_without_room_is_said_before_anything_is_fetched(
    engines, s3, job, fresh, monkeypatch
):
    published(engines, job, 5)
    s3.requests.clear()
    usage = type("Usage", (), {"free": 10})
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    with pytest.raises(StorageError) as failed:
        engines.restorer().restore(str(fresh()))
    assert failed.value.problem.kind == "disk_full"
    assert s3.count("GET", "data-0") == 0


def given(engines, uri: str) -> Restorer:
    return Restorer(Location("bucket", "job/checkpoints"), engines.connection(), InitialState(uri))


def in_bucket(s3, job, prefix: str) -> None:
    for path in job.directory.iterdir():
        s3.client.put_object(Bucket="bucket", Key=f"{prefix}/{path.name}", Body=path.read_bytes())


@pytest.mark.parametrize("uri", ["s3://bucket/given", "s3://bucket/given/ckpt-3"])
def test_given_weights_are_taken_when_nothing_is_published(engines, s3, job, fresh, uri):
    job.save(2, keep=9)
    job.save(3, keep=9)
    in_bucket(s3, job, "given")
    target = fresh()
    restored = given(engines, uri).restore(str(target))
    assert (restored.source, restored.step, step_in(target)) == ("initial", 3, 3)


def test_given_weights_may_be_older_than_what_lies_beside_them(engines, s3, job, fresh):
    job.save(2, keep=9)
    job.save(3, keep=9)
    in_bucket(s3, job, "given")
    target = fresh()
    assert given(engines, "s3://bucket/given/ckpt-2").restore(str(target)).step == 2
    assert step_in(target) == 2


def test_given_weights_may_be_one_keras_file(engines, s3, fresh):
    s3.client.put_object(Bucket="bucket", Key="given/model-7.keras", Body=b"PK")
    target = fresh()
    restored = given(engines, "s3://bucket/given/model-7.keras").restore(str(target))
    assert (restored.step, os.listdir(target)) == (7, ["model-7.keras"])


def test_given_weights_may_be_what_another_service_published(engines, job, fresh):
    job.save(4)
    other = Location("bucket", "other")
    engines.publisher(job.directory, place=other).publish_once()
    target = fresh()
    assert given(engines, "s3://bucket/other").restore(str(target)).step == 4
    assert step_in(target) == 4


def test_given_weights_may_lie_on_this_machine(engines, job, fresh):
    job.save(8)
    target = fresh()
    assert given(engines, f"file://{job.directory}").restore(str(target)).step == 8
    assert step_in(target) == 8


def test_own_state_goes_before_given_weights(engines, s3, job, fresh):
    job.save(3)
    in_bucket(s3, job, "given")
    published(engines, job, 9)
    assert given(engines, "s3://bucket/given").restore(str(fresh())).step == 9


def test_given_weights_that_are_not_there_are_an_error(engines, fresh):
    with pytest.raises(StorageError, match="no complete checkpoint"):
        given(engines, "s3://bucket/given").restore(str(fresh()))
