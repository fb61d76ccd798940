"""What people ask of a running job: other options, more or fewer members, pauses, restarts."""

from dataclasses import replace

import pytest

from dcos_tensorflow.core.cluster.rendering import tf_config
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.operator.plan_control import rule
from dcos_tensorflow.core.operator.rulings import CommandAnswer
from dcos_tensorflow.core.plans.deploy import deployed_standing
from dcos_tensorflow.core.plans.elements import Status
from dcos_tensorflow.core.plans.plan import plans
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import Strategy, TaskRole, UpdateStrategy
from samples.states import a_role, with_job
from simulated.mesos import Cluster
from simulated.scheduler import (
    begun,
    fail,
    fail_process,
    lose_agent_of,
    room_for_one_each,
    started,
    starts,
    task_ids,
    training,
)

PSS, MWMS = Strategy.PARAMETER_SERVER, Strategy.MULTI_WORKER
SESSIONS = Strategy.BETWEEN_GRAPH
PAUSE = events.PlanVerb.PAUSE


def a_gang(strategy=PSS, agents=8, **changes):
    ps = 0 if strategy in (MWMS, Strategy.INDEPENDENT) else 2
    return started(training(strategy, ps=ps, **changes), room_for_one_each(agents))


def with_role(spec, role, **changes):
    roles = tuple(replace(r, **changes) if r.role is role else r for r in spec.roles)
    return replace(spec, roles=roles)


def change(scheduler, role=TaskRole.WORKER, **changes):
    spec = with_role(scheduler.state.spec, role, **changes)
    return scheduler.handle(events.ConfigurationChanged(spec))


def settle(scheduler, seconds=40):
    for _ in range(int(seconds / 5)):
        scheduler.run(5)
        scheduler.cluster.run_everything()
    scheduler.run(5)


def pod(scheduler, verb, *names):
    return scheduler.handle(events.PodCommand(verb, names))


def moved(scheduler, before):
    after = task_ids(scheduler)
    return {name for name in after if after[name] != before.get(name)}


# Other options.


def test_a_parallel_update_gives_all_outdated_tasks_a_new_container_and_the_others_none():
    scheduler = a_gang()
    before = task_ids(scheduler)
    change(scheduler, env={"A": "1"})
    settle(scheduler)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert moved(scheduler, before) == {"worker-0", "worker-1"}
    assert scheduler.state.job.incidents == ()


@pytest.mark.parametrize("role", [TaskRole.WORKER, TaskRole.EVALUATOR])
def test_another_port_in_the_options_is_where_their_tasks_listen_next(role):
    scheduler = a_gang(evaluator=1)
    change(scheduler, role, port=31500)
    settle(scheduler)
    tasks = scheduler.state.tasks.values()
    assert {record.ports[0] for record in tasks if record.role is role} == {31500}


def test_a_serial_update_goes_from_task_to_task():
    scheduler = a_gang(update_strategy=UpdateStrategy.SERIAL)
    before = task_ids(scheduler)
    change(scheduler, env={"A": "1"})
    scheduler.run(15)
    assert moved(scheduler, before) == {"worker-0"}
    settle(scheduler, 60)
    assert moved(scheduler, before) == {"worker-0", "worker-1"}
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_a_canary_goes_ahead_alone_until_it_is_approved():
    scheduler = a_gang(update_strategy=UpdateStrategy.CANARY)
    before = task_ids(scheduler)
    change(scheduler, env={"A": "1"})
    settle(scheduler, 60)
    assert moved(scheduler, before) == {"worker-0"}
    scheduler.handle(events.PlanCommand("update", events.PlanVerb.RESUME))
    settle(scheduler, 60)
    assert moved(scheduler, before) == {"worker-0", "worker-1"}


def test_going_back_to_the_old_options_brings_the_old_containers_back():
    scheduler = a_gang()
    old = scheduler.state.spec
    change(scheduler, env={"A": "1"})
    settle(scheduler)
    scheduler.handle(events.ConfigurationChanged(old))
    settle(scheduler)
    assert scheduler.state.spec == old
    assert scheduler.state.job.phase is JobPhase.RUNNING
    launches = [t.launch for t in scheduler.cluster.tasks.values() if t.alive]
    assert not any("A" in launch.env for launch in launches)


