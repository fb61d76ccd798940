"""How large a cluster, an environment and a command may be, and who says so."""

import pytest

from dcos_tensorflow.core.cluster import kernel_limits
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import (
    Addressing,
    Container,
    Containerizer,
    JobSpec,
    RoleSpec,
    ServiceSpec,
    Strategy,
    TaskRole,
)


def service(workers=2, *, name="mnist", dns=False, job=None, strategy=Strategy.AUTO, **role):
    return ServiceSpec(
        name=name,
        roles=(RoleSpec(TaskRole.WORKER, workers, Resources(cpus=1), port=2222, **role),),
        strategy=strategy,
        addressing=Addressing.DNS if dns else Addressing.OFFER,
        job=job or JobSpec(name="train"),
    )


@pytest.mark.parametrize(
    ("members", "spec"),
    [
        (5458, service(100_000)),
        (2359, service(100_000, dns=True)),
        (2001, service(100_000, dns=True, name="recommendations")),
    ],
    ids=["IPv4", "a short name", "a long name"],
)
def test_so_many_members_have_room_in_one_tf_config(members, spec):
    assert kernel_limits.members_that_fit(spec) == members


@pytest.mark.parametrize(("members", "dns"), [(5458, False), (2359, True)])
def test_what_tf_config_has_room_for_can_be_launched(members, dns):
    spec = service(members, dns=dns)
    assert kernel_limits.members_that_fit(spec) is None
    assert all(launch.fits for _, launch in kernel_limits.launches(spec))
    assert kernel_limits.members_that_fit(service(members + 1, dns=dns)) == members


def test_tasks_without_peers_are_not_bounded_by_it():
    assert kernel_limits.members_that_fit(service(10_000, strategy=Strategy.INDEPENDENT)) is None


def test_a_thousand_members_by_name_leave_nine_tenths_of_a_launch_free():
    [(_, launch)] = kernel_limits.launches(service(1000, dns=True))
    assert launch.size < kernel_limits.LAUNCH_BYTES / 10


@pytest.mark.parametrize(
    "spec",
    [
        service(env={"BIG": "x" * 120_000}),
        service(env={f"PART_{n}": "x" * 12_000 for n in range(10)}),
        service(job=JobSpec(command=": " + "x" * 120_000)),
        service(job=JobSpec(name="train", context='{"x": "' + "x" * 120_000 + '"}')),
    ],
    ids=["one variable", "all variables", "the command", "the context"],
)
def test_a_launch_through_mesos_must_fit_one_variable_altogether(spec):
    [(_, launch)] = kernel_limits.launches(spec)
    assert not launch.fits


def test_docker_takes_each_variable_by_itself():
    image = Container("tensorflow", Containerizer.DOCKER)
    parts = {f"PART_{n}": "x" * 12_000 for n in range(10)}
    [(_, many)] = kernel_limits.launches(service(env=parts, container=image))
    [(_, one)] = kernel_limits.launches(service(env={"BIG": "x" * 131_072}, container=image))
    assert many.fits
    assert (one.fits, one.variable) == (False, "BIG")
