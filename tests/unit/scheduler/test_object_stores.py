"""S3 is asked for options with what they have brought, or what the operator lends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dcos_tensorflow.core.model.spec import ServiceSpec
from dcos_tensorflow.scheduler import object_stores
from dcos_tensorflow.scheduler.secret_sources import NOTHING_ALLOWED, AllowedSources
from dcos_tensorflow.task.storage.errors import StorageError
from simulated_scheduler import small_job

KEYS = {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key"}
LENT = AllowedSources(own_s3=True)


def at(endpoint: str) -> ServiceSpec:
    job = small_job()
    s3 = replace(job.storage.s3, endpoint_url=endpoint)
    return replace(job, storage=replace(job.storage, s3=s3))


def test_what_the_scheduler_may_read_itself_is_not_lent() -> None:
    with pytest.raises(StorageError, match="--lend-storage"):
        object_stores.connected(at(""), {}, "bucket", NOTHING_ALLOWED)


def test_it_is_where_the_operator_says_so() -> None:
    assert object_stores.connected(at(""), {}, "bucket", LENT)


def test_an_endpoint_of_the_options_gets_no_credentials_that_they_did_not_bring() -> None:
    with pytest.raises(StorageError, match=r"s3\.credentials"):
        object_stores.connected(at("http://127.0.0.1:1"), {}, "bucket", LENT)


@pytest.mark.parametrize("endpoint", ["", "http://127.0.0.1:1"])
def test_credentials_that_options_bring_are_used(endpoint: str) -> None:
    assert object_stores.connected(at(endpoint), KEYS, "bucket", NOTHING_ALLOWED)


def test_on_the_embedded_cluster_all_is_its_one_users() -> None:
    allowed = AllowedSources(everything=True)
    assert object_stores.connected(at("http://127.0.0.1:1"), {}, "bucket", allowed)
