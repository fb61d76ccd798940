"""A file or folder of a sandbox as an archive: what is in it, and what is left out."""

import io
import tarfile
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcos_tensorflow.api.tasks.archive import masked
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.spec.container_spec import TaskSecret
from dcos_tensorflow.mesos.agent_files import AgentUnreachable
from samples.states import a_state, running

COPY = "/v1/pod/worker-0/copy"
BYTES = bytes(range(256)) * 5


@pytest.fixture
def state() -> ServiceState:
    found = running()
    secret = TaskSecret("env:PASSWORD", file="keys/password")
    roles = tuple(replace(role, secrets=(secret,)) for role in found.spec.roles)
    return replace(found, spec=replace(found.spec, roles=roles))


@pytest.fixture
def client(source: Any, client_of: Any, state: ServiceState) -> Any:
    source.current = state
    record = state.tasks["worker-0"]
    for file, content in {
        "stdout": b"the word is hunter2-is-secret\n",
        "model/weights.bin": BYTES,
        "model/deep/empty": b"",
        "keys/password": b"hunter2-is-secret",
    }.items():
        source.files[record.agent_id, record.task_id, file] = content
    return client_of()


def copied(client: Any, path: str) -> dict[str, bytes | None]:
    answer = client.post(COPY, json={"path": path})
    assert answer.status_code == 200, answer.text
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as archive:
        return {
            member.name: file.read() if (file := archive.extractfile(member)) else None
            for member in archive
        }


def test_a_file_comes_as_it_is(client: Any) -> None:
    assert copied(client, "model/weights.bin") == {"weights.bin": BYTES}


def test_a_folder_comes_with_all_below_it(client: Any) -> None:
    assert copied(client, "model/") == {
        "model": None,
        "model/weights.bin": BYTES,
        "model/deep": None,
        "model/deep/empty": b"",
    }


def test_the_whole_sandbox_comes_without_the_files_of_secrets(client: Any) -> None:
    names = copied(client, ".").keys()
    assert {"worker-0/stdout", "worker-0/model/weights.bin"} <= names
    assert "worker-0/keys/password" not in names


def test_the_text_of_a_secret_is_written_over(
    source: Any, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "secret_texts", lambda: frozenset({"hunter2-is-secret"}))
    stars = b"*" * len("hunter2-is-secret")
    assert copied(client, "stdout") == {"stdout": b"the word is " + stars + b"\n"}


@given(st.lists(st.binary(max_size=6), max_size=12))
def test_a_secret_is_found_wherever_the_parts_end(parts: list[bytes]) -> None:
    whole = b"".join([*parts, b"a-secret", *parts])
    cut = [whole[at : at + 3] for at in range(0, len(whole), 3)]
    shown = b"".join(masked(cut, [b"a-secret"]))
    assert (len(shown), b"a-secret" in shown) == (len(whole), False)


@pytest.mark.parametrize(
    ("path", "status"), [("keys/password", 403), ("../x", 400), ("no-such", 404), ("", 200)]
)
def test_what_may_not_be_copied_is_refused_before_anything_is_sent(
    client: Any, path: str, status: int
) -> None:
    assert client.post(COPY, json={"path": path}).status_code == status


def test_a_body_without_a_path_is_refused(client: Any) -> None:
    assert client.post(COPY, json={}).status_code == 400


def test_a_task_that_was_never_launched_has_nothing(source: Any, client: Any) -> None:
    source.current = a_state()
    answer = client.post(COPY, json={"path": "x"})
    assert (answer.status_code, answer.json()["message"]) == (404, "worker-0 was never launched")


def test_a_file_that_is_cut_meanwhile_ends_the_answer(
    source: Any, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "content", lambda *_: iter([b"less"]))
    with pytest.raises(AgentUnreachable, match="was cut while it was copied"):
        client.post(COPY, json={"path": "model/weights.bin"})
