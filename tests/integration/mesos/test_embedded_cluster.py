"""The gateway on an embedded cluster: real processes, and every fault a master can have."""

import queue
from dataclasses import replace

import pytest

from cluster_faults import FaultyCluster
from dcos_tensorflow.core.model.actions import (
    Accept,
    AcceptInverse,
    Acknowledge,
    Decline,
    Kill,
    LaunchTask,
    Reconcile,
    Revive,
    Suppress,
    Teardown,
)
from dcos_tensorflow.core.model.events import (
    CallFailed,
    Disconnected,
    FrameworkRefused,
    InverseOfferRescinded,
    InverseOffersReceived,
    OfferRescinded,
    OffersReceived,
    Registered,
    TaskUpdate,
)
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import RoleSpec, ServiceSpec, TaskRole
from dcos_tensorflow.mesos.agent_files import AgentFiles, FileNotFound
from dcos_tensorflow.mesos.gateway import MesosConfig, MesosGateway
from dcos_tensorflow.mesos.stream import ReconnectBackoff
from dcos_tensorflow.mesos.wire.convert import framework_info
from embedded_mesos import AgentConfig, Timing
from mesos_at import files_at

FAST = Timing(
    allocation=0.05,
    update_retry=0.3,
    agent_ping=0.1,
    agent_ping_timeouts=3,
    agent_registration=0.05,
)
AGENTS = (
    AgentConfig("127.0.0.2", cpus=4, ports=(31000, 31099), attributes={"rack": "r1"}),
    AgentConfig("127.0.0.3", cpus=4, ports=(32000, 32099), attributes={"rack": "r2"}),
)
SPEC = ServiceSpec(
    "mnist",
    (RoleSpec(TaskRole.WORKER, 2, Resources(1.0, 32.0)),),
    mesos_role="tensorflow",
    failover_timeout_seconds=60.0,
)
WAIT = 15


class Scheduler:
    """A scheduler without a core: it keeps what it hears and acknowledges updates."""

    def __init__(self, masters, framework_id=None, **config):
        self.heard = []
        self._queue = queue.Queue()
        self.gateway = MesosGateway(MesosConfig(masters, **config), self._queue.put)
        self.info = framework_info(SPEC, framework_id, "127.0.0.1", "")
        if config.get("principal"):
            self.info["principal"] = config["principal"]
        self.offers = {}
        self.framework_id = framework_id

    def start(self):
        self.gateway.start(self.info)
        self.framework_id = self.hear(Registered).framework_id
        return self

    def hear(self, kind, where=lambda event: True, within=WAIT):
        """Return the next event of this kind; others are kept in ``heard`` and passed over."""
        while True:
            event = self._queue.get(timeout=within)
            self.heard.append(event)
            if isinstance(event, OffersReceived):
                self.offers.update({offer.offer_id: offer for offer in event.offers})
            if isinstance(event, Disconnected):
                self.offers.clear()
            if isinstance(event, TaskUpdate) and event.uuid:
                self.gateway.perform(Acknowledge(event.agent_id, event.task_id, event.uuid))
            if isinstance(event, kind) and where(event):
                return event

    def state(self, task_id, *states):
        """Return the update that brings the task into one of these states."""
        return self.hear(TaskUpdate, lambda e: e.task_id == task_id and e.state in states)

    def offer(self, agent=""):
        """Return an outstanding offer, of this agent if one is named."""
        while not (fit := [o for o in self.offers.values() if agent in ("", o.agent_id)]):
            self.hear(OffersReceived)
        return self.offers.pop(fit[0].offer_id)

    def launch(self, task_id, command="sleep 60", offer=None, **fields):
        offer = offer or self.offer()
        port = next(iter(offer.ports))
        task = LaunchTask(
            task_id=task_id,
            name="worker-0",
            agent_id=offer.agent_id,
            resources=Resources(0.1, 32.0),
            ports=(port,),
            command=command,
            env={"GREETING": "hello"},
        )
        task = replace(task, **fields)
        self.gateway.perform(Accept((offer.offer_id,), offer.agent_id, (task,), 0.1))
        return offer

    def run(self, task_id, command="sleep 60", **fields):
        """Launch a task and return its offer once it runs."""
        offer = self.launch(task_id, command, **fields)
        self.state(task_id, TaskState.RUNNING)
        return offer


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    monkeypatch.setattr(ReconnectBackoff.__init__, "__defaults__", (0.05, 0.5))
    with FaultyCluster(AGENTS, tmp_path, timing=FAST) as running:
        yield running


@pytest.fixture
def schedulers(cluster):
    made = []

    def make(masters=None, **options):
        made.append(Scheduler(masters or cluster.master, **options))
        return made[-1]

    yield make
    for each in made:
        each.gateway.stop()


@pytest.fixture
def scheduler(schedulers):
    return schedulers().start()


