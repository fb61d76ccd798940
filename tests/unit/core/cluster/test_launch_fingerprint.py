"""What a container was launched with decides whether a changed configuration restarts it."""

import dataclasses
import typing
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from dcos_tensorflow.core.kept import codec
from dcos_tensorflow.core.spec.container_spec import ResourceLimit, TaskSecret
from dcos_tensorflow.core.spec.launched_with import DECLARED
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import (
    Addressing,
    Container,
    JobSpec,
    ServiceSpec,
    TaskRole,
    UpdateStrategy,
    Uri,
    VirtualNetwork,
)
from dcos_tensorflow.core.spec.storage_spec import (
    CheckpointSpec,
    CredentialsReference,
    S3Spec,
    StorageSpec,
)
from dcos_tensorflow.core.spec.volume_spec import VolumeSpec
from samples.states import a_role, a_spec

WORKER = TaskRole.WORKER


def with_worker(**changes: Any) -> ServiceSpec:
    return a_spec(roles=(a_role(WORKER, 2, **changes), a_role(TaskRole.PS, 1)))


@pytest.mark.parametrize(
    "changed",
    [
        with_worker(resources=Resources(cpus=2, mem=512, disk=64)),
        with_worker(env={"A": "1"}),
        a_spec(job=JobSpec(name="other")),
        a_spec(addressing=Addressing.DNS),
        a_spec(stall_seconds=900.0),
    ],
)
def test_what_a_container_is_launched_with_is_in_it(changed: ServiceSpec) -> None:
    assert changed.fingerprints[WORKER] != with_worker().fingerprints[WORKER]


@pytest.mark.parametrize(
    "changed",
    [
        with_worker(min_count=1),
        a_spec(roles=(a_role(WORKER, 7), a_role(TaskRole.PS, 1))),
        a_spec(update_strategy=UpdateStrategy.CANARY),
    ],
)
def test_what_only_decides_about_places_and_retries_is_not(changed: ServiceSpec) -> None:
    assert changed.fingerprints[WORKER] == with_worker().fingerprints[WORKER]


def test_another_role_changes_nothing() -> None:
    changed = a_spec(roles=(a_role(WORKER, 2), a_role(TaskRole.PS, 1, env={"A": "1"})))

    assert changed.fingerprints[WORKER] == with_worker().fingerprints[WORKER]


def test_it_is_the_same_for_a_spec_that_comes_from_the_store() -> None:
    spec = replace(with_worker(), kill_grace_seconds=10)

    stored = codec.decode(ServiceSpec, codec.encode(spec))
    assert stored.fingerprints[WORKER] == spec.fingerprints[WORKER]


#: A spec with some of everything that came later.
RICH = a_spec(
    roles=(
        a_role(
            WORKER,
            2,
            container=Container("tf:2", host_directories=("/cache",)),
            volume=VolumeSpec(100, "data"),
            user="nobody",
            secrets=(TaskSecret("a/b", env="KEY", option="worker.secrets[0]"),),
            rlimits=(ResourceLimit("RLIMIT_NOFILE", 1024, 4096),),
            shm_size=64,
            sandbox_env={"HOME": "home"},
        ),
        a_role(TaskRole.PS, 1, container=Container("tf:2")),
    ),
    job=JobSpec(name="mnist", extra_uris=(Uri("https://example/a"),)),
    network=VirtualNetwork("overlay", {"a": "b"}),
    storage=StorageSpec(
        CheckpointSpec("s3://bucket/job"), s3=S3Spec(credentials=CredentialsReference(file="/c"))
    ),
    stall_seconds=900.0,
)


@pytest.mark.parametrize(
    ("spec", "role", "text"),
    [
        (a_spec(), WORKER, "acda087b8adf81bc"),
        (a_spec(), TaskRole.TENSORBOARD, "4a963e2c635da95e"),
        (RICH, WORKER, "ad5558ff6010a6af"),
        (RICH, TaskRole.PS, "2517a9c57f5c85c9"),
    ],
)
def test_it_never_changes_for_the_same_options(
    spec: ServiceSpec, role: TaskRole, text: str
) -> None:
    """Else a scheduler of a newer version would restart every task that runs."""
    assert spec.fingerprints[role] == text


def parts_of(kind: Any) -> Iterator[type]:
    """Yield every dataclass that a value of this type is made of, itself included."""
    if dataclasses.is_dataclass(kind):
        yield typing.cast(type, kind)
        names = DECLARED[kind.__name__].of_launch() | {"roles"}
        hints = typing.get_type_hints(kind)
        kinds = [hint for name, hint in hints.items() if name in names]
    else:
        kinds = list(typing.get_args(kind))
    for inner in kinds:
        yield from parts_of(inner)


@pytest.mark.parametrize("kind", sorted(set(parts_of(ServiceSpec)), key=lambda k: k.__name__))
def test_every_option_is_declared_to_be_in_it_or_not(kind: type) -> None:
    declared = DECLARED[kind.__name__]
    words = f"{declared.launch} {declared.launch_if_set} {declared.never}".split()
    assert sorted(words) == sorted(field.name for field in dataclasses.fields(kind))


def test_nothing_is_declared_that_no_spec_is_made_of() -> None:
    assert {kind.__name__ for kind in parts_of(ServiceSpec)} == set(DECLARED)
