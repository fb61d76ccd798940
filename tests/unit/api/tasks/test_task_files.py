"""Files of sandboxes over HTTP: what is given, in which parts, and what is refused."""

from dataclasses import replace
from typing import Any

import pytest

from dcos_tensorflow.api.tasks.files import MAX_BYTES
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.spec.container_spec import TaskSecret
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.mesos.agent_files import AgentUnreachable, SandboxNotFound
from samples.states import a_spec, a_state, running

STDOUT = "/v1/pod/worker-0/files/stdout"


@pytest.fixture
def state() -> ServiceState:
    return running()


def write(source: Any, state: ServiceState, content: Any, file: str = "stdout") -> None:
    record = state.tasks["worker-0"]
    source.files[record.agent_id, record.task_id, file] = content


def with_secret(spec: ServiceSpec, file: str) -> ServiceSpec:
    secret = TaskSecret("env:PASSWORD", file=file)
    return replace(spec, roles=tuple(replace(r, secrets=(secret,)) for r in spec.roles))


def test_a_file_is_given_with_its_size(ask: Any, source: Any, state: ServiceState) -> None:
    write(source, state, b"step 1\nstep 2\n")
    assert ask(STDOUT, state).json() == {
        "task_id": state.tasks["worker-0"].task_id,
        "file": "stdout",
        "offset": 0,
        "data": "step 1\nstep 2\n",
        "next_offset": 14,
        "size": 14,
    }


def test_it_is_given_from_the_offset_on(ask: Any, source: Any, state: ServiceState) -> None:
    write(source, state, b"step 1\nstep 2\n")
    found = ask(f"{STDOUT}?offset=7", state).json()
    assert (found["data"], found["next_offset"]) == ("step 2\n", 14)


def test_what_is_not_the_end_ends_with_a_whole_line(
    ask: Any, source: Any, state: ServiceState
) -> None:
    write(source, state, b"step 1\nstep 2\n")
    found = ask(f"{STDOUT}?length=10", state).json()
    assert (found["data"], found["next_offset"]) == ("step 1\n", 7)


def test_a_line_longer_than_a_part_is_given_in_parts(
    ask: Any, source: Any, state: ServiceState
) -> None:
    write(source, state, b"abcdefgh\n")
    assert ask(f"{STDOUT}?length=3", state).json()["next_offset"] == 3


def test_an_unfinished_line_at_the_end_is_given(ask: Any, source: Any, state: ServiceState) -> None:
    write(source, state, b"a\nepoch 1 ")
    assert ask(STDOUT, state).json()["data"] == "a\nepoch 1 "


def test_no_character_is_torn(ask: Any, source: Any, state: ServiceState) -> None:
    write(source, state, "aé".encode()[:2])
    found = ask(STDOUT, state).json()
    assert (found["data"], found["next_offset"]) == ("a", 1)


def test_what_is_no_utf_8_is_replaced_and_counted_in_bytes(
    ask: Any, source: Any, state: ServiceState
) -> None:
    write(source, state, b"\xff\xfe\n")
    found = ask(STDOUT, state).json()
    assert (found["data"], found["next_offset"]) == ("\ufffd\ufffd\n", 3)


def test_no_more_than_a_page_is_given(ask: Any, source: Any, state: ServiceState) -> None:
    write(source, state, b"x" * (MAX_BYTES + 9))
    assert ask(f"{STDOUT}?length=9999999", state).json()["next_offset"] == MAX_BYTES


def test_beyond_the_end_there_is_nothing(ask: Any, source: Any, state: ServiceState) -> None:
    write(source, state, b"a\n")
    found = ask(f"{STDOUT}?offset=50", state).json()
    assert (found["data"], found["next_offset"], found["size"]) == ("", 50, 2)


def test_secrets_in_it_are_masked(ask: Any, source: Any, state: ServiceState) -> None:
    write(source, state, b"connecting to s3://user:pass@host with password=hunter2\n")
    found = ask(STDOUT, state).json()
    assert "hunter2" not in found["data"]
    assert "user:pass" not in found["data"]


