"""What a batch finds in S3, with the keys of the options and no others."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.core.spec.storage_spec import S3Spec, StorageSpec
from dcos_tensorflow.core.spec.workload_spec import BatchSpec
from dcos_tensorflow.scheduler.batch_inputs import InputsAway, list_inputs
from dcos_tensorflow.scheduler.gate import Allowed, Gate
from dcos_tensorflow.task.storage.s3.location import S3Settings
from dcos_tensorflow.task.storage.s3.object_store import Connection
from dcos_tensorflow.task.storage.s3.shard_object import put_if_absent
from dcos_tensorflow.task.storage_spec import S3Access
from dcos_tensorflow.task.supervise.shard_record import text_of
from dcos_tensorflow.workloads.producer import WorkloadError
from servers.s3_server import KEY_ID, SECRET_KEY, Fault, S3Server
from simulated.scheduler import small_job

KEYS = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
ANYTHING = Gate(Allowed(everything=True))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    server = S3Server()
    server.empty()
    yield server
    server.close()


def a_batch(server: S3Server, listing: str) -> ServiceSpec:
    work = BatchSpec(output="s3://bucket/out/part-{index:02}", per_shard=2, listing=listing)
    storage = StorageSpec(s3=S3Spec(endpoint_url=server.url), shards_uri=work.output)
    return replace(small_job(), workload=work, storage=storage)


def put(server: S3Server, *keys: str, body: bytes = b"x") -> None:
    for key in keys:
        server.client.put_object(Bucket="bucket", Key=key, Body=body)


def test_objects_below_a_prefix_are_listed_by_name_and_folders_are_not(server: S3Server) -> None:
    put(server, "in/b", "in/a/1", "in/é", "in/", "inside/no", "out/part-01", "out/other")
    found = list_inputs(a_batch(server, "s3://bucket/in/"), KEYS, ANYTHING)
    assert found.listed == ["s3://bucket/in/a/1", "s3://bucket/in/b", "s3://bucket/in/é"]
    assert found.existing == {"s3://bucket/out/part-01"}


def test_a_manifest_is_read_from_s3(server: S3Server) -> None:
    put(server, "inputs.txt", body=b"s3://bucket/in/b\ns3://bucket/in/a\n")
    found = list_inputs(a_batch(server, "s3://bucket/inputs.txt"), KEYS, ANYTHING)
    assert found.listed == ["s3://bucket/in/b", "s3://bucket/in/a"]


def test_a_bucket_that_is_not_there_is_an_error_for_good(server: S3Server) -> None:
    with pytest.raises(WorkloadError, match="nowhere"):
        list_inputs(a_batch(server, "s3://nowhere/in/"), KEYS, ANYTHING)


def test_a_server_that_is_too_busy_is_asked_again_later(server: S3Server) -> None:
    server.fault = lambda request: Fault(503)
    with pytest.raises(InputsAway):
        list_inputs(a_batch(server, "s3://bucket/in/"), KEYS, ANYTHING)


def stamps(server: S3Server, listing: str) -> list[str]:
    return list(list_inputs(a_batch(server, listing), KEYS, ANYTHING).stamps)


@pytest.mark.parametrize("listing", ["s3://bucket/in/", "s3://bucket/inputs.txt"])
def test_an_object_has_another_stamp_when_its_content_has_changed(
    server: S3Server, listing: str
) -> None:
    put(server, "inputs.txt", body=b"s3://bucket/in/a\ns3://bucket/in/b\n")
    put(server, "in/a", "in/b", body=b"1")
    before = stamps(server, listing)
    put(server, "in/b", body=b"2")
    after = stamps(server, listing)
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False]
    assert all(len(stamp) == 8 for stamp in before)


def test_objects_of_a_manifest_that_are_out_of_sight_have_no_stamp(server: S3Server) -> None:
    put(server, "inputs.txt", body=b"s3://elsewhere/a\n")
    assert stamps(server, "s3://bucket/inputs.txt") == ["--------"]


@pytest.mark.parametrize("names", [["a", "b"], [f"{number:x}" * 30 for number in range(90, 160)]])
def test_the_record_of_an_output_is_read_as_it_was_put_beside_it(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    """Where names have no room in the output's metadata, too."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "written").write_text("output")
    shard = {"begin": 0, "end": len(names), "names": [_noise(name) for name in names]}
    settings = S3Settings.of(S3Access(server.url), "")
    uri = "s3://bucket/out/part-01"
    put_if_absent(Connection(settings), str(tmp_path / "written"), uri, text_of(shard))
    put(server, "in/a", "out/part-02")
    batch = a_batch(server, "s3://bucket/in/")
    assert isinstance(batch.workload, BatchSpec)
    found = list_inputs(
        replace(batch, workload=replace(batch.workload, resume=True)), KEYS, ANYTHING
    )
    inputs = {"begin": 0, "end": len(names), "inputs": shard["names"]}
    assert (found.existing, found.records) == ({uri, "s3://bucket/out/part-02"}, {uri: inputs})


def _noise(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()
