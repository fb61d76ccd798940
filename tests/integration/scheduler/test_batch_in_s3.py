"""What a batch finds in S3, with the keys of the options and no others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.core.spec.storage_spec import S3Spec, StorageSpec
from dcos_tensorflow.core.spec.workload_spec import BatchSpec
from dcos_tensorflow.scheduler.batch_inputs import InputsAway, look
from dcos_tensorflow.scheduler.gate import Allowed, Gate
from dcos_tensorflow.workloads.producer import WorkloadError
from s3_server import KEY_ID, SECRET_KEY, Fault, S3Server
from simulated_scheduler import small_job

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
    found = look(a_batch(server, "s3://bucket/in/"), KEYS, ANYTHING)
    assert found.listed == ["s3://bucket/in/a/1", "s3://bucket/in/b", "s3://bucket/in/é"]
    assert found.existing == {"s3://bucket/out/part-01"}


def test_a_manifest_is_read_from_s3(server: S3Server) -> None:
    put(server, "inputs.txt", body=b"s3://bucket/in/b\ns3://bucket/in/a\n")
    found = look(a_batch(server, "s3://bucket/inputs.txt"), KEYS, ANYTHING)
    assert found.listed == ["s3://bucket/in/b", "s3://bucket/in/a"]


def test_a_bucket_that_is_not_there_is_an_error_for_good(server: S3Server) -> None:
    with pytest.raises(WorkloadError, match="nowhere"):
        look(a_batch(server, "s3://nowhere/in/"), KEYS, ANYTHING)


def test_a_server_that_is_too_busy_is_asked_again_later(server: S3Server) -> None:
    server.fault = lambda request: Fault(503)
    with pytest.raises(InputsAway):
        look(a_batch(server, "s3://bucket/in/"), KEYS, ANYTHING)
