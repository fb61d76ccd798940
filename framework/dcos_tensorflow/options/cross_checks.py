"""Rules that span several options, and published options that cannot be honoured yet.

Pure: each rule is a function of the options that yields findings. A finding names the options that
it looked at, so that ``loading`` can drop it when one of them was wrong in itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dcos_tensorflow.core import contract
from dcos_tensorflow.options.document import shown, text_flaw
from dcos_tensorflow.options.errors import HIDDEN
from dcos_tensorflow.options.models import Options
from dcos_tensorflow.options.role_models import (
    Chief,
    Evaluator,
    GpuWorker,
    ParameterServer,
    TensorBoard,
    Worker,
)

RoleOptions = ParameterServer | Chief | Worker | GpuWorker | Evaluator | TensorBoard

#: The groups of options that describe a kind of task.
ROLE_GROUPS = (
    "parameter_server",
    "chief",
    "worker",
    "gpu_worker",
    "evaluator",
    "tensorboard",
)
_CLUSTER_GROUPS = ("parameter_server", "chief", "worker", "gpu_worker")
_TRAINING_GROUPS = ("chief", "worker", "gpu_worker")

#: Set for every task by the service; an own value would break the cluster or the job contract.
_RESERVED_VARIABLES = {
    contract.TF_CONFIG: "it is made from the roles and their counts",
    contract.TF_EPOCH: "it is the number of the ClusterSpec",
    contract.LOG_DIR: "it follows from service.shared_filesystem and checkpoints.uri",
    contract.CHECKPOINT_DIR: "it follows from checkpoints.uri",
    contract.JOB_CONTEXT: "it is service.job_context",
    contract.DATA_SHARD_INDEX: "it is the task's place among the workers",
    contract.DATA_SHARD_COUNT: "it is the number of workers",
    contract.TASK_NAME: "it is the task's name",
    contract.SERVICE_NAME: "it is service.name",
    contract.PROGRESS_FILE: "it is where the job reports its progress",
    contract.RUNNER_SPEC_VARIABLE: "it belongs to the task runner",
    contract.RUNNER_TOKEN_VARIABLE: "it belongs to the task runner",
    contract.RUNNER_PORT_VARIABLE: "it belongs to the task runner",
}


@dataclass(frozen=True)
class Finding:
    """Something wrong at ``path``. ``looked_at`` are the dotted paths the rule depends on."""

    path: str
    message: str
    allowed: str = ""
    looked_at: tuple[str, ...] = ()
    given: str | None = None


def findings(options: Options) -> Iterator[Finding]:
    """Yield everything that is wrong with options each of which is right in itself."""
    yield from _unsupported(options)
    yield from _job(options)
    yield from _evaluator(options)
    yield from _kerberos(options)
    yield from _roles(options)
    yield from _strategy(options)
    yield from _gpus(options)
    yield from _addressing(options)
    yield from _times(options)
    yield from _environments(options)


def role_options(options: Options, group: str) -> RoleOptions:
    """Return the options of one of ROLE_GROUPS."""
    role: RoleOptions = getattr(options, group)
    return role


def count_of(options: Options, group: str) -> int:
    """Return how many tasks of a role are wanted."""
    role = role_options(options, group)
    if isinstance(role, TensorBoard):
        return int(options.service.use_tensorboard)
    return role.count


def gpus_of(options: Options, group: str) -> int:
    """Return how many GPUs each task of a role gets."""
    role = role_options(options, group)
    return role.gpus if isinstance(role, Chief | GpuWorker | Evaluator) else 0


def port_of(options: Options, group: str) -> int:
    """Return the configured port of a role, 0 for any; GPU workers follow the workers."""
    port = role_options(options, group).port
    return options.worker.port if port is None else port


def image_of(options: Options, group: str) -> str:
    """Return the container image of a role, empty when it runs without one."""
    service = options.service
    if service.python or role_options(options, group).python:
        return ""
    # GPU workers ask for GPUs by definition; chief and evaluator only when given some.
    return service.gpu_tf_image if gpus_of(options, group) > 0 else service.tf_image


def _unsupported(options: Options) -> Iterator[Finding]:
    service = options.service
    refused = (
        (
            "service.service_account_secret",
            bool(service.service_account_secret),
            "logging in to DC/OS with a service account is not supported yet",
            "empty text",
        ),
        (
            "service.virtual_network_enabled",
            service.virtual_network_enabled,
            "virtual networks are not supported yet",
            "false",
        ),
        (
            "service.mesos_api_version",
            service.mesos_api_version != "V1",
            "only Mesos' HTTP API is supported",
            "V1",
        ),
        (
            "service.gcs_key",
            bool(service.gcs_key),
            "a key in the options would be stored in plain text; put its file on the agents or "
            "into the image and name it in service.env as GOOGLE_APPLICATION_CREDENTIALS",
            "empty text",
        ),
        (
            "service.use_gcs_key_secret",
            service.use_gcs_key_secret,
            "DC/OS secrets are not supported yet; put the key's file on the agents or into the "
            "image and name it in service.env as GOOGLE_APPLICATION_CREDENTIALS",
            "false",
        ),
    )
    for path, is_set, message, allowed in refused:
        if is_set:
            yield Finding(path, message, allowed, (path,))


def _job(options: Options) -> Iterator[Finding]:
    service = options.service
    name, command, chosen = "service.job_name", "service.job_cmd", "service.job_contract"
    if service.job_name and service.job_cmd:
        yield Finding(
            command,
            f"both service.job_name ({shown(service.job_name)}) and service.job_cmd are set, "
            "and a job is one of them",
            "either service.job_name or service.job_cmd",
            (name, command),
        )
    elif not service.job_name and not service.job_cmd:
        yield Finding(
            name,
            "there is nothing to run: neither service.job_name nor service.job_cmd is set",
            "the name of a module in service.job_name, or a command line in service.job_cmd",
            (name, command),
        )
    elif service.job_contract == "command" and not service.job_cmd:
        yield Finding(
            chosen, "the contract command needs service.job_cmd", "", (name, command, chosen)
        )
    elif service.job_contract in ("function", "script") and not service.job_name:
        yield Finding(
            chosen,
            f"the contract {service.job_contract} needs service.job_name",
            "auto or command with service.job_cmd",
            (name, command, chosen),
        )
    if service.tf1_compat and service.job_cmd and not service.job_name:
        yield Finding(
            "service.tf1_compat",
            "works for a module in service.job_name only, not for service.job_cmd",
            "false",
            ("service.tf1_compat", name, command),
        )


def _evaluator(options: Options) -> Iterator[Finding]:
    """An evaluator is in no Server definition: with ``main(server, ...)`` it would train alone."""
    if options.evaluator.count and options.service.job_contract == "function":
        yield Finding(
            "evaluator.count",
            "an evaluator needs a script or a command, and service.job_contract is function",
            "0, or service.job_contract script, command or auto",
            ("evaluator.count", "service.job_contract"),
        )


def _kerberos(options: Options) -> Iterator[Finding]:
    kerberos = options.service.security.kerberos
    if not kerberos.enabled:
        return
    prefix = "service.security.kerberos"
    needed = {
        "kdc.hostname": kerberos.kdc.hostname,
        "kdc.port": kerberos.kdc.port,
        "realm": kerberos.realm,
    }
    for name, value in needed.items():
        if not value:
            yield Finding(
                f"{prefix}.{name}",
                f"is needed because {prefix}.enabled is true",
                "",
                (f"{prefix}.{name}", f"{prefix}.enabled"),
            )


def _roles(options: Options) -> Iterator[Finding]:
    counts = tuple(f"{group}.count" for group in _TRAINING_GROUPS)
    if not any(count_of(options, group) for group in _TRAINING_GROUPS):
        yield Finding(
            "worker.count",
            "no task would train: chief.count, worker.count and gpu_worker.count are all 0",
            "at least 1 in one of them",
            counts,
        )


def _strategy(options: Options) -> Iterator[Finding]:
    strategy = options.service.strategy
    looked_at = ("service.strategy",)
    servers = options.parameter_server.count
    if strategy == "parameter_server":
        yield from _parameter_server_strategy(options)
    elif strategy in ("multi_worker", "independent") and servers:
        yield Finding(
            "parameter_server.count",
            f"service.strategy {strategy} has no parameter servers",
            "0",
            (*looked_at, "parameter_server.count"),
        )


def _parameter_server_strategy(options: Options) -> Iterator[Finding]:
    why = "service.strategy parameter_server needs"
    if not options.chief.count:
        yield Finding("chief.count", f"{why} a chief", "1", ("service.strategy", "chief.count"))
    if not options.parameter_server.count:
        yield Finding(
            "parameter_server.count",
            f"{why} parameter servers",
            "at least 1",
            ("service.strategy", "parameter_server.count"),
        )
    if not options.worker.count and not options.gpu_worker.count:
        yield Finding(
            "worker.count",
            f"{why} workers beside the chief",
            "at least 1, here or in gpu_worker.count",
            ("service.strategy", "worker.count", "gpu_worker.count", "chief.count"),
        )
    if options.service.outcome == "all_workers":
        # Measured: under ParameterServerStrategy workers serve for ever.
        yield Finding(
            "service.outcome",
            "with service.strategy parameter_server workers never end by themselves",
            "chief",
            ("service.strategy", "service.outcome"),
        )


def _gpus(options: Options) -> Iterator[Finding]:
    if options.gpu_worker.count and not options.gpu_worker.gpus:
        yield Finding(
            "gpu_worker.gpus",
            f"{options.gpu_worker.count} GPU workers without a GPU",
            "at least 1, or gpu_worker.count 0",
            ("gpu_worker.gpus", "gpu_worker.count"),
        )
    if options.service.containerizer != "docker":
        return
    for group in (*_TRAINING_GROUPS, "evaluator"):
        if count_of(options, group) and gpus_of(options, group) and image_of(options, group):
            yield Finding(
                "service.containerizer",
                f"the docker containerizer gives no GPUs, and {group}.gpus is "
                f"{gpus_of(options, group)}",
                "mesos",
                ("service.containerizer", f"{group}.count", f"{group}.gpus"),
            )
            return


def _addressing(options: Options) -> Iterator[Finding]:
    if options.cluster_spec.addressing != "dns":
        return
    for group in _CLUSTER_GROUPS:
        if count_of(options, group) and not port_of(options, group):
            # GPU workers without a port of their own follow worker.port: that is what to change.
            own = role_options(options, group).port is not None
            path = f"{group}.port" if own else "worker.port"
            yield Finding(
                path,
                "cluster_spec.addressing dns needs a fixed port",
                "a whole number from 1 to 65535",
                ("cluster_spec.addressing", path, f"{group}.count"),
            )


def _times(options: Options) -> Iterator[Finding]:
    pairs = (
        (
            "gang.max_retry_seconds",
            options.gang.max_retry_seconds,
            "gang.retry_seconds",
            options.gang.retry_seconds,
        ),
        (
            "retry.max_backoff_seconds",
            options.retry.max_backoff_seconds,
            "retry.initial_backoff_seconds",
            options.retry.initial_backoff_seconds,
        ),
    )
    for longest_path, longest, first_path, first in pairs:
        if longest < first:
            yield Finding(
                longest_path,
                f"is less than {first_path}, which is {first:g}",
                f"at least {first:g}",
                (longest_path, first_path),
            )


def _environments(options: Options) -> Iterator[Finding]:
    yield from environment_findings("service.env", options.service.env)
    for group in ROLE_GROUPS:
        yield from environment_findings(f"{group}.env", role_options(options, group).env)


def environment_findings(path: str, env: dict[str, str]) -> Iterator[Finding]:
    """Yield what is wrong with an environment for tasks; values are never shown."""
    for name, value in env.items():
        where = f"{path}.{name}"
        looked_at = (where,)
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            yield Finding(
                where,
                "is not the name of an environment variable",
                "letters, digits and underscores, no digit first",
                looked_at,
                "",
            )
        elif name in _RESERVED_VARIABLES:
            yield Finding(
                where,
                f"{name} is set by the service: {_RESERVED_VARIABLES[name]}",
                "any other name",
                looked_at,
                "",
            )
        elif value == HIDDEN:
            mask = "is the mask that stands for a hidden value; give the value itself"
            yield Finding(where, mask, "", looked_at, "")
        elif flaw := text_flaw(value):
            yield Finding(where, flaw, "", looked_at, "")
