"""What a real Mesos 1.12 said, played into the driver: nothing is lost, nothing misread."""

import json
import queue

import pytest

from data_files import MESOS_RECORDINGS
from dcos_tensorflow.core.model.actions import LaunchTask
from dcos_tensorflow.core.model.events import (
    AgentFailed,
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
from dcos_tensorflow.mesos.agent_files import agent_address, sandbox_directory
from dcos_tensorflow.mesos.gateway import MesosConfig, MesosGateway
from dcos_tensorflow.mesos.wire.convert import offer_from_json, update_from_json
from samples.launched_tasks import task_info

FILES = sorted(MESOS_RECORDINGS.glob("*.jsonl"))

#: The framework's view of an event; what is not here is the master's and the driver's business.
HEARD = {
    "SUBSCRIBED": Registered,
    "OFFERS": OffersReceived,
    "RESCIND": OfferRescinded,
    "INVERSE_OFFERS": InverseOffersReceived,
    "RESCIND_INVERSE_OFFER": InverseOfferRescinded,
    "UPDATE": TaskUpdate,
    "FAILURE": AgentFailed,
    "ERROR": FrameworkRefused,
}


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def subscriptions():
    """Yield (name, events) of each subscription of each recording."""
    for file in FILES:
        streams = {}
        for line in lines(file):
            if "event" in line:
                streams.setdefault(line["to"], []).append(line["event"])
        for name, events in streams.items():
            split = [i for i, e in enumerate(events) if e["type"] == "SUBSCRIBED"] or [0]
            for number, (start, end) in enumerate(
                zip(split, [*split[1:], len(events)], strict=True)
            ):
                yield pytest.param(events[start:end], id=f"{file.stem}-{name}-{number}")


@pytest.mark.parametrize("events", list(subscriptions()))
def test_every_event_of_a_recording_reaches_the_core(events, master, caplog):
    def play(exchange):
        exchange.begin_stream()
        for event in events:
            exchange.event(event)
        exchange.hold()

    master.on_subscribe = play
    heard = queue.Queue()
    gateway = MesosGateway(MesosConfig(master.address), heard.put, lambda: 1.0)
    gateway.start({"user": "root", "name": "tensorflow", "roles": ["tensorflow"]})
    expected = [HEARD[event["type"]] for event in events if event["type"] in HEARD]
    received = [heard.get(timeout=10) for _ in expected]
    gateway.stop()
    assert [type(event) for event in received] == expected
    assert heard.empty()
    for event, raw in zip(received, [e for e in events if e["type"] in HEARD], strict=True):
        _agrees(event, raw)
    complaints = [r for r in caplog.records if r.levelname in ("WARNING", "ERROR", "CRITICAL")]
    refused = any(e["type"] == "ERROR" for e in events)
    assert [r.message for r in complaints if not (refused and "refuses" in r.message)] == []


def _agrees(event, raw):
    if isinstance(event, OffersReceived):
        wanted = [o["id"]["value"] for o in raw["offers"]["offers"]]
        assert [o.offer_id for o in event.offers] == wanted
    elif isinstance(event, InverseOffersReceived):
        (offer,) = raw["inverse_offers"]["inverse_offers"]
        (heard,) = event.offers
        assert heard.inverse_offer_id == offer["id"]["value"]
        assert heard.agent_id == offer["agent_id"]["value"]
        assert heard.start == offer["unavailability"]["start"]["nanoseconds"] / 1e9
        assert heard.duration == 600.0
    elif isinstance(event, InverseOfferRescinded):
        raw_id = raw["rescind_inverse_offer"]["inverse_offer_id"]["value"]
        assert event.inverse_offer_id == raw_id
    elif isinstance(event, TaskUpdate):
        status = raw["update"]["status"]
        assert event.task_id == status["task_id"]["value"]
        assert event.mesos_state == status["state"]
        assert event.uuid == status.get("uuid", "")
        assert event.source == status["source"]
        assert event.reason == status.get("reason", "")
        assert (event.mesos_state == "TASK_RUNNING") is (event.state is TaskState.RUNNING)
    elif isinstance(event, FrameworkRefused):
        assert event.message == raw["error"]["message"]


def recorded(kind):
    for file in FILES:
        for line in lines(file):
            if line.get("event", {}).get("type") == kind:
                yield line["event"]


def test_all_that_was_offered_can_be_used_but_what_carries_labels():
    for event in recorded("OFFERS"):
        for raw in event["offers"]["offers"]:
            offer = offer_from_json(raw, 0.0)
            usable = [r for r in raw["resources"] if "labels" not in json.dumps(r)]
            cpus = sum(r["scalar"]["value"] for r in usable if r["name"] == "cpus")
            disk = sum(r["scalar"]["value"] for r in usable if r["name"] == "disk")
            assert offer.resources.cpus == pytest.approx(cpus)
            assert offer.resources.disk == pytest.approx(disk)
            assert offer.address.startswith("127.0.0.")
            ports = any(r["name"] == "ports" for r in raw["resources"])
            assert bool(len(offer.ports)) is ports


def test_a_recorded_volume_is_seen_with_its_labels_and_what_is_reserved_beside_it():
    found = [
        reserved
        for event in recorded("OFFERS")
        for raw in event["offers"]["offers"]
        for reserved in offer_from_json(raw, 0.0).reserved
    ]
    assert len(found) == 1
    assert found[0].resource_id == "r1"
    assert found[0].framework_id == "aa328114-5b42-4747-ae70-14e4bbe7f350-0007"
    assert found[0].resources == Resources(cpus=0.5, mem=64)
    assert list(found[0].ports) == [32000]
    assert found[0].volumes == {"vol-1"}


def test_a_launch_names_resources_as_they_were_offered():
    def shape(resource):
        return {k: v for k, v in resource.items() if k not in ("scalar", "ranges")}

    for event in recorded("OFFERS"):
        for raw in event["offers"]["offers"]:
            offer = offer_from_json(raw, 0.0)
            ports = tuple(offer.ports)[:3]
            wanted = Resources(mem=32.0, gpus=offer.resources.gpus)
            launch = LaunchTask("t", "t", offer.agent_id, wanted, ports, "true", {})
            shapes = [shape(resource) for resource in raw["resources"]]
            resources = task_info(launch, [raw])["resources"]
            assert all(shape(resource) in shapes for resource in resources)


def test_the_address_of_a_task_is_its_agents():
    for event in recorded("UPDATE"):
        status = event["update"]["status"]
        networks = status.get("container_status", {}).get("network_infos")
        assert bool(update_from_json(status).container_address) is bool(networks)


def environment(path):
    for line in lines(MESOS_RECORDINGS / "environment.jsonl"):
        if line.get("request", {}).get("path") == path:
            response = line["response"]
            return response.get("body") or json.loads(response["body_text"])
    raise AssertionError(f"no request for {path} in the recording")


def test_the_sandbox_is_found_in_a_real_agents_state():
    state = environment("agent /state")
    framework = state["frameworks"][0]["id"]
    directory = sandbox_directory(state, framework, "env")
    assert directory.endswith("/executors/env/runs/a3299cf7-b6af-41af-8bdd-82cf21beeaf1")
    older = state["completed_frameworks"][0]
    task = older["completed_executors"][0]["id"]
    assert sandbox_directory(state, older["id"], task) is not None
    assert sandbox_directory(state, framework, "nobody") is None


def test_the_agents_address_is_found_in_a_real_masters_list():
    addresses = {str(agent_address(agent)) for agent in environment("/slaves")["slaves"]}
    assert addresses == {"127.0.0.1:6051", "127.0.0.2:6052"}
