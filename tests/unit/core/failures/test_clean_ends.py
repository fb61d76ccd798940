"""A member that ends with 0 while the others need it: named, counted, and waited for no more."""

from dataclasses import replace

import pytest

from dcos_tensorflow.core.failures import causes
from dcos_tensorflow.core.failures.clean_ends import IDLE_SECONDS
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.job import Incident, JobPhase, Outcome
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.service_spec import OutcomePolicy, Strategy, TaskRole
from simulated.scheduler import Scheduler, fail_process, recover, started, starts, training

PSS, MWMS = Strategy.PARAMETER_SERVER, Strategy.MULTI_WORKER
SESSIONS = Strategy.BETWEEN_GRAPH
ENDED = "Command exited with status 0"
GRACE = 20.0


def a_job(strategy: Strategy, **changes: object) -> Scheduler:
    ps = 0 if strategy is MWMS else 1
    counts = {"ps": ps, "chief": 0 if strategy is SESSIONS else 1, "worker": 2, **changes}
    return started(training(strategy, outcome_grace_seconds=GRACE, **counts))  # type: ignore[arg-type]


def end(scheduler: Scheduler, name: str, seconds: float = 1) -> None:
    """Let a task end by itself with 0, and see it."""
    scheduler.cluster.report(scheduler.cluster.id_of(name), TaskState.FINISHED, ENDED)
    scheduler.run(seconds)


def let_wait(scheduler: Scheduler, name: str, peer: str, contract: str = "script") -> None:
    """Let a task's runner wait for a peer's port before it starts the process."""
    address = scheduler.state.epoch.addresses[peer]
    scheduler.cluster.runner(name).wait_for(address, contract)


def let_rest(scheduler: Scheduler, *names: str) -> None:
    """Let the processes of tasks do nothing from now on, and see it."""
    for name in names:
        scheduler.cluster.runner(name).idle_since = scheduler.cluster.now
    scheduler.run(1)


def incidents(scheduler: Scheduler) -> list[Incident]:
    return list(scheduler.state.job.incidents)


def verdict(scheduler: Scheduler) -> str:
    found = scheduler.state.job.verdict
    return f"{found.exit_code}: {found.summary}" if found is not None else ""


# A parameter server, or a worker that only serves.


def test_a_server_that_has_ended_while_others_wait_for_it_ends_the_job():
    scheduler = a_job(SESSIONS)
    let_wait(scheduler, "worker-1", "ps-0")
    end(scheduler, "ps-0", GRACE + 2)
    assert "78: ps-0 ended by itself with exit code 0 before worker-1" in verdict(scheduler)
    assert "join()" in verdict(scheduler)
    assert "parameter_server.count to 0" in verdict(scheduler)


def test_a_server_may_end_a_moment_before_the_job_does():
    scheduler = a_job(SESSIONS)
    end(scheduler, "ps-0", GRACE - 3)
    end(scheduler, "worker-0", GRACE + 5)
    assert scheduler.state.job.verdict.outcome is Outcome.SUCCEEDED


def test_a_decider_that_does_something_does_not_wait_for_a_server():
    scheduler = a_job(SESSIONS)
    end(scheduler, "ps-0", IDLE_SECONDS + GRACE)
    assert verdict(scheduler) == ""
    end(scheduler, "worker-0", GRACE + 5)
    assert scheduler.state.job.verdict.outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize(("strategy", "server"), [(SESSIONS, "ps-0"), (PSS, "worker-1")])
def test_a_decider_that_does_nothing_waits_for_the_server_that_has_ended(strategy, server):
    scheduler = a_job(strategy)
    decider = scheduler.state.spec.decider
    let_rest(scheduler, decider)
    end(scheduler, server, IDLE_SECONDS - 10)
    assert verdict(scheduler) == ""
    scheduler.run(20)
    assert f"{server} ended by itself with exit code 0 before {decider}" in verdict(scheduler)


def test_a_worker_of_an_unknown_strategy_may_end_before_the_chief():
    scheduler = a_job(PSS)
    scheduler.state = replace(
        scheduler.state, spec=replace(scheduler.state.spec, strategy=Strategy.AUTO)
    )
    let_rest(scheduler, "chief-0")
    end(scheduler, "worker-1", IDLE_SECONDS + GRACE)
    assert verdict(scheduler) == ""


