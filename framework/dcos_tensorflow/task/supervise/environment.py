"""The environment of the user's process: a pure function of spec and inherited variables.

``runner`` calls it before each start. The contract it keeps is docs/job-contract.md; the measured
reasons (proxies hang gRPC, TensorFlow starts about 85 threads) are told there too.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from types import MappingProxyType
from typing import Dict, List, Mapping, Optional, Tuple

from dcos_tensorflow.core import contract
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.python import reach
from dcos_tensorflow.task.spec import RunnerSpec, TaskCluster
from dcos_tensorflow.task.supervise.guard import MARK_VARIABLE
from dcos_tensorflow.task.unit_order import UnitOrder, context_of

#: gRPC tunnels to its peers through any of these, and the cluster hangs.
PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy")
#: What only the runner may know.
RUNNER_VARIABLES = (
    contract.RUNNER_SPEC_VARIABLE,
    contract.RUNNER_ADDRESSES_VARIABLE,
    contract.RUNNER_TOKEN_VARIABLE,
    contract.RUNNER_PORT_VARIABLE,
    contract.RUNNER_SECRETS_VARIABLE,
)
#: So many failed tries to reach one ps, in all its life, make TensorFlow's ClusterCoordinator give
#: up; its own default is 3 (``cluster_coordinator.py``, ``_transient_ps_failures_threshold``). A
#: worker whose ps was started again refuses for up to a second before it dials anew (gRPC's
#: back-off), which is some hundred tries. More than 200 could nest too deep for Python: a resource
#: closure is tried again from within itself.
PS_FAILURES_VARIABLE = "TF_COORDINATOR_IGNORE_TRANSIENT_PS_FAILURES"
PS_FAILURES = 150
PROGRESS_FILE_NAME = "progress.jsonl"
#: What no unit of work may say otherwise.
_KEPT_VARIABLES = frozenset(
    (
        *RUNNER_VARIABLES,
        *(contract.TF_CONFIG, contract.TF_EPOCH, contract.TASK_NAME, contract.SERVICE_NAME),
        *(contract.PROGRESS_FILE, MARK_VARIABLE, "PATH", "PYTHONPATH", "MESOS_SANDBOX"),
    )
)
#: SageMaker has no larger cluster, and a list has room in a variable.
_MOST_HOSTS = 1000


@dataclass(frozen=True)
class Directories:
    """Where the user's process works. All but ``sandbox`` may be URLs such as ``gs://bucket``."""

    sandbox: str
    log_dir: str
    checkpoint_dir: str
    job_log_dir: str
    output_dir: str

    def watched(self) -> Tuple[str, ...]:
        """Return the directories of this machine in which event files tell of steps."""
        return _on_this_machine(self.log_dir, self.checkpoint_dir, self.job_log_dir)

    def local(self) -> Tuple[str, ...]:
        """Return the directories that the runner makes when they are missing."""
        return _on_this_machine(*self.watched(), self.output_dir)


def _on_this_machine(*paths: str) -> Tuple[str, ...]:
    return tuple(dict.fromkeys(path for path in paths if not is_url(path)))


def is_url(path: str) -> bool:
    """Say whether ``path`` names a place on another machine, e.g. ``s3://bucket/run``."""
    return "://" in path


def directories(spec: RunnerSpec, sandbox: str) -> Directories:
    """Return the directories of a task whose sandbox is ``sandbox``.

    Relative paths are below the sandbox and ``$MESOS_SANDBOX`` is replaced by it, because the
    scheduler cannot know where an agent keeps it. Without a setting, everything goes to the shared
    file system, or else to ``logs`` and ``checkpoints`` in the sandbox. ``job_log_dir`` is the
    ``log_dir`` argument of the function contract.
    """

    def place(path: str) -> str:
        if is_url(path):
            return path
        for variable in ("${MESOS_SANDBOX}", "$MESOS_SANDBOX"):
            path = path.replace(variable, sandbox)
        return os.path.normpath(os.path.join(sandbox, path))

    shared = spec.shared_filesystem
    checkpoint_dir = place(spec.checkpoint_dir or shared or "checkpoints")
    return Directories(
        sandbox=sandbox,
        log_dir=place(spec.log_dir or shared or "logs"),
        checkpoint_dir=checkpoint_dir,
        job_log_dir=place(shared) if shared else checkpoint_dir,
        output_dir=place(spec.output_dir or "job-output"),
    )


