"""The master's core under a clock of the test's own."""

import json
from typing import Any

import pytest

from embedded_mesos import Timing, messages
from embedded_mesos.master.calls.replies import Reply, Request
from embedded_mesos.master.calls.scheduler_calls import scheduler_call
from embedded_mesos.master.desk import Desk, MasterAddress
from embedded_mesos.master.master import Master

Json = dict[str, Any]
TIMING = Timing(allocation=1.0, agent_ping=15.0, agent_ping_timeouts=5)


class Play:
    """A master, one agent and one framework; time passes when it is told to."""

    def __init__(self, failover_timeout: float = 60, agents: int = 1) -> None:
        self.now = 1000.0
        self.master = Master(Desk(MasterAddress("127.0.0.1", 5050, "127.0.0.1"), TIMING, self.now))
        self.events: list[Json] = []
        self.to_agents: list[object] = []
        for link in range(agents):
            self.register(link)
        info = {
            "user": "u",
            "name": "n",
            "roles": ["r"],
            "failover_timeout": failover_timeout,
            "capabilities": [{"type": "MULTI_ROLE"}, {"type": "PARTITION_AWARE"}],
        }
        self.info: Json = info
        self.stream_id: str | None = None
        self.framework_id: str | None = None
        self.subscribe()

    def register(self, link: int, agent_id: str | None = None) -> None:
        resources = [
            {"name": name, "type": "SCALAR", "scalar": {"value": value}}
            for name, value in (("cpus", 4.0), ("mem", 1024.0))
        ]
        info = {
            "hostname": f"h{link}",
            "ip": "127.0.0.1",
            "port": 1,
            "resources": resources,
            "offered_resources": resources,
        }
        self.master.agent_message(link, messages.RegisterAgent(agent_id, info), self.now)
        self._take()

    def subscribe(self) -> None:
        call: Json = {"type": "SUBSCRIBE", "subscribe": {"framework_info": self.info}}
        if self.framework_id is not None:
            call["framework_id"] = self.info["id"] = {"value": self.framework_id}
        reply = scheduler_call(self.master.desk, Request(json.dumps(call).encode()), self.now)
        self.stream_id = reply.stream_id
        self._take()
        for event in self.events:
            if event["type"] == "SUBSCRIBED":
                self.framework_id = event["subscribed"]["framework_id"]["value"]

    def call(self, kind: str, **body: Any) -> Reply:
        call = {"type": kind, "framework_id": {"value": self.framework_id}, kind.lower(): body}
        request = Request(json.dumps(call).encode(), stream_id=self.stream_id)
        reply = scheduler_call(self.master.desk, request, self.now)
        self._take()
        return reply

    def wait(self, seconds: float, *, pong: bool = True) -> None:
        end = self.now + seconds
        while self.master.deadline() <= end:
            self.now = max(self.now, self.master.deadline())
            self.master.tick(self.now)
            self._take(pong=pong)
        self.now = end

    def _take(self, *, pong: bool = False) -> None:
        for effect in self.master.desk.take_effects():
            if isinstance(effect, messages.SendEvent):
                self.events.append(effect.event)
            elif isinstance(effect, messages.ToAgent):
                self.to_agents.append(effect.message)
                if pong and isinstance(effect.message, messages.Ping):
                    self.master.agent_message(effect.link, messages.Pong(), self.now)

    def take_offers(self) -> list[Json]:
        found = [
            offer
            for event in self.events
            if event["type"] == "OFFERS"
            for offer in event["offers"]["offers"]
        ]
        self.events.clear()
        return found

    def decline(self, offer: Json, seconds: float | None) -> None:
        body: Json = {"offer_ids": [offer["id"]]}
        if seconds is not None:
            body["filters"] = {"refuse_seconds": seconds}
        self.call("DECLINE", **body)


@pytest.mark.parametrize(("given", "lasts"), [(10, 10), (None, 5)])
def test_filter_lasts_its_seconds_and_without_any_five(given: float | None, lasts: float) -> None:
    play = Play()
    (offer,) = play.take_offers()
    play.decline(offer, given)
    play.wait(lasts - 0.5)
    assert play.take_offers() == []
    play.wait(2)
    assert len(play.take_offers()) == 1


def test_filter_of_zero_seconds_is_none() -> None:
    play = Play()
    (offer,) = play.take_offers()
    play.decline(offer, 0)
    play.wait(1)
    assert len(play.take_offers()) == 1


def test_short_filter_outlives_the_next_cycle_however_late_that_is() -> None:
    play = Play()
    (offer,) = play.take_offers()
    play.decline(offer, 0.1)
    play.now += 60
    play.wait(0)
    assert play.take_offers() == []
    play.wait(0.9)
    assert play.take_offers() == []
    play.wait(0.1)
    assert len(play.take_offers()) == 1


