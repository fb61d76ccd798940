"""The rights that docs/checkpoints.md asks for are those that are used, and no other."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.task.storage.s3.location import S3Settings
from dcos_tensorflow.task.storage.s3.object_store import Connection, ObjectStore
from servers.s3_server import S3Server

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "checkpoints.md"
#: What a call needs (Amazon S3 User Guide, "Required permissions for Amazon S3 API operations").
NEEDED = {
    "GetObject": "s3:GetObject",
    "HeadObject": "s3:GetObject",
    "PutObject": "s3:PutObject",
    "DeleteObjects": "s3:DeleteObject",
    "ListObjectsV2": "s3:ListBucket",
    "CreateMultipartUpload": "s3:PutObject",
    "UploadPart": "s3:PutObject",
    "CompleteMultipartUpload": "s3:PutObject",
    "AbortMultipartUpload": "s3:AbortMultipartUpload",
    "ListMultipartUploads": "s3:ListBucketMultipartUploads",
}


def rights() -> set[str]:
    """Return the actions of the policy in the document."""
    text = DOCUMENT.read_text().partition('"Version": "2012-10-17"')[2]
    policy = json.loads("{" + text.partition("```")[0].lstrip(","))
    return {action for statement in policy["Statement"] for action in statement["Action"]}


@pytest.fixture
def calls() -> set[str]:
    """The names of the operations that were called."""
    return set()


@pytest.fixture
def store(s3: S3Server, calls: set[str]) -> ObjectStore:
    connection = Connection(S3Settings(endpoint_url=s3.url, region="us-east-1"))
    made = connection.store("bucket")

    def noted(model: Any, **_: Any) -> None:
        calls.add(model.name)

    connection.client.meta.events.register("before-call.s3", noted)
    return made


def test_everything_that_is_done_needs_what_the_document_asks_for(
    store: ObjectStore, calls: set[str]
) -> None:
    digest = hashlib.sha256(b"part").digest()
    store.put("job/a", b"a")
    store.get("job/a")
    store.head("job/a")
    assert b"".join(store.chunks("job/a", 0, 1)) == b"a"
    assert [each.key for each in store.list("job/")] == ["job/a"]
    whole = store.create_upload("job/b")
    tag = store.put_part("job/b", whole, 0, b"part", digest)
    store.complete_upload("job/b", whole, [(tag, digest)])
    store.create_upload("job/c")
    for upload in store.uploads("job/"):
        store.abort_upload(upload)
    store.delete(["job/a", "job/b"])

    methods = {name for name in vars(ObjectStore) if not name.startswith("_")} - {"bucket"}
    assert len(methods) == 11, "a method that is new is to be called here"
    assert {NEEDED[name] for name in calls} == rights()
