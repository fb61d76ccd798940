"""From a placed task to the launch that an ACCEPT carries: command, environment, files.

Called by ``core.offers.launching`` when a gang or a sidecar was placed. Everything a task needs is
in its launch, so that it starts and trains with the scheduler away. Secrets never go into the
visible environment or the command (rule 11).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.cluster import addresses, rendering, storage_sections
from dcos_tensorflow.core.cluster.output_places import Run, output_dir
from dcos_tensorflow.core.cluster.serving import grace_of
from dcos_tensorflow.core.model.actions import LaunchTask
from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.model.service_state import LaunchSettings
from dcos_tensorflow.core.model.task import TaskRecord
from dcos_tensorflow.core.spec.service_spec import JobSpec, RoleSpec, ServiceSpec, TaskRole, Uri

#: How long a process waits for those that must start before it; then it starts all the same.
WAIT_SECONDS = 300
#: The same where only a command line is known: it may open TensorFlow's port or not.
COMMAND_WAIT_SECONDS = 30

#: The runner escalates by itself after the grace, and then keeps the last checkpoint and the logs:
#: the agent's own SIGKILL is only the backstop.
KILL_MARGIN_SECONDS = 8.0

#: Where the fetcher puts the runner, whatever its URI is called.
RUNNER_FILE = "task-runner.pyz"


def task_token(token_key: str, task_id: str) -> str:
    """Return the secret that scheduler and runner of this attempt share."""
    return hmac.new(bytes.fromhex(token_key), task_id.encode(), hashlib.sha256).hexdigest()


def launch_command(python: str, sandbox_env: Mapping[str, str] | None = None) -> str:
    """Return the shell command that starts the runner.

    ``python`` is an interpreter, a virtual environment's directory, or empty for ``python3``.
    Which of the two a path is only the machine knows that runs the task, so the shell looks there.
    Where the sandbox is, too: ``sandbox_env`` has paths below it, by the variables that name them.
    """
    wanted = shlex.quote(python) if python else "python3"
    exports = "".join(
        f'export {name}="${{MESOS_SANDBOX:-$PWD}}"{shlex.quote(f"/{path}" if path else "")}; '
        for name, path in sorted((sandbox_env or {}).items())
    )
    return (
        f"{exports}python={wanted}; "
        'if [ -d "$python" ]; then python="$python/bin/python"; fi; '
        'if ! command -v "$python" >/dev/null 2>&1; then '
        f'echo "no Python at $python on this machine: see the option service.python" >&2; '
        f"exit {contract.EXIT_JOB_UNUSABLE}; fi; "
        f'exec "$python" "${{MESOS_SANDBOX:-.}}/{RUNNER_FILE}"'
    )


def _parameters_as_arguments(job: JobSpec) -> dict[str, str]:
    mode = job.parameters_as_arguments
    return {} if mode == JobSpec().parameters_as_arguments else {"parameters_as_arguments": mode}


def _job_contract(spec: ServiceSpec, role: TaskRole) -> str:
    if role.serves_data:
        return contract.CONTRACT_DATA_SERVICE
    return contract.CONTRACT_TENSORBOARD if role is TaskRole.TENSORBOARD else spec.job.contract


def runner_spec(
    spec: ServiceSpec, role: RoleSpec, record: TaskRecord, rendered: Mapping[str, Any], run: Run
) -> str:
    """Return the JSON text that tells the runner what to run (docs/task-runner.md).

    ``rendered`` is what ``cluster_spec.launched_cluster`` says for this task.
    """
    job = spec.job
    return json.dumps(
        {
            "version": contract.RUNNER_SPEC_VERSION,
            "service": spec.name,
            "task": record.name,
            "role": str(record.role),
            "index": record.index,
            "attempt": record.attempt,
            "cluster": rendered,
            "job": {
                "contract": _job_contract(spec, record.role),
                "name": job.name,
                "path": job.path,
                "command": job.command,
                "context": job.context,
                "arguments": job.arguments,
                "tf1_compat": job.tf1_compat,
                "legacy_keras": job.legacy_keras,
                # Only then: what others are launched with stays as it is.
                **_parameters_as_arguments(job),
                **({"under_strategy": True} if job.under_strategy else {}),
            },
            **_brought(spec, role),
            **storage_sections.directories(spec, record.role),
            "output_dir": output_dir(spec, role, record.name, run),
            **storage_sections.sections(spec, record, run),
            **_data_service(spec, role, record, run),
            "cpus": role.resources.cpus,
            "gpus": role.resources.gpus,
            "grpc_port": record.ports[0],
            "wait_seconds": COMMAND_WAIT_SECONDS if job.command else WAIT_SECONDS,
            # What the code tells of its strategy, the runner itself sees.
            "grace_seconds": grace_of(spec, "", record.name),
            "log_max_bytes": spec.log_max_bytes,
            "log_keep": spec.log_keep,
            "held": record.held,
            "hold_on_failure": True,
            "stall_seconds": spec.stall_seconds,
            "freeze_seconds": spec.freeze_seconds,
            # Only then: what others are launched with stays as it is.
            **({} if spec.units is None else {"takes_units": True}),
            **({"peer_network": spec.peer_network} if spec.peer_network else {}),
            **({"is_spot": True} if record.attributes.get("market") == contract.SPOT else {}),
        },
        sort_keys=True,
        separators=(",", ":"),
    )


def _data_service(
    spec: ServiceSpec, role: RoleSpec, record: TaskRecord, run: Run
) -> dict[str, Any]:
    """Return what a task is told of the job's tf.data service, where there is one."""
    if not role.data_service and not role.role.serves_data:
        return {}
    # Another service, or another run of this one, that saves in the same place has its own journal.
    folder = f"{spec.name.strip('/').replace('/', '__')}/{run.folder}"
    found = {
        "dispatcher": record.data_service,
        "address": addresses.reached_at(record),
        "journal": folder,
    }
    return {"data_service": found}


