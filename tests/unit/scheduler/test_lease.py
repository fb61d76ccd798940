"""The lease: orders are given only while no other scheduler can lead."""

import threading
import time

import pytest

from dcos_tensorflow.scheduler.lease import Lease
from dcos_tensorflow.state.errors import FencedOut, StateUnavailable
from waiting import eventually


class Store:
    """Confirms, or raises what the test says; each asking can be waited for."""

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.asked = threading.Semaphore(0)
        self.answers = threading.Event()
        self.answers.set()
        self.held_up = threading.Event()
        self.now = 100.0

    def confirm(self) -> None:
        self.asked.release()
        if not self.answers.is_set():
            self.held_up.set()
            self.answers.wait(10)
        if self.failure is not None:
            raise self.failure

    def clock(self) -> float:
        return self.now


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def lease(store):
    lease = Lease(store.confirm, 0.04, store.clock)
    yield lease
    store.answers.set()
    lease.stop()


def ask_again(store, times=2):
    """Wait until it was asked so often again, so that one answer at least is a new one."""
    for _ in range(times):
        assert store.asked.acquire(timeout=10)


def test_the_time_in_which_the_machine_slept_counts(store, monkeypatch):
    lease = Lease(store.confirm, 1000.0)
    lease.start()
    eventually(lease.holds)
    store.answers.clear()
    awake = time.clock_gettime
    slept = {time.CLOCK_BOOTTIME: 3600.0}
    monkeypatch.setattr(time, "clock_gettime", lambda of: awake(of) + slept.get(of, 0.0))
    assert not lease.holds()
    store.answers.set()
    lease.stop()


def test_it_does_not_hold_before_it_was_confirmed(lease):
    assert not lease.holds()


def test_it_holds_once_it_was_confirmed(lease):
    lease.start()
    eventually(lease.holds)


def test_it_ends_by_itself_where_the_leader_is_not_known(lease, store):
    lease.start()
    eventually(lease.holds)
    store.failure = StateUnavailable("away")
    ask_again(store, 3)
    store.now += 0.03
    assert not lease.holds()
    store.failure = None
    eventually(lease.holds)


def test_it_counts_from_the_question_and_not_from_the_answer(lease, store):
    store.answers.clear()
    lease.start()
    assert store.asked.acquire(timeout=10)
    store.now += 0.03
    store.failure = StateUnavailable("away")
    first, store.failure = store.failure, None
    store.answers.set()
    ask_again(store, 1)
    store.failure = first
    store.now += 0.03
    ask_again(store, 3)
    assert not lease.holds()


def test_it_never_holds_again_once_another_leads(lease, store):
    lease.start()
    eventually(lease.holds)
    store.failure = FencedOut("another leads")
    eventually(lambda: not lease.holds())
    store.failure = None
    eventually(lambda: not lease._thread.is_alive())
    assert not lease.holds()


def test_it_does_not_hold_after_a_stop(lease):
    lease.start()
    eventually(lease.holds)
    lease.stop()
    assert not lease.holds()


def test_a_confirmation_that_comes_during_a_stop_is_passed_over(lease, store):
    lease.start()
    eventually(lease.holds)
    store.answers.clear()
    assert store.held_up.wait(10)
    stopping = threading.Thread(target=lease.stop, daemon=True)
    stopping.start()
    eventually(lambda: not lease.holds())
    store.answers.set()
    stopping.join(20)
    assert not stopping.is_alive()
    assert not lease.holds()
