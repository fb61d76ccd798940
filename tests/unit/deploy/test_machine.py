"""The size of the embedded cluster."""

import pytest

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import (
    ConstraintOperator,
    PlacementConstraint,
    RoleSpec,
    ServiceSpec,
    TaskRole,
)
from dcos_tensorflow.core.spec.volume_spec import VolumeSpec, VolumeType
from dcos_tensorflow.deploy.embedded.fitting import check_fits, check_places, overcommitted
from dcos_tensorflow.deploy.embedded.machine import (
    AgentWishes,
    agents,
    machine,
    parse_attributes,
)

UNIQUE = ConstraintOperator.UNIQUE


def a_job(count=2, **resources):
    return ServiceSpec("job", (RoleSpec(TaskRole.WORKER, count, Resources(**resources)),))


def test_one_agent_is_as_large_as_the_machine(tmp_path):
    (agent,) = agents(AgentWishes(), tmp_path)
    assert agent.cpus == machine(tmp_path).cpus
    assert agent.mem > 0


def test_several_agents_share_the_machine(tmp_path):
    found = agents(AgentWishes(agents=4), tmp_path)
    assert sum(agent.cpus for agent in found) == pytest.approx(machine(tmp_path).cpus)


def test_what_is_asked_for_counts(tmp_path):
    (agent,) = agents(AgentWishes(cpus=64, mem=1000, disk=5, gpus=8), tmp_path)
    assert (agent.cpus, agent.mem, agent.disk, agent.gpus) == (64, 1000, 5, 8)


def test_attributes_go_to_the_agents_in_turn(tmp_path):
    found = agents(AgentWishes(agents=3, attributes="rack:r1,r2;ssd:1"), tmp_path)
    assert [agent.attributes["rack"] for agent in found] == ["r1", "r2", "r1"]
    assert {agent.attributes["ssd"] for agent in found} == {1.0}


@pytest.mark.parametrize("text", ["rack", "rack:", ":r1", "rack:r1,,r2"])
def test_attributes_that_are_none_are_refused(text):
    with pytest.raises(UsageError, match="--attributes"):
        parse_attributes(text)


@pytest.mark.parametrize("count", [0, -1, 251])
def test_the_number_of_agents_is_bounded(tmp_path, count):
    with pytest.raises(UsageError, match="--agents"):
        agents(AgentWishes(agents=count), tmp_path)


def test_a_job_that_fits_is_accepted(tmp_path):
    check_fits(a_job(cpus=1, mem=10), agents(AgentWishes(cpus=2, mem=20), tmp_path))


@pytest.mark.parametrize(
    ("resources", "flag"),
    [
        ({"cpus": 2}, "--cpus"),
        ({"mem": 11}, "--mem"),
        ({"disk": 11}, "--disk"),
        ({"gpus": 1}, "--gpus"),
    ],
)
def test_a_job_that_can_never_fit_is_refused_with_what_helps(tmp_path, resources, flag):
    cluster = agents(AgentWishes(cpus=3, mem=20, disk=20, gpus=0), tmp_path)
    with pytest.raises(UsageError, match=flag):
        check_fits(a_job(**resources), cluster)


def of_two_cores(tmp_path, agents_wanted=1):
    return agents(AgentWishes(agents=agents_wanted, cpus=2 / agents_wanted, mem=100), tmp_path)


def test_a_job_larger_than_the_machine_has_what_it_needs_and_it_is_said(tmp_path):
    job = a_job(count=3, cpus=1, mem=60, disk=1)
    cluster, told = overcommitted(job, of_two_cores(tmp_path), ())
    check_fits(job, cluster)
    assert (cluster[0].cpus, cluster[0].mem) == (3, 180)
    assert "the 3 tasks need 3 cpus (2 available), 180 MB of memory (100 MB available)" in told


def test_nothing_is_said_of_a_job_that_fits(tmp_path):
    cluster = of_two_cores(tmp_path)
    assert overcommitted(a_job(cpus=1, mem=10), cluster, ()) == (cluster, "")


def test_the_tasks_find_a_place_on_several_agents_too(tmp_path):
    job = a_job(count=5, cpus=1.5, mem=90, disk=1)
    cluster, _ = overcommitted(job, of_two_cores(tmp_path, 3), ())
    check_places(job, cluster)


@pytest.mark.parametrize("resources", [{"gpus": 1}, {"cpus": 2}])
def test_neither_gpus_nor_given_sizes_are_claimed(tmp_path, resources):
    wishes = AgentWishes(cpus=3, mem=100, disk=100, gpus=0)
    cluster, told = overcommitted(a_job(**resources), agents(wishes, tmp_path), wishes.sized)
    assert told == ""
    with pytest.raises(UsageError, match="does not fit on this machine"):
        check_fits(a_job(**resources), cluster)


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        ({"constraints": (PlacementConstraint("hostname", UNIQUE),)}, "hostname:UNIQUE"),
        ({"volume": VolumeSpec(10.0, "v", VolumeType.MOUNT)}, "worker-0: "),
    ],
)
def test_a_job_that_no_agent_will_ever_take_is_refused_at_once(tmp_path, wish, why):
    roles = (RoleSpec(TaskRole.WORKER, 2, Resources(cpus=0.1, mem=10), **wish),)
    with pytest.raises(UsageError, match=f"would wait for ever.*{why}"):
        check_places(ServiceSpec("job", roles), of_two_cores(tmp_path))
