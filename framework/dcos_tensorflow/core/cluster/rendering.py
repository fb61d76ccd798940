"""The ClusterSpec of one epoch, rendered per strategy and per task.

``core.restarts.restarts`` makes a :class:`ClusterSpec`; launches (``launch``), orders to runners
(``orders``) and the API's view of a task get its rendering here: ``TF_CONFIG``, the definition of a
``tf.compat.v1.train.Server``, the ports of peers to wait for, the part of the data to read. Nothing
here places a task or reads a resource; the result depends on the spec and the addresses alone.

The rules are TensorFlow's (``tensorflow/python/distribute/multi_worker_util.py``,
``TFConfigClusterResolver``), measured with versions 2.15 and 2.21:

* only the jobs ``chief``, ``worker``, ``ps`` are ever listed; an unknown job is a ValueError there;
* an evaluator is never listed, in no task's cluster: a ParameterServerStrategy chief would wait for
  its gRPC server for ever;
* ``ps`` is left out when there is none, and always for MultiWorkerMirrored: it would wait for it;
* a job of one task has no ``TF_CONFIG``: TensorFlow would start a server without clients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dcos_tensorflow.core import contract as job_contract
from dcos_tensorflow.core.cluster.addresses import dns_name, not_known_yet
from dcos_tensorflow.core.model.cluster_spec import SERVER_JOBS, ClusterSpec
from dcos_tensorflow.core.spec.service_spec import (
    MAIN,
    TRAINING_ROLES,
    Addressing,
    RoleSpec,
    ServiceSpec,
    Strategy,
    TaskRole,
    split_task_name,
    task_in,
)

#: How members are said: by their addresses, or by their places in the table.
_Said = Callable[[ClusterSpec, tuple[range, ...]], list[Any]]


def _by_address(cluster: ClusterSpec, members: tuple[range, ...]) -> list[Any]:
    return [address for m in members for address in cluster.table[m.start : m.stop]]


def _by_place(cluster: ClusterSpec, members: tuple[range, ...]) -> list[Any]:
    return [[m.start, m.stop] for m in members]


def rendered_strategy(spec: ServiceSpec) -> Strategy:
    """Return the strategy that the job is rendered for and recovered by; never AUTO.

    What the options name is taken as it is. AUTO goes by the mix of roles:

    1. one training task and no ps: ``independent``;
    2. the job is called as ``main(server, log_dir, context)`` or is a TF-1 script: those train
       with sessions on a Server: ``between_graph``;
    3. with ps: ``parameter_server`` when there is a chief and a worker, as ParameterServerStrategy
       demands, else ``between_graph`` (the published package has no chief);
    4. several training tasks and no ps: ``multi_worker``.

    The function contract is always served by :func:`server_definition`, whatever this says.
    """
    if spec.strategy is not Strategy.AUTO:
        return spec.strategy
    has_ps = _count(spec, TaskRole.PS) > 0
    if not has_ps and _training_count(spec) <= 1:
        return Strategy.INDEPENDENT
    if spec.job.contract == job_contract.CONTRACT_FUNCTION or spec.job.tf1_compat:
        return Strategy.BETWEEN_GRAPH
    if not has_ps:
        return Strategy.MULTI_WORKER
    has_chief = _count(spec, TaskRole.CHIEF) > 0
    has_worker = _count(spec, TaskRole.WORKER) + _count(spec, TaskRole.GPU_WORKER) > 0
    return Strategy.PARAMETER_SERVER if has_chief and has_worker else Strategy.BETWEEN_GRAPH


def recovery_strategy(spec: ServiceSpec, seen: str) -> Strategy:
    """Return the strategy whose restart sets apply; never AUTO.

    A ClusterSpec is rendered before the job's code is seen. Recovery knows more: with AUTO
    it goes by what a task runner has ``seen`` in the code, where it recognised something.
    """
    rendered = rendered_strategy(spec)
    if spec.strategy is not Strategy.AUTO or rendered is Strategy.INDEPENDENT or not seen:
        return rendered
    try:
        return Strategy(seen)
    except ValueError:
        return rendered


def illegal_mix(spec: ServiceSpec) -> str | None:
    """Return why TensorFlow cannot run this mix of roles with its strategy; None when it can.

    ParameterServerStrategy raises without a chief, a worker and a ps; MultiWorkerMirrored waits
    for ever for a listed ps and has no use for one; the others follow from their meaning.
    """
    strategy = rendered_strategy(spec)
    ps = _count(spec, TaskRole.PS)
    workers = _count(spec, TaskRole.WORKER) + _count(spec, TaskRole.GPU_WORKER)
    chiefs = _count(spec, TaskRole.CHIEF)
    rules = (
        (_training_count(spec) == 0, "nothing trains: no chief, worker or gpu_worker is wanted"),
        (chiefs > 1, f"{chiefs} chiefs are wanted; TensorFlow knows one"),
        (
            _count(spec, TaskRole.EVALUATOR) > 1,
            f"{_count(spec, TaskRole.EVALUATOR)} evaluators are wanted; TensorFlow knows one",
        ),
        (
            strategy is Strategy.PARAMETER_SERVER and not (chiefs and workers and ps),
            "strategy parameter_server needs a chief, at least one worker and at least one "
            "parameter_server",
        ),
        (
            strategy in (Strategy.MULTI_WORKER, Strategy.INDEPENDENT) and ps > 0,
            f"strategy {strategy} has no parameter servers, {ps} are wanted",
        ),
    )
    return next((why for broken, why in rules if broken), None)


def address_of(
    spec: ServiceSpec, role_spec: RoleSpec, index: int, host: str, port: int, *, gang: str = MAIN
) -> str:
    """Return the ``host:port`` by which peers reach a task.

    ``host`` and ``port`` come from the accepted offer, or are those of the task's own container
    (``core.cluster.addresses``); ``host`` is empty until that is known, and no process starts
    before. With DNS addressing the name is the one that DC/OS gives the task, ``<task>.<service
    without slashes>.<domain>``, and the port is the configured one, so that the address outlives
    any move. Raises ValueError when DNS addressing is asked for and the role has no configured
    port.
    """
    name = task_in(gang, f"{role_spec.role}-{index}")
    if spec.addressing is Addressing.OFFER:
        known = host or not_known_yet(name)
        return f"[{known}]:{port}" if ":" in known else f"{known}:{port}"
    if role_spec.port is None:
        raise ValueError(
            f"cluster_spec.addressing dns needs a port for {role_spec.role}; none is configured"
        )
    return f"{dns_name(spec, name)}:{role_spec.port}"


def data_shard(cluster: ClusterSpec, task: str) -> tuple[int, int]:
    """Return (index, count) of the part of the input data that ``task`` reads in this epoch.

    Chief first, then workers, then GPU workers. Tasks that do not train see all of it: (0, 1).
    """
    training = cluster.server_jobs.get("worker", range(0))
    place = cluster.places.get(task, -1)
    return (place, len(training)) if place in training else (0, 1)


def tf_config(
    spec: ServiceSpec, cluster: ClusterSpec, task: str, said: _Said = _by_address
) -> dict[str, Any] | None:
    """Return the value of ``TF_CONFIG`` for ``task``; None when it is to have none.

    None have: sidecars, the one task of a single-task job, training tasks of an ``independent``
    job. The evaluator sees the cluster and is not in it.
    Raises ValueError when ``task`` should be a member and has no address.
    """
    role, index = split_task_name(task)
    if not role.sees_cluster:
        return None
    if sum(r.count for r in spec.roles if r.role.sees_cluster) <= 1:
        return None
    strategy = rendered_strategy(spec)
    if role is TaskRole.EVALUATOR:
        position = ("evaluator", index)
    elif strategy is Strategy.INDEPENDENT:
        return None
    else:
        position = _position(cluster, task, cluster.tf_config_jobs)
    jobs = {
        job: said(cluster, (members,))
        for job, members in cluster.tf_config_jobs.items()
        if job != "ps" or strategy is not Strategy.MULTI_WORKER
    }
    return {"cluster": jobs, "task": {"type": position[0], "index": position[1]}}


def server_definition(
    spec: ServiceSpec, cluster: ClusterSpec, task: str, said: _Said = _by_address
) -> dict[str, Any] | None:
    """Return cluster, job_name and task_index for a ``tf.compat.v1.train.Server``.

    Jobs are ``ps`` and ``worker`` only; chief, then workers, then GPU workers are ``worker``,
    index 0 first. Members of an ``independent`` job each are a cluster of one, so that each is
    its own chief. None for tasks that are no members (evaluator, TensorBoard).
    Raises ValueError when ``task`` should be a member and has no address.
    """
    role, _ = split_task_name(task)
    if role not in SERVER_JOBS:
        return None
    job, index = _position(cluster, task, cluster.server_jobs)
    if rendered_strategy(spec) is Strategy.INDEPENDENT:
        jobs, index = {"worker": [cluster.addresses[task]]}, 0
    else:
        jobs = {job: said(cluster, (members,)) for job, members in cluster.server_jobs.items()}
    return {"cluster": jobs, "job_name": job, "task_index": index}


def wait_for(
    spec: ServiceSpec, cluster: ClusterSpec, task: str, contract: str
) -> tuple[range, ...]:
    """Return the members whose addresses must accept connections before ``task`` starts.

    With sessions the order of a start is ps, chief, workers, evaluator. It is no nicety: a worker
    that arrives before the chief has initialised the variables sleeps 30 seconds between looks.
    Where TensorFlow waits by itself the runner does not: importing it takes seconds, and all tasks
    can do that at the same time. Only servers that are sure to be opened are waited for:

    * sessions (``between_graph``, and ``contract`` "function" under any strategy but
      ``independent``): index 0 of ``worker`` waits for every ps, the other workers for index 0 too;
    * ``parameter_server``: no task, the ClusterCoordinator's chief waits for every ps and worker;
    * ``multi_worker``: no task, TensorFlow's own barrier does it;
    * ``independent``: no task;
    * the evaluator waits for the decider where that one opens its port: sessions, and
      ``multi_worker`` with more than one member.
    """
    role, _ = split_task_name(task)
    strategy = rendered_strategy(spec)
    if strategy is Strategy.INDEPENDENT or not role.runs_job:
        return ()
    if contract == job_contract.CONTRACT_FUNCTION:
        strategy = Strategy.BETWEEN_GRAPH
    ps = cluster.server_jobs.get("ps", range(0))
    workers = cluster.server_jobs.get("worker", range(0))
    sessions = strategy is Strategy.BETWEEN_GRAPH
    if role is TaskRole.EVALUATOR:
        listens = sessions or (strategy is Strategy.MULTI_WORKER and len(workers) > 1)
        return (workers[:1],) if listens else ()
    if not sessions:
        return ()
    if _position(cluster, task, cluster.server_jobs)[1] > 0:
        return (ps, workers[:1])
    return (ps,)


def runner_cluster(spec: ServiceSpec, cluster: ClusterSpec, task: str) -> dict[str, Any]:
    """Return what the task runner of ``task`` is told about an epoch (docs/task-runner.md).

    ``distribute`` is for scripts and commands, ``server`` for ``main(server, log_dir, context)``:
    which of them the job is, the runner sees when it has the code. This is the body of an order,
    which runners of former versions read too: it says every address out.
    """
    return _runner_cluster(spec, cluster, task, _by_address)


def launched_cluster(
    spec: ServiceSpec, cluster: ClusterSpec, task: str
) -> tuple[dict[str, Any], str]:
    """Return the same for the launch of ``task``, and the text of the table that it refers to.

    A launch has to fit a few variables, so it says the addresses once: what stands for some of them
    is ``[start, end]`` in the table. The table is empty for a task that is told of itself alone.
    """
    role, _ = split_task_name(task)
    alone = role.is_in_gang and rendered_strategy(spec) is Strategy.INDEPENDENT
    if alone or not role.sees_cluster:
        return _runner_cluster(spec, cluster, task, _by_address), ""
    return _runner_cluster(spec, cluster, task, _by_place), cluster.table_text


def _runner_cluster(
    spec: ServiceSpec, cluster: ClusterSpec, task: str, said: _Said
) -> dict[str, Any]:
    def waits(contract: str) -> list[Any]:
        return said(cluster, wait_for(spec, cluster, task, contract))

    definition = server_definition(spec, cluster, task, said)
    server = None
    if definition is not None:
        server = {**definition, "wait_for": waits(job_contract.CONTRACT_FUNCTION)}
    index, count = data_shard(cluster, task)
    return {
        "epoch": cluster.epoch,
        "distribute": {
            "tf_config": tf_config(spec, cluster, task, said),
            "wait_for": waits(job_contract.CONTRACT_SCRIPT),
        },
        "server": server,
        "data_shard": {"index": index, "count": count},
    }


def _count(spec: ServiceSpec, role: TaskRole) -> int:
    """Return how many tasks of ``role`` are wanted."""
    return sum(r.count for r in spec.roles if r.role is role)


def _training_count(spec: ServiceSpec) -> int:
    return sum(_count(spec, role) for role in TRAINING_ROLES)


def _position(cluster: ClusterSpec, task: str, jobs: Mapping[str, range]) -> tuple[str, int]:
    """Return job and index of a member. Raises ValueError when it has no address."""
    place = cluster.places.get(task, -1)
    for job, members in jobs.items():
        if place in members:
            return job, place - members.start
    raise ValueError(f"{task} has no address in version {cluster.epoch} of the cluster")
