"""What tasks say is without the secrets that the scheduler has read."""

from dcos_tensorflow.core.model.events import EvidenceFound, TaskUpdate
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.scheduler.secrets.masking import REDACTED, Masking

heard = Masking(lambda: ["hunter2", "hunter2-and-more", "short"])


def test_a_report_is_masked_in_all_its_texts() -> None:
    report = {"state": "failed", "failure": {"summary": "no such user: hunter2"}, "start": 1}
    assert heard.value(report) == {
        "state": "failed",
        "failure": {"summary": f"no such user: {REDACTED}"},
        "start": 1,
    }


def test_what_a_sandbox_tells_of_an_end_is_masked() -> None:
    told = {"result": {"hunter2": [1]}, "progress": {"metrics": {"hunter2": 1}}}
    found = EvidenceFound("t", "hunter2 is wrong", ("a", "b hunter2"), **told)
    masked = {"result": {REDACTED: [1]}, "progress": {"metrics": {REDACTED: 1}}}
    assert heard.event(found) == EvidenceFound(
        "t", f"{REDACTED} is wrong", ("a", f"b {REDACTED}"), **masked
    )


def test_the_message_of_an_update_is_masked() -> None:
    update = TaskUpdate("t", TaskState.FAILED, message="exited: hunter2")
    assert heard.event(update) == TaskUpdate("t", TaskState.FAILED, message=f"exited: {REDACTED}")


def test_the_longest_of_two_secrets_is_masked_as_a_whole() -> None:
    assert heard.value("hunter2-and-more") == REDACTED


def test_a_short_secret_is_a_word_like_others() -> None:
    assert heard.value("a short text") == "a short text"