def of_unit(where: Directories, unit: Optional[UnitOrder]) -> Directories:
    """Return the directories that a unit of work has of its own, below those of the task."""
    below = unit.payload.directory if unit else ""
    if not below:
        return where
    return replace(
        where,
        log_dir=_join(where.log_dir, below),
        checkpoint_dir=_join(where.checkpoint_dir, below),
        job_log_dir=_join(where.job_log_dir, below),
        output_dir=_join(where.output_dir, below),
    )


def _join(directory: str, below: str) -> str:
    if is_url(directory):
        return f"{directory.rstrip('/')}/{below}"
    return os.path.normpath(os.path.join(directory, below))


def user_environment(
    spec: RunnerSpec,
    cluster: TaskCluster,
    *,
    inherited: Mapping[str, str],
    where: Directories,
    python_path: Tuple[str, ...],
    python: str,
    mark: str,
    room: int,
    own: Mapping[str, str] = MappingProxyType({}),
) -> Tuple[Dict[str, str], List[str]]:
    """Return the environment of the user's process and a line for the log per notable change.

    ``python_path`` are the directories of the user's code, first wins; ``python`` is the
    interpreter that runs the task, which a command finds as ``python`` too; ``mark`` identifies
    this attempt's processes. ``room`` is how many bytes all variables may have together. ``own``
    are the variables of the unit of work that the start is for.
    """
    environment = {k: v for k, v in inherited.items() if k not in RUNNER_VARIABLES}
    notes = _drop_proxies(environment)
    environment.update(_contract_variables(spec, cluster, where))
    environment.update(own)
    if cluster.tf_config is None:
        environment.pop(contract.TF_CONFIG, None)
    environment[MARK_VARIABLE] = mark
    environment["PYTHONUNBUFFERED"] = "1"
    environment["PATH"] = search_path(inherited.get("PATH", os.defpath), python)
    environment["PYTHONPATH"] = os.pathsep.join(
        dict.fromkeys(
            [
                *python_path,
                *_split_path(inherited.get("PYTHONPATH", "")),
                reach.folder(where.sandbox),
            ]
        )
    )
    for name, value in {**_defaults(spec), **_as_sagemaker(environment, cluster, where)}.items():
        environment.setdefault(name, value)
    if spec.gpus == 0:
        environment["CUDA_VISIBLE_DEVICES"] = ""
    if spec.job.legacy_keras:
        environment["TF_USE_LEGACY_KERAS"] = "1"
    notes += _add_host_lists(environment, cluster, room)
    return environment, notes


def _add_host_lists(environment: Dict[str, str], cluster: TaskCluster, room: int) -> List[str]:
    """Add the cluster as scripts of TensorFlow 1 take it by flags; what the user has set stays.

    They come after all that a job needs: where Linux would not pass them, too, there are none.
    """
    server = cluster.server
    if server is None:
        return []
    lists = {
        contract.PS_HOSTS: ",".join(server.cluster.get("ps", ())),
        contract.WORKER_HOSTS: ",".join(server.cluster.get("worker", ())),
        contract.JOB_NAME: server.job_name,
        contract.TASK_INDEX: str(server.task_index),
    }
    both = {**lists, **environment}
    longest = max(_size(name, both[name]) for name in lists)
    if longest > contract.VARIABLE_BYTES or sum(map(_size, both, both.values())) > room:
        return [f"{', '.join(lists)} are not set: they are too long for a process"]
    environment.update(both)
    return []


def _size(name: str, value: str) -> int:
    # With "=", the final zero, and the pointer to it.
    return len(os.fsencode(name)) + len(os.fsencode(value)) + 10


def _drop_proxies(environment: Dict[str, str]) -> List[str]:
    dropped = sorted(name for name in environment if name.lower() in PROXY_VARIABLES)
    for name in dropped:
        del environment[name]
    if not dropped:
        return []
    return [f"unset {', '.join(dropped)}: gRPC between the tasks would go through the proxy"]


