"""What waits for a step: people first, Mesos in its order, of each runner the newest report."""

import threading

import pytest

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.scheduler.loop import inbox as inbox_module
from dcos_tensorflow.scheduler.loop.inbox import MOST_TAKEN, Inbox
from samples.states import an_offer


def report(number: int, step: int = 1) -> events.RunnerReported:
    return events.RunnerReported(f"job__worker-{number}__x", {"step": step})


def update(number: int, uuid: str = "") -> events.TaskUpdate:
    return events.TaskUpdate(f"job__worker-{number}__x", TaskState.RUNNING, uuid=uuid)


def taken(inbox: Inbox) -> list[events.Event]:
    return list(inbox.take(0.0))


def holding(*waiting: events.Event) -> Inbox:
    inbox = Inbox()
    for event in waiting:
        inbox.put(event)
    return inbox


def test_nothing_waits_at_first() -> None:
    assert taken(Inbox()) == []


def test_of_a_runners_reports_the_newest_counts() -> None:
    inbox = holding(report(1, step=1), report(2), report(1, step=2))
    assert taken(inbox) == [report(1, step=2), report(2)]


def test_what_people_ask_for_goes_before_everything_that_waits() -> None:
    told = [update(number) for number in range(MOST_TAKEN)]
    reports = [report(number) for number in range(MOST_TAKEN)]
    stop = events.StopRequested("enough")
    assert taken(holding(*told, *reports, stop))[0] == stop


def test_what_people_ask_for_keeps_its_order() -> None:
    pause = events.PodCommand(events.PodVerb.PAUSE, ("worker-0",))
    resume = events.PodCommand(events.PodVerb.RESUME, ("worker-0",))
    assert taken(holding(pause, update(1), resume)) == [pause, resume, update(1)]


def test_what_mesos_tells_keeps_its_order() -> None:
    offered = events.OffersReceived((an_offer(1),))
    told = [
        events.Registered("f", "m"),
        offered,
        update(1),
        events.AgentFailed("a1"),
        events.CallFailed("ACCEPT", "no", ambiguous=True),
        update(1),
        events.Disconnected("gone"),
    ]
    # The offer is void with the subscription.
    assert taken(holding(*told)) == [event for event in told if event is not offered]


def test_more_than_fits_stays_for_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_module, "MOST_TAKEN", 2)
    inbox = holding(*(update(number) for number in range(3)))
    assert [taken(inbox), taken(inbox)] == [[update(0), update(1)], [update(2)]]


@pytest.mark.parametrize("told", [10, 1000])
def test_neither_reports_nor_updates_keep_the_others_out(
    monkeypatch: pytest.MonkeyPatch, told: int
) -> None:
    monkeypatch.setattr(inbox_module, "MOST_TAKEN", 20)
    inbox = holding(*map(update, range(told)), *map(report, range(1000)))
    first = taken(inbox)
    kinds = [type(event) for event in first]
    assert [kinds.count(events.TaskUpdate), kinds.count(events.RunnerReported)] == [10, 10]


def test_an_update_that_an_agent_repeats_waits_once() -> None:
    inbox = holding(update(1, uuid="u"), update(1, uuid="u"))
    assert taken(inbox) == [update(1, uuid="u")]


def test_an_update_that_comes_again_after_it_was_taken_is_taken_again() -> None:
    inbox = holding(update(1, uuid="u"))
    taken(inbox)
    inbox.put(update(1, uuid="u"))
    assert taken(inbox) == [update(1, uuid="u")]


def test_answers_of_the_master_itself_all_count() -> None:
    assert len(taken(holding(update(1), update(1)))) == 2


def test_an_offer_taken_back_while_it_waits_is_not_seen() -> None:
    both = events.OffersReceived((an_offer(1), an_offer(2)))
    inbox = holding(both, events.OfferRescinded("o1"))
    assert taken(inbox) == [events.OffersReceived((an_offer(2),))]


def test_an_offer_taken_back_after_it_was_seen_is_told() -> None:
    inbox = holding(events.OffersReceived((an_offer(1),)))
    taken(inbox)
    inbox.put(events.OfferRescinded("o1"))
    assert taken(inbox) == [events.OfferRescinded("o1")]


@pytest.mark.parametrize("event", [events.Registered("f", "m"), events.Disconnected("gone")])
def test_offers_of_before_a_subscription_are_void(event: events.Event) -> None:
    assert taken(holding(events.OffersReceived((an_offer(1),)), event)) == [event]


def test_of_failed_tries_to_subscribe_the_last_is_told() -> None:
    inbox = holding(*(events.Disconnected(f"try {number}") for number in range(5)))
    assert taken(inbox) == [events.Disconnected("try 4")]


def test_a_waiting_thread_is_woken_by_an_event_and_by_a_wake() -> None:
    inbox, found = Inbox(), []
    thread = threading.Thread(target=lambda: found.append(inbox.take(60.0)))
    thread.start()
    inbox.put(update(1))
    thread.join(10.0)
    inbox.wake()
    assert [list(found[0]), taken(inbox)] == [[update(1)], []]


def test_a_wake_ends_the_next_wait_as_well() -> None:
    inbox = Inbox()
    inbox.wake()
    assert inbox.take(60.0) == []


def test_it_tells_the_time_since_the_last_look(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    inbox = Inbox()
    inbox.put(events.Disconnected("first"))
    now[0] += 2
    inbox.put(events.Registered("f", "m"))
    now[0] += 3
    inbox.take(0.0)
    assert inbox.waited == 5


def test_what_is_void_has_not_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    inbox = Inbox()
    inbox.put(events.OffersReceived((an_offer(1),)))
    inbox.put(events.OfferRescinded(an_offer(1).offer_id))
    now[0] += 5
    inbox.put(events.Disconnected("later"))
    inbox.take(0.0)
    assert inbox.waited == 0
