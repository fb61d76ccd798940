"""Calls: what is repeated, what is ambiguous, and whose connection is used."""

import threading

import pytest

from dcos_tensorflow.mesos.calls import CallError, CallUnanswered


@pytest.fixture
def driver(master, stage):
    """A subscribed driver."""
    made = stage.registered(master.address, timeout=20.0)
    return made


def accept(driver):
    driver.acceptOffers([{"value": "o"}], [{"type": "LAUNCH"}])


def close_without_answer(exchange):
    exchange.close()


def test_an_accept_is_not_repeated_after_it_was_written(master, driver):
    master.on_call = close_without_answer
    with pytest.raises(CallUnanswered) as caught:
        accept(driver)
    assert caught.value.ambiguous
    assert len(master.calls("ACCEPT")) == 1


def test_a_call_that_can_do_no_harm_is_repeated_once(master, driver):
    def second_time_lucky(exchange):
        if len(master.calls("REVIVE")) == 1:
            exchange.close()
        else:
            exchange.respond()

    master.on_call = second_time_lucky
    driver.reviveOffers()
    assert len(master.calls("REVIVE")) == 2


def test_a_call_is_not_repeated_for_ever(master, driver):
    master.on_call = close_without_answer
    with pytest.raises(CallUnanswered):
        driver.reviveOffers()
    assert len(master.calls("REVIVE")) == 2


def test_a_call_that_timed_out_is_not_repeated(master, driver, eventually):
    driver._timeout = 0.5
    master.on_call = lambda exchange: exchange.hold()
    with pytest.raises(CallUnanswered) as caught:
        driver.reviveOffers()
    assert caught.value.ambiguous
    eventually(lambda: master.calls("REVIVE"))
    assert len(master.calls("REVIVE")) == 1


@pytest.mark.parametrize(
    ("status", "ambiguous"), [(400, False), (403, False), (503, False), (502, True), (504, True)]
)
def test_an_accept_is_ambiguous_when_a_proxy_gave_up_on_the_master(
    status, ambiguous, master, driver
):
    master.on_call = lambda exchange: exchange.respond(status)
    with pytest.raises(CallError) as caught:
        accept(driver)
    assert caught.value.ambiguous is ambiguous


def test_an_accept_that_could_not_be_dialled_is_not_ambiguous(master, driver, monkeypatch):
    def refuse(*_args):
        raise ConnectionRefusedError("no server there")

    monkeypatch.setattr("dcos_tensorflow.mesos.connection.HttpConnection.connect", refuse)
    with pytest.raises(CallUnanswered) as caught:
        accept(driver)
    assert not caught.value.ambiguous
    assert not master.calls("ACCEPT")


def test_a_thread_keeps_its_connection_and_each_thread_has_its_own(master, driver, stage):
    before = master.connections
    for _ in range(3):
        driver.reviveOffers()
    assert master.connections == before + 1
    stage.apart(driver.reviveOffers).join()
    assert master.connections == before + 2


def test_connections_of_ended_threads_are_closed(master, driver, stage, eventually):
    for _ in range(3):
        stage.apart(driver.reviveOffers).join()
    driver.reviveOffers()
    eventually(lambda: master.closed_connections >= 3)


def test_a_slow_call_does_not_hold_up_another_thread(master, driver, stage, eventually):
    release = threading.Event()

    def slow_kill(exchange):
        if exchange.request.call == "KILL":
            release.wait(5)
        exchange.respond()

    master.on_call = slow_kill
    stage.apart(driver.killTask, {"value": "t"})
    eventually(lambda: master.calls("KILL"))
    driver.reviveOffers()
    assert master.calls("REVIVE")
    release.set()


def test_a_call_in_a_callback_works_and_so_does_stop(master, stage, eventually):
    driver = stage.hardened(master.address, start=False)

    def answer(driver, *_args):
        driver.reviveOffers()
        driver.stop()
        driver.join()

    driver.sched.on["registered"] = answer
    driver.start()
    eventually(lambda: driver.aborted)
    driver.join()
    assert master.calls("REVIVE")


def test_a_stopped_driver_can_be_started_again(master, driver, eventually):
    driver.stop()
    driver.join()
    driver.start()
    eventually(lambda: driver.sched.of("reregistered"))
    driver.reviveOffers()
    assert master.calls("REVIVE")
