"""Machines that say that they are taken back: who leaves them, and when."""

import json
import math

import pytest

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.agents.maintenance import TOLD_AGAIN_SECONDS
from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.spec.service_spec import RetrySpec, Strategy
from simulated.mesos import Cluster
from simulated.scheduler import (
    Scheduler,
    recover,
    room_for_one_each,
    started,
    starts,
    task_ids,
    training,
)

PSS = Strategy.PARAMETER_SERVER
GANG = 5


def a_gang(agents: int = 8, **changes: object) -> Scheduler:
    return started(training(PSS, kill_grace_seconds=10.0, **changes), room_for_one_each(agents))


def give_notice(scheduler: Scheduler, name: str, seconds: float = 120, **told: object) -> str:
    """Let the machine of a task say that it goes; return its agent."""
    at = scheduler.cluster.now + seconds
    notice = {"kind": contract.NOTICE_INTERRUPTION, "at": at, **told}
    scheduler.cluster.runner(name).notice = notice
    return str(scheduler.state.tasks[name].agent_id)


def test_runners_on_spot_machines_alone_are_told_to_look() -> None:
    cluster = room_for_one_each(GANG)
    cluster.agents["S0"].attributes["market"] = "spot"
    cluster.agents["S1"].attributes["market"] = "on-demand"
    started(training(PSS), cluster)
    specs = {
        task.launch.agent_id: json.loads(task.launch.env[contract.RUNNER_SPEC_VARIABLE])
        for task in cluster.tasks.values()
    }
    assert {agent for agent, spec in specs.items() if "is_spot" in spec} == {"S0"}


def test_a_task_leaves_soon_where_there_is_another_place() -> None:
    scheduler = a_gang()
    before = task_ids(scheduler)
    agent_id = give_notice(scheduler, "worker-1")
    scheduler.run(15)
    recover(scheduler, 10)
    assert scheduler.state.tasks["worker-1"].agent_id != agent_id
    assert {n for n, t in task_ids(scheduler).items() if t != before[n]} == {"worker-1"}
    assert scheduler.state.job.incidents == ()


def test_it_trains_on_for_as_long_as_there_is_no_other_place() -> None:
    scheduler = a_gang(agents=GANG)
    give_notice(scheduler, "worker-1")
    scheduler.run(85)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert scheduler.cluster.runner("worker-1").state == contract.RUNNER_RUNNING
    host = scheduler.state.tasks["worker-1"].hostname
    assert scheduler.state.job.why == (
        f"{host} is taken back by its provider: worker-1 trains on and looks for another place"
    )


def test_it_leaves_in_time_to_save_wherever_to() -> None:
    scheduler = a_gang(agents=GANG)
    give_notice(scheduler, "worker-1")
    scheduler.run(95)
    assert scheduler.state.job.phase is JobPhase.PLACING
    assert scheduler.state.job.incidents == ()


def test_it_moves_as_soon_as_another_machine_is_there() -> None:
    scheduler = a_gang(agents=GANG)
    agent_id = give_notice(scheduler, "worker-1")
    scheduler.run(40)
    scheduler.cluster.add_agent()
    scheduler.run(20)
    recover(scheduler, 10)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert scheduler.state.tasks["worker-1"].agent_id != agent_id


def test_those_of_a_gang_move_together() -> None:
    scheduler = a_gang(agents=GANG + 1)
    for name in ("worker-0", "worker-1"):
        give_notice(scheduler, name)
    scheduler.run(60)
    before = task_ids(scheduler)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    scheduler.cluster.add_agent()
    scheduler.run(15)
    recover(scheduler, 5)
    moved = {n for n, task_id in task_ids(scheduler).items() if task_id != before[n]}
    assert moved == {"worker-0", "worker-1"}
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_notices_that_come_within_seconds_lead_to_one_move() -> None:
    scheduler = a_gang()
    give_notice(scheduler, "worker-1")
    scheduler.run(6)
    give_notice(scheduler, "worker-0", 114)
    scheduler.run(15)
    recover(scheduler, 10)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert starts(scheduler)["chief-0"] == 2
    assert (scheduler.state.epoch or ClusterSpec(0)).epoch == 2


def test_nothing_is_placed_on_a_machine_that_goes() -> None:
    cluster = Cluster(2)
    scheduler = started(training(PSS, worker=1, ps=1), cluster)
    agent_id = give_notice(scheduler, "worker-0", 30)
    scheduler.run(20)
    recover(scheduler, 10)
    assert agent_id not in {r.agent_id for r in scheduler.state.tasks.values()}
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_a_notice_costs_no_retry() -> None:
    scheduler = a_gang(retry=RetrySpec(limit=0))
    give_notice(scheduler, "chief-0")
    scheduler.run(20)
    recover(scheduler, 10)
    assert scheduler.state.job.phase is JobPhase.RUNNING


