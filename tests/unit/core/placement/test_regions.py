"""Where tasks are when nothing says in which region: in the master's own."""

from dataclasses import replace

from dcos_tensorflow.core.spec.service_spec import ConstraintOperator, PlacementConstraint, TaskRole
from simulated.mesos import Cluster
from simulated.scheduler import small_job, started

WEST = PlacementConstraint("@region", ConstraintOperator.IS, "west")


def two_regions(**regions):
    """Return a cluster whose agents are elsewhere but for those named; the master is at home."""
    cluster = Cluster(4)
    cluster.region = "home"
    for agent_id, agent in cluster.agents.items():
        agent.region = regions.get(agent_id, "west")
    return cluster


def with_workers_elsewhere():
    spec = small_job()
    roles = (
        replace(r, constraints=(WEST,)) if r.role is TaskRole.WORKER else r for r in spec.roles
    )
    return replace(spec, roles=tuple(roles))


def agent_of(scheduler, name):
    return scheduler.state.tasks[name].agent_id


def test_a_rule_of_one_role_about_regions_leaves_the_others_in_the_masters_own():
    scheduler = started(with_workers_elsewhere(), two_regions(S3="home"))
    assert agent_of(scheduler, "ps-0") == "S3"


def test_a_role_with_a_rule_about_regions_goes_where_that_says():
    scheduler = started(with_workers_elsewhere(), two_regions(S3="home"))
    assert {agent_of(scheduler, f"worker-{n}") for n in (0, 1)} <= {"S0", "S1", "S2"}


def test_an_agent_that_tells_no_region_is_in_the_masters_own():
    scheduler = started(with_workers_elsewhere(), two_regions(S2=None))
    assert agent_of(scheduler, "ps-0") == "S2"
