"""What a failure costs: one cause and all that died of it, limits, back-off, verdicts."""

from dataclasses import replace

import pytest

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.failures.charges import UNEXPLAINED_LIMIT
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.job import JobPhase, Outcome
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.service_spec import RetrySpec, RoleSpec, Strategy, TaskRole
from samples.states import with_job
from simulated.mesos import Cluster
from simulated.scheduler import (
    begun,
    fail,
    fail_process,
    lose_agent_of,
    recover,
    room_for_one_each,
    started,
    training,
)

PSS, MWMS = Strategy.PARAMETER_SERVER, Strategy.MULTI_WORKER
SESSIONS = Strategy.BETWEEN_GRAPH


def a_job(strategy=PSS, **retry):
    ps = 0 if strategy is MWMS else 2
    return started(training(strategy, ps=ps, retry=RetrySpec(**retry)))


def incidents(scheduler):
    return [(i.task, i.kind, i.charged, i.collateral) for i in scheduler.state.job.incidents]


def a_first_start():
    """Return a scheduler whose gang is launched, and one member of it has its container."""
    scheduler = begun(training(MWMS, ps=0), Cluster())
    scheduler.cluster.report(scheduler.cluster.id_of("worker-1"), TaskState.RUNNING)
    scheduler.run(1)
    return scheduler


REFUSED = (contract.EXIT_CLASS_STORAGE_REFUSED, contract.EXIT_STORAGE)


def test_what_s3_refuses_a_first_start_ends_the_job_at_once():
    scheduler = a_first_start()
    assert not scheduler.state.job.deployed
    fail_process(scheduler, "worker-1", *REFUSED)
    verdict = scheduler.state.job.verdict
    assert (verdict.outcome, verdict.exit_code) == (Outcome.FAILED, contract.EXIT_JOB_UNUSABLE)
    assert verdict.summary.endswith("(no other start fares better before that is changed)")


def test_what_s3_refuses_a_job_that_has_run_is_waited_for_at_no_cost():
    scheduler = a_job(MWMS)
    fail_process(scheduler, "worker-1", *REFUSED)
    assert incidents(scheduler)[0][:3] == ("worker-1", "storage", False)
    recover(scheduler)
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_what_s3_may_give_another_time_is_asked_for_again_at_a_first_start():
    scheduler = a_first_start()
    fail_process(scheduler, "worker-1", contract.EXIT_CLASS_STORAGE, contract.EXIT_STORAGE)
    recover(scheduler)
    assert scheduler.state.job.phase is JobPhase.RUNNING


KILLED = "Command terminated with signal Killed"


def kill_again_and_again(scheduler, name, times, seconds=70, step=None):
    """Let a signal end a task's container so often; each start runs for so long before."""
    for number in range(times):
        if scheduler.state.job.verdict is not None:
            return
        scheduler.run(seconds)
        if step is not None:
            for member in ("chief-0", "worker-0", "worker-1"):
                scheduler.cluster.runner(member).step = step(number)
            scheduler.run(1)
        fail(scheduler, name, KILLED)
        recover(scheduler)


@pytest.mark.parametrize("step", [None, lambda number: 100, lambda number: 100 - number])
def test_a_job_that_kills_its_own_runner_again_and_again_has_an_end(step):
    scheduler = a_job(MWMS, window_seconds=100_000)
    kill_again_and_again(scheduler, "worker-1", UNEXPLAINED_LIMIT + RetrySpec().limit, step=step)
    charged = [incident.charged for incident in scheduler.state.job.incidents]
    assert charged == [False] * (UNEXPLAINED_LIMIT - 1) + [True] * (RetrySpec().limit + 1)
    assert "(3 retries are used up)" in scheduler.state.job.verdict.summary


def test_kills_between_which_the_job_gets_further_cost_nothing():
    scheduler = a_job(MWMS, window_seconds=100_000)
    kill_again_and_again(scheduler, "worker-1", 20, step=lambda number: 100 * (number + 1))
    assert [i.charged for i in scheduler.state.job.incidents] == [False] * 20


