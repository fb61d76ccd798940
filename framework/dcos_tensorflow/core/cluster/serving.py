"""Whose processes serve others: they never end by themselves, and save nothing. Pure.

Asked where a task is to be stopped (``orders``, ``core.restarts.restarts``, ``core.advance``),
where the job waits for no server (``core.restarts.outcome``), and for a launch: TensorFlow's
``Server.join`` never returns, and a process in it hears of no handler of SIGTERM that the job's
code has set.
"""

from __future__ import annotations

from dcos_tensorflow.core.cluster.rendering import recovery_strategy
from dcos_tensorflow.core.contract import NOTHING_TO_SAVE_SECONDS, WORKER_ROLES
from dcos_tensorflow.core.spec.service_spec import (
    DATA_ROLES,
    OutcomePolicy,
    ServiceSpec,
    Strategy,
    TaskRole,
    name_in_gang,
    split_task_name,
)

_ALWAYS = frozenset({TaskRole.PS, *DATA_ROLES})
_AND_WORKERS = _ALWAYS.union(map(TaskRole, WORKER_ROLES))


def serving_roles(spec: ServiceSpec, strategy_seen: str) -> frozenset[TaskRole]:
    """Return the roles whose tasks serve, but the decider.

    Parameter servers and the tf.data service always do; workers of a ParameterServerStrategy where
    that is no guess: it is named in the options or was seen in the code. Workers that decide about
    the job's end do not.
    """
    known = spec.strategy is not Strategy.AUTO or bool(strategy_seen)
    if not known or spec.outcome is not OutcomePolicy.CHIEF:
        return _ALWAYS
    coordinated = recovery_strategy(spec, strategy_seen) is Strategy.PARAMETER_SERVER
    return _AND_WORKERS if coordinated else _ALWAYS


def serves(spec: ServiceSpec, strategy_seen: str, name: str) -> bool:
    """Say whether a task's process serves, also one that the options do not ask for any more."""
    role = split_task_name(name)[0]
    return role in serving_roles(spec, strategy_seen) and name_in_gang(name) != spec.decider


def grace_of(spec: ServiceSpec, strategy_seen: str, name: str) -> float:
    """Return how long a task's process may take to end when it is stopped on purpose (seconds)."""
    grace = spec.kill_grace_seconds
    return min(grace, NOTHING_TO_SAVE_SECONDS) if serves(spec, strategy_seen, name) else grace
