"""What a container was launched with decides whether a changed configuration restarts it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dcos_tensorflow.core.cluster.fingerprint import fingerprint
from dcos_tensorflow.core.kept import codec
from dcos_tensorflow.core.model.resources import Resources
from dcos_tensorflow.core.model.spec import (
    Addressing,
    ConstraintOperator,
    Container,
    GangSpec,
    JobSpec,
    PlacementConstraint,
    RetrySpec,
    ServiceSpec,
    TaskRole,
    UpdateStrategy,
)
from sample_states import a_role, a_spec

WORKER = TaskRole.WORKER
RULE = PlacementConstraint("hostname", ConstraintOperator.UNIQUE)


def with_worker(**changes: Any) -> ServiceSpec:
    return a_spec(roles=(a_role(WORKER, 2, **changes), a_role(TaskRole.PS, 1)))


@pytest.mark.parametrize(
    "changed",
    [
        with_worker(resources=Resources(cpus=2, mem=512, disk=64)),
        with_worker(env={"A": "1"}),
        with_worker(container=Container("tf:3")),
        with_worker(python="/opt/tf"),
        with_worker(port=2222),
        a_spec(job=JobSpec(name="other")),
        a_spec(user="nobody"),
        a_spec(addressing=Addressing.DNS),
        a_spec(log_max_bytes=1),
        a_spec(kill_grace_seconds=60.0),
        a_spec(stall_seconds=900.0),
        a_spec(freeze_seconds=0.0),
    ],
)
def test_what_a_container_is_launched_with_is_in_it(changed: ServiceSpec) -> None:
    assert fingerprint(changed, WORKER) != fingerprint(with_worker(), WORKER)


@pytest.mark.parametrize(
    "changed",
    [
        with_worker(min_count=1),
        with_worker(constraints=(RULE,)),
        with_worker(retry_limit=9),
        a_spec(roles=(a_role(WORKER, 7), a_role(TaskRole.PS, 1))),
        a_spec(gang=GangSpec(hold_seconds=1)),
        a_spec(retry=RetrySpec(limit=9)),
        a_spec(update_strategy=UpdateStrategy.CANARY),
        a_spec(region="elsewhere"),
    ],
)
def test_what_only_decides_about_places_and_retries_is_not(changed: ServiceSpec) -> None:
    assert fingerprint(changed, WORKER) == fingerprint(with_worker(), WORKER)


def test_another_role_changes_nothing() -> None:
    changed = a_spec(roles=(a_role(WORKER, 2), a_role(TaskRole.PS, 1, env={"A": "1"})))

    assert fingerprint(changed, WORKER) == fingerprint(with_worker(), WORKER)


def test_it_is_the_same_for_a_spec_that_comes_from_the_store() -> None:
    spec = replace(with_worker(), kill_grace_seconds=10)

    stored = codec.decode(ServiceSpec, codec.encode(spec))
    assert fingerprint(stored, WORKER) == fingerprint(spec, WORKER)


def test_a_role_that_the_service_does_not_have_is_named() -> None:
    with pytest.raises(ValueError, match="chief"):
        fingerprint(a_spec(), TaskRole.CHIEF)