def test_who_has_to_end_for_the_job_to_end_is_no_server():
    scheduler = a_job(PSS, outcome=OutcomePolicy.ALL_WORKERS)
    let_rest(scheduler, "chief-0", "worker-1")
    end(scheduler, "worker-0", IDLE_SECONDS + GRACE)
    assert verdict(scheduler) == ""


def test_a_command_that_waits_for_a_port_soon_goes_on_without():
    scheduler = a_job(SESSIONS)
    let_wait(scheduler, "worker-0", "ps-0", contract="command")
    end(scheduler, "ps-0", GRACE + 5)
    assert verdict(scheduler) == ""


def test_a_server_that_leaves_after_a_failure_starts_again_with_whom_it_served():
    scheduler = a_job(PSS)
    fail_process(scheduler, "chief-0", "interrupted", 137)
    end(scheduler, "ps-0", 2)
    recover(scheduler, 30)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert scheduler.state.tasks["ps-0"].state is TaskState.RUNNING
    assert [(i.task, i.charged, i.collateral) for i in incidents(scheduler)] == [
        ("chief-0", False, ("ps-0",))
    ]
    scheduler.run(IDLE_SECONDS)
    assert verdict(scheduler) == ""


def test_a_server_that_left_long_after_a_failure_did_not_leave_because_of_it_for_a_new_scheduler():
    scheduler = a_job(SESSIONS)
    fail_process(scheduler, "worker-1", "interrupted", 137)
    recover(scheduler, 30)
    end(scheduler, "ps-0", 3)
    scheduler.restart()
    scheduler.run(5)
    assert scheduler.state.tasks["ps-0"].state is TaskState.FINISHED
    assert [(i.task, i.collateral) for i in incidents(scheduler)] == [("worker-1", ())]


def test_a_server_that_a_new_scheduler_has_heard_after_the_restart_did_not_leave_because_of_it():
    scheduler = a_job(SESSIONS)
    fail_process(scheduler, "worker-1", "interrupted", 137)
    recover(scheduler, 30)
    scheduler.restart()
    scheduler.run(5)
    end(scheduler, "ps-0", 5)
    assert scheduler.state.tasks["ps-0"].state is TaskState.FINISHED
    assert [(i.task, i.collateral) for i in incidents(scheduler)] == [("worker-1", ())]


def test_a_server_that_ran_when_all_did_again_did_not_leave_because_of_a_failure_before():
    scheduler = a_job(SESSIONS)
    scheduler.handle(events.PlanCommand("recovery", events.PlanVerb.PAUSE))
    fail_process(scheduler, "worker-1", "interrupted", 137)
    scheduler.run(10)
    scheduler.restart()
    scheduler.handle(events.PlanCommand("recovery", events.PlanVerb.RESUME))
    recover(scheduler, 6)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    end(scheduler, "ps-0", 2)
    assert scheduler.state.tasks["ps-0"].state is TaskState.FINISHED
    assert [(i.task, i.collateral) for i in incidents(scheduler)] == [("worker-1", ())]


def test_a_server_that_was_launched_because_of_a_failure_does_not_leave_because_of_it():
    scheduler = a_job(SESSIONS)
    for name in ("worker-0", "ps-0", "worker-1"):
        scheduler.cluster.report(scheduler.cluster.id_of(name), TaskState.LOST)
    # Offers come before anybody's clock has moved.
    scheduler.drain()
    scheduler.cluster.make_offers()
    scheduler.drain()
    (known,) = incidents(scheduler)
    assert scheduler.state.tasks["ps-0"].launched_at == known.at
    end(scheduler, "ps-0", 10)
    assert incidents(scheduler) == [known]


def test_a_server_that_has_ended_is_there_again_when_others_start_again():
    scheduler = a_job(SESSIONS)
    end(scheduler, "ps-0", 60)
    fail_process(scheduler, "worker-1")
    recover(scheduler, 30)
    assert scheduler.state.tasks["ps-0"].state is TaskState.RUNNING
    assert starts(scheduler)["worker-0"] == 1


# A member of a gang that makes each step together.


def let_one_save_alone(scheduler: Scheduler, step: int | None = 20) -> None:
    """Play one round: worker-0 is done, and the chief fails because it is gone."""
    scheduler.cluster.runner("chief-0").step = step
    end(scheduler, "worker-0", 3)
    end(scheduler, "worker-1", 1)
    fail_process(scheduler, "chief-0", "peer_lost", 1)


