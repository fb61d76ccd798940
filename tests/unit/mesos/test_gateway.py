"""The scheduler's door to Mesos: events out, actions in, trouble as events."""

import queue

import pytest

from dcos_tensorflow.core.model.actions import (
    Accept,
    AcceptInverse,
    Acknowledge,
    Decline,
    Exit,
    Kill,
    LaunchTask,
    Reconcile,
    Revive,
    Suppress,
    Teardown,
)
from dcos_tensorflow.core.model.events import (
    AgentFailed,
    CallFailed,
    Disconnected,
    FrameworkRefused,
    InverseOffer,
    InverseOfferRescinded,
    InverseOffersReceived,
    OfferRescinded,
    OffersReceived,
    Registered,
    TaskUpdate,
)
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.mesos.connection import tls_context
from dcos_tensorflow.mesos.gateway import ACCEPTED_INVERSE_REFUSE_SECONDS, MesosConfig, MesosGateway

INFO = {"user": "nobody", "name": "t", "roles": ["tensorflow"]}


def offer(offer_id="O1", agent="S1", cpus=4):
    return {
        "id": {"value": offer_id},
        "agent_id": {"value": agent},
        "framework_id": {"value": "F"},
        "hostname": "node1",
        "url": {
            "scheme": "http",
            "address": {"ip": "127.0.0.2", "port": 6052},
            "path": "/slave(1)",
        },
        "allocation_info": {"role": "tensorflow"},
        "resources": [{"name": "cpus", "type": "SCALAR", "scalar": {"value": cpus}}],
    }


def offers(*listed):
    return {"type": "OFFERS", "offers": {"offers": list(listed)}}


LAUNCH = LaunchTask(
    task_id="t1",
    name="worker-0",
    agent_id="S1",
    resources=Resources(1.0),
    ports=(),
    command="true",
    env={},
)
ACCEPT = Accept(("O1",), "S1", (LAUNCH,), 5.0)


class Events(queue.Queue):
    def next(self, kind):
        """Return the next event, which has to be of this kind."""
        event = self.get(timeout=10)
        assert isinstance(event, kind), event
        return event


@pytest.fixture
def events():
    return Events()


@pytest.fixture
def gateway(master, events):
    """A gateway that is registered with the fake master."""
    made = MesosGateway(MesosConfig(master.address, timeout_seconds=20.0), events.put, lambda: 7.0)
    made.start(INFO)
    events.next(Registered)
    yield made
    made.stop()


def test_registration_tells_id_and_master(master, events):
    gateway = MesosGateway(MesosConfig(master.address), events.put)
    gateway.start(INFO)
    registered = events.next(Registered)
    assert registered.framework_id == gateway._driver.framework_id
    assert registered.master == master.address == str(gateway.master)
    assert gateway.connected
    gateway.stop()
    assert not gateway.connected
    assert not master.calls("TEARDOWN")


def test_registration_tells_the_masters_own_region(master, events):
    def at_home(exchange):
        region = {"region": {"name": "home"}, "zone": {"name": "z1"}}
        exchange.subscribe(master_info={"domain": {"fault_domain": region}})
        exchange.hold()

    master.on_subscribe = at_home
    gateway = MesosGateway(MesosConfig(master.address), events.put)
    gateway.start(INFO)
    assert events.next(Registered).region == "home"
    gateway.stop()


def test_offers_updates_and_failures_become_events(master, gateway, events):
    master.event(offers(offer("O1"), offer("O2")))
    received = events.next(OffersReceived)
    assert [each.offer_id for each in received.offers] == ["O1", "O2"]
    assert received.offers[0].received_at == 7.0
    master.event({"type": "RESCIND", "rescind": {"offer_id": {"value": "O2"}}})
    assert events.next(OfferRescinded) == OfferRescinded("O2")
    status = {"task_id": {"value": "t"}, "state": "TASK_RUNNING", "uuid": "dXVpZA=="}
    master.event({"type": "UPDATE", "update": {"status": status}})
    assert events.next(TaskUpdate).uuid == "dXVpZA=="
    master.event({"type": "FAILURE", "failure": {"agent_id": {"value": "S1"}}})
    assert events.next(AgentFailed) == AgentFailed("S1")
    assert gateway.agent_url("S1") == "http://127.0.0.2:6052"


