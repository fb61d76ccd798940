"""A task that waits while the job runs is shown, and a gang that does nothing starts again."""

from dataclasses import replace

import pytest

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.failures import causes
from dcos_tensorflow.core.failures.waits import START_SECONDS, Wait, waits
from dcos_tensorflow.core.model.events import RunnerReported
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.service_spec import Strategy
from simulated.scheduler import Scheduler, fail_process, recover, started, starts, training

PSS, MWMS = Strategy.PARAMETER_SERVER, Strategy.MULTI_WORKER
SESSIONS, ALONE = Strategy.BETWEEN_GRAPH, Strategy.INDEPENDENT
IDLE_SECONDS = 300.0


def a_job(strategy: Strategy = MWMS, **changes: object) -> Scheduler:
    counts = {"ps": 1 if strategy in (PSS, SESSIONS) else 0, "chief": 1, "worker": 1, **changes}
    return started(training(strategy, idle_seconds=IDLE_SECONDS, **counts))  # type: ignore[arg-type]


def let_rest(scheduler: Scheduler, *names: str) -> None:
    """Let the processes of tasks, or of all, do nothing from now on."""
    for name in names or tuple(scheduler.state.tasks):
        scheduler.cluster.runner(name).idle_since = scheduler.cluster.now
    scheduler.run(1)


def told(scheduler: Scheduler, seconds: float = 0.0) -> list[Wait]:
    """What is told so many seconds from now."""
    return list(waits(scheduler.state.view(), scheduler.cluster.now + seconds))


# Who waits for whom.


def test_who_waits_for_a_port_is_told_of_with_whose_it_is_and_what_ends_it():
    scheduler = a_job(SESSIONS)
    address = scheduler.state.epoch.addresses["ps-0"]
    scheduler.cluster.runner("worker-0").wait_for(address, "script")
    scheduler.run(START_SECONDS)
    (wait,) = told(scheduler)
    assert (wait.tasks, wait.waits_for) == (("worker-0",), ("ps-0",))
    assert wait.since == scheduler.state.tasks["worker-0"].began_at
    assert wait.why == f"worker-0 waits for ps-0 ({address}) to listen"
    assert wait.ends == "it starts without after 300 s"
    assert f"({round(scheduler.cluster.now - wait.since)} s; it" not in wait.told(wait.since)
    assert "(for 60 s; it starts without" in wait.told(wait.since + 60)
    assert "(for 5 min; it starts without" in wait.told(wait.since + 320)


def test_a_start_is_no_wait():
    scheduler = a_job(SESSIONS)
    scheduler.cluster.runner("worker-0").wait_for("10.0.0.1:31000", "script")
    scheduler.run(5)
    assert told(scheduler) == []


def test_who_waits_for_a_server_that_has_ended_waits_for_nothing_else():
    scheduler = a_job(SESSIONS, outcome_grace_seconds=40.0)
    address = scheduler.state.epoch.addresses["ps-0"]
    scheduler.cluster.runner("worker-0").wait_for(address, "command")
    scheduler.cluster.report(scheduler.cluster.id_of("ps-0"), TaskState.FINISHED)
    scheduler.run(50)
    ended = next(w for w in told(scheduler) if "has ended by itself" in w.why)
    assert ended.waits_for == ("ps-0",)
    assert ended.since == scheduler.state.tasks["ps-0"].changed_at
    assert "does nothing for 120 s" in ended.ends


def test_a_start_whose_data_is_brought_for_long_is_told_of():
    scheduler = a_job()
    scheduler.cluster.runner("worker-0").state = contract.RUNNER_PREPARING
    scheduler.run(START_SECONDS)
    (wait,) = told(scheduler)
    assert wait.tasks == ("worker-0",)
    assert "worker-0 has not begun" in wait.why


def test_in_a_gang_that_steps_together_who_does_nothing_waits_for_the_others():
    scheduler = a_job(worker=2)
    let_rest(scheduler, "chief-0", "worker-1")
    (wait,) = told(scheduler)
    assert (wait.tasks, wait.waits_for) == (("chief-0", "worker-1"), ("worker-0",))


@pytest.mark.parametrize("strategy", [PSS, SESSIONS, ALONE])
def test_elsewhere_one_that_does_nothing_may_have_nothing_to_do(strategy):
    scheduler = a_job(strategy)
    let_rest(scheduler, "worker-0")
    assert told(scheduler) == []


def test_no_task_waits_in_a_job_that_is_over():
    scheduler = a_job()
    let_rest(scheduler)
    assert told(scheduler)
    scheduler.cluster.report(scheduler.cluster.id_of("chief-0"), TaskState.FINISHED)
    scheduler.run(1)
    assert told(scheduler) == []


# A standstill.


def test_an_idle_gang_is_told_of_and_then_starts_again():
    scheduler = a_job()
    let_rest(scheduler)
    (wait,) = told(scheduler)
    assert "no task does anything" in wait.why
    assert "after 300 s of that (service.idle_seconds) all tasks start again" in wait.ends
    scheduler.run(IDLE_SECONDS - 10)
    assert scheduler.state.job.incidents == ()
    scheduler.run(20)
    (incident,) = scheduler.state.job.incidents
    assert (incident.kind, incident.charged) == (causes.STANDSTILL, True)
    recover(scheduler, 20)
    assert starts(scheduler) == {"chief-0": 2, "worker-0": 2}
    assert scheduler.state.job.phase is JobPhase.RUNNING
    assert told(scheduler) == []


