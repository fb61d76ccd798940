"""The command line of the user's process, as a pure function of the spec and what was found.

``runner`` calls it before each start. What the three contracts promise is docs/job-contract.md.
"""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

from dcos_tensorflow.core import contract
from dcos_tensorflow.job_code.modules import Found
from dcos_tensorflow.task.spec import DataService, RunnerSpec, TaskCluster
from dcos_tensorflow.task.supervise.environment import Directories

#: Below the checkpoints: what dispatchers know, a folder for each service and run.
DATA_JOURNALS = ".data-service"


def user_command(
    spec: RunnerSpec,
    found: Found,
    cluster: TaskCluster,
    *,
    where: Directories,
    python: str,
    wrapper_command: List[str],
    arguments: Sequence[str] = (),
    takes_workers: bool = False,
) -> Tuple[List[str], Dict[str, str]]:
    """Return the command line of the user's process, and the variables that its wrapper reads.

    ``python`` is the interpreter that runs the task; ``wrapper_command`` starts our wrapper.
    ``arguments`` are those of the module. ``takes_workers``: they join and leave while it runs.
    """
    unbuffered = [python, "-u"]
    if found.contract == contract.CONTRACT_COMMAND:
        return ["sh", "-c", found.command], {}
    if found.contract == contract.CONTRACT_TENSORBOARD:
        return [*unbuffered, "-m", "tensorboard.main", *_tensorboard(spec, where)], {}
    # Only here: most of what it imports is for the process that it is part of.
    from dcos_tensorflow.task.python import wrapper

    if found.module is None:
        serves = wrapper.WrapperCall("", "", False, "", data_server=_data_server(spec, where))
        return wrapper_command, {wrapper.VARIABLE: serves.as_text()}
    as_script = found.contract == contract.CONTRACT_SCRIPT
    if as_script and not (spec.job.tf1_compat or spec.job.under_strategy or takes_workers):
        package = found.module.is_package
        started = ["-m", found.module.name] if package else [found.module.file]
        return [*unbuffered, *started, *arguments], {}
    server = cluster.server
    call = wrapper.WrapperCall(
        module=found.module.name,
        file=found.module.file,
        root=found.module.root,
        as_script=as_script,
        arguments=list(arguments),
        log_dir=where.job_log_dir,
        cluster={k: list(v) for k, v in server.cluster.items()} if server else None,
        job_name=server.job_name if server else "",
        task_index=server.task_index if server else 0,
        gpus=spec.gpus,
        tf1_compat=spec.job.tf1_compat,
        under_strategy=spec.job.under_strategy,
        pin_checkpoints=not spec.shared_filesystem,
        takes_shards=found.contract == contract.CONTRACT_SHARDS,
        takes_workers=cluster.epoch if takes_workers else 0,
    )
    return wrapper_command, {wrapper.VARIABLE: call.as_text()}


def _data_server(spec: RunnerSpec, where: Directories) -> Dict[str, Any]:
    told = spec.data_service or DataService()
    return {
        "role": spec.role,
        "port": spec.grpc_port,
        "address": told.address,
        "journal": f"{where.checkpoint_dir.rstrip('/')}/{DATA_JOURNALS}/{told.journal}",
    }


def _tensorboard(spec: RunnerSpec, where: Directories) -> List[str]:
    address = ["--host", "0.0.0.0", "--port", str(spec.grpc_port)]
    return ["--logdir", where.log_dir, *address]