def unit_variables(
    spec: RunnerSpec, where: Directories, unit: Optional[UnitOrder]
) -> Dict[str, str]:
    """Return what changes from one unit of work to the next; ``where`` are the unit's own places.

    None of it takes the place of what the service itself sets.
    """
    if unit is None:
        return {}
    return {
        **{name: value for name, value in unit.payload.env.items() if name not in _KEPT_VARIABLES},
        contract.LOG_DIR: where.log_dir,
        contract.CHECKPOINT_DIR: where.checkpoint_dir,
        contract.OUTPUT_DIR: where.output_dir,
        contract.JOB_CONTEXT: context_of(unit, spec.job.context),
    }


def _contract_variables(
    spec: RunnerSpec, cluster: TaskCluster, where: Directories
) -> Dict[str, str]:
    variables = {
        contract.TF_EPOCH: str(cluster.epoch),
        contract.LOG_DIR: where.log_dir,
        contract.CHECKPOINT_DIR: where.checkpoint_dir,
        contract.OUTPUT_DIR: where.output_dir,
        contract.JOB_CONTEXT: spec.job.context,
        contract.TASK_NAME: spec.task,
        contract.SERVICE_NAME: spec.service,
        contract.PROGRESS_FILE: os.path.join(where.sandbox, PROGRESS_FILE_NAME),
    }
    if cluster.tf_config is not None:
        variables[contract.TF_CONFIG] = json.dumps(cluster.tf_config, separators=(",", ":"))
    if cluster.data_shard is not None:
        index, count = cluster.data_shard
        variables[contract.DATA_SHARD_INDEX] = str(index)
        variables[contract.DATA_SHARD_COUNT] = str(count)
    return variables


def _defaults(spec: RunnerSpec) -> Dict[str, str]:
    """Return what the user may override: thread counts by the task's cpus, patience, quieter logs.

    Two inter-op threads at least: with one, an operation that waits for a peer stops all others.
    """
    threads = max(1, math.ceil(spec.cpus))
    return {
        "TF_NUM_INTEROP_THREADS": str(max(2, threads)),
        "TF_NUM_INTRAOP_THREADS": str(threads),
        "OMP_NUM_THREADS": str(threads),
        PS_FAILURES_VARIABLE: str(PS_FAILURES),
        "TF_CPP_MIN_LOG_LEVEL": "1",
    }


def _as_sagemaker(
    environment: Mapping[str, str], cluster: TaskCluster, where: Directories
) -> Dict[str, str]:
    """Return what scripts find in SageMaker's container: the places and values of this job.

    Its hosts are the tasks that share the input data, by SageMaker's names; the first of them is
    the one whose model counts.
    """
    output = environment[contract.OUTPUT_DIR]
    found = {contract.SM_MODEL_DIR: output, contract.SM_OUTPUT_DATA_DIR: output}
    if environment[contract.JOB_CONTEXT]:
        found[contract.SM_HPS] = environment[contract.JOB_CONTEXT]
    index, count = cluster.data_shard or (0, 1)
    if count <= _MOST_HOSTS:
        hosts = [f"algo-{number + 1}" for number in range(count)]
        found[contract.SM_HOSTS] = json.dumps(hosts)
        found[contract.SM_CURRENT_HOST] = hosts[index]
    for name, path in environment.items():
        is_input = name.startswith(contract.INPUT_PREFIX)
        if is_input and path.startswith(f"{contract.INPUT_FOLDER}/"):
            channel = contract.SM_CHANNEL_PREFIX + name[len(contract.INPUT_PREFIX) :]
            found[channel] = os.path.join(where.sandbox, path)
    return found


def search_path(inherited: str, python: str) -> str:
    """Return PATH such that ``python`` in a command is the task's own, as in a virtual environment.

    A directory that PATH already has stays where it is: its other programs must not move forward.
    """
    directory, known = os.path.dirname(python), _split_path(inherited)
    return os.pathsep.join(known if directory in known else [directory, *known])


def _split_path(path: str) -> List[str]:
    return [part for part in path.split(os.pathsep) if part]
