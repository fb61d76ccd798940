"""The preparation of a start of the user's process: its command line, and whether it may begin.

``starts`` makes one ``Preparation`` and asks it before each start; data of the machine itself is
linked into the sandbox once, and never copied. It reads the checkpoint directory.
docs/job-contract.md has the command lines of the three contracts.
"""

from __future__ import annotations

import errno
import json
import os
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from dcos_tensorflow.core import contract
from dcos_tensorflow.job_code.arguments import arguments_of, filled, parameters_in
from dcos_tensorflow.job_code.modules import Found, JobUnusable
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task import checkpoints
from dcos_tensorflow.task.exits.exit_analysis import (
    ExitReport,
    ProcessEnding,
    analyse,
    checkpoint_mismatch,
    job_unusable,
    runner_failed,
)
from dcos_tensorflow.task.python.python_packages import Base
from dcos_tensorflow.task.spec import DataService, Link, RunnerSpec, StartOrder, TaskCluster
from dcos_tensorflow.task.supervise import environment
from dcos_tensorflow.task.supervise.environment import Directories

#: What command line and the wrapper's own variable may have of all that Linux passes to a process.
COMMAND_BYTES = 3 * contract.VARIABLE_BYTES
#: Below the checkpoints: what dispatchers know, a folder for each service and run.
DATA_JOURNALS = ".data-service"


@dataclass(frozen=True)
class Preparation:
    """All that stays the same from start to start.

    ``wrapper_command`` starts our wrapper; ``mark`` identifies this attempt's processes. ``base``
    is the Python that the user's code runs with.
    """

    spec: RunnerSpec
    found: Found
    where: Directories
    inherited: Mapping[str, str]
    wrapper_command: Tuple[str, ...]
    mark: str
    base: Base
    #: The arguments that the code parses (``job_code.arguments``).
    options: Mapping[str, str] = field(default_factory=dict)
    #: Workers join and leave while its process runs (``task.python.live_workers``).
    takes_workers: bool = False

    def command(
        self,
        cluster: TaskCluster,
        where: Directories,
        own: Mapping[str, str],
        parameters: Mapping[str, Any] = MappingProxyType({}),
    ) -> Tuple[List[str], Dict[str, str], List[str]]:
        """Return command line and environment of a start that works in ``where``; log lines, too.

        ``own`` are the variables of its unit of work, ``parameters`` those of a trial.
        """
        variables, notes = environment.user_environment(
            self.spec,
            cluster,
            inherited=self.inherited,
            where=where,
            own=own,
            python_path=self.found.python_path,
            python=self.base.python,
            mark=self.mark,
            room=os.sysconf("SC_ARG_MAX") - COMMAND_BYTES,
        )
        command, more = user_command(
            self.spec,
            self.found,
            cluster,
            where=where,
            python=self.base.python,
            wrapper_command=[self.base.python, *self.wrapper_command],
            arguments=self._arguments(parameters),
            takes_workers=self.takes_workers,
        )
        return command, {**variables, **more}, notes

    def _arguments(self, parameters: Mapping[str, Any]) -> List[str]:
        """Return the module's arguments: a trial's parameters, of its own job's what is not given.

        Of an argument that comes twice a parser takes the last. Without a trial braces are text.
        """
        given, left = list(self.spec.job.arguments), parameters
        if parameters:
            named = {name for argument in given for name in parameters_in(argument)}
            given = [filled(argument, parameters) for argument in given]
            left = {k: v for k, v in parameters.items() if k not in named}
        if self.found.contract != contract.CONTRACT_SCRIPT:
            return given
        mode = self.spec.job.parameters_as_arguments
        known = {k: v for k, v in _object(self.spec.job.context).items() if k not in parameters}
        return [
            *arguments_of(known, self.options, mode, given),
            *given,
            *arguments_of(left, self.options, mode),
        ]

    def checkpoint(self) -> Optional[checkpoints.Checkpoint]:
        """Return what a start would restore now; None where there is nothing, or only a URL."""
        directory = self.where.checkpoint_dir
        return None if environment.is_url(directory) else checkpoints.restorable(directory)

    def refusal(self, order: StartOrder) -> Optional[ExitReport]:
        """Return why ``order`` must not start: it would restore another checkpoint than wanted.

        What lies behind a URL is the same for all tasks, and is not compared; nor is what was
        brought from S3, by its id.
        """
        directory = self.where.checkpoint_dir
        brought = self.spec.storage.checkpoints is not None
        if not order.expects_restore_step or brought or environment.is_url(directory):
            return None
        found = self.checkpoint()
        step = found.step if found else None
        if step == order.restore_step:
            return None
        return checkpoint_mismatch(order.restore_step, step, directory)

    def cannot_start(
        self, program: str, variables: Mapping[str, str], error: OSError
    ) -> ExitReport:
        """Return the report of a start that the system has refused."""
        if error.errno == errno.E2BIG:
            sizes = {name: len(os.fsencode(f"{name}={variables[name]}")) + 1 for name in variables}
            longest = max(sizes, key=lambda name: sizes[name])
            return job_unusable(
                f"Environment and command line are too long for {program}: {longest} alone has "
                f"{sizes[longest]} bytes, and all variables {sum(sizes.values())}",
                f"Linux passes {contract.VARIABLE_BYTES} bytes in one variable, and in all of them "
                "a quarter of the stack's limit; TF_CONFIG holds the address of every member",
            )
        theirs = isinstance(error, (FileNotFoundError, PermissionError))
        if theirs and os.path.isdir(self.where.sandbox):
            return job_unusable(f"{program} cannot be started: {error.strerror}")
        return runner_failed(f"The task runner cannot start {program}: {error}")

    def report(self, ending: ProcessEnding, lines: Sequence[str]) -> ExitReport:
        """Return the report of ``ending``, in which the job's own names are filled in."""
        known = replace(
            ending,
            contract=self.found.contract,
            grpc_port=self.spec.grpc_port,
            sandbox=self.where.sandbox,
            python=self.base.python,
            tensorflow=self.base.tensorflow()[1] if ending.return_code else "",
        )
        return analyse(known, lines)


def _object(text: str) -> Mapping[str, Any]:
    """Return the object that JSON text is; an empty one for other text."""
    try:
        found = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def make_link(link: Link, sandbox: str) -> None:
    """Let ``link.path`` below the sandbox lead to the data. Raises JobUnusable."""
    if not os.path.exists(link.source):
        raise JobUnusable(
            f"data: there is no file or folder {link.source} on this machine",
            "an absolute path is one of the machines that tasks run on, all of them; name data of "
            "yours by a path beside the options file, or put it into S3",
        )
    path = os.path.join(sandbox, link.path)
    if not os.path.isdir(link.source):
        path = os.path.join(path, os.path.basename(link.source))
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.islink(path):
            # Of a start before, in the same sandbox.
            os.unlink(path)
        os.symlink(link.source, path)
    except OSError as error:
        raise JobUnusable(
            f"data: {link.source} cannot be linked to {link.path}: {error.strerror}",
            "choose another path, which the job does not bring itself",
        ) from None


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
