"""What destroys running work with stock pymesos does not with our driver."""

import pytest

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


def test_1_an_exception_in_a_callback_kills_no_task(master, stage, eventually):
    driver = stage.hardened(master.address)

    def fail(*_args):
        raise RuntimeError("a bug in the scheduler")

    driver.sched.on["statusUpdate"] = fail
    master.event(UPDATE)
    master.event(UPDATE)
    eventually(lambda: len(driver.sched.of("statusUpdate")) == 2)
    assert driver.connected
    assert not master.calls("TEARDOWN")


@pytest.mark.parametrize("ending", ["stop", "abort"])
def test_2_and_3_stop_and_abort_kill_no_task(ending, master, stage):
    driver = stage.registered(master.address, failover=True)
    getattr(driver, ending)()
    driver.join()
    assert not master.calls("TEARDOWN")
    assert driver.framework_id is not None


@pytest.mark.parametrize("status", [503, 400, 403])
def test_4_a_refused_acknowledgement_kills_no_task(status, master, stage, eventually):
    master.on_call = lambda exchange: exchange.respond(
        status if exchange.request.call == "ACKNOWLEDGE" else 202
    )
    options = {}
    driver = stage.hardened(master.address, **options)
    driver.sched.on["statusUpdate"] = lambda made, status: made.acknowledgeStatusUpdate(status)
    master.event(UPDATE)
    eventually(lambda: master.calls("ACKNOWLEDGE"))
    master.event(UPDATE)
    eventually(lambda: len(master.calls("ACKNOWLEDGE")) == 2)
    assert driver.connected


def test_5_a_failure_event_without_status_kills_no_task(master, stage, eventually):
    driver = stage.hardened(master.address)
    failure = {"agent_id": {"value": "a"}, "executor_id": {"value": "e"}}
    master.event({"type": "FAILURE", "failure": failure})
    eventually(lambda: driver.sched.of("executorLost"))
    assert driver.sched.of("executorLost") == [({"value": "e"}, {"value": "a"}, None)]


def test_only_an_explicit_teardown_tears_down(master, stage):
    driver = stage.registered(master.address)
    driver.teardown()
    driver.join()
    assert len(master.calls("TEARDOWN")) == 1
    assert len(master.subscribes) == 1
    assert driver.framework_id is None
