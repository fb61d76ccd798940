"""Random jobs, and machines with room for them."""

import random
from dataclasses import dataclass, replace

from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import (
    GangSpec,
    OutcomePolicy,
    RetrySpec,
    RoleSpec,
    ServiceSpec,
    Strategy,
    TaskRole,
    UpdateStrategy,
)
from simulated.mesos import Cluster
from simulated.scheduler import small_job

SMALL = Resources(cpus=1, mem=1024, disk=100)
#: No scaling goes beyond so many workers and parameter servers.
MOST_WORKERS, MOST_SERVERS = 4, 2
#: In most histories failures are many and none of them is to be the job's end.
PATIENT = RetrySpec(
    limit=1000, out_of_memory_limit=1000, fruitless_limit=1000, max_backoff_seconds=15.0
)
IMPATIENT = replace(PATIENT, limit=3)


@dataclass(frozen=True)
class Job:
    """A service, and how its code really is distributed, whatever the options say."""

    spec: ServiceSpec
    strategy: Strategy


def random_job(dice: random.Random) -> Job:
    """Return a job of any strategy and a legal mix of roles."""
    strategy = dice.choice([s for s in Strategy if s is not Strategy.AUTO])
    servers = strategy in (Strategy.PARAMETER_SERVER, Strategy.BETWEEN_GRAPH)
    chief = 1 if strategy is Strategy.PARAMETER_SERVER else dice.randint(0, 1)
    workers = dice.randint(1, 3)
    roles = (
        RoleSpec(TaskRole.PS, dice.randint(1, 2) if servers else 0, SMALL),
        RoleSpec(TaskRole.CHIEF, chief, SMALL),
        RoleSpec(TaskRole.WORKER, workers, SMALL, min_count=dice.choice([None, 1])),
        RoleSpec(TaskRole.EVALUATOR, dice.choice([0, 0, 1]), SMALL),
    )
    all_workers = dice.random() < 0.15 and strategy is Strategy.INDEPENDENT
    spec = small_job(
        roles=roles,
        strategy=strategy,
        retry=IMPATIENT if dice.random() < 0.15 else PATIENT,
        gang=GangSpec(wait_seconds=40.0, grow_seconds=30.0, start_seconds=120.0),
        outcome=OutcomePolicy.ALL_WORKERS if all_workers else OutcomePolicy.CHIEF,
        outcome_grace_seconds=5.0,
        kill_grace_seconds=dice.choice([1.0, 5.0]),
        replace_after_seconds=dice.choice([0.0, 0.0, 20.0]),
        maintenance_lead_seconds=30.0,
        update_strategy=dice.choice(list(UpdateStrategy)),
        uninstall_give_up_seconds=60.0,
    )
    return Job(spec, strategy)


def room_for(dice: random.Random, job: Job) -> Cluster:
    """Return machines on which the job fits, also when it grows; not always on all but one."""
    most = {TaskRole.WORKER: MOST_WORKERS, TaskRole.PS: MOST_SERVERS}
    tasks = sum(most.get(role.role, role.count) for role in job.spec.roles)
    agents = dice.randint(1, tasks)
    slots = -(-tasks // agents)
    size = Resources(cpus=slots + 0.5, mem=1024 * slots + 500, disk=100 * slots + 100)
    return Cluster(agents, size)


def other_options(dice: random.Random, spec: ServiceSpec) -> ServiceSpec:
    """Return changed options: another environment, or more or fewer members."""

    def changed(role: RoleSpec) -> RoleSpec:
        if role.role is TaskRole.WORKER and what == "workers":
            return replace(role, count=dice.randint(1, MOST_WORKERS))
        if role.role is TaskRole.PS and what == "servers" and role.count:
            return replace(role, count=dice.randint(1, MOST_SERVERS))
        if what == "environment" and dice.random() < 0.4:
            return replace(role, env={"CHANGED": str(dice.randint(0, 9))})
        return role

    what = dice.choice(["workers", "servers", "environment"])
    return replace(spec, roles=tuple(changed(role) for role in spec.roles))