def test_nor_do_those_of_a_job_that_tells_no_steps_and_runs_for_long_before():
    scheduler = a_job(MWMS, window_seconds=100_000)
    kill_again_and_again(scheduler, "worker-1", 20, seconds=600)
    assert [i.charged for i in scheduler.state.job.incidents] == [False] * 20


def test_ends_that_mesos_explains_cost_nothing_however_many_there_are():
    scheduler = a_job(MWMS, window_seconds=100_000)
    for _ in range(20):
        scheduler.run(70)
        fail(scheduler, "worker-1", KILLED, "REASON_CONTAINER_PREEMPTED")
        recover(scheduler)
    assert [i.charged for i in scheduler.state.job.incidents] == [False] * 20


def test_peers_that_die_of_a_failure_are_collateral_and_cost_nothing():
    scheduler = a_job(MWMS)
    fail_process(scheduler, "worker-1", "user_error", 1)
    for peer in ("chief-0", "worker-0"):
        if scheduler.cluster.runner(peer).state == "running":
            scheduler.cluster.runner(peer).fail("user_error", 1, "UnavailableError")
    scheduler.run(15)
    assert len(scheduler.state.job.incidents) == 1
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_an_effect_that_was_seen_before_its_cause_belongs_to_it():
    scheduler = a_job(PSS)
    fail_process(scheduler, "chief-0", "peer_lost", 1)
    fail(scheduler, "ps-0", "Command terminated with signal Killed")
    scheduler.run(1)
    assert incidents(scheduler) == [("ps-0", "interrupted", False, ("chief-0",))]


def test_an_effect_that_was_seen_after_its_cause_belongs_to_it():
    scheduler = a_job(PSS)
    fail(scheduler, "ps-0", "Command terminated with signal Killed")
    scheduler.cluster.runner("chief-0").fail("peer_lost", 1, "UnavailableError")
    scheduler.run(2)
    # The chief was being stopped anyway when it failed.
    assert [i[0] for i in incidents(scheduler)] == ["ps-0"]
    assert not any(charged for _, _, charged, _ in incidents(scheduler))


def test_cause_and_effect_that_are_seen_in_one_moment_are_told_apart():
    scheduler = a_job(PSS)
    cluster = scheduler.cluster
    cluster.runner("chief-0").fail("peer_lost", 1, "UnavailableError")
    cluster.runner("ps-0").fail("user_error", 1, "ValueError")
    scheduler.run(1)
    assert [i[:3] for i in incidents(scheduler)] == [("ps-0", "failed", True)]


@pytest.mark.parametrize("strategy", [PSS, SESSIONS])
def test_an_error_of_the_job_is_no_effect_of_a_loss_that_ends_no_other_task(strategy):
    scheduler = a_job(strategy)
    fail(scheduler, "worker-1", "Command terminated with signal Killed")
    fail_process(scheduler, "worker-0", "user_error", 1)
    assert [(task, charged) for task, _, charged, _ in incidents(scheduler)] == [
        ("worker-1", False),
        ("worker-0", True),
    ]


def test_a_failure_long_after_another_is_an_incident_of_its_own():
    scheduler = a_job(SESSIONS)
    fail_process(scheduler, "worker-0", "user_error", 1)
    scheduler.run(20)
    fail_process(scheduler, "worker-1", "user_error", 1)
    assert len(scheduler.state.job.incidents) == 2


def test_a_start_that_fails_by_itself_after_the_incident_is_no_collateral():
    scheduler = a_job(PSS, limit=5)
    fail_process(scheduler, "worker-1", "user_error", 1)
    scheduler.run(4)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    fail_process(scheduler, "worker-1", "user_error", 1)
    assert [i.charged for i in scheduler.state.job.incidents] == [True, True]