def _brought(spec: ServiceSpec, role: RoleSpec) -> dict[str, Any]:
    """Return what is checked, installed and linked before a task's first start."""
    found: dict[str, Any] = {}
    if spec.job.sha256:
        found["fetched"] = {"name": spec.job.file_name, "sha256": spec.job.sha256}
    if role.packages.are_wanted:
        found["packages"] = {
            **asdict(role.packages),
            "requirements": "\n".join(role.packages.requirements),
        }
    links = [asdict(link) for link in spec.job.links if link.source.startswith("/")]
    if links and role.role.uses_data:
        found["links"] = links
    return found


def _environment(
    spec: ServiceSpec, role: RoleSpec, record: TaskRecord, cluster: ClusterSpec, run: Run
) -> dict[str, str]:
    shard_index, shard_count = rendering.data_shard(cluster, record.name)
    rendered, table = rendering.launched_cluster(spec, cluster, record.name)
    # TF_CONFIG, JOB_CONTEXT and what else is long is made by the runner out of its spec: a launch
    # passes through single variables of Mesos (kernel_limits), so it says everything once.
    env = {
        **storage_sections.env(spec, role.role),
        **role.env,
        contract.SERVICE_NAME: spec.name,
        contract.TASK_NAME: record.name,
        contract.TF_EPOCH: str(cluster.epoch),
        contract.DATA_SHARD_INDEX: str(shard_index),
        contract.DATA_SHARD_COUNT: str(shard_count),
        contract.RUNNER_SPEC_VARIABLE: runner_spec(spec, role, record, rendered, run),
        contract.RUNNER_PORT_VARIABLE: str(record.ports[-1]),
    }
    if table:
        env[contract.RUNNER_ADDRESSES_VARIABLE] = table
    return env


def _sandbox_environment(spec: ServiceSpec, role: RoleSpec) -> dict[str, str]:
    """Return the variables that name files of the sandbox; one that the user has set is theirs."""
    named = {**role.sandbox_env, **storage_sections.sandbox_env(spec, role)}
    return {name: path for name, path in named.items() if name not in role.env}


def _uris(spec: ServiceSpec, role: RoleSpec, settings: LaunchSettings) -> tuple[Uri, ...]:
    packed = settings.storage_runner if spec.storage.is_used else settings.runner
    runner = Uri(
        packed.value,
        extract=False,
        executable=packed.executable,
        cache=packed.cache,
        output_file=RUNNER_FILE,
    )
    job = settings.job or (Uri(spec.job.uri) if spec.job.uri else None)
    if job and spec.job.sha256:
        # The fetcher would unpack it without a look: the runner does it instead.
        job = replace(job, extract=False, output_file=contract.UNCHECKED_JOB_FILE)
    data = settings.data if role.role.uses_data else None
    return (runner, *((job,) if job else ()), *((data,) if data else ()), *spec.job.extra_uris)


def launch_task(
    spec: ServiceSpec,
    settings: LaunchSettings,
    framework_id: str,
    record: TaskRecord,
    cluster: ClusterSpec,
    *,
    run: Run,
) -> LaunchTask:
    """Return the launch of ``record``: everything but the wire format, and S3 credentials."""
    role = spec.role(record.role)
    if role is None:
        raise ValueError(f"{record.name}: the service has no role {record.role}")
    token = task_token(settings.token_key, record.task_id)
    return LaunchTask(
        task_id=record.task_id,
        name=record.name,
        agent_id=record.agent_id,
        resources=role.resources,
        ports=record.ports,
        command=launch_command(role.python, _sandbox_environment(spec, role)),
        env=_environment(spec, role, record, cluster, run),
        secret_env={contract.RUNNER_TOKEN_VARIABLE: token},
        credentials=storage_sections.credentials(spec, record.role),
        secrets=(*role.secrets, *storage_sections.secrets(spec, record.role)),
        rlimits=role.rlimits,
        shm_size=role.shm_size,
        uris=_uris(spec, role, settings),
        container=role.container,
        user=role.user or spec.user,
        kill_grace_seconds=spec.kill_grace_seconds + KILL_MARGIN_SECONDS,
        labels={
            contract.LABEL_FRAMEWORK_ID: framework_id,
            contract.LABEL_SERVICE: spec.name,
            contract.LABEL_TASK: record.name,
            contract.LABEL_EPOCH: str(record.epoch),
        },
        network=spec.network,
        vip=addresses.vip(spec, record.role),
    )
