"""Who restarts for an update is said before it happens, and it is they who do."""

from dataclasses import replace

import pytest

from dcos_tensorflow.core.restarts.planned_changes import Announced, announced
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import RoleSpec, ServiceSpec, Strategy, TaskRole
from simulated.scheduler import small_job, started


def job(strategy: Strategy, **counts: int) -> ServiceSpec:
    small = Resources(cpus=0.1, mem=64, disk=10)
    roles = (TaskRole.PS, TaskRole.CHIEF, TaskRole.WORKER)
    found = (RoleSpec(role, counts.get(str(role), 0), small) for role in roles)
    return small_job(strategy=strategy, roles=tuple(role for role in found if role.count))


def with_worker(spec: ServiceSpec, **changes: object) -> ServiceSpec:
    roles = tuple(
        replace(role, **changes) if role.role is TaskRole.WORKER else role for role in spec.roles
    )
    return replace(spec, roles=roles)


@pytest.mark.parametrize(
    ("strategy", "along"),
    [(Strategy.MULTI_WORKER, ("worker-0", "worker-1")), (Strategy.INDEPENDENT, ())],
)
def test_who_learns_of_a_new_member_is_told(strategy: Strategy, along: tuple[str, ...]) -> None:
    spec = job(strategy, worker=2)
    view = started(spec).state.view()
    assert announced(view, with_worker(spec, count=3)) == Announced(
        along=along, joining=("worker-2",)
    )
    assert announced(view, with_worker(spec, count=1)).leaving == ("worker-1",)
    assert announced(view, spec) == Announced()


def test_tasks_that_restart_with_a_new_container_are_told() -> None:
    spec = job(Strategy.PARAMETER_SERVER, worker=2, ps=1, chief=1)
    view = started(spec).state.view()
    worker = spec.role(TaskRole.WORKER)
    assert worker is not None
    found = announced(view, with_worker(spec, env={"A": "1"}))
    assert found == Announced(replaced=("worker-0", "worker-1"))
    ps = tuple(
        replace(role, env={"A": "1"}) if role.role is TaskRole.PS else role for role in spec.roles
    )
    assert announced(view, replace(spec, roles=ps)) == Announced(
        replaced=("ps-0",), along=("chief-0",)
    )
