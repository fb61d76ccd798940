"""Options to the ServiceSpec that the core works with, and to a document without secrets.

Called by the CLI and the scheduler once options are loaded. Pure: resolves no path, reads no file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dcos_tensorflow.core.contract import CONTRACT_COMMAND
from dcos_tensorflow.core.kept.paths import service_folder
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import (
    Addressing,
    Container,
    Containerizer,
    Fitness,
    GangSpec,
    JobSpec,
    NetworkAddresses,
    OutcomePolicy,
    PackagesSpec,
    PlacementSpec,
    RetrySpec,
    RoleSpec,
    ServiceSpec,
    Strategy,
    TaskRole,
    UpdateStrategy,
    Uri,
    VirtualNetwork,
)
from dcos_tensorflow.core.spec.volume_spec import VolumeSpec, VolumeType
from dcos_tensorflow.options import catalogue, cross_checks
from dcos_tensorflow.options.cross_checks import GANG_GROUPS, image_of, needs_a_worker, port_of
from dcos_tensorflow.options.errors import HIDDEN, OptionsError, is_secret
from dcos_tensorflow.options.idle_options import idle_notes
from dcos_tensorflow.options.models import Options
from dcos_tensorflow.options.sections import data_access
from dcos_tensorflow.options.sections.capacity import capacity_spec
from dcos_tensorflow.options.sections.containers import limits_of, secrets_of, shared_memory_of
from dcos_tensorflow.options.sections.images import is_too_old
from dcos_tensorflow.options.sections.placement import parse_placement
from dcos_tensorflow.options.sections.role_models import (
    GpuWorker,
    RoleOptions,
    TensorBoard,
    Worker,
    count_of,
    gpus_of,
    role_options,
)
from dcos_tensorflow.options.sections.section import GROUP_OF_ROLE
from dcos_tensorflow.options.sections.service_models import network_labels
from dcos_tensorflow.options.sections.storage import (
    is_s3,
    linked_data,
    shared_directories,
    shared_directory,
    storage_notes,
    storage_spec,
)
from dcos_tensorflow.options.sections.tracking import tracking_spec
from dcos_tensorflow.options.sections.workloads import (
    units_spec,
    with_largest_shape,
    workload_notes,
    workload_spec,
)

#: A task that TensorFlow is imported in needs about this much (measured, MB).
_TENSORFLOW_MEM = 600
#: The oldest TensorFlow that there is for Python 3.11, and that is tested.
OLDEST_TENSORFLOW = (2, 12)


def service_spec(options: Options) -> ServiceSpec:
    """Return the service that ``options`` describe, with roles as large as those of any trial.

    Roles come in the order of ``GROUP_OF_ROLE``; those of which no task is wanted are left out.
    Relative URIs stay as they are given.
    """
    options = with_largest_shape(options)
    service, gang, retry = options.service, options.gang, options.retry
    return ServiceSpec(
        name=service.name,
        roles=tuple(
            _role_spec(options, role, group)
            for role, group in GROUP_OF_ROLE.items()
            if count_of(options, group) > 0
        ),
        job=_job_spec(options),
        user=service.user,
        mesos_role=_mesos_role(options),
        principal=service.service_account,
        strategy=Strategy(service.strategy),
        outcome=OutcomePolicy(service.outcome),
        outcome_grace_seconds=service.outcome_grace_seconds,
        kill_grace_seconds=service.kill_grace_seconds,
        addressing=Addressing(options.cluster_spec.addressing),
        dns_domain=options.cluster_spec.dns_domain,
        peer_network=options.cluster_spec.peer_network,
        gang=GangSpec(**dict(gang)),
        retry=RetrySpec(**dict(retry)),
        stall_seconds=service.stall_seconds,
        freeze_seconds=service.freeze_seconds,
        idle_seconds=service.idle_seconds,
        replace_after_seconds=service.replace_after_seconds,
        maintenance_lead_seconds=service.maintenance_lead_seconds,
        leave_on_rebalance=service.leave_on_rebalance,
        update_strategy=UpdateStrategy(service.update_strategy),
        uninstall_give_up_seconds=service.uninstall_give_up_seconds,
        region=service.region,
        log_max_bytes=options.logs.max_bytes,
        log_keep=options.logs.keep,
        storage=storage_spec(options),
        network=_network(options),
        units=units_spec(options),
        workload=workload_spec(options),
        placement=_placement(options),
        capacity=capacity_spec(options),
        tracking=tracking_spec(options),
    )


def _placement(options: Options) -> PlacementSpec:
    given = options.placement
    fitness = Fitness(given.fitness)
    if fitness is not Fitness.WEIGHTED:
        return PlacementSpec(fitness)
    return PlacementSpec(fitness, **dict(given.weights))


def _network(options: Options) -> VirtualNetwork | None:
    service = options.service
    if not service.virtual_network_enabled:
        return None
    return VirtualNetwork(
        name=service.virtual_network_name,
        labels=network_labels(service.virtual_network_plugin_labels),
        addresses=NetworkAddresses(service.virtual_network_addresses),
    )


def as_given(options: Options) -> dict[str, Any]:
    """Return the options that were given, and none of the defaults, as JSON; secrets as they are.

    Loading it again gives the same options. A worker that came with no section of its own is named
    in it: with others laid over it, it stays one.
    """
    given: dict[str, Any] = options.model_dump(mode="json", exclude_unset=True)
    if options.worker.count:
        given.setdefault("worker", {"count": options.worker.count})
    return given


def effective(options: Options) -> dict[str, Any]:
    """Return every option's value as JSON, defaults included, secrets hidden.

    Loading it again gives the same options, but for hidden values, which are refused.
    """
    values: dict[str, Any] = options.model_dump(mode="json", exclude_none=True)
    for path in catalogue.secrets():
        into = _group_at(values, path)
        if into.get(path[-1]):
            into[path[-1]] = HIDDEN
    for path in catalogue.environments():
        into = _group_at(values, path)
        into["env"] = {
            name: HIDDEN if value and is_secret(name) else value
            for name, value in into["env"].items()
        }
    return values


def _group_at(values: dict[str, Any], path: catalogue.Path) -> dict[str, Any]:
    for key in path[:-1]:
        values = values[key]
    return values


def notes(options: Options, *, shares_directory: bool = False) -> tuple[str, ...]:
    """Return one sentence for each thing that is accepted but may not be what was meant.

    ``shares_directory``: where options name no place for checkpoints, all tasks have one all the
    same, as on the embedded cluster.
    """
    found = []
    service = options.service
    for group in GROUP_OF_ROLE.values():
        if not count_of(options, group):
            continue
        role = role_options(options, group)
        if not isinstance(role, TensorBoard) and role.mem < _TENSORFLOW_MEM:
            found.append(
                f"{group}.mem: {role.mem} MB is little: TensorFlow alone takes about "
                f"{_TENSORFLOW_MEM} MB."
            )
    if service.outcome == "all_workers" and needs_a_worker(options):
        found.append(
            "service.outcome: with a ParameterServerStrategy, which these roles may mean, workers "
            "never end by themselves, and with all_workers nor does the job."
        )
    version = tuple(int(part) for part in re.findall(r"\d+", service.tensorflow_version)[:2])
    if version and version < OLDEST_TENSORFLOW:
        oldest = ".".join(map(str, OLDEST_TENSORFLOW))
        found.append(
            f"service.tensorflow_version: {service.tensorflow_version} is older than {oldest}, the "
            "oldest supported."
        )
    found += _too_old_images(options)
    found += idle_notes(options)
    found += _limits_without_effect(options)
    found += storage_notes(options)
    found += workload_notes(options)
    shared = service.shared_filesystem or options.checkpoints.uri or shares_directory
    if service.use_tensorboard and not shared:
        found.append(
            "service.use_tensorboard: without service.shared_filesystem or checkpoints.uri "
            "TensorBoard sees only its own sandbox."
        )
    place = options.checkpoints.uri or service.shared_filesystem
    kept = shares_directory or options.data_dispatcher.persistent_volume
    if options.data_worker.count and (is_s3(place) if place else not kept):
        found.append(
            "data_worker.count: without checkpoints in a directory that all machines share the "
            "dispatcher keeps its journal in its sandbox: with its machine it is lost, and the "
            "training starts again from its checkpoint."
        )
    environments = {"service": service.env} | {
        group: role_options(options, group).env for group in GROUP_OF_ROLE.values()
    }
    found += [
        f"{group}.env.{name}: looks like a secret, and is stored and passed in plain text; "
        f"{group}.secrets is the place for one."
        for group, env in environments.items()
        for name in env
        if is_secret(name)
    ]
    return tuple(found)


def _too_old_images(options: Options) -> list[str]:
    """Return a sentence for each image that no task can start in."""
    wanted = [group for group in GROUP_OF_ROLE.values() if count_of(options, group)]
    images = dict.fromkeys(image_of(options, group) for group in wanted)
    return [
        f"The image {image} has, where it is the published one, a Python before 3.8, which runs no "
        "task: name another in service.tf_image or service.gpu_tf_image, or a "
        "service.tensorflow_version."
        for image in images
        if is_too_old(image)
    ]


def _limits_without_effect(options: Options) -> list[str]:
    """Return a sentence for each role's limit that the job's own limit always comes before."""
    limit = options.retry.limit
    limits = {group: role_options(options, group).retry_limit for group in GANG_GROUPS}
    return [
        f"{group}.retry_limit: {own} has no effect: retry.limit, which holds for all tasks "
        f"together, is {limit}."
        for group, own in limits.items()
        if own is not None and own > limit and count_of(options, group)
    ]


def _mesos_role(options: Options) -> str:
    """Return the Mesos role: * cannot reserve anything, so volumes need one (SDK: <name>-role)."""
    role, name = options.service.mesos_role, options.service.name
    groups = (group for group in GROUP_OF_ROLE.values() if count_of(options, group))
    if role != "*" or not any(_volume(role_options(options, group)) for group in groups):
        return role
    return f"{service_folder(name)}-role"


def _volume(given: RoleOptions) -> VolumeSpec | None:
    """Return the persistent volume of each task: its disk, of the published type and size."""
    if isinstance(given, TensorBoard) or not given.persistent_volume:
        return None
    return VolumeSpec(float(given.disk), given.volume_path, VolumeType(given.disk_type))


def _role_spec(options: Options, role: TaskRole, group: str) -> RoleSpec:
    given = role_options(options, group)
    image = image_of(options, group)
    volume = _volume(given)
    return RoleSpec(
        role=role,
        count=count_of(options, group),
        resources=Resources(
            cpus=given.cpus,
            mem=float(given.mem),
            disk=0.0 if isinstance(given, TensorBoard) or volume else float(given.disk),
            gpus=gpus_of(options, group),
        ),
        port=port_of(options, group) or None,
        constraints=parse_placement(given.placement_constraint),
        env={**data_access.environment(options), **options.service.env, **given.env},
        container=_container(options, role, image) if image else None,
        python=given.python or options.service.python,
        disk_type="ROOT" if isinstance(given, TensorBoard) else given.disk_type,
        min_count=given.min_count if isinstance(given, Worker | GpuWorker) else None,
        retry_limit=given.retry_limit,
        outlives_job=isinstance(given, TensorBoard) and given.keep_running,
        volume=volume,
        user=given.user,
        secrets=secrets_of(options, group),
        rlimits=limits_of(options, group),
        shm_size=shared_memory_of(options, group),
        sandbox_env=data_access.sandbox_environment(options),
        packages=_packages(options, given),
        data_service=options.data_worker.count > 0 and role.uses_data,
    )


def _packages(options: Options, given: RoleOptions) -> PackagesSpec:
    """Return what is installed for a role; nothing for a TensorBoard with a Python of its own.

    An image or a Python that is named brings its own TensorFlow.
    """
    if isinstance(given, TensorBoard) and given.python:
        return PackagesSpec()
    return PackagesSpec(
        requirements=tuple(options.service.requirements), directory=options.data_cache.directory
    )


def _container(options: Options, role: TaskRole, image: str) -> Container:
    """Return the container of a role, which sees what all machines share.

    A role that reads data sees the agent's cache of it, and data of its machines, too.
    """
    cache = options.data_cache.directory
    seen = list(shared_directories(options))
    if cache and (options.service.requirements or (options.data and role.uses_data)):
        seen.append(cache)
    if role.uses_data:
        seen += [link.source for link in linked_data(options) if link.source.startswith("/")]
    return Container(
        image,
        Containerizer(options.service.containerizer),
        host_directories=tuple(dict.fromkeys(seen)),
    )


def _job_spec(options: Options) -> JobSpec:
    service = options.service
    return JobSpec(
        uri=service.job_url.strip(),
        # Published meaning: $MESOS_SANDBOX/<job_path>, a leading slash or not.
        path=service.job_path.strip("/"),
        name=service.job_name,
        command=service.job_cmd,
        contract=CONTRACT_COMMAND if service.job_cmd else service.job_contract,
        context=service.job_context if service.job_context.strip() else "{}",
        tf1_compat=service.tf1_compat,
        legacy_keras=service.legacy_keras,
        under_strategy=service.under_strategy,
        shared_filesystem=service.shared_filesystem,
        checkpoint_dir=shared_directory(options),
        extra_uris=(*(Uri(uri.strip()) for uri in service.job_uris), *data_access.uris(options)),
        arguments=tuple(service.job_args),
        parameters_as_arguments=service.parameters_as_arguments,
        links=linked_data(options),
        sha256=service.job_sha256,
    )


def with_task_environment(
    spec: ServiceSpec, environments: Mapping[TaskRole, Mapping[str, str]]
) -> ServiceSpec:
    """Return ``spec`` with what ``task_environment`` found laid over each role's environment.

    Raises OptionsError where no process could be passed all of that.
    """
    roles = tuple(
        replace(role, env={**role.env, **environments.get(role.role, {})}) for role in spec.roles
    )
    joined = replace(spec, roles=roles)
    if any(environments.values()):

        def variable(role: TaskRole, name: str) -> str:
            given = name in environments.get(role, {})
            return f"TASKCFG_*_{name}" if given else f"{GROUP_OF_ROLE[role]}.env.{name}"

        too_large = tuple(cross_checks.problems(joined, GROUP_OF_ROLE, variable))
        if too_large:
            raise OptionsError(too_large, "the environment")
    return joined