def test_files_in_folders_are_given(ask: Any, source: Any, state: ServiceState) -> None:
    write(source, state, b"x\n", "logs/train.log")
    assert ask("/v1/pod/worker-0/files/logs/train.log", state).json()["data"] == "x\n"


def test_an_earlier_attempt_is_found_by_its_id_and_agent(
    ask: Any, source: Any, state: ServiceState
) -> None:
    earlier = state.tasks["worker-0"].task_id.rpartition("__")[0] + "__earlier"
    source.files["S9", earlier, "stdout"] = b"before\n"
    found = ask(f"{STDOUT}?task_id={earlier}&agent_id=S9", state).json()
    assert (found["data"], found["task_id"]) == ("before\n", earlier)


@pytest.mark.parametrize(
    "query",
    [
        "offset=-1",
        "offset=x",
        "offset=٣",
        "length=-5",
        "task_id=x",
        "agent_id=S1",
        "task_id=other__worker-0__1&agent_id=S1",
        "task_id=tensorflow__worker-1__1&agent_id=S1",
    ],
)
def test_nonsense_is_refused(ask: Any, source: Any, state: ServiceState, query: str) -> None:
    write(source, state, b"a\n")
    assert ask(f"{STDOUT}?{query}", state).status_code == 400


@pytest.mark.parametrize(
    "file", ["%2e%2e/other/stdout", "a/%2e%2e/b", "%2Fetc/passwd", "a//b", "a%00b", "", "x" * 2000]
)
def test_a_way_out_of_the_sandbox_is_refused(ask: Any, state: ServiceState, file: str) -> None:
    assert ask(f"/v1/pod/worker-0/files/{file}", state).status_code == 400


@pytest.mark.parametrize(
    "file", ["keys/password", "keys/password/below", ".secrets/keytab", ".ssl/scheduler.key"]
)
def test_a_file_with_a_secret_is_refused(
    ask: Any, source: Any, state: ServiceState, file: str
) -> None:
    state = replace(state, spec=with_secret(state.spec, "./keys/password"))
    write(source, state, b"hunter2", file)
    answer = ask(f"/v1/pod/worker-0/files/{file}", state)
    assert (answer.status_code, "hunter2" in answer.text) == (403, False)


def test_a_secret_of_a_configuration_before_is_refused_too(
    ask: Any, source: Any, state: ServiceState
) -> None:
    before = with_secret(a_spec(), "old-password")
    source.stored = {configuration_id(before): before}
    assert ask("/v1/pod/worker-0/files/old-password", state).status_code == 403


def test_an_unknown_task_is_the_sdks_404(ask: Any, state: ServiceState) -> None:
    answer = ask("/v1/pod/worker-99/files/stdout", state)
    assert (answer.status_code, answer.text) == (404, "Element not found")


def test_a_task_that_was_never_launched_says_so(ask: Any) -> None:
    answer = ask(STDOUT, a_state())
    assert (answer.status_code, answer.json()["message"]) == (404, "worker-0 was never launched")


@pytest.mark.parametrize(
    ("failure", "status"),
    [(AgentUnreachable("agent S1: no answer in time"), 503), (SandboxNotFound("no sandbox"), 404)],
)
def test_a_file_that_cannot_be_read_says_why(
    ask: Any, source: Any, state: ServiceState, failure: Exception, status: int
) -> None:
    write(source, state, failure)
    answer = ask(STDOUT, state)
    assert (answer.status_code, answer.json()["message"]) == (status, str(failure))


@pytest.mark.parametrize("offset", range(0, 22, 3))
def test_a_secret_is_masked_wherever_the_part_begins(
    ask: Any, source: Any, state: ServiceState, offset: int
) -> None:
    write(source, state, b"password=hunter22345\nfine\n")
    data = ask(f"{STDOUT}?offset={offset}", state).json()["data"]
    assert not any("hunter22345"[part : part + 3] in data for part in range(9))
    assert data.endswith("fine\n")


def test_a_secret_that_was_read_for_a_task_is_masked_in_what_it_prints(
    ask: Any, source: Any, state: ServiceState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "secret_texts", lambda: frozenset({"correct horse"}))
    write(source, state, b"the correct horse\n")
    assert ask(STDOUT, state).json()["data"] == "the <redacted>\n"
