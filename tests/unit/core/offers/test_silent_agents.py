"""Which machines make no offers, and the sentence that says why."""

from dataclasses import replace
from typing import Any

import pytest

from dcos_tensorflow.core.agents.silence import silent_agents
from dcos_tensorflow.core.model.known_agents import KnownAgent
from dcos_tensorflow.core.model.machine_records import CapacityRecord
from dcos_tensorflow.core.model.service_state import OfferLog, OfferVerdict, ServiceState
from dcos_tensorflow.core.spec.service_spec import TaskRole
from samples.states import a_role, a_spec, a_state, changed

FREE = {"cpus": 4.0, "mem": 8192.0, "gpus": 0.0}
GPUS = {**FREE, "gpus": 2.0}


def heard_of(state: ServiceState, *agents: str) -> ServiceState:
    """Return the state after these agents have made an offer."""
    verdicts = tuple(
        OfferVerdict(f"o-{agent}", agent, f"host-{agent}", 1.0, False, (), "no") for agent in agents
    )
    return changed(state, offer_log=OfferLog(rejected=len(verdicts), verdicts=verdicts))


def an_agent(name: str = "a", **of_it: Any) -> KnownAgent:
    return KnownAgent(name, f"host-{name}", **{"total": FREE, **of_it})


def told(*agents: KnownAgent, state: ServiceState | None = None) -> list[str]:
    return [str(one) for one in silent_agents(agents, state or a_state())]


@pytest.mark.parametrize(
    ("of_it", "why"),
    [
        ({"recovered": True}, "has not come back since another master leads"),
        ({"draining": "DRAINING", "deactivated": True}, "is being drained"),
        ({"draining": "DRAINED", "active": False}, "is drained"),
        (
            {"deactivated": True, "active": False},
            "is deactivated: the master offers it to no framework",
        ),
        ({"active": False}, "does not answer the master"),
        ({"total": GPUS}, "has GPUs, and masters keep such machines from jobs that ask for none"),
        ({"region": "east"}, "in the region east, and the options name none"),
        ({"reserved": {"other": FREE}}, "another Mesos role: other (the job has team/night)"),
        ({"used": {"cpus": 4.0, "mem": 8190.0}}, "all of it is in use"),
    ],
)
def test_each_reason_is_told(of_it: dict[str, Any], why: str) -> None:
    state = a_state(spec=a_spec(mesos_role="team/night"))
    (sentence,) = told(an_agent(**of_it), state=state)
    assert sentence.startswith("no offer from host-a: ")
    assert why in sentence


def test_a_machine_that_is_given_back_says_so() -> None:
    leaving = {"p-1": CapacityRecord(1, leaving=("HOST-A",))}
    state = replace(a_state(), capacity=leaving)
    (sentence,) = told(an_agent(deactivated=True, active=False), state=state)
    assert sentence == "no offer from host-a: it goes back to its provider"


@pytest.mark.parametrize(
    "of_it",
    [
        {},
        # For our role, for one above it, and only a part of it for another.
        {"reserved": {"team/night": FREE}},
        {"reserved": {"team": FREE}},
        {"reserved": {"other": {"cpus": 3.0, "mem": 8192.0}}},
        {"used": {"cpus": 4.0, "mem": 4096.0}},
    ],
)
def test_a_machine_that_can_make_an_offer_is_not_named(of_it: dict[str, Any]) -> None:
    assert told(an_agent(**of_it), state=a_state(spec=a_spec(mesos_role="team/night"))) == []


def test_a_job_that_asks_for_gpus_is_offered_them() -> None:
    spec = a_spec()
    gpus = a_role(TaskRole.GPU_WORKER, 1)
    gpus = replace(gpus, resources=replace(gpus.resources, gpus=1))
    state = a_state(spec=replace(spec, roles=(*spec.roles, gpus)))
    assert told(an_agent(total=GPUS), state=state) == []


def test_what_a_machine_is_kept_from_is_not_said_of_one_that_has_made_an_offer() -> None:
    assert told(an_agent(total=GPUS), state=heard_of(a_state(), "a")) == []


def test_a_machine_that_has_made_an_offer_and_is_listed_no_more_is_named() -> None:
    (sentence,) = told(an_agent("b"), state=heard_of(a_state(), "a", "b"))
    assert sentence.startswith("no offer from host-a: the master lists it no more")


def test_an_agent_that_came_back_under_another_id_is_not_named() -> None:
    back = replace(an_agent("a"), agent_id="a-again")
    assert told(back, state=heard_of(a_state(), "a")) == []


def test_of_many_the_first_are_named_and_the_others_counted() -> None:
    (sentence,) = told(*(an_agent(f"a{number}", active=False) for number in range(40)))
    assert sentence == (
        "no offer from host-a0, host-a1, host-a2, host-a3, host-a4 and 35 more: it does not answer"
        " the master"
    )