def test_short_filter_ends_with_the_next_cycle_even_for_other_occasions() -> None:
    play = Play()
    (offer,) = play.take_offers()
    play.wait(0.5)
    play.decline(offer, 0.1)
    play.wait(0.9)
    assert play.take_offers() == []
    play.now += 0.1
    play.register(1)
    assert len(play.take_offers()) == 2


def launch(play: Play) -> None:
    """Launch a task that takes a CPU; nothing more is offered for a while."""
    (offer,) = play.take_offers()
    resources = [{"name": "cpus", "type": "SCALAR", "scalar": {"value": 1}}]
    task = {
        "name": "t",
        "task_id": {"value": "t"},
        "agent_id": offer["agent_id"],
        "resources": resources,
        "command": {"value": "true"},
    }
    play.call(
        "ACCEPT",
        offer_ids=[offer["id"]],
        operations=[{"type": "LAUNCH", "launch": {"task_infos": [task]}}],
        filters={"refuse_seconds": 1000},
    )


def tell(play: Play, state: str, latest_state: str) -> None:
    """Have the agent send an update of that task, behind which another one may wait."""
    status = {"task_id": {"value": "t"}, "state": state, "uuid": "AAAA"}
    update = messages.StatusUpdate(str(play.framework_id), status, latest_state)
    play.master.agent_message(0, update, play.now)


def test_freed_resources_break_through_a_filter() -> None:
    play = Play()
    launch(play)
    play.wait(5)
    assert play.take_offers() == []
    tell(play, "TASK_FINISHED", "TASK_FINISHED")
    play.wait(1.5)
    (again,) = play.take_offers()
    assert again["resources"][0]["scalar"]["value"] == 4.0


def test_a_task_is_lost_with_its_agent_although_it_had_ended_unheard() -> None:
    play = Play()
    launch(play)
    tell(play, "TASK_RUNNING", latest_state="TASK_KILLED")
    play.wait(95, pong=False)
    told = [e["update"]["status"]["state"] for e in play.events if e["type"] == "UPDATE"]
    assert told[-1] == "TASK_UNREACHABLE"


def test_revive_clears_filters_and_suppression() -> None:
    play = Play()
    (offer,) = play.take_offers()
    play.decline(offer, 1000)
    play.call("SUPPRESS")
    play.wait(3)
    assert play.take_offers() == []
    play.call("REVIVE")
    assert len(play.take_offers()) == 1


def test_heartbeat_every_fifteen_seconds() -> None:
    play = Play()
    play.events.clear()
    play.wait(46)
    assert [event["type"] for event in play.events].count("HEARTBEAT") == 3


def test_silent_agent_is_unreachable_after_five_pings() -> None:
    play = Play()
    play.wait(70, pong=False)
    assert len(play.master.state.agents) == 1
    play.wait(25, pong=False)
    assert play.master.state.agents == {}
    kinds = [event["type"] for event in play.events]
    assert kinds[-2:] == ["RESCIND", "FAILURE"]


def test_failover_timeout_starts_when_the_stream_ends_and_stops_at_the_next() -> None:
    play = Play(failover_timeout=10)
    play.master.stream_closed(str(play.stream_id), play.now)
    play.wait(9)
    play.subscribe()
    play.wait(60)
    assert play.framework_id in play.master.state.frameworks
    play.master.stream_closed(str(play.stream_id), play.now)
    play.wait(11)
    assert play.framework_id in play.master.state.completed_frameworks


def test_framework_without_failover_timeout_ends_with_its_stream() -> None:
    play = Play(failover_timeout=0)
    play.master.stream_closed(str(play.stream_id), play.now)
    assert play.master.state.frameworks == {}


def test_offers_of_an_old_stream_end_without_a_rescind() -> None:
    play = Play()
    play.take_offers()
    play.subscribe()
    kinds = [event["type"] for event in play.events]
    assert "RESCIND" not in kinds
    assert len(play.master.state.offers) == 1


def test_agents_are_shared_out_between_frameworks_of_one_role() -> None:
    play = Play(agents=2)
    first = play.stream_id
    play.framework_id, play.info = None, {**play.info, "name": "other"}
    play.info.pop("id", None)
    for offer in play.take_offers():
        play.master.state.offers.pop(offer["id"]["value"])
    play.subscribe()
    play.wait(1)
    owners = {offer.framework_id for offer in play.master.state.offers.values()}
    assert len(owners) == 2
    assert first != play.stream_id


def test_calls_that_are_not_there_are_refused_by_name() -> None:
    play = Play()
    operation = {"type": "GROW_VOLUME", "id": {"value": "op"}}
    (offer,) = play.take_offers()
    play.call("ACCEPT", offer_ids=[offer["id"]], operations=[operation])
    status = play.events[-1]["update_operation_status"]["status"]
    assert status["message"] == "Not supported by the embedded cluster: operation GROW_VOLUME"