def test_a_roll_back_in_the_middle_leaves_alone_what_never_went_over():
    scheduler = a_gang(update_strategy=UpdateStrategy.SERIAL)
    before, old = task_ids(scheduler), scheduler.state.spec
    change(scheduler, env={"A": "1"})
    scheduler.run(15)
    assert moved(scheduler, before) == {"worker-0"}
    scheduler.handle(events.ConfigurationChanged(old))
    settle(scheduler, 60)
    assert moved(scheduler, before) == {"worker-0"}
    assert scheduler.state.job.phase is JobPhase.RUNNING


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "other"}, "the name of a service"),
        ({"user": "root"}, "the user"),
        ({"mesos_role": "prod"}, "the Mesos role"),
        ({"principal": "p"}, "the principal"),
        ({"region": "r"}, "the region"),
        ({"strategy": Strategy.BETWEEN_GRAPH}, "the strategy would change"),
    ],
)
def test_what_cannot_be_changed_is_refused_and_nothing_happens(changes, said):
    scheduler = a_gang()
    before = task_ids(scheduler)
    spec = replace(scheduler.state.spec, **changes)
    decision = scheduler.handle(events.ConfigurationChanged(spec))
    assert said in scheduler.state.told.refused_configuration
    assert said in decision.why
    assert decision.writes == ()
    settle(scheduler)
    assert task_ids(scheduler) == before
    assert set(starts(scheduler).values()) == {1}


def test_others_join_the_only_worker_and_leave_it_again_without_a_named_strategy():
    alone = replace(training(MWMS, chief=0, ps=0, worker=1), strategy=Strategy.AUTO)
    scheduler = started(alone, room_for_one_each(8))
    before = task_ids(scheduler)
    change(scheduler, count=3)
    settle(scheduler, 60)
    assert scheduler.state.told.refused_configuration == ""
    assert [*task_ids(scheduler)] == ["worker-0", "worker-1", "worker-2"]
    assert task_ids(scheduler)["worker-0"] == before["worker-0"]
    members = tf_config(scheduler.state.spec, scheduler.state.only_gang.epoch, "worker-0")
    assert len(members["cluster"]["worker"]) == 3
    change(scheduler, count=1)
    settle(scheduler, 60)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert [*task_ids(scheduler)] == ["worker-0"]


def test_a_finished_job_takes_no_other_options():
    scheduler = a_gang()
    scheduler.handle(events.StopRequested("enough"))
    change(scheduler, env={"A": "1"})
    assert "nothing of it can be changed" in scheduler.state.told.refused_configuration


def test_options_that_fit_at_last_are_looked_at_with_all_offers():
    scheduler = begun(training(PSS), Cluster(1), seconds=30)
    assert scheduler.state.tasks == {}
    change(scheduler, TaskRole.WORKER, count=1)
    scheduler.run(10)
    assert len(scheduler.state.tasks) == 4


# More or fewer members.


def test_a_worker_more_costs_one_restart_of_the_chief_and_nothing_else():
    scheduler = a_gang()
    before = task_ids(scheduler)
    change(scheduler, count=3)
    settle(scheduler)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert moved(scheduler, before) == {"worker-2"}
    assert {n for n, c in starts(scheduler).items() if c > 1} == {"chief-0"}
    assert "worker-2" in scheduler.state.epoch.addresses


def test_a_worker_less_costs_one_restart_of_the_chief_and_nothing_else():
    scheduler = a_gang()
    before = task_ids(scheduler)
    change(scheduler, count=1)
    settle(scheduler)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert moved(scheduler, before) == set()
    assert {n for n, c in starts(scheduler).items() if c > 1} == {"chief-0"}
    assert "worker-1" not in scheduler.state.tasks
    assert "worker-1" not in scheduler.state.epoch.addresses


def test_who_leaves_is_ended_only_when_the_cluster_is_without_it():
    scheduler = a_gang()
    scheduler.cluster.runner("chief-0").stop_seconds = 5.0
    leaving = task_ids(scheduler)["worker-1"]
    change(scheduler, count=1)
    scheduler.run(3)
    assert scheduler.cluster.tasks[leaving].alive
    settle(scheduler)
    assert not scheduler.cluster.tasks[leaving].alive


