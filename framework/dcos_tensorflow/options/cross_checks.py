"""Rules that span several options, options that are refused, and limits of the kernel. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from dcos_tensorflow.core import contract, job_parameters
from dcos_tensorflow.core.cluster import kernel_limits
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.spec.service_spec import Addressing, JobSpec, ServiceSpec, TaskRole
from dcos_tensorflow.options.document import shown
from dcos_tensorflow.options.errors import Finding, OptionProblem
from dcos_tensorflow.options.models import Options
from dcos_tensorflow.options.sections.capacity import capacity_findings
from dcos_tensorflow.options.sections.containers import container_findings
from dcos_tensorflow.options.sections.environment import RESERVED_VARIABLES, environment_findings
from dcos_tensorflow.options.sections.images import tensorflow_image
from dcos_tensorflow.options.sections.role_models import (
    GpuWorker,
    Worker,
    count_of,
    gpus_of,
    role_options,
)
from dcos_tensorflow.options.sections.section import ROLE_GROUPS
from dcos_tensorflow.options.sections.storage import storage_findings
from dcos_tensorflow.options.sections.tracking import tracking_findings
from dcos_tensorflow.options.sections.workloads import shapes, workload_findings

_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)")
#: What tasks and shards find beside the variables that no option may set (docs/job-contract.md).
_FOUND = (
    *(contract.PS_HOSTS, contract.WORKER_HOSTS, contract.JOB_NAME, contract.TASK_INDEX),
    *(contract.SHARD_INPUTS, contract.SHARD_OUTPUT, "SHARD_INDEX", "SHARD_BEGIN", "SHARD_END"),
    *("MESOS_SANDBOX", contract.SM_MODEL_DIR, contract.SM_OUTPUT_DATA_DIR),
)


def problems(
    spec: ServiceSpec, groups: Mapping[TaskRole, str], variable: Callable[[TaskRole, str], str]
) -> Iterator[OptionProblem]:
    """Yield what is too large in ``spec``.

    ``groups`` are the groups of options by role; ``variable`` says where one of a role's variables
    was given.
    """
    largest = max((r for r in spec.roles if r.role.is_in_gang), key=lambda r: r.count)
    count = f"{groups[largest.role]}.count"
    by_name = spec.addressing is Addressing.DNS
    fitting = kernel_limits.members_that_fit(spec)
    if fitting is not None:
        members = sum(role.count for role in spec.roles if role.role.is_in_gang)
        yield OptionProblem(
            count,
            f"the addresses of {members} members do not fit TF_CONFIG: Linux passes at most "
            f"{kernel_limits.VARIABLE_BYTES} bytes in one variable",
            str(largest.count),
            f"at most {counted(fitting, 'member')} in all"
            + (", or a shorter service.name, which is in each" if by_name else ""),
        )
        return
    for role, launch in kernel_limits.launches(spec):
        if launch.fits:
            continue
        parts = {
            "service.job_context": len(spec.job.context.encode()),
            "service.job_args": sum(len(each.encode()) for each in spec.job.arguments),
            "service.job_cmd": len(spec.job.command.encode()),
            count: launch.addresses,
            **{variable(role.role, n): len(n) + len(v.encode()) for n, v in role.env.items()},
        }
        path = max(parts, key=lambda part: parts[part])
        too_much = (
            f"{launch.size} bytes, and {launch.most} can be passed on"
            if launch.size > launch.most
            else f"{launch.variable_size} bytes in one variable, and Linux passes at most "
            f"{kernel_limits.VARIABLE_BYTES}"
        )
        yield OptionProblem(
            path,
            f"environment and command of a {role.role} would have {too_much}; this has the most "
            f"of it, {parts[path]} bytes",
            "",
            "less; a long value can come as a file, by service.job_uris or in the job itself",
        )
        # The other roles have the same trouble, or are told of next time.
        return


#: The groups of the roles that are members of the ClusterSpec.
GANG_GROUPS = ("parameter_server", "chief", "worker", "gpu_worker")
_TRAINING_GROUPS = ("chief", "worker", "gpu_worker")


def findings(options: Options) -> Iterator[Finding]:
    """Yield everything that is wrong with options each of which is right in itself."""
    yield from _unsupported(options)
    yield from _job(options)
    yield from _evaluator(options)
    yield from _kerberos(options)
    yield from _roles(options)
    yield from _strategy(options)
    yield from _fewest(options)
    yield from _gpus(options)
    yield from _addressing(options)
    yield from _peer_network(options)
    yield from _network(options)
    yield from _weights(options)
    yield from _times(options)
    yield from _environments(options)
    yield from storage_findings(options)
    yield from workload_findings(options)
    yield from _shapes(options)
    yield from capacity_findings(options)
    yield from tracking_findings(options)
    with_image = [g for g in ROLE_GROUPS if count_of(options, g) and image_of(options, g)]
    yield from container_findings(options, with_image)


def _shapes(options: Options) -> Iterator[Finding]:
    """Yield what is wrong with the first trial that cannot have the roles which it asks for."""
    rules = (_roles, _strategy, _fewest, _gpus)
    known = {finding for rule in rules for finding in rule(options)}
    for values, of_trial in shapes(options):
        for finding in (found for rule in rules for found in rule(of_trial)):
            if finding not in known:
                told = f"with {shown(values)}: {finding.path}: {finding.message}"
                looked_at = ("sweep.parameters", *finding.looked_at)
                yield Finding("sweep.parameters", told, finding.allowed, looked_at)
                return


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
    return tensorflow_image(service, gpu=gpus_of(options, group) > 0)


def _unsupported(options: Options) -> Iterator[Finding]:
    api, key = "service.mesos_api_version", "service.gcs_key"
    if options.service.mesos_api_version != "V1":
        yield Finding(api, "only Mesos' HTTP API is supported", "V1", (api,))
    if options.service.gcs_key:
        yield Finding(
            key,
            "a key in the options would be stored in plain text; set service.use_gcs_key_secret, "
            "and service.gcs_key_secret to the secret or the file that holds it",
            "empty text",
            (key,),
        )


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
    if service.job_sha256 and not JobSpec(service.job_url.strip()).file_name:
        yield Finding(
            "service.job_sha256",
            "is the sum of the file that service.job_url names, and that names none",
            "empty text",
            ("service.job_sha256", "service.job_url"),
        )
    if service.job_args and service.job_cmd:
        yield Finding(
            "service.job_args",
            "are those of a module in service.job_name, and the job is service.job_cmd",
            "none; the arguments of a command stand in it",
            ("service.job_args", name, command),
        )
    yield from _unread_variables(options)
    yield from _under_strategy(options)
    if service.tf1_compat and service.job_cmd and not service.job_name:
        yield Finding(
            "service.tf1_compat",
            "works for a module in service.job_name only, not for service.job_cmd",
            "false",
            ("service.tf1_compat", name, command),
        )


def _under_strategy(options: Options) -> Iterator[Finding]:
    """Yield what cannot be put under the strategy."""
    service, option = options.service, "service.under_strategy"
    if not service.under_strategy:
        return
    if service.job_cmd or service.job_contract == "function":
        what = "service.job_cmd" if service.job_cmd else "service.job_contract"
        told = f"is for a script, and {what} says otherwise"
        yield Finding(option, told, "false", (option, what))
    if service.tf1_compat:
        yield Finding(option, "is for TensorFlow 2", "false", (option, "service.tf1_compat"))
    workers = options.worker.count + options.gpu_worker.count
    if options.parameter_server.count and not (options.chief.count and workers):
        yield Finding(
            option,
            "trains with parameter servers by a chief and workers, and one of them is missing",
            "false",
            (option, "chief.count", "worker.count"),
        )


def _unread_variables(options: Options) -> Iterator[Finding]:
    """Yield variables in arguments that are meant for a shell."""
    service = options.service
    known = {*service.env, *RESERVED_VARIABLES, *_FOUND}
    for name in dict.fromkeys(n for each in service.job_args for n in _VARIABLE.findall(each)):
        is_parameter = name.startswith(job_parameters.PREFIX)
        own = name.removeprefix(job_parameters.PREFIX).lower()
        passed = f", service.parameters_as_arguments, {{{own}}} in a sweep" if is_parameter else ""
        if name in known or is_parameter:
            yield Finding(
                "service.job_args",
                f"no shell reads the arguments: the code would get ${name} as it stands here",
                f'os.environ["{name}"] in the code{passed}, or service.job_cmd, which a shell'
                " reads",
                ("service.job_args",),
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
    kerberos, prefix = options.service.security.kerberos, "service.security.kerberos"
    needed = {
        "kdc.hostname": kerberos.kdc.hostname,
        "kdc.port": kerberos.kdc.port,
        "realm": kerberos.realm,
    }
    for name, value in needed.items() if kerberos.enabled else ():
        if not value:
            yield _needed(f"{prefix}.{name}", f"{prefix}.enabled")


def _needed(path: str, because: str, allowed: str = "") -> Finding:
    return Finding(path, f"is needed because {because} is true", allowed, (because, path))


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


def _fewest(options: Options) -> Iterator[Finding]:
    """With how few workers a job may go on: never without the one whose end is the job's end."""
    decider = next((group for group in _TRAINING_GROUPS if count_of(options, group)), "")
    for group, role in (("worker", options.worker), ("gpu_worker", options.gpu_worker)):
        path, fewest = f"{group}.min_count", role.min_count
        if fewest is None:
            continue
        if fewest > role.count:
            yield Finding(
                path,
                f"is more than {group}.count, which is {role.count}",
                f"at most {role.count}",
                (path, f"{group}.count"),
            )
        elif not fewest and group == decider:
            yield Finding(
                path,
                f"without a chief the job's end is that of {group.replace('_', '-')}-0: it cannot "
                "be done without",
                "at least 1",
                (path, *(f"{other}.count" for other in _TRAINING_GROUPS)),
            )
    few = fewest_of(options.worker) + fewest_of(options.gpu_worker)
    if needs_a_worker(options) and not few and (options.worker.count or options.gpu_worker.count):
        yield Finding(
            f"{'worker' if options.worker.count else 'gpu_worker'}.min_count",
            "a ParameterServerStrategy cannot do without any worker beside the chief",
            "at least 1",
            ("service.strategy", "worker.min_count", "gpu_worker.min_count"),
        )


