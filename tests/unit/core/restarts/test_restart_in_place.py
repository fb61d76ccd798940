"""A process that fails while its container lives: who starts again, where, and who trains on."""

import pytest

from dcos_tensorflow.core.failures import causes
from dcos_tensorflow.core.model.actions import Accept, Kill
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.spec.service_spec import RetrySpec, Strategy
from simulated.scheduler import fail_process, started, starts, task_ids, training

PSS, MWMS = Strategy.PARAMETER_SERVER, Strategy.MULTI_WORKER
SESSIONS, ALONE = Strategy.BETWEEN_GRAPH, Strategy.INDEPENDENT

WITH_PS = "chief-0 worker-0 worker-1 ps-0 ps-1"
WITHOUT_PS = "chief-0 worker-0 worker-1"

CASES = [
    (PSS, "worker-1", "worker-1"),
    (PSS, "ps-0", "chief-0 ps-0"),
    (PSS, "chief-0", "chief-0"),
    (MWMS, "worker-1", WITHOUT_PS),
    (MWMS, "chief-0", WITHOUT_PS),
    (SESSIONS, "worker-1", "worker-1"),
    (SESSIONS, "ps-0", "ps-0"),
    (SESSIONS, "chief-0", "chief-0"),
    (ALONE, "worker-1", "worker-1"),
]


def a_gang(strategy, **changes):
    return started(training(strategy, ps=2 if strategy in (PSS, SESSIONS) else 0, **changes))


def restarted(scheduler):
    return {name for name, count in starts(scheduler).items() if count == 2}


@pytest.mark.parametrize(("strategy", "fails", "who"), CASES)
def test_exactly_these_start_again_where_they_are(strategy, fails, who):
    scheduler = a_gang(strategy)
    before, seen = (task_ids(scheduler), scheduler.state.epoch), len(scheduler.decisions)
    fail_process(scheduler, fails)
    scheduler.run(10)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert restarted(scheduler) == set(who.split())
    assert (task_ids(scheduler), scheduler.state.epoch) == before
    actions = [a for d in scheduler.decisions[seen:] for a in d.actions]
    assert not any(isinstance(a, Accept | Kill) for a in actions)


@pytest.mark.parametrize(
    ("exit_class", "kind"),
    [
        ("interrupted", "interrupted"),
        ("frozen", "frozen"),
        ("checkpointed", "checkpointed and left"),
    ],
)
def test_a_failure_from_outside_the_job_costs_no_retry_and_no_wait(exit_class, kind):
    scheduler = a_gang(PSS, retry=RetrySpec(limit=0))
    fail_process(scheduler, "chief-0", exit_class, 137)
    scheduler.run(2)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert [i.kind for i in scheduler.state.job.incidents] == [kind]


def test_an_error_of_the_users_waits_before_it_is_tried_again():
    scheduler = a_gang(PSS)
    fail_process(scheduler, "worker-1", "user_error", 1)
    scheduler.run(1, tick=0.5)
    assert scheduler.state.job.phase is JobPhase.BACKING_OFF
    assert scheduler.cluster.runner("worker-1").state == "held"


def test_while_one_worker_waits_its_peers_train_on():
    scheduler = a_gang(PSS)
    fail_process(scheduler, "worker-1", "user_error", 1)
    assert scheduler.cluster.runner("chief-0").state == "running"


def test_a_stalled_training_starts_again_as_a_whole():
    scheduler = a_gang(PSS)
    fail_process(scheduler, "chief-0", "stalled", 137)
    scheduler.run(15)
    assert restarted(scheduler) == set(WITH_PS.split())
    assert scheduler.state.job.incidents[0].charged


def test_two_processes_that_fail_at_once_restart_together():
    scheduler = a_gang(SESSIONS)
    scheduler.cluster.runner("worker-0").fail("interrupted", 137, "killed")
    fail_process(scheduler, "ps-1", "interrupted", 137)
    scheduler.run(5)
    assert restarted(scheduler) == {"worker-0", "ps-1"}
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_a_failure_of_another_task_during_a_back_off_joins_the_restart():
    scheduler = a_gang(SESSIONS)
    fail_process(scheduler, "worker-0")
    fail_process(scheduler, "ps-1", "interrupted", 137)
    scheduler.run(10)
    assert restarted(scheduler) == {"worker-0", "ps-1"}
    assert scheduler.state.job.phase is JobPhase.RUNNING


@pytest.mark.parametrize(("used", "who"), [(0.75, "chief-0"), (0.85, "chief-0 ps-0 ps-1")])
def test_parameter_servers_restart_with_the_chief_if_one_is_near_its_memory_limit(used, who):
    scheduler = a_gang(PSS)
    scheduler.cluster.runner("ps-1").memory_bytes = int(used * 1024 * 2**20)
    scheduler.run(1)
    fail_process(scheduler, "chief-0", "interrupted", 137)
    scheduler.run(5)
    assert restarted(scheduler) == set(who.split())


def test_with_strategy_auto_what_a_runner_recognised_decides():
    scheduler = started(training(Strategy.AUTO, ps=2))
    scheduler.cluster.runner("chief-0").strategy = "between_graph"
    scheduler.run(1)
    fail_process(scheduler, "ps-0", "interrupted", 137)
    scheduler.run(5)
    assert restarted(scheduler) == {"ps-0"}


def test_the_incident_says_what_the_process_said():
    scheduler = a_gang(PSS)
    fail_process(scheduler, "worker-1")
    assert "worker-1 ended as user_error" in scheduler.state.job.incidents[0].summary
    assert scheduler.state.job.incidents[0].kind == "failed" != causes.PEER_LOST