def test_the_chief_has_its_whole_grace_to_save_before_it_is_told_who_joined():
    scheduler = a_gang(kill_grace_seconds=60.0)
    change(scheduler, count=3)
    settle(scheduler)
    assert starts(scheduler)["chief-0"] == 2
    assert scheduler.cluster.runner("chief-0").graces == (60.0,)


def test_no_task_waits_for_the_end_of_a_server_that_leaves():
    scheduler = a_gang()
    leaving = task_ids(scheduler)["worker-1"]
    scheduler.cluster.kill_seconds = 20.0
    change(scheduler, count=1)
    scheduler.run(3)
    assert scheduler.cluster.tasks[leaving].alive
    assert scheduler.state.tasks["worker-1"].kill_reason
    assert starts(scheduler)["chief-0"] == 2
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_who_was_to_leave_and_is_wanted_again_starts_with_the_others():
    scheduler = a_gang(MWMS)
    scheduler.cluster.runner("chief-0").stop_seconds = 5.0
    change(scheduler, count=1)
    scheduler.run(2)
    change(scheduler, count=2)
    settle(scheduler)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert len({r.ordered_at for r in scheduler.state.tasks.values()}) == 1
    assert scheduler.cluster.runner("worker-1").state == "running"


def test_when_only_one_restarts_that_is_not_wanted_any_more_the_others_train_on():
    scheduler = started(training(Strategy.INDEPENDENT, ps=0), room_for_one_each(8))
    scheduler.cluster.runner("worker-1").stop_seconds = 5.0
    pod(scheduler, events.PodVerb.RESTART, "worker-1")
    scheduler.run(2)
    change(scheduler, count=1)
    settle(scheduler)
    assert set(starts(scheduler).values()) == {1}


@pytest.mark.parametrize("count", [1, 3])
def test_another_number_of_parameter_servers_restarts_everybody(count):
    scheduler = a_gang()
    before = task_ids(scheduler)
    change(scheduler, TaskRole.PS, count=count)
    settle(scheduler)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    stayed = set(before) & set(scheduler.state.epoch.addresses)
    assert {n for n, c in starts(scheduler).items() if c > 1} == stayed
    assert scheduler.state.epoch.epoch == 2


def test_a_multi_worker_gang_grows_and_starts_as_one():
    scheduler = a_gang(MWMS)
    change(scheduler, count=4)
    settle(scheduler)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert len(scheduler.state.epoch.addresses) == 5
    assert len({r.ordered_at for r in scheduler.state.tasks.values()}) == 1


def test_more_members_than_there_is_room_for_wait_and_the_others_train_on():
    scheduler = a_gang(SESSIONS, agents=5)
    change(scheduler, count=3)
    settle(scheduler, 60)
    assert scheduler.cluster.runner("worker-1").state == "running"
    assert scheduler.cluster.runner("chief-0").state == "running"


def test_a_worker_that_left_and_is_wanted_again_joins_when_its_old_attempt_has_ended():
    scheduler = a_gang()
    old = scheduler.state.tasks["worker-1"]
    frozen = scheduler.cluster.agents[old.agent_id]
    frozen.frozen = True
    change(scheduler, count=1)
    settle(scheduler)
    change(scheduler, count=2)
    settle(scheduler)
    assert task_ids(scheduler)["worker-1"] == old.task_id
    scheduler.cluster.bring_back(frozen.agent_id)
    settle(scheduler, 60)
    assert not scheduler.cluster.tasks[old.task_id].alive
    assert scheduler.cluster.runner("worker-1").state == "running"
    assert scheduler.cluster.double_starts == []


def test_a_worker_that_left_while_containers_were_prepared_and_is_wanted_again_is_placed():
    scheduler = a_gang(MWMS, worker=3)
    cluster, before = scheduler.cluster, task_ids(scheduler)
    fail(scheduler, "worker-0", "Command terminated with signal Killed")
    while scheduler.state.job.phase is not JobPhase.STAGING:
        scheduler.run(1)
    cluster.kill_seconds = 30.0
    change(scheduler, count=1)
    cluster.run_everything()
    scheduler.run(3)
    # One of the two who leave has ended, the other has not.
    cluster.tasks[before["worker-1"]].dies_at = cluster.now
    scheduler.run(3)
    change(scheduler, count=2)
    settle(scheduler, 60)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert cluster.runner("worker-1").state == "running"


