"""Which tasks are started and killed, and when."""

from dataclasses import replace
from typing import Any

import pytest

from local_dcos.marathon.app_definition import App, app_of, normalised
from local_dcos.marathon.app_records import KILLING, RUNNING, AppRecord, TaskRecord
from local_dcos.marathon.app_schedule import Decision, after_failure, decide

NOW = 1000.0
CHECK = {"protocol": "TCP", "portIndex": 0}
STOP_FIRST = {"minimumHealthCapacity": 0, "maximumOverCapacity": 0}


def app_and_record(**definition: Any) -> tuple[App, AppRecord]:
    found = normalised({"id": "a", "cmd": "sleep 1", **definition})
    return app_of(found), AppRecord(found, "v2", "v2")


def task(name: str, version: str = "v2", **more: Any) -> TaskRecord:
    values: dict[str, Any] = {"state": RUNNING, "staged_at": 1.0, **more}
    return TaskRecord(name, "/a", version, **values)


def test_a_missing_task_is_launched() -> None:
    assert decide(*app_and_record(), [], NOW) == Decision(launch=1)


def test_after_a_failure_the_launch_waits() -> None:
    app, record = app_and_record()
    waiting = replace(record, not_before=NOW + 5)
    assert decide(app, waiting, [], NOW) == Decision(wake_at=NOW + 5)


def test_an_app_with_all_its_tasks_is_deployed() -> None:
    assert decide(*app_and_record(), [task("t")], NOW) == Decision(complete=True)


def test_an_app_with_checks_is_deployed_only_when_healthy() -> None:
    app, record = app_and_record(healthChecks=[CHECK])
    assert not decide(app, record, [task("t")], NOW).complete
    assert decide(app, record, [task("t", healthy=True)], NOW).complete


def test_a_single_instance_is_stopped_before_the_new_one_starts() -> None:
    app, record = app_and_record(upgradeStrategy=STOP_FIRST)
    assert decide(app, record, [task("t", "v1")], NOW) == Decision(kill=("t",))
    assert decide(app, record, [task("t", "v1", state=KILLING)], NOW) == Decision()
    assert decide(app, record, [], NOW) == Decision(launch=1)


def test_by_default_the_new_task_is_up_before_the_old_one_goes() -> None:
    app, record = app_and_record()
    assert decide(app, record, [task("old", "v1")], NOW) == Decision(launch=1)
    both = [task("old", "v1"), task("new")]
    assert decide(app, record, both, NOW) == Decision(kill=("old",))


def test_a_strategy_without_any_room_still_moves() -> None:
    strategy = {"minimumHealthCapacity": 1, "maximumOverCapacity": 0}
    app, record = app_and_record(upgradeStrategy=strategy)
    assert decide(app, record, [task("old", "v1")], NOW).kill == ("old",)


def test_of_too_many_tasks_the_youngest_go() -> None:
    tasks = [task("first", staged_at=1.0), task("second", staged_at=2.0)]
    assert decide(*app_and_record(), tasks, NOW) == Decision(kill=("second",))


def test_a_deleted_app_is_complete_when_its_tasks_are_gone() -> None:
    app, record = app_and_record()
    deleted = replace(record, deleting=True)
    assert decide(app, deleted, [task("t")], NOW) == Decision(kill=("t",))
    assert decide(app, deleted, [], NOW) == Decision(complete=True)


def test_each_failure_waits_longer_up_to_the_limit() -> None:
    app, record = app_and_record(backoffSeconds=2, backoffFactor=3, maxLaunchDelaySeconds=10)
    delays = []
    for _ in range(4):
        record = after_failure(record, app, 0.0, NOW)
        delays.append(record.delay)
    assert delays == [2, 6, 10, 10]


def test_a_task_that_ran_long_begins_with_the_first_delay_again() -> None:
    app, record = app_and_record(backoffSeconds=2)
    assert after_failure(replace(record, delay=100.0), app, 3600.0, NOW).delay == 2


@pytest.mark.parametrize("target", [0, 1, 3])
def test_whatever_the_strategy_an_update_comes_to_its_end(target: int) -> None:
    for minimum in (0, 0.5, 1):
        for over in (0, 0.5, 1):
            strategy = {"minimumHealthCapacity": minimum, "maximumOverCapacity": over}
            app, record = app_and_record(instances=target, upgradeStrategy=strategy)
            tasks = [task(f"old-{index}", "v1") for index in range(3)]
            for turn in range(20):
                decision = decide(app, record, tasks, NOW)
                tasks = [one for one in tasks if one.task_id not in decision.kill]
                tasks += [task(f"new-{turn}-{index}") for index in range(decision.launch)]
            assert decide(app, record, tasks, NOW) == Decision(complete=True)
