"""Leaving nothing behind: an uninstall always ends, whatever is away or crashes."""

import pytest

from dcos_tensorflow.core.kept.restore import restore
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import EraseState, Teardown
from dcos_tensorflow.core.model.job import Outcome
from dcos_tensorflow.core.spec.service_spec import Strategy
from simulated.scheduler import (
    Crash,
    Scheduler,
    begun,
    lose_agent_of,
    room_for_one_each,
    started,
    training,
)

ASKED = events.UninstallRequested("asked for")


def a_gang(**changes):
    spec = training(Strategy.PARAMETER_SERVER, uninstall_give_up_seconds=120.0, **changes)
    return started(spec, room_for_one_each(8))


def actions(scheduler, kind):
    return [a for d in scheduler.decisions for a in d.actions if isinstance(a, kind)]


def test_tasks_are_killed_before_the_framework_is_removed_and_the_state_erased():
    scheduler = a_gang()
    decision = scheduler.handle(ASKED)
    assert not any(isinstance(a, Teardown) for a in decision.actions)
    scheduler.run(5)
    assert scheduler.cluster.alive() == []
    assert scheduler.cluster.torn_down
    assert scheduler.store == {}


def test_everything_happens_once():
    scheduler = a_gang()
    scheduler.handle(ASKED)
    scheduler.run(60)
    scheduler.handle(ASKED)
    scheduler.run(60)
    assert len(actions(scheduler, Teardown)) == len(actions(scheduler, EraseState)) == 1


def test_an_uninstall_while_nothing_is_placed_ends_at_once():
    scheduler = begun(training(Strategy.PARAMETER_SERVER), room_for_one_each(1), seconds=5)
    scheduler.handle(ASKED)
    scheduler.run(2)
    assert scheduler.cluster.torn_down
    assert scheduler.store == {}


def test_tasks_on_agents_that_do_not_answer_are_waited_for_and_listed_at_last():
    scheduler = a_gang()
    hostname = scheduler.state.tasks["ps-0"].hostname
    lose_agent_of(scheduler, "ps-0")
    scheduler.handle(ASKED)
    scheduler.run(130)
    assert scheduler.state.uninstall.given_up == (f"ps-0 on {hostname}",)
    assert scheduler.cluster.torn_down
    assert scheduler.store == {}


def test_without_a_master_the_uninstall_gives_up_and_says_what_is_left():
    scheduler = a_gang()
    scheduler.handle(events.Disconnected("no master"))
    scheduler.handle(ASKED)
    scheduler.run(100)
    assert scheduler.store != {}
    scheduler.run(60)
    assert any(
        "maybe still registered with a master" in text
        for text in scheduler.state.uninstall.given_up
    )
    assert scheduler.store == {}


def test_a_subscription_that_is_answered_after_the_end_is_removed_all_the_same():
    scheduler = Scheduler(training(Strategy.PARAMETER_SERVER), room_for_one_each(1))
    scheduler.handle(ASKED)
    assert scheduler.store == {}
    scheduler.cluster.subscribe()
    scheduler.run(2)
    assert scheduler.cluster.torn_down


def test_a_job_that_has_succeeded_keeps_its_verdict():
    from dcos_tensorflow.core.model.task import TaskState

    scheduler = a_gang()
    scheduler.cluster.report(scheduler.cluster.id_of("chief-0"), TaskState.FINISHED)
    scheduler.run(30)
    scheduler.handle(ASKED)
    scheduler.run(5)
    assert scheduler.state.job.verdict.outcome is Outcome.SUCCEEDED
    assert scheduler.cluster.torn_down


class CrashingOnce(Scheduler):
    """Crashes at one place: before the n-th commit or action since the uninstall was asked for."""

    countdown = -1

    def before_commit(self):
        self._count()

    def before_action(self, action):
        self._count()

    def _count(self):
        self.countdown -= 1
        if self.countdown == 0:
            raise Crash


@pytest.mark.parametrize("place", range(1, 30))
def test_an_uninstall_ends_after_a_crash_between_any_two_actions(place):
    healthy = a_gang()
    scheduler = CrashingOnce(healthy.state.spec, healthy.cluster)
    scheduler.store, scheduler.state = healthy.store, healthy.state
    scheduler.handle(ASKED)
    scheduler.countdown = place
    try:
        scheduler.run(60)
    except Crash:
        if restore(scheduler.store, scheduler.state.settings, scheduler.cluster.now) is None:
            return
        scheduler.restart()
        scheduler.run(200)
    assert scheduler.cluster.alive() == []
    assert scheduler.cluster.torn_down
    assert scheduler.store == {}


def test_once_asked_for_it_cannot_be_taken_back():
    scheduler = a_gang()
    scheduler.handle(ASKED)
    scheduler.handle(events.PlanCommand("deploy", events.PlanVerb.FORCE_RESTART))
    scheduler.handle(events.PodCommand(events.PodVerb.RESTART, ("worker-0",)))
    scheduler.run(30)
    assert scheduler.cluster.torn_down