def test_a_task_runs_to_its_end_and_its_output_can_be_read(scheduler):
    offer = scheduler.launch(
        "t1", 'echo "$GREETING $HIDDEN"; echo trouble >&2', secret_env={"HIDDEN": "world"}
    )
    update = scheduler.state("t1", TaskState.FINISHED)
    assert update.source == "SOURCE_EXECUTOR"
    files = AgentFiles(scheduler.gateway)
    assert "hello world" in files.tail(offer.agent_id, scheduler.framework_id, "t1", "stdout")
    assert "trouble" in files.tail(offer.agent_id, scheduler.framework_id, "t1", "stderr")
    with pytest.raises(FileNotFound):
        files.tail(offer.agent_id, scheduler.framework_id, "t1", "no-such-file")


def test_the_agent_is_found_through_the_master_too(scheduler, cluster):
    offer = scheduler.launch("t1", "seq 5")
    scheduler.state("t1", TaskState.FINISHED)
    files = files_at(cluster.master)
    lines = files.tail(offer.agent_id, scheduler.framework_id, "t1", "stdout", lines=2)
    assert lines == ["4", "5"]


def test_a_failing_task_tells_why(scheduler):
    scheduler.launch("t1", "exit 3")
    update = scheduler.state("t1", TaskState.FAILED)
    assert "3" in update.message


def test_a_killed_task_ends_within_its_grace(scheduler):
    offer = scheduler.run("t1")
    scheduler.gateway.perform(Kill("t1", offer.agent_id, 1.0))
    assert scheduler.state("t1", TaskState.KILLED).mesos_state == "TASK_KILLED"


def test_reconciliation_tells_known_and_unknown_tasks(scheduler):
    offer = scheduler.run("t1")
    scheduler.gateway.perform(Reconcile((("t1", offer.agent_id), ("nobody", offer.agent_id))))
    answers = {}
    while len(answers) < 2:
        update = scheduler.hear(TaskUpdate, lambda e: e.reason == "REASON_RECONCILIATION")
        answers[update.task_id] = update.mesos_state
    assert answers == {"t1": "TASK_RUNNING", "nobody": "TASK_GONE"}


def test_an_accept_of_a_rescinded_offer_loses_the_task_and_nothing_else(scheduler, cluster):
    offer = scheduler.offer()
    cluster.faults.rescind_at_accept()
    scheduler.launch("t1", offer=offer)
    answer = scheduler.hear((TaskUpdate, CallFailed))
    if isinstance(answer, TaskUpdate):
        assert (answer.mesos_state, answer.reason) == ("TASK_DROPPED", "REASON_INVALID_OFFERS")
    assert scheduler.gateway.connected


def test_a_rescinded_offer_is_told(scheduler, cluster):
    offer = scheduler.offer()
    cluster.faults.rescind_offers()
    scheduler.hear(OfferRescinded, lambda event: event.offer_id == offer.offer_id)


@pytest.mark.parametrize("fault", ["drop_accept_before", "drop_accept_after"])
def test_an_unanswered_accept_is_ambiguous_and_reconciliation_tells(fault, scheduler, cluster):
    offer = scheduler.offer()
    getattr(cluster.faults, fault)()
    scheduler.launch("t1", offer=offer)
    failed = scheduler.hear(CallFailed)
    assert failed.ambiguous
    assert failed.task_ids == ("t1",)
    scheduler.gateway.perform(Reconcile((("t1", offer.agent_id),)))
    update = scheduler.hear(TaskUpdate, lambda e: e.mesos_state != "TASK_STAGING")
    launched = fault == "drop_accept_after"
    assert (update.state is not TaskState.LOST) is launched


def test_suppressed_offers_stay_away_over_a_reconnect_until_they_are_revived(scheduler, cluster):
    scheduler.gateway.perform(Suppress(("tensorflow",)))
    cluster.faults.close_streams()
    scheduler.hear(Disconnected)
    scheduler.hear(Registered)
    with pytest.raises(queue.Empty):
        scheduler.hear(OffersReceived, within=FAST.allocation * 6)
    scheduler.gateway.perform(Revive(("tensorflow",)))
    scheduler.hear(OffersReceived)


def test_a_declined_offer_stays_away_until_it_is_revived(scheduler):
    offers = (scheduler.offer().offer_id, scheduler.offer().offer_id)
    scheduler.gateway.perform(Decline(offers, 600.0))
    with pytest.raises(queue.Empty):
        scheduler.hear(OffersReceived, within=FAST.allocation * 6)
    scheduler.gateway.perform(Revive(("tensorflow",)))
    scheduler.offer()


@pytest.mark.parametrize(
    "fault", ["close_streams", "close_streams_mid_record", "lose_master"], ids=str
)
def test_a_task_outlives_a_broken_subscription(fault, scheduler, cluster):
    offer = scheduler.run("t1")
    getattr(cluster.faults, fault)()
    scheduler.hear(Disconnected)
    assert scheduler.hear(Registered).framework_id == scheduler.framework_id
    scheduler.offer(offer.agent_id)
    scheduler.gateway.perform(Reconcile((("t1", offer.agent_id),)))
    scheduler.state("t1", TaskState.RUNNING)


