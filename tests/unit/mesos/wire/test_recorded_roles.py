"""Quotas and several Mesos roles, as a real Mesos 1.12 showed them, before our own decisions."""

from collections.abc import Iterator
from typing import Any

from dcos_tensorflow.core.agents.silence import silent_agents
from dcos_tensorflow.core.model import events
from dcos_tensorflow.core.model.actions import Accept
from dcos_tensorflow.core.model.service_state import LaunchSettings, ServiceState
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import JobSpec, RoleSpec, ServiceSpec, TaskRole
from dcos_tensorflow.core.step import step
from dcos_tensorflow.mesos.wire.convert import offer_from_json
from dcos_tensorflow.scheduler.master_watch import agents_in, quota_in
from masters.mesos_recording import read

NOW = 1000.0


def offered(scenario: str) -> Iterator[list[dict[str, Any]]]:
    """Yield the offers of a recording, event by event."""
    for line in read(scenario):
        event = line.get("event", {})
        if event.get("type") == "OFFERS":
            yield event["offers"]["offers"]


def waiting(workers: int) -> ServiceState:
    """Return a registered service that wants workers of one cpu each."""
    small = Resources(cpus=1, mem=256)
    state = ServiceState.of_one_gang(
        spec=ServiceSpec(
            name="tensorflow",
            roles=(RoleSpec(TaskRole.WORKER, workers, small),),
            job=JobSpec(name="job"),
            mesos_role="tensorflow",
        ),
        instance="instance-1",
        settings=LaunchSettings(token_key="00" * 32),
    )
    registered = events.Registered(framework_id="f-1", master="127.0.0.1:5050")
    return step(state, (registered,), NOW).state


def accepted(state: ServiceState, offers: list[dict[str, Any]]) -> list[Accept]:
    """Return the launches that a recorded event leads to."""
    received = events.OffersReceived(tuple(offer_from_json(one, NOW) for one in offers))
    return [one for one in step(state, (received,), NOW).actions if isinstance(one, Accept)]


def test_an_offer_within_the_quota_is_used() -> None:
    accepts = accepted(waiting(1), next(offered("quota")))
    assert [launch.name for accept in accepts for launch in accept.launches] == ["worker-0"]


def test_the_roles_of_a_real_master_can_be_read() -> None:
    answers = [
        line["response"]["body"]
        for line in read("environment")
        if line.get("request", {}).get("path") == "/roles"
    ]
    assert [quota_in(answer, "tensorflow") for answer in answers] == [None]


def test_offers_of_each_role_are_used_under_that_role() -> None:
    roles = []
    for offers in offered("multi_role"):
        accepts = accepted(waiting(1), offers)
        roles += [(offers[0]["allocation_info"]["role"], len(accepts))]
    assert roles == [("tensorflow/sweep", 1), ("tensorflow", 1)]


def test_offers_of_two_roles_are_never_joined_in_one_launch() -> None:
    both = [one for offers in offered("multi_role") for one in offers]
    accepts = accepted(waiting(8), both)
    assert sorted(len(accept.offer_ids) for accept in accepts) == [1, 1]


def test_a_real_master_lists_its_agents_so() -> None:
    (answer,) = [
        line["response"]["body"]
        for line in read("environment")
        if line.get("request", {}).get("path") == "/slaves"
    ]
    found = list(agents_in(answer))
    assert [(one.hostname, one.active, one.deactivated) for one in found] == [
        ("127.0.0.2", True, False),
        ("127.0.0.1", True, False),
    ]
    assert (found[0].total, found[0].reserved) == (
        {"cpus": 4.0, "mem": 8192.0, "disk": 10000.0, "gpus": 0.0},
        {},
    )
    # All of them can make offers: of none there is anything to be said.
    assert silent_agents(found, waiting(1)) == ()
    away = [{**one, "active": False} for one in answer["slaves"]]
    (told,) = silent_agents(list(agents_in({**answer, "slaves": away})), waiting(1))
    assert str(told) == "no offer from 127.0.0.2, 127.0.0.1: it does not answer the master"
