"""The OpenAPI document says what the API does: paths, statuses, bodies, who may ask."""

import functools
import hmac
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from starlette.routing import Route

from dcos_tensorflow.api import openapi
from dcos_tensorflow.api.app import create_app
from dcos_tensorflow.api.operations import OPERATIONS, Operation
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.mesos.agent_files import AgentUnreachable
from samples.states import a_state, failed, gang, offered, played, registered, running

DOCUMENT = openapi.document()
REPOSITORY = Path(__file__).resolve().parents[3]
TOKEN = "a-token"
BY_ID = {operation.id: operation for operation in OPERATIONS}

#: What stands in a path for each of its places: what there is, and what there is not.
PLACES = {
    "plan": ("deploy", "no-such"),
    "name": ("worker-0", "no-such"),
    "id": ("", "no-such"),
    "file": ("stdout", ".secrets"),
}


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for below in value.values():
            yield from references(below)
    elif isinstance(value, list):
        for below in value:
            yield from references(below)


def described(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"][operation.path][operation.method.lower()]
    return found


def test_every_route_is_described_and_everything_described_is_a_route(source: Any) -> None:
    served = {
        (route.path.replace(":path}", "}"), method)
        for route in create_app(source).routes
        # The page beside the API is no part of it.
        if isinstance(route, Route) and route.path != "/"
        for method in (route.methods or set()) - {"HEAD"}
    }
    told = {(path, method.upper()) for path, item in DOCUMENT["paths"].items() for method in item}
    assert served == told


def test_the_checked_in_document_is_the_served_one() -> None:
    assert (REPOSITORY / openapi.FILE).read_text() == openapi.text()


def test_no_two_operations_share_an_id() -> None:
    assert len(BY_ID) == len(OPERATIONS)


def test_every_reference_leads_somewhere() -> None:
    known = {f"#/components/schemas/{name}" for name in DOCUMENT["components"]["schemas"]}
    assert set(references(DOCUMENT)) <= known


def test_every_schema_is_used() -> None:
    used = {reference.rpartition("/")[2] for reference in references(DOCUMENT)}
    assert set(DOCUMENT["components"]["schemas"]) - used == {"UnknownPath"}


def test_each_schema_is_a_json_schema() -> None:
    for schema in DOCUMENT["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_each_place_of_a_path_is_described() -> None:
    for operation in OPERATIONS:
        parameters = described(operation).get("parameters", [])
        names = [p["name"] for p in parameters if p["in"] == "path"]
        assert names == re.findall(r"\{(\w+)\}", operation.path)


def test_each_operation_has_a_tag_that_is_explained() -> None:
    explained = {tag["name"] for tag in DOCUMENT["tags"]}
    assert {operation.tag for operation in OPERATIONS} <= explained


def answered(operation: Operation, status: int, text: str, media_type: str) -> None:
    """Check an answer against what the document says of it."""
    responses = described(operation)["responses"]
    assert str(status) in responses, (operation.id, status, text)
    content = responses[str(status)].get("content")
    if content is None:
        assert text == ""
        return
    assert media_type in content, (operation.id, status, media_type)
    if "schema" in content[media_type]:
        validator(operation.id, status, media_type).validate(json.loads(text))


@functools.cache
def validator(operation: str, status: int, media_type: str) -> jsonschema.Draft202012Validator:
    """Return what judges the bodies of an operation's answers with this status."""
    response = described(BY_ID[operation])["responses"][str(status)]
    schema = response["content"][media_type]["schema"]
    return jsonschema.Draft202012Validator({**schema, "components": DOCUMENT["components"]})


def sample_states() -> list[ServiceState]:
    return [
        running(),
        failed(),
        a_state(JobPhase.PLACING, misfits={"worker-0": "needs 2 gpus"}),
        a_state(JobPhase.PLACING, registered=False),
        a_state(JobPhase.DONE, gang(TaskState.FINISHED), job={"uninstalling": True}),
        played(registered(), offered(1, 2)),
    ]


def paths_of(operation: Operation, state: ServiceState) -> Iterator[str]:
    choices = [""]
    if operation.id == "pod_file":
        yield "/v1/pod/worker-0/files/.secrets/keytab"
        yield "/v1/pod/worker-0/files/%2e%2e/x"
        yield "/v1/pod/worker-0/files/gone"
        yield "/v1/pod/worker-0/files/lost"
    for name in re.findall(r"\{(\w+)\}", operation.path):
        real, wrong = PLACES[name]
        if operation.id == "endpoint":
            real = "worker"
        if operation.id == "property":
            real = "job"
        choices = [real or configuration_id(state.spec), wrong]
    for choice in choices:
        yield re.sub(r"\{\w+\}", choice, operation.path)
    for query in operation.query:
        yield re.sub(r"\{\w+\}", choices[0], operation.path) + f"?{query}=no-such"


BODIES: dict[str, list[bytes]] = {
    "": [b""],
    "Names": [b"", b'["worker-0"]', b'["other"]', b"{"],
    "Reason": [b"", b'{"why": "because"}', b"[]"],
    "Notes": [b'{"tags": ["a"], "note": "b"}', b"{", b'{"tags": "a"}'],
    "NoParameters": [b"", b'{"A": "1"}'],
    "Command": [b'{"command": ["ls"]}', b"", b"["],
    "CopiedPath": [b'{"path": "stdout"}', b'{"path": ".secrets/keytab"}', b'{"path": "gone"}', b""],
    "Options": [b'{"service": {"job_name": "x"}}', b'{"worker": {"count": "x"}}', b"["],
    "WantedConfiguration": [
        b"",
        b'{"id": "no-such"}',
        b'{"id": "00000000-0000-0000-0000-000000000000"}',
    ],
}


#: Those whose answers end; of the stream of events ``test_dashboard`` tells.
ENDING = [operation for operation in OPERATIONS if operation.id != "events"]


@pytest.mark.parametrize("operation", ENDING, ids=lambda found: found.id)
def test_what_is_answered_is_what_the_document_says(
    operation: Operation, source: Any, client: Any
) -> None:
    (source.directory / "worker-0").write_text("a file")
    for state in sample_states():
        source.current = state
        for record in state.tasks.values():
            place = record.agent_id, record.task_id
            source.files[*place, "stdout"] = b"step 1\n"
            source.files[*place, "lost"] = AgentUnreachable("no answer in time")
        paths, bodies = list(paths_of(operation, state)), BODIES[operation.body]
        asked = [*((path, bodies[0]) for path in paths), *((paths[0], b) for b in bodies[1:])]
        for path, body in asked:
            answer = client.request(operation.method, path, content=body, follow_redirects=False)
            media_type = answer.headers.get("content-type", "").partition(";")[0]
            answered(operation, answer.status_code, answer.text, media_type)


def test_without_a_state_the_answer_is_503(client: Any) -> None:
    answered_to = set()
    for operation in OPERATIONS:
        answer = client.request(operation.method, re.sub(r"\{\w+\}", "x", operation.path))
        if (answer.status_code, "retry-after" in answer.headers) != (503, True):
            answered_to.add(operation.id)
    without_state = {operation.id for operation in OPERATIONS if not operation.needs_state}
    assert answered_to == without_state == {"health", "artifact", "openapi"}


def test_without_the_token_only_what_is_open_is_answered(source: Any, client_of: Any) -> None:
    source.current = running()
    client = client_of(token=TOKEN)
    answered_to = set()
    for operation in OPERATIONS:
        path = re.sub(r"\{\w+\}", "worker-0", operation.path)
        answer = client.request(operation.method, path, follow_redirects=False)
        if answer.status_code != 401:
            answered_to.add(operation.id)
    open_to_all = {operation.id for operation in OPERATIONS if operation.is_open}
    assert answered_to == open_to_all == {"health", "artifact"}
    assert source.events == []


def test_the_document_is_served_before_the_state_is_there(client: Any) -> None:
    answer = client.get("/v1/openapi.json")
    assert (answer.status_code, answer.json()) == (200, DOCUMENT)


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/nothing"), ("DELETE", "/v1/plans")])
def test_an_unknown_path_is_answered_as_the_document_says(
    client: Any, method: str, path: str
) -> None:
    answer = client.request(method, path)
    schema = DOCUMENT["components"]["schemas"]["UnknownPath"]
    jsonschema.Draft202012Validator(schema).validate(answer.json())
    assert answer.status_code in (404, 405)


def test_tokens_are_compared_in_constant_time(
    source: Any, client_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return False

    monkeypatch.setattr(hmac, "compare_digest", compare)
    headers = {"authorization": f"Bearer {TOKEN}"}
    answer = client_of(token=TOKEN).get("/v1/plans", headers=headers)
    assert (answer.status_code, compared) == (401, [(TOKEN.encode(), TOKEN.encode())])