def test_a_task_that_computes_keeps_all_others_from_being_given_up():
    scheduler = a_job(PSS)
    let_rest(scheduler, "ps-0", "worker-0")
    scheduler.run(2 * IDLE_SECONDS, tick=4)
    assert scheduler.state.job.incidents == ()


@pytest.mark.parametrize("state", [contract.RUNNER_PREPARING, "unheard"])
def test_a_task_of_unknown_activity_is_not_called_idle(state):
    scheduler = a_job()
    let_rest(scheduler)
    scheduler.cluster.runner("worker-0").state = state
    scheduler.run(2 * IDLE_SECONDS, tick=4)
    assert scheduler.state.job.incidents == ()


def test_an_agent_that_does_not_answer_is_no_standstill():
    scheduler = a_job(replace_after_seconds=10_000.0)
    let_rest(scheduler)
    scheduler.cluster.lose(scheduler.state.tasks["worker-0"].agent_id)
    scheduler.run(2 * IDLE_SECONDS, tick=4)
    assert [i.kind for i in scheduler.state.job.incidents] == []


def test_without_a_subscription_no_task_is_too_late():
    scheduler = a_job()
    let_rest(scheduler)
    scheduler.state = replace(
        scheduler.state, subscription=replace(scheduler.state.subscription, registered=False)
    )
    scheduler.run(2 * IDLE_SECONDS, tick=4)
    assert scheduler.state.job.incidents == ()


@pytest.mark.parametrize(
    "changes",
    [{"strategy": Strategy.AUTO}, {"idle_seconds": 0.0}],
    ids=["the strategy is not known", "the option says never"],
)
def test_a_standstill_that_may_be_wanted_is_told_of_and_left_alone(changes):
    asked = {"ps": 0, "worker": 1, "strategy": MWMS, "idle_seconds": IDLE_SECONDS, **changes}
    scheduler = started(training(**asked))
    let_rest(scheduler)
    (wait,) = told(scheduler)
    assert "this wait does not end by itself" in wait.ends
    scheduler.run(20 * IDLE_SECONDS, tick=8)
    assert scheduler.state.job.incidents == ()


def test_a_task_alone_may_wait_for_anything():
    scheduler = a_job(ALONE, chief=0)
    let_rest(scheduler)
    assert len(told(scheduler)) == 1
    scheduler.run(20 * IDLE_SECONDS, tick=8)
    assert scheduler.state.job.incidents == ()


def test_a_standstill_that_comes_again_and_again_ends_the_job():
    scheduler = a_job()
    for _ in range(5):
        if scheduler.state.job.verdict is None:
            let_rest(scheduler)
            scheduler.run(IDLE_SECONDS + 5)
            recover(scheduler, 30)
    assert scheduler.state.job.verdict is not None
    assert "no task does anything" in scheduler.state.job.verdict.summary


def test_a_report_of_before_says_nothing_of_a_new_start():
    scheduler = a_job()
    scheduler.run(100)
    let_rest(scheduler)
    fail_process(scheduler, "worker-0", "interrupted", 137)
    recover(scheduler, 30)
    assert told(scheduler) == []


# Machines that do not reach each other.


def unreached(scheduler: Scheduler, name: str, **said: object) -> None:
    """Let the runner of a task say whom it does not reach."""
    record = scheduler.state.tasks[name]
    report = {**scheduler.state.told.reports[record.task_id], **said}
    scheduler.handle(RunnerReported(record.task_id, report))


def test_machines_that_do_not_reach_another_are_told_with_the_reason_and_the_remedy():
    scheduler = a_job(SESSIONS)
    address = scheduler.state.epoch.addresses["ps-0"]
    for name in ("chief-0", "worker-0"):
        unreached(scheduler, name, unreachable={address: contract.UNREACHABLE_SILENT})
    (wait,) = told(scheduler)
    assert (wait.tasks, wait.waits_for) == (("chief-0", "worker-0"), ("ps-0",))
    hosts = [scheduler.state.tasks[name].hostname for name in wait.tasks]
    whose = f"chief-0 on {hosts[0]}, worker-0 on {hosts[1]}"
    assert wait.why == f"{whose}: no way to ps-0 ({address}): no answer"
    assert "firewall" in wait.ends


def test_a_task_that_makes_steps_has_reached_its_peers():
    scheduler = a_job(SESSIONS)
    away = {scheduler.state.epoch.addresses["ps-0"]: contract.UNREACHABLE_ROUTE}
    unreached(scheduler, "worker-0", unreachable=away, progress={"step": 3})
    assert told(scheduler) == []


def test_a_refusal_is_told_once_the_server_listens_for_as_long_as_a_start_takes():
    scheduler = a_job(SESSIONS)
    refused = {scheduler.state.epoch.addresses["ps-0"]: contract.UNREACHABLE_REFUSED}
    unreached(scheduler, "worker-0", unreachable=refused)
    assert told(scheduler) == []
    unreached(scheduler, "ps-0", listens_since=scheduler.cluster.now)
    assert told(scheduler, START_SECONDS - 1) == []
    (wait,) = told(scheduler, START_SECONDS)
    assert (wait.tasks, wait.waits_for) == (("worker-0",), ("ps-0",))
    assert "127.0.0.1" in wait.ends


@pytest.mark.parametrize("said", [5, "x", ["10.0.0.1:1"], None])
def test_nonsense_of_a_runner_is_no_unreached_machine(said):
    scheduler = a_job(SESSIONS)
    unreached(scheduler, "worker-0", unreachable=said)
    assert told(scheduler) == []