def test_an_offer_that_cannot_be_read_is_handed_back_and_spoils_no_others(master, gateway, events):
    master.event(offers({"id": {"value": "broken"}}, offer("O2")))
    assert [each.offer_id for each in events.next(OffersReceived).offers] == ["O2"]
    assert master.calls("DECLINE")[0]["decline"]["offer_ids"] == [{"value": "broken"}]


def test_an_accept_launches_on_the_raw_offer(master, gateway, events):
    master.event(offers(offer()))
    events.next(OffersReceived)
    gateway.perform(ACCEPT)
    sent = master.calls("ACCEPT")[0]["accept"]
    assert sent["offer_ids"] == [{"value": "O1"}]
    assert sent["filters"] == {"refuse_seconds": 5.0}
    (task,) = sent["operations"][0]["launch"]["task_infos"]
    assert task["task_id"] == {"value": "t1"}
    assert task["resources"][0]["allocation_info"] == {"role": "tensorflow"}


@pytest.mark.parametrize("how", ["never offered", "rescinded", "disconnected", "used already"])
def test_an_accept_whose_offer_is_gone_fails_for_certain(how, master, gateway, events):
    if how != "never offered":
        master.event(offers(offer()))
        events.next(OffersReceived)
    if how == "rescinded":
        master.event({"type": "RESCIND", "rescind": {"offer_id": {"value": "O1"}}})
        events.next(OfferRescinded)
    if how == "disconnected":
        master.streams[-1].close()
        events.next(Disconnected)
        events.next(Registered)
    if how == "used already":
        gateway.perform(ACCEPT)
    gateway.perform(ACCEPT)
    failed = events.next(CallFailed)
    assert (failed.call, failed.ambiguous) == ("ACCEPT", False)
    assert (failed.offer_ids, failed.task_ids) == (("O1",), ("t1",))
    assert len(master.calls("ACCEPT")) == (how == "used already")


def test_of_a_failed_accept_the_other_offers_are_handed_back(master, gateway, events):
    master.event(offers(offer("O1")))
    events.next(OffersReceived)
    gateway.perform(Accept(("O1", "gone"), "S1", (LAUNCH,), 5.0))
    assert "gone" in events.next(CallFailed).message
    assert master.calls("DECLINE")[0]["decline"]["offer_ids"] == [{"value": "O1"}]


def test_an_accept_that_needs_more_than_was_offered_fails_for_certain(master, gateway, events):
    master.event(offers(offer(cpus=0.5)))
    events.next(OffersReceived)
    gateway.perform(ACCEPT)
    failed = events.next(CallFailed)
    assert "needs 1 cpus, the offers have 0.5 left" in failed.message
    assert not failed.ambiguous
    assert master.calls("DECLINE")
    assert not master.calls("ACCEPT")


def silent(exchange):
    exchange.hold()


@pytest.mark.parametrize(
    ("answer", "ambiguous"),
    [
        (lambda exchange: exchange.close(), True),
        (silent, True),
        (lambda exchange: exchange.respond(504), True),
        (lambda exchange: exchange.respond(503), False),
        (lambda exchange: exchange.respond(400, b"no"), False),
    ],
    ids=["closed", "silent", "504", "503", "400"],
)
def test_a_failed_accept_says_whether_it_may_have_happened(
    answer, ambiguous, *, master, gateway, events, eventually
):
    master.event(offers(offer()))
    events.next(OffersReceived)
    if answer is silent:
        # For calls only: the answer to SUBSCRIBE may take its time.
        gateway._driver._timeout = 0.5
    master.on_call = lambda e: answer(e) if e.request.call == "ACCEPT" else e.respond()
    gateway.perform(ACCEPT)
    assert events.next(CallFailed).ambiguous is ambiguous
    eventually(lambda: master.calls("ACCEPT"))
    assert len(master.calls("ACCEPT")) == 1
    assert bool(master.calls("DECLINE")) is not ambiguous


