"""The whole scheduler on an embedded cluster: what fails around it, and what becomes of the job."""

from __future__ import annotations

import urllib.request

import pytest

from dcos_tensorflow.core.model.events import StopRequested
from dcos_tensorflow.core.model.job import Outcome
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.local.timing import Timing
from dcos_tensorflow.scheduler.scheduler import EXIT_LOCKED, SchedulerError
from scheduled_jobs import command_job, done, running, wait_until

UNTIL_TOLD = 'while [ ! -e "{marks}/finish" ]; do sleep 0.05; done'


@pytest.fixture
def lasting(marks):
    """A job that ends when the test says so."""
    return command_job(UNTIL_TOLD.format(marks=marks))


def launches(scheduler) -> int:
    return scheduler.state().attempt


def test_a_job_runs_to_its_end_and_gives_everything_back(schedule):
    scheduler = schedule(command_job("echo step 1 loss 0.5"))
    state = wait_until(scheduler, done)
    assert state.job.verdict.outcome is Outcome.SUCCEEDED
    assert all(record.terminal for record in state.tasks.values())


def test_the_result_of_the_deciding_task_is_kept(schedule):
    scheduler = schedule(command_job("""echo 'result: {"test_accuracy": 0.5}'"""))
    assert wait_until(scheduler, done).job.result == {"test_accuracy": 0.5}


def test_the_verdict_of_a_failed_job_tells_the_last_words_of_the_task(schedule):
    scheduler = schedule(command_job("echo no such number >&2; exit 7", workers=1))
    state = wait_until(scheduler, done)
    assert (state.job.verdict.outcome, state.job.verdict.exit_code) == (Outcome.FAILED, 7)
    assert any(
        "no such number" in line for e in state.told.evidence.values() for line in e.last_lines
    )


def test_a_scheduler_that_comes_back_finds_its_tasks_running(schedule, lasting, marks):
    first = schedule(lasting)
    before = wait_until(first, running)
    first.stop()
    second = schedule(lasting)
    wait_until(second, lambda s: s.registered and not s.reconciliation.waiting)
    (marks / "finish").touch()
    after = wait_until(second, done)
    assert {r.task_id for r in after.tasks.values()} == {r.task_id for r in before.tasks.values()}


def test_a_second_scheduler_of_the_service_is_told_who_leads(schedule, lasting):
    schedule(lasting)
    with pytest.raises(SchedulerError, match="pid") as raised:
        schedule(lasting)
    assert raised.value.exit_code == EXIT_LOCKED


def test_tasks_survive_the_loss_of_the_master(schedule, lasting, marks, cluster):
    scheduler = schedule(lasting)
    before = wait_until(scheduler, running)
    cluster.faults.lose_master()
    wait_until(scheduler, lambda s: s.registered and not s.reconciliation.waiting)
    (marks / "finish").touch()
    after = wait_until(scheduler, done)
    assert after.epoch == before.epoch


# However long it takes until an agent is back, it is not unreachable by then.
@pytest.mark.parametrize(
    "timing", [Timing(agent_ping=15, update_retry=0.5, heartbeat=0.5)], ids=["patient"]
)
def test_tasks_survive_an_agent_that_is_restarted(schedule, lasting, marks, cluster):
    scheduler = schedule(lasting)
    before = wait_until(scheduler, running)
    for agent in (0, 1):
        cluster.faults.crash_agent(agent)
        cluster.faults.restart_agent(agent)
    (marks / "finish").touch()
    assert wait_until(scheduler, done).epoch == before.epoch


def test_a_lost_machine_costs_a_restart_but_no_retry(schedule, lasting, marks, cluster):
    scheduler = schedule(lasting)
    before = wait_until(scheduler, running)
    lost = next(iter(before.tasks.values())).hostname
    cluster.faults.lose_machine(0 if lost.endswith(".1") else 1)
    after = wait_until(scheduler, lambda s: running(s) and s.epoch.epoch == 2)
    assert lost not in {record.hostname for record in after.tasks.values()}
    assert not any(incident.charged for incident in after.job.incidents)