def test_failures_beyond_the_limit_end_the_job_with_the_exit_code_of_the_process():
    scheduler = a_job(limit=1)
    for _ in range(2):
        fail_process(scheduler, "worker-1", "user_error", 3)
        scheduler.run(20)
    assert scheduler.state.job.verdict.outcome is Outcome.FAILED
    assert scheduler.state.job.verdict.exit_code == 3
    assert "1 retry is used up" in scheduler.state.job.verdict.summary
    assert scheduler.cluster.alive() == []


def test_a_role_has_a_limit_of_its_own():
    spec = training(PSS, retry=RetrySpec(limit=9))
    small = spec.roles[0].resources
    roles = (*spec.roles[:2], RoleSpec(TaskRole.WORKER, 2, small, retry_limit=1), spec.roles[3])
    scheduler = started(replace(spec, roles=roles))
    for name in ("chief-0", "chief-0", "worker-0", "worker-1"):
        assert scheduler.state.job.verdict is None
        fail_process(scheduler, name, "user_error", 3)
        scheduler.run(30)
    assert "for the role worker" in scheduler.state.job.verdict.summary


def test_running_out_of_memory_has_a_small_limit_and_advice():
    scheduler = a_job(limit=9, out_of_memory_limit=1)
    for _ in range(2):
        fail_process(scheduler, "worker-1", "out_of_memory", 137)
        scheduler.run(20)
    assert scheduler.state.job.verdict.outcome is Outcome.FAILED
    assert "give it more memory: worker.mem" in scheduler.state.job.verdict.summary


def test_what_costs_nothing_but_never_gets_anywhere_ends_the_job():
    scheduler = a_job(limit=0, fruitless_limit=3)
    for _ in range(4):
        assert scheduler.state.job.verdict is None
        fail_process(scheduler, "chief-0", "interrupted", 137)
        scheduler.run(30)
    assert "got no further" in scheduler.state.job.verdict.summary
    told = [i.summary.partition(" (")[2] for i in scheduler.state.job.incidents]
    assert told == ["", *(f"{times} times in a row, no further step)" for times in (2, 3, 4))]


def test_interruptions_with_progress_between_are_not_told_as_a_row():
    scheduler = a_job(limit=0)
    assert survives_interruptions(scheduler)
    assert not [i for i in scheduler.state.job.incidents if "in a row" in i.summary]


def test_failures_that_are_charged_end_the_job_by_their_own_limit_alone():
    scheduler = a_job(limit=5, fruitless_limit=2, initial_backoff_seconds=0.0)
    for _ in range(5):
        fail_process(scheduler, "worker-1", "user_error", 1)
        # Not long enough to have got somewhere.
        scheduler.run(20)
    assert scheduler.state.job.phase is JobPhase.RUNNING


def survives_interruptions(scheduler, name="chief-0", steps=range(0, 800, 100)):
    """Interrupt the chief after each step that a member reports; say whether the job goes on."""
    for step in steps:
        scheduler.cluster.runner(name).step = step
        scheduler.run(1)
        fail_process(scheduler, "chief-0", "interrupted", 137)
        scheduler.run(30)
    return scheduler.state.job.phase is JobPhase.RUNNING


def test_failures_with_progress_in_between_are_never_fruitless():
    assert survives_interruptions(a_job(limit=0, fruitless_limit=3))


def test_a_number_that_no_training_reaches_does_not_hide_what_comes_after_it():
    steps = (0, 7564124229747301, 200, 300, 400, 500, 600, 700)
    scheduler = a_job(limit=0, fruitless_limit=3)
    assert survives_interruptions(scheduler, "worker-0", steps)


def test_a_best_step_that_cannot_be_one_is_forgotten():
    scheduler = a_job(limit=0, fruitless_limit=3)
    scheduler.state = with_job(scheduler.state, best_step=7564124229747301)
    assert survives_interruptions(scheduler)


def test_without_known_steps_a_minute_of_training_is_progress():
    scheduler = a_job(limit=0, fruitless_limit=2)
    for _ in range(6):
        scheduler.run(90)
        fail_process(scheduler, "chief-0", "interrupted", 137)
        scheduler.run(30)
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_a_job_that_can_never_run_is_not_tried_again():
    scheduler = a_job()
    fail(scheduler, "worker-1", f"Command exited with status {contract.EXIT_JOB_UNUSABLE}")
    scheduler.run(30)
    assert scheduler.state.job.verdict.outcome is Outcome.FAILED
    assert len(scheduler.cluster.launch_history) == 5


