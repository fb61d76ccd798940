"""Whatever keeps everybody from being placed or started says so, and an operator can end it."""

from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import Action, Kill, Reconcile
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.operator.plan_control import rule
from dcos_tensorflow.core.operator.rulings import CommandAnswer
from dcos_tensorflow.core.plans.plan import plans
from dcos_tensorflow.core.spec.service_spec import Strategy
from simulated.mesos import Cluster
from simulated.scheduler import Scheduler, begun, lose_agent_of, small_job, started, training

STRAY = "mnist__worker-1__of-another-life"


class DeafCluster(Cluster):
    """A master that neither kills nor answers a question about a task."""

    def perform(self, action: Action) -> None:
        if not isinstance(action, Kill | Reconcile):
            super().perform(action)


def with_a_stray() -> Scheduler:
    """Return a scheduler that wants to place a gang while a task that it does not know runs."""
    scheduler = Scheduler(small_job(), DeafCluster())
    scheduler.cluster.subscribe()
    scheduler.handle(scheduler.cluster.outbox.pop(0))
    scheduler.handle(events.TaskUpdate(STRAY, TaskState.RUNNING, agent_id="S0"))
    return scheduler


def test_a_task_that_does_not_die_is_named_with_what_lets_go_of_it():
    why = with_a_stray().state.only_gang.why
    assert STRAY in why
    assert f"'pod replace {STRAY}'" in why


def test_every_member_that_waits_says_so_in_the_plan():
    scheduler = with_a_stray()
    steps = [s for phase in plans(scheduler.state.view())["deploy"].phases for s in phase.steps]
    assert steps
    assert all(STRAY in step.message for step in steps)


def test_the_offers_that_go_back_meanwhile_say_so():
    scheduler = with_a_stray()
    scheduler.run(30)
    verdicts = scheduler.state.desk.log.verdicts
    assert verdicts
    assert all(STRAY in verdict.explanation for verdict in verdicts)


def test_an_attempt_that_was_let_go_of_is_waited_for_no_more():
    scheduler = with_a_stray()
    scheduler.handle(events.PodCommand(events.PodVerb.REPLACE, (STRAY,)))
    scheduler.run(30)
    assert scheduler.state.job.phase is not JobPhase.PLACING


def test_letting_go_twice_is_as_good_as_once():
    scheduler = with_a_stray()
    command = events.PodCommand(events.PodVerb.REPLACE, (STRAY,))
    scheduler.handle(command)
    assert rule(scheduler.state, command).answer is CommandAnswer.ALREADY


def test_what_was_let_go_of_is_forgotten_once_it_has_ended():
    scheduler = with_a_stray()
    scheduler.handle(events.PodCommand(events.PodVerb.REPLACE, (STRAY,)))
    scheduler.handle(events.TaskUpdate(STRAY, TaskState.KILLED, agent_id="S0"))
    assert scheduler.state.controls.let_go == ()
    assert STRAY not in scheduler.state.strays


def test_a_replacement_by_name_never_lets_go_of_an_old_attempt():
    scheduler = with_a_stray()
    scheduler.handle(events.PodCommand(events.PodVerb.REPLACE, ("worker-1",)))
    assert scheduler.state.controls.let_go == ()


def test_nothing_is_said_any_more_once_the_stray_has_ended():
    scheduler = with_a_stray()
    scheduler.handle(events.TaskUpdate(STRAY, TaskState.KILLED, agent_id="S0"))
    assert STRAY not in scheduler.state.only_gang.why


def test_an_answer_that_the_master_owes_is_waited_for_by_name():
    scheduler = started()
    task_id = scheduler.state.tasks["worker-1"].task_id
    lose_agent_of(scheduler, "worker-1")
    scheduler.handle(events.PodCommand(events.PodVerb.REPLACE, ("worker-1",)))
    scheduler.handle(events.Registered("framework-1", "127.0.0.1:5050"))
    assert task_id in scheduler.state.only_gang.why


def test_the_number_of_names_in_a_sentence_is_bounded():
    scheduler = begun(training(Strategy.INDEPENDENT, worker=200, ps=0, chief=0), Cluster(agents=0))
    assert len(scheduler.state.job.why) < 300