def test_every_action_becomes_its_call(master, gateway, events):
    master.event(offers(offer()))
    events.next(OffersReceived)
    for action in (
        Decline(("O1",), 600.0),
        Suppress(("tensorflow",)),
        Revive(("tensorflow",)),
        Kill("t1", "S1", 3.0),
        Kill("t2", "", 0.0),
        Reconcile((("t1", "S1"), ("t2", ""))),
        Reconcile(),
        Acknowledge("S1", "t1", "dXVpZA=="),
    ):
        gateway.perform(action)
    sent = [r.body for r in master.requests if r.call != "SUBSCRIBE"]
    assert [body.pop("type") for body in sent] == [
        "DECLINE",
        "SUPPRESS",
        "REVIVE",
        "KILL",
        "KILL",
        "RECONCILE",
        "RECONCILE",
        "ACKNOWLEDGE",
    ]
    assert [body[key] for body in sent for key in body if key != "framework_id"] == [
        {"offer_ids": [{"value": "O1"}], "filters": {"refuse_seconds": 600.0}},
        {"roles": ["tensorflow"]},
        {"roles": ["tensorflow"]},
        {
            "task_id": {"value": "t1"},
            "agent_id": {"value": "S1"},
            "kill_policy": {"grace_period": {"nanoseconds": 3_000_000_000}},
        },
        {"task_id": {"value": "t2"}, "kill_policy": {"grace_period": {"nanoseconds": 0}}},
        {
            "tasks": [
                {"task_id": {"value": "t1"}, "agent_id": {"value": "S1"}},
                {"task_id": {"value": "t2"}},
            ]
        },
        {"tasks": []},
        {"agent_id": {"value": "S1"}, "task_id": {"value": "t1"}, "uuid": "dXVpZA=="},
    ]
    assert events.empty()


def test_many_tasks_are_reconciled_in_pieces(master, gateway):
    gateway.perform(Reconcile(tuple((f"t{i}", "S1") for i in range(2500))))
    pieces = [len(call["reconcile"]["tasks"]) for call in master.calls("RECONCILE")]
    assert pieces == [1000, 1000, 500]


def test_an_offer_declined_after_it_was_rescinded_needs_no_call(master, gateway, events):
    gateway.perform(Decline(("O9",), 5.0))
    assert not master.calls("DECLINE")
    assert events.empty()


def test_trouble_with_a_call_is_an_event(master, gateway, events):
    master.on_call = lambda exchange: exchange.respond(400, b"Framework cannot be found")
    gateway.perform(Kill("t1", "S1", 3.0))
    failed = events.next(CallFailed)
    assert (failed.call, failed.ambiguous, failed.task_ids) == ("KILL", False, ("t1",))
    assert "Framework cannot be found" in failed.message


def test_an_action_before_the_start_is_an_event_too(events):
    MesosGateway(MesosConfig("127.0.0.1:1"), events.put).perform(Revive(()))
    assert events.next(CallFailed).call == "REVIVE"


def test_an_action_that_is_not_mesos_business_is_refused(gateway):
    with pytest.raises(TypeError, match="Exit"):
        gateway.perform(Exit(0, "done"))


def test_teardown_ends_the_framework_and_nothing_is_heard_any_more(master, gateway, events):
    gateway.perform(Teardown())
    assert len(master.calls("TEARDOWN")) == 1
    assert not gateway.connected
    assert events.empty()


def test_a_refused_framework_is_told(master, gateway, events):
    master.event({"type": "ERROR", "error": {"message": "Framework has been removed"}})
    assert events.next(FrameworkRefused).message == "Framework has been removed"
    assert not gateway.connected


