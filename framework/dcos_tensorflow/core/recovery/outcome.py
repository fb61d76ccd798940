"""Whose end is the job's end, and what happens to the others then.

Called by ``core.step``. A parameter server never ends by itself (TensorFlow:
``Server.join`` never returns): the policy ends it, and that counts as success.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dcos_tensorflow.core.cluster.cluster_spec import decider
from dcos_tensorflow.core.model.spec import TRAINING_ROLES, OutcomePolicy, ServiceSpec, TaskRole
from dcos_tensorflow.core.model.task import TaskRecord, TaskState


def deciding_tasks(spec: ServiceSpec) -> tuple[str, ...]:
    """Return the tasks whose success is the job's success."""
    if spec.outcome is OutcomePolicy.CHIEF:
        return (decider(spec),)
    return tuple(
        f"{r.role}-{index}"
        for r in spec.roles
        if r.role in TRAINING_ROLES
        for index in range(r.count)
    )


def has_succeeded(
    spec: ServiceSpec, tasks: Mapping[str, TaskRecord], absent: Collection[str] = ()
) -> bool:
    """Say whether every deciding task has finished with exit code 0.

    ``absent`` are members that the job goes on without: nobody waits for their end.
    """
    deciding = [name for name in deciding_tasks(spec) if name not in absent]
    return all(name in tasks and tasks[name].state is TaskState.FINISHED for name in deciding)


def still_ending(tasks: Mapping[str, TaskRecord]) -> tuple[str, ...]:
    """Return the tasks that may be expected to end by themselves once the deciders have."""
    return tuple(
        name
        for name, record in tasks.items()
        if record.role in (*TRAINING_ROLES, TaskRole.EVALUATOR)
        and not record.terminal
        and not record.held
        and not record.process_failed
    )