def test_a_task_of_a_partitioned_agent_is_killed_when_it_comes_back(schedule, lasting, cluster):
    scheduler = schedule(lasting)
    before = wait_until(scheduler, running)
    old = {record.task_id for record in before.tasks.values()}
    agent = 0 if next(iter(before.tasks.values())).hostname.endswith(".1") else 1
    cluster.faults.partition_agent(agent)
    wait_until(scheduler, lambda s: running(s) and s.epoch.epoch == 2)
    cluster.faults.heal_agent(agent)
    wait_until(scheduler, lambda s: not s.abandoned and not s.strays)
    assert scheduler.state().job.restart.count == 1
    assert old.isdisjoint(record.task_id for record in scheduler.state().tasks.values())


def test_a_framework_that_the_operator_removed_begins_again(schedule, lasting, marks, cluster):
    scheduler = schedule(lasting)
    before = wait_until(scheduler, running)
    body = f"frameworkId={before.framework_id}".encode()
    with urllib.request.urlopen(f"http://{cluster.master}/teardown", body) as answer:
        assert answer.status == 200
    after = wait_until(scheduler, lambda s: running(s) and s.framework_id != before.framework_id)
    assert after.framework_id
    (marks / "finish").touch()
    assert wait_until(scheduler, done).job.verdict.outcome is Outcome.SUCCEEDED


def test_updates_that_are_lost_or_doubled_change_nothing(schedule, lasting, marks, cluster):
    cluster.faults.drop_updates(2)
    cluster.faults.duplicate_updates(4)
    scheduler = schedule(lasting)
    wait_until(scheduler, running)
    (marks / "finish").touch()
    wait_until(scheduler, done)
    assert launches(scheduler) == 1


def test_an_accept_that_never_arrived_is_found_out_and_launched_again(schedule, cluster, marks):
    cluster.faults.drop_accept_before(1)
    scheduler = schedule(command_job("true"))
    assert wait_until(scheduler, done).job.verdict.outcome is Outcome.SUCCEEDED
    assert not any(incident.charged for incident in scheduler.state().job.incidents)


def test_an_accept_whose_answer_is_lost_is_not_sent_again(schedule, lasting, marks, cluster):
    cluster.faults.drop_accept_after(1)
    scheduler = schedule(lasting)
    wait_until(scheduler, running)
    assert launches(scheduler) == 1


def test_offers_rescinded_while_we_accept_lead_to_another_launch(schedule, lasting, cluster):
    cluster.faults.rescind_at_accept(1)
    scheduler = schedule(lasting)
    state = wait_until(scheduler, running)
    assert not any(incident.charged for incident in state.job.incidents)


def test_a_master_that_refuses_for_a_while_is_waited_for(schedule, cluster):
    cluster.faults.refuse(1.0)
    scheduler = schedule(command_job("true"))
    assert wait_until(scheduler, done).job.verdict.outcome is Outcome.SUCCEEDED


def test_a_stop_ends_the_processes_of_the_tasks(schedule, lasting):
    scheduler = schedule(lasting)
    wait_until(scheduler, running)
    scheduler.submit(StopRequested("the test ends it"))
    state = wait_until(scheduler, done)
    assert {record.state for record in state.tasks.values()} == {TaskState.KILLED}


@pytest.mark.zookeeper
def test_the_state_store_may_be_away_while_the_job_runs(schedule, lasting, marks, own_zookeeper):
    scheduler = schedule(lasting, state=f"zk://{own_zookeeper.address}/jobs")
    before = wait_until(scheduler, running)
    own_zookeeper.kill()
    (marks / "finish").touch()
    own_zookeeper.restart()
    after = wait_until(scheduler, done)
    assert after.job.verdict.outcome is Outcome.SUCCEEDED
    assert after.epoch == before.epoch
