"""Following a job: signals, questions, the end."""

import signal
from dataclasses import dataclass, field

import pytest

from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.following.job import (
    FollowingEnded,
    Signals,
    StopPolicy,
    caught_signals,
    follow,
    wait_for_the_end,
)
from dcos_tensorflow.client.snapshot import Snapshot


@dataclass
class FakeJob:
    """A job that is done after so many looks, or some looks after it was asked to stop."""

    looks: int = 1000
    stops: list[str] = field(default_factory=list)
    on_look: dict[int, object] = field(default_factory=dict)
    broken: bool = False
    seen: int = 0

    def wait(self, seconds):
        self.seen += 1
        action = self.on_look.pop(self.seen, None)
        if action is not None:
            action()
        return self.seen >= self.looks

    def snapshot(self):
        phase = "done" if self.seen >= self.looks else "running"
        job = {"service": "job", "phase": phase, "why": "", "tasks": {}}
        return Snapshot(job, {"tasks": {}})

    def machines(self):
        return 0

    def staying(self):
        self.seen += 1
        action = self.on_look.pop(self.seen, None)
        if action is not None:
            action()
        return ("tensorboard-0",) if self.seen < self.looks else ()

    def stop_job(self, why):
        self.stops.append(why)
        self.looks = self.seen + 2

    def check(self):
        if self.broken:
            raise CliError("The scheduler has ended.")


class NoView:
    closed = 0

    def show(self, snapshot, now):
        pass

    def close(self):
        self.closed += 1


def policy(*, ask=False, stop=True):
    return StopPolicy(ask=ask, stop_on_termination=stop, kill_grace_seconds=1.0)


def interrupting(signals):
    def interrupt():
        signals.interrupts += 1

    return interrupt


def test_a_job_is_followed_to_its_end():
    job = FakeJob(looks=5)
    assert follow(job, NoView(), Signals(), policy()).done
    assert job.seen == 5


def test_ctrl_c_stops_the_job_without_a_terminal_to_ask_at():
    signals = Signals()
    job = FakeJob(on_look={3: interrupting(signals)})
    follow(job, NoView(), signals, policy(ask=False))
    assert job.stops == ["Ctrl-C"]


def test_ctrl_c_asks_and_a_yes_stops_the_job():
    signals = Signals()
    job = FakeJob(on_look={3: interrupting(signals)})
    follow(job, NoView(), signals, policy(ask=True), ask=lambda: True)
    assert job.stops == ["Ctrl-C"]


def test_ctrl_c_asks_and_a_no_goes_on():
    signals, asked = Signals(), []
    job = FakeJob(looks=8, on_look={3: interrupting(signals)})
    follow(job, NoView(), signals, policy(ask=True), ask=lambda: bool(asked.append(1)))
    assert (job.stops, asked) == ([], [1])


def test_a_later_ctrl_c_asks_again():
    signals, asked = Signals(), []
    interrupt = interrupting(signals)
    job = FakeJob(looks=9, on_look={3: interrupt, 6: interrupt})
    follow(job, NoView(), signals, policy(ask=True), ask=lambda: bool(asked.append(1)))
    assert asked == [1, 1]


def test_the_view_is_taken_off_the_terminal_before_the_question():
    signals, view = Signals(), NoView()
    job = FakeJob(looks=6, on_look={3: interrupting(signals)})

    def ask():
        assert view.closed == 1
        return False

    follow(job, view, signals, policy(ask=True), ask=ask)


def test_a_job_is_asked_to_stop_once():
    signals = Signals()
    interrupt = interrupting(signals)
    job = FakeJob(on_look={3: interrupt, 4: interrupt})
    follow(job, NoView(), signals, policy())
    assert job.stops == ["Ctrl-C"]


def terminating(signals):
    def terminate():
        signals.ending = signal.SIGTERM

    return terminate


def test_sigterm_leaves_a_job_alone_whose_cluster_lives_on():
    signals = Signals()
    job = FakeJob(on_look={2: terminating(signals)})
    with pytest.raises(FollowingEnded) as left:
        follow(job, NoView(), signals, policy(stop=False))
    assert left.value.signal == signal.SIGTERM
    assert job.stops == []


def test_sigterm_stops_a_job_whose_cluster_ends_with_the_command():
    signals = Signals()
    job = FakeJob(on_look={2: terminating(signals)})
    follow(job, NoView(), signals, policy(stop=True))
    assert job.stops == ["SIGTERM ended the command"]


def test_a_scheduler_that_ends_by_itself_is_an_error():
    with pytest.raises(CliError, match="has ended"):
        follow(FakeJob(broken=True), NoView(), Signals(), policy())


def test_the_handlers_are_as_before_afterwards():
    before = signal.getsignal(signal.SIGTERM)
    with caught_signals() as signals:
        signal.raise_signal(signal.SIGTERM)
    assert signals.ending == signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is before


def test_an_ignored_sighup_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with caught_signals():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_what_outlives_the_job_is_waited_for_until_it_ends():
    job = FakeJob(looks=3)
    wait_for_the_end(job, Signals())
    assert job.seen == 3


@pytest.mark.parametrize("sent", ["interrupts", "ending"])
def test_a_signal_ends_the_wait_for_what_outlives_the_job(sent):
    signals = Signals()
    job = FakeJob(on_look={2: lambda: setattr(signals, sent, 2)})
    wait_for_the_end(job, signals)
    assert job.seen == 2


def test_a_scheduler_that_ends_ends_the_wait():
    with pytest.raises(CliError):
        wait_for_the_end(FakeJob(broken=True), Signals())