def test_a_lost_subscription_is_told_with_its_reason(master, gateway, events):
    master.streams[-1].close()
    told = events.next(Disconnected).why
    assert told == f"{master.address}: the master closed the stream"


def test_a_master_that_cannot_be_reached_is_told_with_its_address(events):
    gateway = MesosGateway(MesosConfig("127.0.0.1:1"), events.put)
    gateway.start(INFO)
    assert events.next(Disconnected).why == "127.0.0.1:1: Connection refused"
    gateway.stop()


def inverse(offer_id="I1", agent="S1", **unavailability):
    raw = {"id": {"value": offer_id}, "unavailability": unavailability}
    if agent:
        raw["agent_id"] = {"value": agent}
    return raw


def inverse_offers(*listed):
    return {"type": "INVERSE_OFFERS", "inverse_offers": {"inverse_offers": list(listed)}}


START = {"nanoseconds": 1_795_239_017_500_000_000}


def test_inverse_offers_become_events(master, gateway, events):
    ten_minutes = {"nanoseconds": 600_000_000_000}
    master.event(
        inverse_offers(
            inverse("I1", start=START, duration=ten_minutes), inverse("I2", agent="", start=START)
        )
    )
    assert events.next(InverseOffersReceived).offers == (
        InverseOffer("I1", "S1", 1_795_239_017.5, 600.0),
        InverseOffer("I2", "", 1_795_239_017.5, None),
    )
    rescinded = {"inverse_offer_id": {"value": "I1"}}
    master.event({"type": "RESCIND_INVERSE_OFFER", "rescind_inverse_offer": rescinded})
    assert events.next(InverseOfferRescinded) == InverseOfferRescinded("I1")
    assert not master.calls("ACCEPT_INVERSE_OFFERS", "DECLINE_INVERSE_OFFERS")


def test_an_inverse_offer_that_cannot_be_read_is_passed_over(master, gateway, events):
    master.event(inverse_offers(inverse("broken"), inverse("I2", start=START)))
    assert [o.inverse_offer_id for o in events.next(InverseOffersReceived).offers] == ["I2"]


def test_inverse_offers_are_answered_as_the_core_says(master, gateway, events):
    gateway.perform(AcceptInverse(("I1", "I2")))
    (accepted,) = master.calls("ACCEPT_INVERSE_OFFERS")
    assert accepted["accept_inverse_offers"] == {
        "inverse_offer_ids": [{"value": "I1"}, {"value": "I2"}],
        "filters": {"refuse_seconds": ACCEPTED_INVERSE_REFUSE_SECONDS},
    }
    assert events.empty()


def test_an_inverse_offer_that_could_not_be_answered_names_the_call(master, gateway, events):
    master.on_call = lambda exchange: exchange.respond(503, b"no")
    gateway.perform(AcceptInverse(("I1",)))
    assert events.next(CallFailed).call == "ACCEPT_INVERSE_OFFERS"


def test_an_update_that_cannot_be_read_does_not_stop_the_next(master, gateway, events):
    for state in ("TASK_DREAMING", "TASK_RUNNING"):
        status = {"task_id": {"value": "t"}, "state": state}
        master.event({"type": "UPDATE", "update": {"status": status}})
    assert events.next(TaskUpdate).mesos_state == "TASK_RUNNING"


def test_secrets_do_not_show(master):
    config = MesosConfig("zk://u:hunter1@h/mesos", principal="p", secret="hunter2")
    assert "hunter" not in repr(config)
    assert "hunter" not in repr(config.authentication(tls_context()))


@pytest.mark.parametrize("wrong", [{"masters": ""}, {"masters": "h", "scheme": "ftp"}])
def test_a_configuration_that_cannot_work_is_refused(wrong):
    with pytest.raises(ValueError, match=r"masters|scheme"):
        MesosConfig(**wrong)
