"""Defects of stock pymesos that destroy running work, and their absence in the hardened driver."""

import pytest

from scripted_master import BOTH

pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

UPDATE = {
    "type": "UPDATE",
    "update": {
        "status": {
            "task_id": {"value": "t"},
            "agent_id": {"value": "a"},
            "state": "TASK_RUNNING",
            "uuid": "dXVpZA==",
        }
    },
}


@BOTH
def test_1_an_exception_in_a_callback_kills_all_tasks_with_stock_only(
    kind, master, stage, eventually
):
    driver = stage.make(kind, master.address)

    def fail(*_args):
        raise RuntimeError("a bug in the scheduler")

    driver.sched.on["statusUpdate"] = fail
    master.event(UPDATE)
    if kind == "stock":
        eventually(lambda: master.calls("TEARDOWN"))
        assert stage.interrupts
    else:
        master.event(UPDATE)
        eventually(lambda: len(driver.sched.of("statusUpdate")) == 2)
        assert driver.connected
        assert not master.calls("TEARDOWN")


@BOTH
@pytest.mark.parametrize("ending", ["stop", "abort"])
def test_2_and_3_stop_and_abort_kill_all_tasks_with_stock_only(
    kind, ending, master, stage, eventually
):
    driver = stage.make(kind, master.address, failover=True)
    eventually(lambda: driver.sched.of("registered"))
    getattr(driver, ending)()
    driver.join()
    assert bool(master.calls("TEARDOWN")) is (kind == "stock")
    assert (driver.framework_id is None) is (kind == "stock")


@BOTH
@pytest.mark.parametrize("status", [503, 400, 403])
def test_4_a_refused_acknowledgement_kills_all_tasks_with_stock_only(
    kind, status, master, stage, eventually
):
    master.on_call = lambda exchange: exchange.respond(
        status if exchange.request.call == "ACKNOWLEDGE" else 202
    )
    options = {"implicit_acknowledgements": True} if kind == "stock" else {}
    driver = stage.make(kind, master.address, **options)
    if kind == "hardened":
        driver.sched.on["statusUpdate"] = lambda made, status: made.acknowledgeStatusUpdate(status)
    master.event(UPDATE)
    eventually(lambda: master.calls("ACKNOWLEDGE"))
    if kind == "stock":
        eventually(lambda: driver.aborted and master.calls("TEARDOWN"))
    else:
        master.event(UPDATE)
        eventually(lambda: len(master.calls("ACKNOWLEDGE")) == 2)
        assert driver.connected


@BOTH
def test_5_a_failure_event_without_status_kills_all_tasks_with_stock_only(
    kind, master, stage, eventually
):
    driver = stage.make(kind, master.address)
    failure = {"agent_id": {"value": "a"}, "executor_id": {"value": "e"}}
    master.event({"type": "FAILURE", "failure": failure})
    if kind == "stock":
        eventually(lambda: driver.aborted and master.calls("TEARDOWN"))
    else:
        eventually(lambda: driver.sched.of("executorLost"))
        assert driver.sched.of("executorLost") == [({"value": "e"}, {"value": "a"}, None)]


def test_only_an_explicit_teardown_tears_down(master, stage, eventually):
    driver = stage.hardened(master.address)
    eventually(lambda: driver.sched.of("registered"))
    driver.teardown()
    driver.join()
    assert len(master.calls("TEARDOWN")) == 1
    assert len(master.subscribes) == 1
    assert driver.framework_id is None