def test_a_half_open_subscription_is_noticed_by_its_silence(tmp_path, schedulers, cluster):
    timing = replace(FAST, heartbeat=0.1)
    with FaultyCluster(AGENTS[:1], tmp_path / "silent", timing=timing) as silent:
        scheduler = schedulers(silent.master).start()
        silent.faults.half_open_streams()
        assert "no sign of life" in scheduler.hear(Disconnected).why
        scheduler.hear(Registered)
        scheduler.gateway.stop()


def test_a_master_that_recovers_is_waited_for(schedulers, cluster):
    cluster.faults.refuse(0.5)
    scheduler = schedulers().start()
    scheduler.offer()


def test_a_call_during_recovery_is_an_event_and_certain(scheduler, cluster):
    offer = scheduler.offer()
    cluster.faults.refuse(5.0)
    scheduler.launch("t1", offer=offer)
    failed = scheduler.hear(CallFailed)
    assert not failed.ambiguous
    assert "Master has not finished recovery" in failed.message


def test_a_redirect_leads_to_the_leader(tmp_path, schedulers, cluster):
    with FaultyCluster((), tmp_path / "follower", timing=FAST) as follower:
        follower.faults.redirect(cluster.master)
        scheduler = schedulers(follower.master).start()
        assert str(scheduler.gateway.master) == cluster.master
        scheduler.run("t1")


def test_a_leader_that_is_deposed_during_a_call_is_left_for_the_new_one(
    tmp_path, schedulers, cluster
):
    with FaultyCluster(AGENTS[:1], tmp_path / "new", timing=FAST) as new:
        scheduler = schedulers().start()
        cluster.faults.redirect(new.master)
        scheduler.gateway.perform(Revive(()))
        assert not scheduler.hear(CallFailed).ambiguous
        scheduler.hear(Registered)
        assert str(scheduler.gateway.master) == new.master
        scheduler.gateway.stop()


def test_a_scheduler_that_comes_back_with_its_id_finds_its_task_running(schedulers):
    first = schedulers().start()
    offer = first.run("t1")
    first.gateway.stop()
    second = schedulers(framework_id=first.framework_id).start()
    assert second.framework_id == first.framework_id
    second.gateway.perform(Reconcile((("t1", offer.agent_id),)))
    second.state("t1", TaskState.RUNNING)


def test_of_two_schedulers_with_one_id_the_older_gives_up(schedulers):
    first = schedulers().start()
    second = schedulers(framework_id=first.framework_id).start()
    assert first.hear(FrameworkRefused).message == "Framework failed over"
    assert not first.gateway.connected
    first.gateway.perform(Revive(()))
    first.hear(CallFailed)
    second.offer()


def test_an_unacknowledged_update_comes_again_to_the_next_scheduler(schedulers):
    first = schedulers().start()
    first.launch("t1", "true")
    first.gateway.stop()
    second = schedulers(framework_id=first.framework_id).start()
    second.state("t1", TaskState.FINISHED)


def test_teardown_is_final(schedulers, scheduler):
    scheduler.run("t1")
    scheduler.gateway.perform(Teardown())
    assert not scheduler.gateway.connected
    late = schedulers(framework_id=scheduler.framework_id)
    late.gateway.start(late.info)
    assert late.hear(FrameworkRefused).message == "Framework has been removed"


def agent_of(offer):
    return next(i for i, a in enumerate(AGENTS) if a.address == offer.address)


def test_agents_that_are_to_go_away_are_told_and_left(scheduler, cluster):
    offer = scheduler.run("t1")
    cluster.faults.schedule_maintenance([agent_of(offer)], 3600, 600)
    (asked,) = scheduler.hear(InverseOffersReceived).offers
    assert (asked.agent_id, asked.duration) == (offer.agent_id, 600.0)
    assert asked.start == pytest.approx(cluster.now() + 3600, abs=60)
    scheduler.gateway.perform(AcceptInverse((asked.inverse_offer_id,)))
    (answer,) = cluster.core.state.inverse_answers.values()
    assert answer["status"] == "ACCEPT"


def test_an_unanswered_inverse_offer_is_rescinded_with_the_schedule(scheduler, cluster):
    offer = scheduler.run("t1")
    cluster.faults.schedule_maintenance([agent_of(offer)], 3600)
    (asked,) = scheduler.hear(InverseOffersReceived).offers
    cluster.faults.cancel_maintenance()
    assert scheduler.hear(InverseOfferRescinded).inverse_offer_id == asked.inverse_offer_id


@pytest.mark.parametrize(("secret", "welcome"), [("right", True), ("wrong", False)])
def test_principal_and_secret_decide_who_is_welcome(secret, welcome, tmp_path, schedulers):
    credentials = {"tf": "right"}
    with FaultyCluster(AGENTS[:1], tmp_path / "a", timing=FAST, credentials=credentials) as own:
        scheduler = schedulers(own.master, principal="tf", secret=secret)
        scheduler.gateway.start(scheduler.info)
        answer = scheduler.hear((Registered, FrameworkRefused))
        assert isinstance(answer, Registered) is welcome
        if welcome:
            scheduler.gateway.perform(Revive(()))
            scheduler.offer()
        else:
            assert "HTTP 401" in answer.message
        scheduler.gateway.stop()
