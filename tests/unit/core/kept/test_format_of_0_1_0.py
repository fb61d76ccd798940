"""What the first release has stored is read, and becomes the present format, with nothing lost."""

import json
from pathlib import Path

import pytest

from dcos_tensorflow.core.kept import paths
from dcos_tensorflow.core.kept.restore import StateUnreadable, is_uninstalling, restore, upgrade
from dcos_tensorflow.core.model.job import COLLATERAL_NAMES, JobPhase
from dcos_tensorflow.core.model.service_state import LaunchSettings, ServiceState
from dcos_tensorflow.core.model.task import TaskState

#: State stores of services that release 0.1.0 ran, by what was going on in each.
STORES: dict[str, dict[str, str]] = json.loads(
    (Path(__file__).parents[1] / "golden" / "state_of_0_1_0.json").read_text()
)
LATER = 2_000_000_000.0


def values(name: str) -> dict[str, bytes]:
    return {path: text.encode() for path, text in STORES[name].items()}


def restored(name: str, now: float = LATER) -> ServiceState:
    state = restore(values(name), LaunchSettings(), now)
    assert state is not None
    return state


def old_job(name: str) -> dict[str, object]:
    job: dict[str, object] = json.loads(STORES[name]["Properties/job"])
    return job


def applied(before: dict[str, bytes], name: str) -> dict[str, bytes]:
    after = dict(before)
    for write in upgrade(values(name))[1]:
        if write.value is None:
            del after[write.path]
        else:
            after[write.path] = write.value
    return after


@pytest.mark.parametrize("name", STORES)
def test_every_task_is_as_it_was(name: str) -> None:
    state = restored(name)
    for task, record in state.tasks.items():
        info = json.loads(STORES[name][f"Tasks/{task}/TaskInfo"])
        status = json.loads(STORES[name][f"Tasks/{task}/TaskStatus"])
        assert (record.task_id, record.agent_id) == (info["task_id"], info["agent_id"])
        assert (str(record.state), record.start) == (status["state"], status["start"])


@pytest.mark.parametrize("name", STORES)
def test_the_job_stands_where_it_stood(name: str) -> None:
    state, old = restored(name), old_job(name)
    assert str(state.job.phase) == old["phase"]
    assert state.job.why == old["why"]
    assert state.attempt == old["attempt"]
    assert list(state.job.restart.members) == old["restarting"]
    assert list(state.job.membership.absent) == old["absent"]
    assert len(state.job.incidents) == len(old["incidents"])  # type: ignore[arg-type]


def test_the_cluster_spec_is_as_it_was() -> None:
    epoch = restored("running").epoch
    assert epoch is not None
    assert epoch.addresses == json.loads(STORES["running"]["Epoch"])["addresses"]


def test_what_an_operator_has_paused_stays_so() -> None:
    assert restored("agent lost").controls.paused_tasks == ("worker-1",)


def test_attempts_that_were_given_up_are_not_forgotten() -> None:
    assert set(restored("agent lost").abandoned) == set(
        json.loads(STORES["agent lost"]["Properties/abandoned"])
    )


def test_an_uninstall_goes_on() -> None:
    assert is_uninstalling(values("uninstalling"))
    state = restored("uninstalling")
    assert state.uninstall.asked
    assert state.job.phase is JobPhase.ENDING


@pytest.mark.parametrize("name", STORES)
def test_what_is_written_once_is_the_present_format(name: str) -> None:
    after = applied(values(name), name)
    assert upgrade(after)[1] == ()
    assert restore(after, LaunchSettings(), LATER) == restored(name)
    assert not {"Properties/job", "Epoch"} & after.keys()


def test_a_crash_in_the_middle_of_it_loses_nothing() -> None:
    before = values("restarting")
    writes = upgrade(before)[1]
    for number in range(len(writes)):
        half = dict(before)
        for write in writes[:number]:
            if write.value is None:
                del half[write.path]
            else:
                half[write.path] = write.value
        assert restore(half, LaunchSettings(), LATER) == restored("restarting")


def test_a_long_list_of_collateral_becomes_its_first_names_and_a_number() -> None:
    stored, job = values("restarting"), old_job("restarting")
    job["incidents"][0]["collateral"] = [f"worker-{n}" for n in range(2000)]  # type: ignore[index]
    stored["Properties/job"] = json.dumps(job).encode()
    state = restore(stored, LaunchSettings(), LATER)
    assert state is not None
    incident = state.job.incidents[0]
    assert len(incident.collateral) == COLLATERAL_NAMES
    assert len(incident.collateral) + incident.more_collateral == 2000


def test_a_record_that_cannot_be_read_is_named() -> None:
    stored = values("running") | {"Properties/job": b"{"}
    with pytest.raises(StateUnreadable, match="Properties/job"):
        restore(stored, LaunchSettings(), LATER)


def test_times_that_lie_ahead_are_taken_for_now() -> None:
    now = 5.0
    state = restored("restarting", now)
    records = state.tasks.values()
    assert max(max(r.changed_at, r.launched_at, r.ordered_at, r.killed_at) for r in records) <= now
    assert max(i.at for i in state.job.incidents) <= now
    assert state.job.phase_since <= now
    limit = state.spec.retry.max_backoff_seconds
    assert state.job.restart.due_at <= now + 2 * limit


def test_a_running_service_has_its_tasks_live() -> None:
    assert {r.state for r in restored("running").live_tasks} == {TaskState.RUNNING}
    assert paths.job("main") in applied(values("running"), "running")
