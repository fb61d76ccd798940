"""What the master is told of the framework when the options of a running service change."""

from dataclasses import replace

import pytest

from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import (
    ConstraintOperator,
    PlacementConstraint,
    RoleSpec,
    ServiceSpec,
    TaskRole,
)
from dcos_tensorflow.core.step import Decision
from dcos_tensorflow.mesos.wire.convert import framework_info
from dcos_tensorflow.scheduler.subscription import FrameworkSubscription

WORKER = RoleSpec(TaskRole.WORKER, 1, Resources(cpus=1))
PLAIN = ServiceSpec("job", (WORKER,))
GPUS = replace(PLAIN, roles=(WORKER, RoleSpec(TaskRole.GPU_WORKER, 1, Resources(gpus=1))))
ELSEWHERE = PlacementConstraint("@region", ConstraintOperator.IS, "west")
REGIONS = replace(PLAIN, roles=(replace(WORKER, constraints=(ELSEWHERE,)),))


class Told:
    """The gateway: what it was told, in order."""

    def __init__(self):
        self.started, self.changed = [], []

    def start(self, info):
        self.started.append(info)

    def change_framework(self, info):
        self.changed.append(info)


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def subscription(told):
    made = FrameworkSubscription(told, lambda spec, i: framework_info(spec, i or None, "host", ""))
    made.begin(PLAIN, "F")
    return made


def target(spec):
    return Decision(ServiceState(spec=spec, instance="i", framework_id="F"), (), (), "changed")


def capabilities(info):
    return {each["type"] for each in info["capabilities"]}


def test_the_first_options_that_want_gpus_are_told_to_the_master(subscription, told):
    subscription.follow(target(GPUS))
    assert "GPU_RESOURCES" in capabilities(told.changed[0])


def test_the_first_rule_about_regions_is_told_to_the_master(subscription, told):
    subscription.follow(target(REGIONS))
    assert "REGION_AWARE" in capabilities(told.changed[0])


def test_a_new_subscription_keeps_the_frameworks_id(subscription, told):
    subscription.follow(target(GPUS))
    assert told.changed[0]["id"] == {"value": "F"}


def test_options_that_ask_for_nothing_new_cost_no_subscription(subscription, told):
    subscription.follow(target(replace(PLAIN, region="", kill_grace_seconds=7.0)))
    assert told.changed == []


def test_options_that_stay_cost_no_subscription(subscription, told):
    for _ in range(2):
        subscription.follow(target(GPUS))
    assert len(told.changed) == 1


def test_what_was_told_once_is_not_taken_back(subscription, told):
    for spec in (GPUS, PLAIN, REGIONS):
        subscription.follow(target(spec))
    assert {"GPU_RESOURCES", "REGION_AWARE"} <= capabilities(told.changed[-1])
    assert len(told.changed) == 2
