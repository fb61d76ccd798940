"""The step function: whose end is the job's end."""

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.job import JobPhase, Outcome
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.service_spec import OutcomePolicy, Strategy
from simulated.mesos import Cluster
from simulated.scheduler import begun, fail, small_job, started, training


def test_when_the_decider_finishes_the_job_has_succeeded_and_everything_is_given_back():
    scheduler = started()
    cluster = scheduler.cluster
    cluster.report(cluster.id_of("worker-0"), TaskState.FINISHED)
    scheduler.run(60)
    assert scheduler.state.job.verdict.outcome is Outcome.SUCCEEDED
    assert scheduler.state.job.phase is JobPhase.DONE
    assert cluster.alive() == []


def test_what_a_task_told_last_is_known_though_no_scheduler_asked_it_then():
    scheduler = started()
    task_id = scheduler.cluster.id_of("worker-0")
    scheduler.cluster.report(task_id, TaskState.FINISHED)
    scheduler.run(1)
    scheduler.handle(events.EvidenceFound(task_id, "", progress={"step": 5}))
    assert scheduler.state.told.reports[task_id]["progress"] == {"step": 5}


def test_the_others_may_end_by_themselves_within_the_grace():
    scheduler = started(small_job(outcome_grace_seconds=30.0))
    cluster = scheduler.cluster
    cluster.report(cluster.id_of("worker-0"), TaskState.FINISHED)
    scheduler.run(5)
    assert scheduler.state.job.phase is JobPhase.FINISHING
    cluster.report(cluster.id_of("worker-1"), TaskState.FINISHED)
    scheduler.run(2)
    assert scheduler.state.job.phase is JobPhase.DONE


def test_workers_that_are_servers_end_with_the_chief_and_the_evaluator_may_end_by_itself():
    counts = {"ps": 1, "chief": 1, "worker": 2, "evaluator": 1}
    job = training(Strategy.PARAMETER_SERVER, outcome_grace_seconds=30.0, **counts)
    scheduler = started(job)
    cluster = scheduler.cluster
    scheduler.run(5)
    cluster.report(cluster.id_of("chief-0"), TaskState.FINISHED)
    scheduler.run(2)
    assert scheduler.state.job.phase is JobPhase.FINISHING
    cluster.report(cluster.id_of("evaluator-0"), TaskState.FINISHED)
    scheduler.run(2)
    assert scheduler.state.job.phase is JobPhase.DONE
    assert scheduler.state.tasks["worker-1"].state is TaskState.KILLED


def test_a_parameter_server_ended_by_the_policy_is_no_failure():
    scheduler = started()
    cluster = scheduler.cluster
    cluster.report(cluster.id_of("worker-0"), TaskState.FINISHED)
    cluster.report(cluster.id_of("worker-1"), TaskState.FINISHED)
    scheduler.run(5)
    assert scheduler.state.tasks["ps-0"].state is TaskState.KILLED
    assert scheduler.state.job.verdict.exit_code == 0


def test_with_all_workers_one_finished_worker_is_not_the_end():
    scheduler = started(small_job(outcome=OutcomePolicy.ALL_WORKERS))
    cluster = scheduler.cluster
    cluster.report(cluster.id_of("worker-0"), TaskState.FINISHED)
    scheduler.run(60)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    cluster.report(cluster.id_of("worker-1"), TaskState.FINISHED)
    scheduler.run(5)
    assert scheduler.state.job.verdict.outcome is Outcome.SUCCEEDED


def test_a_worker_that_fails_after_the_decider_finished_changes_nothing():
    scheduler = started()
    cluster = scheduler.cluster
    cluster.report(cluster.id_of("worker-0"), TaskState.FINISHED)
    scheduler.run(1)
    fail(scheduler, "worker-1")
    scheduler.run(20)
    assert scheduler.state.job.verdict.outcome is Outcome.SUCCEEDED


def test_a_decider_that_finished_while_the_gang_was_being_stopped_has_decided():
    scheduler = started()
    cluster = scheduler.cluster
    fails, finishes = cluster.id_of("worker-1"), cluster.id_of("worker-0")
    cluster.report(fails, TaskState.FAILED, "Command exited with status 1")
    cluster.report(finishes, TaskState.FINISHED)
    scheduler.run(60)
    assert scheduler.state.job.verdict.outcome is Outcome.SUCCEEDED
    assert len(cluster.launch_history) == 3


def test_a_stop_ends_every_task_and_the_verdict_is_stopped():
    scheduler = started()
    scheduler.handle(events.StopRequested("asked for by a person"))
    scheduler.run(5)
    assert scheduler.cluster.alive() == []
    assert scheduler.state.job.verdict.outcome is Outcome.STOPPED


def test_a_stopped_task_saves_through_its_servers_which_end_after_it():
    job = training(Strategy.PARAMETER_SERVER, **{"ps": 1, "chief": 1, "worker": 2, "evaluator": 1})
    scheduler = started(job)
    cluster = scheduler.cluster
    scheduler.run(5)
    cluster.kill_seconds = 5.0
    chief = cluster.id_of("chief-0")
    scheduler.handle(events.StopRequested("asked for by a person"))
    while cluster.tasks[chief].alive:
        killed = {n for n, r in scheduler.state.tasks.items() if r.kill_reason}
        scheduler.run(0.5)
    assert killed == {"chief-0", "evaluator-0"}
    scheduler.run(8)
    assert cluster.alive() == []
    assert scheduler.state.job.phase is JobPhase.DONE


def test_a_stop_while_the_gang_waits_for_offers_ends_at_once():
    scheduler = begun(small_job(), Cluster(agents=0))
    scheduler.handle(events.StopRequested("asked for by a person"))
    scheduler.run(2)
    assert scheduler.state.job.phase is JobPhase.DONE
