"""How the peers of a lost member see its loss, by what became of its container."""

from dataclasses import replace

import pytest

from dcos_tensorflow.core.failures.failure import loss_of
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.restarts.restart_table import Loss
from dcos_tensorflow.core.spec.service_spec import TaskRole

RAN = TaskRecord(
    name="ps-0",
    role=TaskRole.PS,
    index=0,
    attempt=2,
    task_id="job__ps-0__u",
    state=TaskState.LOST,
    epoch=1,
    agent_id="S-1",
    hostname="h1",
    address="10.0.0.1",
    ports=(1, 2),
    launched_at=0.0,
    changed_at=0.0,
    start=1,
    held=False,
)


@pytest.mark.parametrize("state", [TaskState.LOST, TaskState.UNREACHABLE])
def test_what_ran_and_is_gone_closed_no_connection(state: TaskState) -> None:
    assert loss_of(replace(RAN, state=state)) is Loss.SILENT


@pytest.mark.parametrize("state", [TaskState.LOST, TaskState.UNREACHABLE])
def test_a_process_that_was_held_from_the_launch_on_was_never_connected_to(
    state: TaskState,
) -> None:
    assert loss_of(replace(RAN, state=state, held=True)) is Loss.PROCESS


def test_a_process_that_was_stopped_again_had_been_connected_to() -> None:
    assert loss_of(replace(RAN, held=True, start=2)) is Loss.SILENT


def test_a_launch_whose_offers_were_gone_never_ran() -> None:
    assert loss_of(replace(RAN, reason="REASON_INVALID_OFFERS")) is Loss.PROCESS