def test_what_a_paused_update_holds_back_joins_when_it_is_resumed():
    scheduler = a_gang(update_strategy=UpdateStrategy.SERIAL)
    change(scheduler, count=3, env={"MODE": "other"})
    scheduler.handle(events.PlanCommand("update", events.PlanVerb.PAUSE))
    settle(scheduler, 400)
    assert "worker-2" not in scheduler.state.tasks
    assert "worker-2" not in scheduler.state.epoch.addresses
    scheduler.handle(events.PlanCommand("update", events.PlanVerb.RESUME))
    settle(scheduler)
    assert "worker-2" in scheduler.state.epoch.addresses


def plan(scheduler, name="deploy"):
    return plans(scheduler.state.view())[name]


def steps(scheduler):
    return {s.task: s.status for phase in plan(scheduler).phases for s in phase.steps}


def test_while_new_members_wait_for_room_the_update_is_not_complete():
    scheduler = a_gang(agents=5)
    assert plan(scheduler).status is Status.COMPLETE
    change(scheduler, count=3)
    settle(scheduler)
    assert steps(scheduler)["worker-2"] is Status.PENDING
    assert plan(scheduler).status is Status.IN_PROGRESS
    scheduler.cluster.agents.update(room_for_one_each(7).agents)
    settle(scheduler)
    assert plan(scheduler).status is Status.COMPLETE


@pytest.mark.parametrize("shown_as", ["deploy", "update"])
def test_a_paused_phase_keeps_new_members_from_joining_until_it_is_resumed(shown_as):
    scheduler = a_gang()
    change(scheduler, count=3)
    scheduler.handle(events.PlanCommand(shown_as, PAUSE, "worker"))
    settle(scheduler, 400)
    assert "worker-2" not in scheduler.state.epoch.addresses
    assert (steps(scheduler)["worker-2"], plan(scheduler).status) == (
        Status.WAITING,
        Status.WAITING,
    )
    scheduler.handle(events.PlanCommand(shown_as, events.PlanVerb.RESUME, "worker"))
    settle(scheduler)
    assert "worker-2" in scheduler.state.epoch.addresses


def test_a_paused_phase_keeps_a_member_that_was_done_without_from_joining_again():
    state = with_job(a_gang().state, absent=("worker-1",))
    ruling = rule(state, events.PlanCommand("deploy", PAUSE, "worker"))
    assert ruling.controls.holds("update", "worker")
    held = replace(state, controls=ruling.controls)
    assert deployed_standing(state.view(), "worker-1")[0] is Status.PENDING
    assert deployed_standing(held.view(), "worker-1")[0] is Status.WAITING


def test_a_paused_phase_keeps_those_who_leave_until_it_is_resumed():
    scheduler = a_gang()
    pause = events.PlanCommand("update", PAUSE, "worker")
    spec = with_role(scheduler.state.spec, TaskRole.WORKER, count=1, env={"MODE": "other"})
    scheduler.handle(events.ConfigurationChanged(spec), pause)
    settle(scheduler)
    assert "worker-1" in scheduler.state.epoch.addresses
    scheduler.handle(events.PlanCommand("update", events.PlanVerb.RESUME, "worker"))
    settle(scheduler)
    assert "worker-1" not in scheduler.state.epoch.addresses


def test_a_paused_update_starts_no_sidecar_that_it_has_added():
    scheduler = a_gang()
    evaluator = a_role(TaskRole.EVALUATOR, 1)
    spec = with_role(scheduler.state.spec, TaskRole.WORKER, env={"MODE": "other"})
    spec = replace(spec, roles=(*spec.roles, evaluator))
    scheduler.handle(events.ConfigurationChanged(spec), events.PlanCommand("update", PAUSE))
    settle(scheduler)
    assert "evaluator-0" not in scheduler.state.tasks
    assert steps(scheduler)["evaluator-0"] is Status.WAITING
    scheduler.handle(events.PlanCommand("update", events.PlanVerb.RESUME))
    settle(scheduler)
    assert "evaluator-0" in scheduler.state.tasks