def test_the_verdict_tells_what_the_sandbox_told():
    scheduler = a_job(limit=0)
    fail(scheduler, "worker-1")
    scheduler.run(30)
    assert "it said why" in scheduler.state.job.verdict.summary


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (f"Command exited with status {contract.EXIT_PORT_TAKEN}", ""),
        (f"Command exited with status {contract.EXIT_CHECKPOINTED}", ""),
        ("agent restarted", "REASON_AGENT_RESTARTED"),
        ("preempted", "REASON_CONTAINER_PREEMPTED"),
        ("Command exited with status 1", "REASON_AGENT_DRAINING"),
    ],
)
def test_a_container_that_ends_from_outside_costs_no_retry(message, reason):
    scheduler = a_job(limit=0)
    fail(scheduler, "worker-1", message, reason=reason)
    recover(scheduler, 30)
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_after_a_port_was_taken_the_task_gets_another():
    scheduler = a_job()
    before = scheduler.state.tasks["worker-1"].ports
    fail(scheduler, "worker-1", f"Command exited with status {contract.EXIT_PORT_TAKEN}")
    recover(scheduler, 30)
    assert scheduler.state.tasks["worker-1"].ports[0] != before[0]


def test_each_further_failure_waits_longer():
    scheduler = a_job(limit=5)
    waits = []
    for _ in range(3):
        fail_process(scheduler, "worker-1")
        waits.append(scheduler.state.job.restart.due_at - scheduler.cluster.now)
        scheduler.run(60)
    assert waits[0] < waits[1] < waits[2]


def test_failures_outside_the_window_are_forgotten():
    scheduler = a_job(limit=1, window_seconds=600)
    for _ in range(3):
        fail_process(scheduler, "worker-1")
        scheduler.run(20)
        scheduler.cluster.now += 700
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_a_gang_that_does_not_come_up_in_time_is_started_again():
    spec = training(PSS)
    scheduler = started(spec)
    scheduler.cluster.runner("worker-1").obeys = False
    fail_process(scheduler, "worker-1", "interrupted", 137)
    scheduler.run(spec.gang.start_seconds + 40, tick=5.0)
    recover(scheduler, 30)
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_a_member_that_mesos_stops_speaking_of_is_asked_about():
    scheduler = started(training(PSS), room_for_one_each(8))
    scheduler.handle(events.AgentFailed(scheduler.state.tasks["ps-0"].agent_id))
    del scheduler.cluster.tasks[scheduler.state.tasks["ps-0"].task_id]
    scheduler.run(5)
    assert scheduler.state.job.incidents[0].task == "ps-0"
    assert scheduler.state.tasks["ps-0"].state in (TaskState.LOST, TaskState.LAUNCHING)


def test_a_member_that_is_known_to_be_unreachable_is_not_asked_about():
    scheduler = started(training(PSS, replace_after_seconds=300.0), room_for_one_each(8))
    agent_id = lose_agent_of(scheduler, "worker-0")
    scheduler.handle(events.AgentFailed(agent_id))
    assert scheduler.state.reconciliation.waiting == frozenset()


def test_a_launch_that_will_always_be_refused_ends_the_job_at_once():
    scheduler = a_job(MWMS)
    refused = "Not supported by the embedded cluster: container images ('tf:2')"
    worker = scheduler.cluster.id_of("worker-0")
    scheduler.cluster.report(worker, TaskState.LOST, refused, "REASON_TASK_INVALID")
    scheduler.run(20)
    verdict = scheduler.state.job.verdict
    assert (verdict.outcome, verdict.exit_code) == (Outcome.FAILED, contract.EXIT_JOB_UNUSABLE)
    assert f"{refused} (it can never run)" in verdict.summary
    assert len(scheduler.state.job.incidents) == 1
