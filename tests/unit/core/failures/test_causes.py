"""What a task's end means: one row of the tables a test."""

import re
from pathlib import Path

import pytest

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.failures import causes
from dcos_tensorflow.core.failures.causes import UNCHARGED_REASONS, cause_of, describe, exit_code
from dcos_tensorflow.core.failures.charges import retries_used
from dcos_tensorflow.core.model.job import Incident, JobState
from dcos_tensorflow.core.model.task import TRANSITIONS, TaskRecord, TaskState, mesos_task_id
from dcos_tensorflow.core.restarts.backoff import backoff_seconds, spread
from dcos_tensorflow.core.spec.service_spec import RetrySpec, TaskRole


def ended(state=TaskState.FAILED, message="", reason="", **changes):
    return TaskRecord(
        name="worker-0",
        role=TaskRole.WORKER,
        index=0,
        attempt=1,
        task_id="s__worker-0__1",
        state=state,
        epoch=1,
        agent_id="S0",
        hostname="h",
        address="127.0.0.1",
        ports=(1, 2),
        launched_at=0.0,
        changed_at=0.0,
        message=message,
        reason=reason,
        **changes,
    )


def process_ended(exit_class, code):
    """Return the record of a process that failed while its container stays."""
    return ended(TaskState.RUNNING, failed_start=1, exit_class=exit_class, exit_code=code)


@pytest.mark.parametrize("reason", sorted(UNCHARGED_REASONS))
def test_these_mesos_reasons_never_cost_a_retry(reason):
    assert not cause_of(ended(message="Command exited with status 1", reason=reason)).charged


@pytest.mark.parametrize(
    ("record", "kind", "charged", "permanent"),
    [
        (ended(message="Command exited with status 1"), "failed", True, False),
        (ended(message="Command exited with status 42"), "checkpointed and left", False, False),
        (ended(message="Command exited with status 130"), "interrupted", False, False),
        (ended(message="Command exited with status 137"), "interrupted", False, False),
        (ended(message="Command exited with status 138"), "interrupted", False, False),
        (ended(message="Command exited with status 143"), "interrupted", False, False),
        (ended(message="Command exited with status 134"), "failed", True, False),
        (ended(message="Command terminated with signal Killed"), "interrupted", False, False),
        (ended(reason="REASON_CONTAINER_LIMITATION_MEMORY"), "out of memory", True, False),
        (
            ended(
                message="Command exited with status 137",
                reason="REASON_CONTAINER_LIMITATION_MEMORY",
            ),
            "out of memory",
            True,
            False,
        ),
        (ended(TaskState.UNREACHABLE), "agent unreachable", False, False),
        (ended(TaskState.KILLED), "interrupted", False, False),
        (ended(TaskState.LOST, reason="REASON_TASK_INVALID"), "launch refused", True, True),
        (
            ended(
                TaskState.LOST,
                reason="REASON_TASK_INVALID",
                message="Total resources cpus:999 required by task and its executor is more than"
                " available cpus:4",
            ),
            "launch refused",
            True,
            False,
        ),
        (ended(TaskState.LOST, reason="REASON_RESOURCES_UNKNOWN"), "launch refused", True, False),
        (ended(TaskState.LOST, reason="REASON_INVALID_OFFERS"), "interrupted", False, False),
        (ended(TaskState.LOST, reason="REASON_AGENT_REMOVED"), "interrupted", False, False),
        (ended(TaskState.LOST), "lost", False, False),
        (
            ended(message=f"Command exited with status {contract.EXIT_JOB_UNUSABLE}"),
            "job unusable",
            True,
            True,
        ),
        (
            ended(message=f"Command exited with status {contract.EXIT_PORT_TAKEN}"),
            "port taken",
            False,
            False,
        ),
    ],
)
def test_the_class_of_a_containers_end(record, kind, charged, permanent):
    cause = cause_of(record)
    assert (cause.kind, cause.charged, cause.permanent) == (kind, charged, permanent)


@pytest.mark.parametrize(
    ("exit_class", "code", "kind", "charged"),
    [
        ("peer_lost", 1, "peer lost", False),
        ("out_of_memory", 137, "out of memory", True),
        ("interrupted", 137, "interrupted", False),
        ("interrupted", 143, "interrupted", False),
        ("checkpointed", 42, "checkpointed and left", False),
        ("frozen", 137, "frozen", False),
        ("stalled", 137, "stalled", True),
        ("checkpoint_mismatch", None, "checkpoints differ", True),
        ("user_error", 1, "failed", True),
        ("user_error", 42, "checkpointed and left", False),
        ("no_such_class", 1, "failed", True),
        ("", None, "failed", True),
    ],
)
def test_the_class_of_a_process_end_in_a_container_that_stays(exit_class, code, kind, charged):
    cause = cause_of(process_ended(exit_class, code))
    assert (cause.kind, cause.charged) == (kind, charged)


def test_every_class_that_a_runner_may_name_is_known_or_the_users_error():
    named = {v for k, v in vars(contract).items() if k.startswith("EXIT_CLASS_")}
    assert set(causes.EXIT_CLASSES) <= named


def test_a_failed_start_tells_its_own_summary():
    end = {"failed_start": 1, "exit_code": 1, "exit_summary": "ValueError: no data"}
    record = ended(TaskState.RUNNING, **end)
    assert describe(record) == "worker-0 failed on h with exit code 1: ValueError: no data"


def test_the_exit_code_is_read_from_the_executors_message():
    assert exit_code("Command exited with status 17") == 17
    assert exit_code("Command terminated with signal Killed") is None


def incident(at, charged=True):
    return Incident("worker-0", "t", at, "failed", "it failed", charged)


def test_only_charged_incidents_inside_the_window_count():
    job = JobState(incidents=(incident(10.0), incident(900.0), incident(950.0, charged=False)))
    assert retries_used(job, RetrySpec(window_seconds=200), now=1000.0) == 1


def test_back_off_doubles_and_has_a_ceiling():
    retry = RetrySpec(initial_backoff_seconds=2, backoff_factor=2, max_backoff_seconds=10)
    waits = [backoff_seconds(retry, failures, "s") for failures in (0, 1, 2, 3, 9)]
    assert waits == [w * spread("s") for w in (0, 2, 4, 8, 10)]


def test_jitter_stays_within_a_quarter():
    assert all(0.75 <= spread(str(n)) < 1.25 for n in range(1000))


def test_no_terminal_state_is_ever_left():
    for (before, _), why in TRANSITIONS.items():
        assert not ended(before).terminal
        assert why


def test_a_group_name_makes_a_task_id_without_slashes():
    assert mesos_task_id("/team/mnist", "ps-0", "1") == "team.mnist__ps-0__1"


def test_every_word_that_the_code_classes_by_is_listed():
    rooms = Path(causes.__file__).parent
    text = "".join(file.read_text() for file in rooms.glob("*.py"))
    words = set(re.findall(r'Cause\(\s*"([^"]+)"', text))
    named = {
        getattr(causes, name) for name in re.findall(r"Cause\(\s*(?:causes\.)?([A-Z_]+)", text)
    }
    assert words | named <= set(causes.KINDS)