def test_a_refused_update_is_nothing_to_pause():
    scheduler = a_gang()
    scheduler.handle(events.ConfigurationChanged(replace(scheduler.state.spec, user="other")))
    assert plan(scheduler).status is Status.ERROR
    assert "the user" in plan(scheduler).errors[0]
    ruling = rule(scheduler.state, events.PlanCommand("deploy", PAUSE))
    assert ruling.answer is CommandAnswer.ALREADY


@pytest.mark.parametrize("strategy", list(Strategy))
def test_when_members_have_left_why_counts_who_is_there(strategy):
    scheduler = a_gang(strategy)
    before = len(scheduler.state.epoch.addresses)
    assert f"all {before} tasks" in scheduler.state.job.why
    change(scheduler, count=1)
    settle(scheduler)
    assert f"all {before - 1} tasks" in scheduler.state.job.why
    scheduler.restart()
    scheduler.run(20)
    assert f"all {before - 1} tasks" in scheduler.state.job.why


# Single tasks.


def test_a_paused_worker_is_held_and_the_others_train_on():
    scheduler = a_gang()
    pod(scheduler, events.PodVerb.PAUSE, "worker-1")
    scheduler.run(10)
    assert scheduler.cluster.runner("worker-1").state == "held"
    assert scheduler.cluster.runner("chief-0").state == "running"
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_a_resumed_worker_trains_in_its_old_container():
    scheduler = a_gang()
    before = task_ids(scheduler)
    pod(scheduler, events.PodVerb.PAUSE, "worker-1")
    scheduler.run(10)
    pod(scheduler, events.PodVerb.RESUME, "worker-1")
    scheduler.run(10)
    assert scheduler.cluster.runner("worker-1").state == "running"
    assert task_ids(scheduler) == before
    assert {n for n, c in starts(scheduler).items() if c > 1} == {"worker-1"}


def test_with_a_paused_parameter_server_the_chief_is_held_too():
    scheduler = a_gang()
    pod(scheduler, events.PodVerb.PAUSE, "ps-0")
    scheduler.run(10)
    held = {n for n in scheduler.state.tasks if scheduler.cluster.runner(n).state == "held"}
    assert held == {"ps-0", "chief-0"}
    pod(scheduler, events.PodVerb.RESUME, "ps-0")
    scheduler.run(10)
    assert {scheduler.cluster.runner(n).state for n in scheduler.state.tasks} == {"running"}


def test_pod_restart_starts_the_process_again_in_its_container():
    scheduler = a_gang()
    before = task_ids(scheduler)
    pod(scheduler, events.PodVerb.RESTART, "worker-1")
    scheduler.run(10)
    assert task_ids(scheduler) == before
    assert {n for n, c in starts(scheduler).items() if c > 1} == {"worker-1"}


def test_a_paused_recovery_plan_holds_a_restart_back_and_resuming_lets_it_go():
    scheduler = a_gang()
    scheduler.handle(events.PlanCommand("recovery", events.PlanVerb.STOP))
    fail_process(scheduler, "worker-1")
    scheduler.run(60)
    assert scheduler.cluster.runner("worker-1").state == "held"
    scheduler.handle(events.PlanCommand("recovery", events.PlanVerb.RESUME))
    scheduler.run(10)
    assert scheduler.cluster.runner("worker-1").state == "running"


def test_members_left_behind_by_a_scale_in_end_at_once_when_they_return_to_a_larger_gang():
    cluster = Cluster(2, Resources(cpus=8, mem=9000, disk=1000))
    scheduler = started(training(MWMS, ps=0, chief=0, worker=3), cluster)
    left = task_ids(scheduler)
    agent = lose_agent_of(scheduler, "worker-2")
    (other,) = set(cluster.agents) - {agent}
    cluster.lose(other)
    scheduler.run(30)
    change(scheduler, count=1)
    cluster.bring_back(other)
    scheduler.run(30)
    change(scheduler, count=3)
    cluster.bring_back(agent)
    scheduler.run(5)
    assert not any(cluster.tasks[task_id].alive for task_id in left.values())
    settle(scheduler)
    assert scheduler.state.job.phase is JobPhase.RUNNING
