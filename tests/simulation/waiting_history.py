"""Histories in which a task waits: for a server that has left, for peers, or for nothing.

One thing happens to a healthy gang; messages are lost and late and the scheduler is killed as in
any history. A task that waits in vain must not do so for ever, and no task may be ended that does
something: what is expected is written out here, not taken from ``core.failures``. ``python
``core.restarts``. ``python tests/simulation/waiting_history.py SEED`` prints one of them.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

if __name__ == "__main__":
    _root = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(_root / "framework"), str(_root / "tests")]

from history import tell
from history_jobs import Job
from history_rules import RuleBroken
from single_incident import SingleIncident

from dcos_tensorflow.core.failures import waits
from dcos_tensorflow.core.model.job import JobPhase, Outcome
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.service_spec import Strategy, TaskRole, split_task_name

#: A gang that does nothing starts again after so long.
IDLE_SECONDS = 200.0
#: Nothing is noticed later than that: reports are late, and a scheduler may be away twice.
NOTICED_SECONDS = 120.0
#: No wait that is shorter is told of, and none that is so much longer is not.
START_SECONDS = 30.0
#: A decider that does nothing for so long after a server's end waits for it.
SERVED_SECONDS = 120.0
#: A job does not make the same mistake more often than that.
MOST_ROUNDS = 8
#: As many steps all members make before one of them ends.
STEPS_MADE = 1000
_ENDED = "Command exited with status 0"


class WaitingHistory(SingleIncident):
    """A seed, played: one of the things that make a task wait."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._trains = True
        #: How the job may end, but with success: a text in its verdict.
        self._verdict = ""

    def make_job(self) -> Job:
        """Return a random job, given up soon when no task of it does anything."""
        job = super().make_job()
        return replace(job, spec=replace(job.spec, idle_seconds=IDLE_SECONDS))

    def play(self) -> None:
        """Play it to its end. Raises RuleBroken."""
        self.network.delays = (0.0, 0.0, 0.2, 0.5)
        self.cluster.subscribe()
        self._run_until_quiet("the gang did not come up")
        self.dice.choice(self._possible())()
        if self.rules.charged != self.rules.errors:
            raise RuleBroken(f"{self.rules.errors} errors cost {self.rules.charged} retries")
        self.come_to_the_end()

    def _possible(self) -> list[Callable[[], None]]:
        members, strategy = self._members(), self.job.strategy
        found = [self._all_rest, self._some_rest, self._one_waits_for_a_port]
        if strategy in (Strategy.PARAMETER_SERVER, Strategy.BETWEEN_GRAPH):
            found += [
                self._a_server_is_waited_for,
                self._a_server_leaves_before_the_job_ends,
                self._a_server_leaves_after_the_chief,
            ]
        if strategy is Strategy.MULTI_WORKER and len(members) > 1:
            found += [self._one_ends_before_its_peers] * 3
        return found

    # What happens.

    def _a_server_is_waited_for(self) -> None:
        """It ended with 0, and others wait for its port, or can do nothing without it."""
        decider, server = self.job.spec.decider, self._a_server()
        address = self.scheduler.state.epoch.addresses[server]
        waits_for_port = self.job.strategy is Strategy.BETWEEN_GRAPH and self.dice.random() < 0.5

        def leave() -> None:
            self.rules.note_error(self._task_id(server))
            self._end(server)

        def is_over() -> bool:
            if self._is_failed():
                return True
            runner = self.cluster.runner(decider)
            if waits_for_port and not runner.waiting_for:
                runner.wait_for(address, "script")
            elif not waits_for_port and runner.idle_since is None:
                self._let_rest(decider)
            task = self.cluster.tasks[self._task_id(server)]
            if task.state is TaskState.RUNNING and task.runner.trains:
                # A scheduler that heard late of its end took it for that of a failure: no charge.
                self.rules.errors -= 1
                leave()
            return False

        leave()
        ended_at = self.cluster.now
        self._verdict = f"{server} ended by itself"
        limit = 2 * NOTICED_SECONDS + (0 if waits_for_port else SERVED_SECONDS)
        self._until(is_over, limit, f"it was not told that {server} is waited for")
        if self.cluster.now < ended_at + self.job.spec.outcome_grace_seconds:
            raise RuleBroken(f"{server} was not given the time to end with the job")

    def _a_server_leaves_before_the_job_ends(self) -> None:
        """It ends with 0 while the decider still does something, and then finishes."""
        self._end(self._a_server())
        self._for(self.dice.choice([1.0, 60.0, 400.0]), "no server is waited for")

    def _a_server_leaves_after_the_chief(self) -> None:
        """It looks after the chief: when that fails, it ends with 0, seconds later."""
        decider, server = self.job.spec.decider, self._a_server(TaskRole.PS)
        before = self._task_id(server)
        self.note(f"fault: the process of {decider} is killed")
        self.cluster.runner(decider).fail("interrupted", 137, "killed")
        self._for(self.dice.choice([0.0, 1.0, 3.0]))
        if self.cluster.tasks[before].alive:
            self._end(server)
        self._healed = lambda: self._task_id(server) != before  # type: ignore[method-assign]
        self._run_until_quiet(f"{server} is not there again")

    def _one_ends_before_its_peers(self) -> None:
        """It ends with 0, and the others fail because it is gone: at each start anew."""
        self._trains = False
        rounds = 0
        while rounds < MOST_ROUNDS:
            rounds += 1
            names = self._members()
            for name in names:
                self.cluster.runner(name).step = STEPS_MADE
            one = self.dice.choice([n for n in names if n != self.job.spec.decider])
            before = self._task_id(one)
            self.rules.note_error(before)
            self._end(one)
            self._for(self.dice.choice([0.0, 0.0, 2.0]))
            self._fail_of_it([name for name in names if name != one])
            self._until(self._is_judged(before), NOTICED_SECONDS, f"{one} is no cause")
            if self._is_failed():
                break
            self._healed = lambda b=before, n=one: self._task_id(n) != b  # type: ignore
            self._run_until_quiet(f"{one} is not there again")
        self._verdict = "ended with exit code 0 while"
        # A scheduler that was killed in between does not know that nothing was gained.
        if not self._is_failed() or rounds < self.job.spec.retry.same_failure_limit:
            raise RuleBroken(f"{rounds} times the same: {self.scheduler.state.job.why}")

    def _is_judged(self, task_id: str) -> Callable[[], bool]:
        def is_judged() -> bool:
            return any(i.task_id == task_id for i in self.scheduler.state.job.incidents)

        return is_judged

    def _fail_of_it(self, names: list[str]) -> None:
        decider = self.job.spec.decider
        for name in names:
            if name == decider or self.dice.random() < 0.8:
                self.note(f"the process of {name} dies of it")
                self.cluster.runner(name).fail("peer_lost", 1, "UnavailableError")

    def _all_rest(self) -> None:
        """No task makes a step, prints or computes any more."""
        names = self._members()
        together = self.job.strategy is not Strategy.INDEPENDENT and len(names) > 1
        starts = {name: len(self.cluster.runner(name).starts) for name in names}
        self._let_rest(*names)
        self._until(self._is_told("no task does anything"), NOTICED_SECONDS, "it was not told")
        if not together:
            self._for(3 * IDLE_SECONDS, "no task waits for a peer")
            return
        known = set(self.scheduler.state.job.incidents)
        first = min(names, key=self._place)
        self.rules.note_error(self._task_id(first))
        self._healed = lambda: all(  # type: ignore[method-assign]
            len(self.cluster.runner(name).starts) > starts[name] for name in names
        )
        self._until(
            lambda: bool(set(self.scheduler.state.job.incidents) - known),
            IDLE_SECONDS + NOTICED_SECONDS,
            "a standstill is no incident",
        )
        self._run_until_quiet("not everybody has started again")

    def _some_rest(self) -> None:
        """All but one do nothing, for as long as that one computes."""
        names = self._members()
        self._let_rest(*self.dice.sample(names, len(names) - 1))
        self._for(3 * IDLE_SECONDS, "a task computes")

    def _one_waits_for_a_port(self) -> None:
        """A process is not started before a peer listens, which takes its time."""
        waiting, peer = self.dice.choice(self._members()), self.dice.choice(self._members())
        runner, address = self.cluster.runner(waiting), self.scheduler.state.epoch.addresses[peer]
        runner.wait_for(address, "script")
        is_told = self._is_told(f"{waiting} waits for")
        self._until(is_told, START_SECONDS + NOTICED_SECONDS, f"{waiting} waits in silence")
        self.note(f"{peer} listens")
        runner.state, runner.waiting_for = "running", ()
        self._until(lambda: not is_told(), NOTICED_SECONDS, f"{waiting} waits no more")
        self._for(0.0, "a wait is no failure")

    # How.

    def _train(self) -> None:
        if self._trains:
            super()._train()
            return
        self._show_checkpoint()

    def _members(self) -> list[str]:
        return sorted(self.scheduler.state.view().roster.names)

    def _place(self, name: str) -> int:
        return self.scheduler.state.view().roster.names.index(name)

    def _task_id(self, name: str) -> str:
        return self.scheduler.state.tasks[name].task_id

    def _a_server(self, *roles: TaskRole) -> str:
        """Return a task that serves: a ps, or with ParameterServerStrategy a worker as well."""
        known = roles or (TaskRole.PS,)
        if not roles and self.job.strategy is Strategy.PARAMETER_SERVER:
            known = (TaskRole.PS, TaskRole.WORKER)
        names = [n for n in self._members() if split_task_name(n)[0] in known]
        return self.dice.choice([n for n in names if n != self.job.spec.decider])

    def _end(self, name: str) -> None:
        self.note(f"{name} ends by itself with 0")
        self.cluster.report(self._task_id(name), TaskState.FINISHED, _ENDED)

    def _let_rest(self, *names: str) -> None:
        self.note(f"{', '.join(names)} do nothing any more")
        for name in names:
            self.cluster.runner(name).idle_since = self.cluster.now

    def _is_told(self, text: str) -> Callable[[], bool]:
        def is_told() -> bool:
            found = waits.waits(self.scheduler.state.view(), self.cluster.now)
            return any(text in wait.why for wait in found)

        return is_told

    def _is_failed(self) -> bool:
        verdict = self.scheduler.state.job.verdict
        return verdict is not None and verdict.outcome is Outcome.FAILED

    def _until(self, condition: Callable[[], bool], seconds: float, broken: str) -> None:
        end = self.cluster.now + seconds
        scheduler = self.scheduler
        while not condition():
            if self.cluster.now > end:
                raise RuleBroken(f"{broken}: {scheduler.state.job.why}")
            # A task that is killed has heard nothing meanwhile, and begins to wait anew.
            scheduler.faulty = self.cluster.now < end - seconds + NOTICED_SECONDS / 2
            self.step()
            self._containers_start()
        scheduler.faulty = True

    def _for(self, seconds: float, broken: str = "") -> None:
        """Let time pass; with ``broken`` nothing may be made of what is so."""
        end, known = self.cluster.now + seconds, set(self.scheduler.state.job.incidents)
        while self.cluster.now < end:
            self.step()
            new = set(self.scheduler.state.job.incidents) - known
            if broken and new:
                raise RuleBroken(f"{broken}: {new}")

    def _check_outcome(self) -> None:
        job = self.scheduler.state.job
        assert job.verdict is not None
        expected = Outcome.FAILED if self._verdict else Outcome.SUCCEEDED
        if job.verdict.outcome is not expected or self._verdict not in job.verdict.summary:
            raise RuleBroken(f"the job ended as {job.verdict}")
        assert job.phase is JobPhase.DONE


if __name__ == "__main__":
    sys.exit(tell(WaitingHistory, sys.argv[1:]))