def test_an_end_with_0_that_others_fail_of_is_the_cause_and_costs_a_retry():
    scheduler = a_job(MWMS)
    let_one_save_alone(scheduler)
    (incident,) = incidents(scheduler)
    assert (incident.task, incident.kind) == ("worker-0", causes.ENDED_BEFORE_PEERS)
    assert incident.charged
    assert incident.collateral == ("chief-0",)
    assert "worker-0 ended with exit code 0 while chief-0 still needed it" in incident.summary
    assert "directory to be thrown away" in incident.summary
    assert "give each the same number of batches" in incident.summary
    assert "(retry 1 of 3)" in scheduler.state.job.why


def test_the_same_twice_without_progress_ends_the_job():
    scheduler = a_job(MWMS)
    for _ in range(2):
        assert verdict(scheduler) == ""
        let_one_save_alone(scheduler)
        recover(scheduler, 30)
    assert "2 times the same, each time at step 20" in verdict(scheduler)
    assert "retry.same_failure_limit" in verdict(scheduler)


def test_where_the_training_has_got_further_it_is_tried_again():
    scheduler = a_job(MWMS)
    for step in (20, 40, 60):
        let_one_save_alone(scheduler, step)
        recover(scheduler, 60)
    assert verdict(scheduler) == ""


def test_an_end_with_0_that_is_heard_of_after_its_effect_is_the_cause_all_the_same():
    scheduler = a_job(MWMS)
    scheduler.cluster.report(scheduler.cluster.id_of("worker-0"), TaskState.FINISHED, ENDED)
    late = scheduler.cluster.outbox.pop()
    fail_process(scheduler, "chief-0", "peer_lost", 1)
    assert [i.kind for i in incidents(scheduler)] == [causes.PEER_LOST]
    scheduler.cluster.outbox.append(late)
    scheduler.run(1)
    assert [(i.task, i.kind) for i in incidents(scheduler)] == [
        ("worker-0", causes.ENDED_BEFORE_PEERS)
    ]
    recover(scheduler, 60)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert {r.state for r in scheduler.state.tasks.values()} == {TaskState.RUNNING}


def test_an_error_of_its_own_is_its_own_whatever_task_has_ended():
    scheduler = a_job(MWMS)
    end(scheduler, "worker-0", 3)
    fail_process(scheduler, "chief-0", "user_error", 1)
    assert [(i.task, i.kind) for i in incidents(scheduler)] == [("chief-0", "failed")]


def test_a_task_that_knows_of_no_peer_fails_of_no_peers_end():
    scheduler = a_job(SESSIONS)
    end(scheduler, "worker-1", 3)
    fail_process(scheduler, "worker-0", "peer_lost", 1)
    assert [(i.task, i.kind) for i in incidents(scheduler)] == [("worker-0", causes.PEER_LOST)]


def test_a_chief_that_fails_of_its_servers_end_names_the_server():
    scheduler = a_job(PSS)
    end(scheduler, "ps-0", 3)
    fail_process(scheduler, "chief-0", "peer_lost", 1)
    (incident,) = incidents(scheduler)
    assert (incident.task, incident.charged) == ("ps-0", True)
    assert "join()" in incident.summary
    recover(scheduler, 30)
    assert scheduler.state.tasks["ps-0"].role is TaskRole.PS
    assert scheduler.state.tasks["ps-0"].state is TaskState.RUNNING


def test_one_end_counts_once_however_many_fail_of_it_and_however_late():
    scheduler = a_job(PSS)
    scheduler.handle(events.PlanCommand("recovery", events.PlanVerb.PAUSE))
    end(scheduler, "ps-0", 0)
    fail_process(scheduler, "chief-0", "peer_lost", 1)
    scheduler.run(60)
    fail_process(scheduler, "worker-0", "peer_lost", 1)
    scheduler.run(60)
    told = [i.kind for i in incidents(scheduler) if i.charged]
    assert told == [causes.ENDED_BEFORE_PEERS]


def test_a_server_that_leaves_before_the_failed_one_starts_again_starts_with_it():
    scheduler = a_job(SESSIONS)
    scheduler.handle(events.PlanCommand("recovery", events.PlanVerb.PAUSE))
    fail_process(scheduler, "worker-0", "interrupted", 137)
    scheduler.run(60)
    end(scheduler, "ps-0", 60)
    scheduler.handle(events.PlanCommand("recovery", events.PlanVerb.RESUME))
    recover(scheduler)
    assert scheduler.state.tasks["ps-0"].state is TaskState.RUNNING
    assert [(i.task, i.charged) for i in incidents(scheduler)] == [("worker-0", False)]
