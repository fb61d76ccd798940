"""The health numbers are the SDK's, and the HTTP status is the number."""

from typing import Any

import pytest

from dcos_tensorflow.core.model.job import JobPhase, Outcome, Verdict
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskState
from samples.states import a_record, a_state, changed, failed, gang, running, with_records

DEPLOYED = {"deployed": True}


@pytest.mark.parametrize(
    ("number", "state"),
    [
        pytest.param(318, a_state(registered=False), id="not registered"),
        pytest.param(204, a_state(), id="deploying, nothing placed"),
        pytest.param(202, a_state(JobPhase.STARTING, gang(TaskState.STAGING)), id="deploying"),
        pytest.param(208, a_state(JobPhase.BACKING_OFF), id="delayed"),
        pytest.param(200, running(), id="running"),
        pytest.param(
            203,
            a_state(JobPhase.PLACING, gang(TaskState.KILLED), job=DEPLOYED),
            id="recovery pending",
        ),
        pytest.param(205, a_state(JobPhase.STARTING, gang(), job=DEPLOYED), id="recovering"),
        pytest.param(208, a_state(JobPhase.BACKING_OFF, gang(), job=DEPLOYED), id="backing off"),
        pytest.param(206, failed(), id="job failed"),
        pytest.param(206, failed(deployed=True), id="job failed later"),
    ],
)
def test_the_status_is_the_number(ask: Any, number: int, state: ServiceState) -> None:
    assert ask("/v1/health", state).status_code == number


def test_it_is_initializing_while_the_state_is_not_loaded(client: Any) -> None:
    answer = client.get("/v1/health?verbose", follow_redirects=False)
    assert answer.status_code == 318
    assert answer.json() == {"value": 318, "reasons": ["the state is not loaded"]}


@pytest.mark.parametrize(
    ("number", "state"),
    [(204, a_state()), (205, a_state(JobPhase.STARTING, gang(), job=DEPLOYED))],
)
def test_statuses_that_http_gives_no_body_have_none(
    ask: Any, number: int, state: ServiceState
) -> None:
    answer = ask("/v1/health?verbose", state)
    assert (answer.status_code, answer.content) == (number, b"")


def test_reasons_are_given_when_asked_for(ask: Any) -> None:
    assert ask("/v1/health", running()).json() == {"value": 200}
    assert ask("/v1/health?verbose", running()).json() == {
        "value": 200,
        "reasons": ["all 3 tasks run"],
    }


def test_a_job_that_has_succeeded_is_healthy_without_a_master(ask: Any) -> None:
    verdict = Verdict(Outcome.SUCCEEDED, 0, "chief-0 finished with 0")
    state = a_state(JobPhase.DONE, job={"verdict": verdict}, registered=False)
    assert ask("/v1/health", state).status_code == 200


def test_a_sidecar_that_was_given_up_degrades_the_service(ask: Any) -> None:
    broken = a_record("tensorboard-0", TaskState.FAILED, message="no module", failures=3)
    state = with_records(running(), broken)
    answer = ask("/v1/health?verbose", state)
    assert answer.status_code == 206
    assert "no module" in answer.json()["reasons"][0]


def test_checkpoints_that_an_operator_must_make_possible_degrade_the_service(ask: Any) -> None:
    problem = {"kind": "no_bucket", "retryable": False, "summary": "no bucket", "hint": "make it"}
    task_id = running().tasks["worker-0"].task_id
    report = {"storage": {"checkpoints": {"state": "blocked", "problem": problem}}}
    state = changed(running(), reports={task_id: report})
    answer = ask("/v1/health?verbose", state)
    assert answer.status_code == 206
    assert answer.json()["reasons"] == [
        "worker-0: its checkpoints cannot be kept in S3: no bucket (make it)"
    ]