def fewest_of(role: Worker | GpuWorker) -> int:
    """Return with how few tasks of a role the job goes on."""
    return role.count if role.min_count is None else role.min_count


def needs_a_worker(options: Options) -> bool:
    """Say whether the job is rendered for a ParameterServerStrategy (core.cluster.rendering)."""
    service = options.service
    if service.strategy != "auto":
        return service.strategy == "parameter_server"
    sessions = service.job_contract == "function" or service.tf1_compat
    return bool(options.chief.count and options.parameter_server.count and not sessions)


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


def _peer_network(options: Options) -> Iterator[Finding]:
    if not options.cluster_spec.peer_network:
        return
    path, allowed = "cluster_spec.peer_network", "empty text"
    if options.cluster_spec.addressing == "dns":
        other = "cluster_spec.addressing"
        yield Finding(path, "names have the addresses that DNS tells", allowed, (other, path))
    elif options.service.virtual_network_enabled:
        other = "service.virtual_network_enabled"
        yield Finding(path, "containers have addresses of their own", allowed, (other, path))


def _addressing(options: Options) -> Iterator[Finding]:
    if options.cluster_spec.addressing != "dns":
        return
    for group in GANG_GROUPS:
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


def _network(options: Options) -> Iterator[Finding]:
    service, name = options.service, "service.virtual_network_name"
    if service.virtual_network_enabled and not service.virtual_network_name.strip():
        allowed = "the name of a network, such as dcos"
        yield _needed(name, "service.virtual_network_enabled", allowed)


def _weights(options: Options) -> Iterator[Finding]:
    placement, path = options.placement, "placement.weights"
    if placement.fitness == "weighted" and not any(dict(placement.weights).values()):
        message = "by no weight but 0 no agent is better than another"
        yield Finding(path, message, "one that is not 0", ("placement.fitness", path))


def _times(options: Options) -> Iterator[Finding]:
    """The longest of several waits is not shorter than the first."""
    for group, longest_name, first_name in (
        ("gang", "max_retry_seconds", "retry_seconds"),
        ("retry", "max_backoff_seconds", "initial_backoff_seconds"),
    ):
        section, longest_path = getattr(options, group), f"{group}.{longest_name}"
        first_path, first = f"{group}.{first_name}", getattr(section, first_name)
        if getattr(section, longest_name) < first:
            message = f"is less than {first_path}, which is {first:g}"
            yield Finding(longest_path, message, f"at least {first:g}", (longest_path, first_path))


def _environments(options: Options) -> Iterator[Finding]:
    yield from environment_findings("service.env", options.service.env)
    for group in ROLE_GROUPS:
        yield from environment_findings(f"{group}.env", role_options(options, group).env)
