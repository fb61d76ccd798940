"""The step function: how long the job's end waits for the evaluation of the last checkpoint."""

import pytest

from dcos_tensorflow.core.model.events import PodCommand, PodVerb
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import Strategy
from simulated.mesos import Cluster
from simulated.scheduler import fail, started, training

#: What evaluators of these tests need for a checkpoint; the grace is shorter.
EVALUATION = 40
GRACE = 5.0


class Job:
    """A chief, a worker and an evaluator that share a directory of checkpoints."""

    def __init__(self, cluster: Cluster | None = None) -> None:
        roles = {"ps": 0, "chief": 1, "worker": 1, "evaluator": 1}
        spec = training(Strategy.MULTI_WORKER, outcome_grace_seconds=GRACE, **roles)
        self.scheduler = started(spec, cluster or Cluster())
        self.scheduler.run(5)

    @property
    def cluster(self) -> Cluster:
        return self.scheduler.cluster

    @property
    def phase(self) -> JobPhase:
        return self.scheduler.state.job.phase

    @property
    def summary(self) -> str:
        return self.scheduler.state.job.verdict.summary

    def runner(self, name):
        return self.cluster.runner(name)

    def save(self, step):
        for name in ("chief-0", "evaluator-0"):
            self.runner(name).checkpoint = step
        self.scheduler.run(2)

    def evaluate(self, step, seconds=EVALUATION):
        self.scheduler.run(seconds)
        evaluator = self.runner("evaluator-0")
        evaluator.step, evaluator.told_at = step, self.cluster.now
        self.scheduler.run(2)

    def finish(self):
        self.cluster.report(self.cluster.id_of("chief-0"), TaskState.FINISHED)
        self.cluster.report(self.cluster.id_of("worker-0"), TaskState.FINISHED)
        self.scheduler.run(2)


@pytest.fixture
def job():
    return Job()


def test_the_end_waits_for_the_last_checkpoint_of_an_evaluator_that_has_told_one(job):
    job.save(1)
    job.evaluate(1)
    job.save(2)
    job.finish()
    job.scheduler.run(EVALUATION)
    assert job.phase is JobPhase.FINISHING
    assert "evaluator-0 has time for the last checkpoint (step 2)" in job.scheduler.state.job.why
    job.evaluate(2, seconds=1)
    job.scheduler.run(GRACE + 5)
    assert job.phase is JobPhase.DONE
    assert "evaluation" not in job.summary


def test_an_evaluator_has_the_grace_after_it_told_the_last_checkpoint(job):
    job.save(1)
    job.evaluate(1)
    job.save(2)
    job.finish()
    job.evaluate(2)
    job.scheduler.run(GRACE - 3)
    assert job.phase is JobPhase.FINISHING
    job.scheduler.run(5)
    assert job.phase is JobPhase.DONE


def test_the_end_waits_for_an_evaluator_whose_first_evaluation_is_under_way(job):
    job.save(1)
    job.save(2)
    job.finish()
    job.evaluate(1)
    job.scheduler.run(EVALUATION)
    assert job.phase is JobPhase.FINISHING


def test_an_evaluator_that_takes_much_longer_than_before_is_ended_and_the_summary_says_so(job):
    job.save(1)
    job.evaluate(1)
    job.save(2)
    job.finish()
    job.scheduler.run(2 * EVALUATION + 20)
    assert job.phase is JobPhase.DONE
    assert job.summary == (
        "chief-0 finished with 0; evaluator-0 told no evaluation of the last checkpoint (step 2);"
        " service.outcome_grace_seconds gives more time"
    )


def test_the_pause_between_two_checkpoints_is_no_part_of_an_evaluation(job):
    job.save(1)
    job.evaluate(1, seconds=8)
    job.scheduler.run(600)
    job.save(2)
    job.evaluate(2, seconds=8)
    job.save(3)
    job.finish()
    job.scheduler.run(40)
    assert job.phase is JobPhase.DONE


def test_the_time_that_an_operator_holds_an_evaluator_is_no_part_of_an_evaluation(job):
    job.save(1)
    job.scheduler.handle(PodCommand(PodVerb.PAUSE, ("evaluator-0",)))
    job.scheduler.run(600)
    job.scheduler.handle(PodCommand(PodVerb.RESUME, ("evaluator-0",)))
    job.scheduler.run(5)
    job.evaluate(1, seconds=8)
    job.save(2)
    job.finish()
    job.scheduler.run(60)
    assert job.phase is JobPhase.DONE


def test_an_evaluator_with_nothing_left_to_evaluate_has_the_grace_alone(job):
    job.save(1)
    job.evaluate(1)
    job.finish()
    job.scheduler.run(GRACE + 5)
    assert job.phase is JobPhase.DONE
    assert job.summary == "chief-0 finished with 0"


def test_an_evaluator_that_does_nothing_is_not_waited_for(job):
    job.save(1)
    job.runner("evaluator-0").idle_since = job.cluster.now
    job.finish()
    job.scheduler.run(GRACE + 5)
    assert job.phase is JobPhase.DONE


def test_an_evaluator_without_a_checkpoint_is_not_waited_for(job):
    job.finish()
    job.scheduler.run(GRACE + 5)
    assert (job.phase, job.summary) == (JobPhase.DONE, "chief-0 finished with 0")


def test_an_evaluator_that_evaluates_old_checkpoints_for_ever_is_ended(job):
    job.save(1)
    job.evaluate(1, seconds=8)
    job.save(90)
    job.finish()
    for step in range(2, 14):
        if job.phase is JobPhase.DONE:
            break
        job.evaluate(step, seconds=8)
    job.scheduler.run(20)
    assert job.phase is JobPhase.DONE


def test_an_evaluator_that_counts_other_steps_than_the_checkpoints_is_not_judged(job):
    job.save(1)
    job.evaluate(500, seconds=8)
    job.finish()
    job.scheduler.run(40)
    assert (job.phase, job.summary) == (JobPhase.DONE, "chief-0 finished with 0")


def test_the_summary_names_an_evaluator_that_failed_before_the_last_checkpoint(job):
    job.save(3)
    fail(job.scheduler, "evaluator-0")
    job.finish()
    job.scheduler.run(GRACE + 5)
    assert "evaluator-0 told no evaluation of the last checkpoint (step 3)" in job.summary


def test_the_summary_names_an_evaluator_that_found_no_room():
    job = Job(Cluster(agents=2, resources=Resources(cpus=1, mem=2048, disk=10000)))
    job.runner("chief-0").checkpoint = 3
    job.scheduler.run(2)
    job.finish()
    job.scheduler.run(GRACE + 5)
    assert "evaluator-0 told no evaluation of the last checkpoint (step 3)" in job.summary


def test_a_new_scheduler_does_not_wait_longer_than_for_an_unknown_evaluator(job):
    job.save(1)
    job.evaluate(1)
    job.save(2)
    job.finish()
    job.scheduler.restart()
    job.scheduler.run(150)
    assert job.phase is JobPhase.DONE