def test_the_decider_saves_first() -> None:
    scheduler = a_gang()
    scheduler.cluster.runner("chief-0").stop_seconds = 9.0
    give_notice(scheduler, "ps-0", 60)
    scheduler.run(3)
    assert scheduler.cluster.runner("chief-0").state == contract.RUNNER_STOPPING
    assert scheduler.cluster.runner("ps-0").state == contract.RUNNER_RUNNING


def test_a_clock_that_is_off_does_not_make_it_late() -> None:
    scheduler = a_gang(agents=GANG)
    give_notice(scheduler, "worker-1", 4000)
    scheduler.run(100)
    assert scheduler.state.job.phase is JobPhase.PLACING


def test_a_notice_is_forgotten_when_it_is_long_over() -> None:
    scheduler = a_gang()
    give_notice(scheduler, "worker-1")
    scheduler.run(20)
    recover(scheduler, 10)
    scheduler.run(900, tick=10.0)
    second = give_notice(scheduler, "worker-0")
    scheduler.run(10)
    assert set(scheduler.state.maintenance.noticed) == {second}


def test_a_machine_that_stayed_is_left_again_when_it_says_so_again() -> None:
    scheduler = a_gang(agents=GANG)
    give_notice(scheduler, "worker-1", 60)
    scheduler.run(60 + TOLD_AGAIN_SECONDS + 10)
    recover(scheduler, 10)
    agent_id = give_notice(scheduler, "worker-1", 60)
    scheduler.run(10)
    assert scheduler.state.maintenance.noticed[agent_id] > scheduler.cluster.now


def test_a_notice_that_is_long_over_is_none() -> None:
    scheduler = a_gang(agents=GANG)
    give_notice(scheduler, "worker-1", -TOLD_AGAIN_SECONDS - 1)
    scheduler.run(10)
    assert scheduler.state.maintenance.noticed == {}


def test_a_machine_that_stayed_is_used_as_soon_as_its_notice_is_forgotten() -> None:
    scheduler = a_gang(agents=GANG)
    give_notice(scheduler, "worker-1", 60)
    scheduler.run(60 + TOLD_AGAIN_SECONDS - 10)
    assert scheduler.state.job.phase is JobPhase.PLACING
    scheduler.run(30)
    assert scheduler.state.job.phase is not JobPhase.PLACING


def test_a_machine_that_may_go_moves_no_task() -> None:
    scheduler = a_gang()
    before = task_ids(scheduler)
    give_notice(scheduler, "worker-1", kind=contract.NOTICE_REBALANCE)
    scheduler.run(60)
    assert task_ids(scheduler) == before


def test_a_machine_that_shuts_down_is_left_at_once() -> None:
    scheduler = a_gang()
    agent_id = give_notice(scheduler, "worker-1", 0)
    scheduler.run(2)
    assert scheduler.state.job.phase is not JobPhase.RUNNING
    recover(scheduler, 10)
    assert agent_id not in {r.agent_id for r in scheduler.state.tasks.values()}
    assert scheduler.state.job.incidents == ()


def advised(agents: int, name: str = "worker-1") -> Scheduler:
    """A gang that leaves machines which may go, one of which says so."""
    scheduler = a_gang(agents, leave_on_rebalance=True)
    give_notice(scheduler, name, kind=contract.NOTICE_REBALANCE)
    return scheduler


def test_who_is_told_to_leaves_a_machine_that_may_go_for_another() -> None:
    scheduler = advised(GANG + 1)
    before = scheduler.state.tasks["worker-1"].agent_id
    scheduler.run(20)
    recover(scheduler, 10)
    assert scheduler.state.tasks["worker-1"].agent_id != before
    assert scheduler.state.job.incidents == ()


def test_no_task_leaves_a_machine_that_may_go_for_no_other() -> None:
    scheduler = advised(GANG)
    before = task_ids(scheduler)
    scheduler.run(300)
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert task_ids(scheduler) == before


def test_a_machine_that_may_go_and_then_does_is_left_in_time() -> None:
    scheduler = advised(GANG)
    scheduler.run(300)
    give_notice(scheduler, "worker-1")
    scheduler.run(100)
    assert scheduler.state.job.phase is JobPhase.PLACING


def test_what_may_go_is_known_to_the_next_scheduler() -> None:
    scheduler = advised(GANG)
    scheduler.run(30)
    known = scheduler.state.maintenance.advised
    scheduler.restart()
    assert known
    assert scheduler.state.maintenance.advised == known


@pytest.mark.parametrize("at", [None, "soon", -1, math.nan, math.inf, True])
def test_a_notice_that_says_nothing_is_none(at: object) -> None:
    scheduler = a_gang()
    give_notice(scheduler, "worker-1", at=at)
    scheduler.run(20)
    assert set(scheduler.state.maintenance.noticed) <= {scheduler.state.tasks["worker-1"].agent_id}
    if at is not True:
        assert scheduler.state.maintenance.noticed == {}
