"""The program: reads its environment, finds the job, runs it, reports, exits.

``program`` comes here where Mesos (or a person) has started ``python3 task-runner.pyz``, with the
guard beside it; the runner starts that again for user code that needs a wrapper. Modules that
the start of the user's process does not need are imported after it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Callable, List, Mapping, MutableMapping, Optional

from dcos_tensorflow.core import contract
from dcos_tensorflow.job_code.modules import JobUnusable
from dcos_tensorflow.task.exits import exit_file
from dcos_tensorflow.task.exits.exit_analysis import (
    ExitReport,
    human_line,
    job_unusable,
    port_taken,
    runner_failed,
)
from dcos_tensorflow.task.exits.exit_class import ExitClass
from dcos_tensorflow.task.output.logs import BoundedOutput, Console
from dcos_tensorflow.task.python.contracts import find_contract
from dcos_tensorflow.task.report import listening
from dcos_tensorflow.task.runner import Runner
from dcos_tensorflow.task.spec import RunnerSpec, parse_spec
from dcos_tensorflow.task.spec_fields import SpecError
from dcos_tensorflow.task.storage_work import log_shipper
from dcos_tensorflow.task.supervise.guard import Guard

if TYPE_CHECKING:
    from dcos_tensorflow.task.output.shipping.shipper import Shipper
    from dcos_tensorflow.task.report.server import RunnerServer

#: How long the last output may take to be shipped at the end of a task, and of one that was told
#: to stop: Mesos kills that one soon.
SHIP_SECONDS = 60.0
SHIP_WHEN_STOPPED_SECONDS = 2.0


#: What helps where an agent has no address in the peers' network.
_OTHER_AGENTS = (
    "name a network that all agents are in, or keep the tasks to those that are (placement)"
)


def main(guard: Guard) -> int:
    """Run the task that the environment describes and return its exit code."""
    return _run_with_secrets(os.environ, guard)


def _run_with_secrets(variables: MutableMapping[str, str], guard: Guard) -> int:
    """Run the task with its secrets in place, and with Kerberos where it is asked for."""
    sandbox = os.path.abspath(variables.get("MESOS_SANDBOX") or os.getcwd())

    def log(text: str) -> None:
        sys.stderr.write(f"task-runner: {text}\n")
        sys.stderr.flush()

    uses_kerberos = variables.get(contract.KERBEROS_VARIABLE + "ENABLED") == "true"
    with ExitStack() as stack:
        if uses_kerberos or variables.get(contract.RUNNER_SECRETS_VARIABLE):
            from dcos_tensorflow.task.secrets import secret_files

            try:
                stack.enter_context(secret_files.placed(variables, sandbox))
            except (OSError, ValueError) as error:
                log(f"the task's secrets cannot be written: {error}")
                return contract.EXIT_RUNNER_FAILED
        if uses_kerberos:
            from dcos_tensorflow.task.secrets import kerberos

            stack.enter_context(kerberos.ready(variables, sandbox, log))
        folder = variables.get(contract.RUNNER_SECRETS_DIRECTORY_VARIABLE)
        if folder:
            guard.remove_at_end(folder)
        return run_task(variables, guard)


def run_task(variables: Mapping[str, str], guard: Guard) -> int:
    """Run the task that ``variables`` describe and return its exit code."""
    sandbox = os.path.abspath(variables.get("MESOS_SANDBOX") or os.getcwd())
    try:
        spec = parse_spec(
            variables.get(contract.RUNNER_SPEC_VARIABLE, ""),
            variables.get(contract.RUNNER_ADDRESSES_VARIABLE, ""),
        )
    except SpecError as error:
        return _end(
            "task",
            sandbox,
            BoundedOutput(2, 0, 0),
            job_unusable(
                f"{contract.RUNNER_SPEC_VARIABLE} is not usable: {error}",
                "the scheduler writes it; by hand, see docs/task-runner.md",
            ),
        )
    stdout = BoundedOutput(1, spec.log_max_bytes, spec.log_keep)
    stderr = BoundedOutput(2, spec.log_max_bytes, spec.log_keep)
    console = Console(
        os.path.join(sandbox, contract.CONSOLE_FILE),
        (stdout, stderr),
        spec.log_max_bytes,
        spec.log_keep,
    )
    try:
        shipper = _ship_logs(spec, sandbox, stdout, stderr)
        report = _run(spec, sandbox, variables, stdout, stderr, shipper=shipper, guard=guard)
    except JobUnusable as error:
        shipper, report = None, job_unusable(str(error), error.hint)
    code = _end(spec.task, sandbox, stderr, report, console)
    if shipper is not None:
        asked = report.exit_class is ExitClass.INTERRUPTED
        shipper.finish(SHIP_WHEN_STOPPED_SECONDS if asked else SHIP_SECONDS)
    return code


def _ship_logs(
    spec: RunnerSpec, sandbox: str, stdout: BoundedOutput, stderr: BoundedOutput
) -> "Optional[Shipper]":
    """Copy what is written from now on to where ``logs`` says, if it does. Raises JobUnusable."""
    if spec.storage.is_used:
        from dcos_tensorflow.task import bundle

        bundle.activate(sandbox)

    def log(text: str) -> None:
        stderr.write(f"task-runner: {text}\n".encode("utf-8", "replace"))

    shipper = log_shipper(spec, sandbox, log)
    if shipper is not None:
        spool = shipper.spool
        stdout.copies.append(lambda data: spool.append("stdout", data))
        stderr.copies.append(lambda data: spool.append("stderr", data))
        shipper.start()
    return shipper


def _run(
    spec: RunnerSpec,
    sandbox: str,
    variables: Mapping[str, str],
    stdout: BoundedOutput,
    stderr: BoundedOutput,
    *,
    shipper: "Optional[Shipper]",
    guard: Guard,
) -> ExitReport:
    peer_address = ""
    try:
        if spec.peer_network:
            from dcos_tensorflow.task.network import own_address

            try:
                peer_address = own_address.of_network(spec.peer_network)
            except own_address.NotInNetwork as error:
                return runner_failed(f"cluster_spec.peer_network: {error}", _OTHER_AGENTS)
        if spec.fetched:
            from dcos_tensorflow.task.supervise import fetched_job

            fetched_job.take(spec.fetched, sandbox)
        found = find_contract(spec.job, sandbox, spec.role)
        runner = Runner(
            spec,
            found,
            sandbox=sandbox,
            inherited=variables,
            self_command=self_command(),
            guard=guard,
            stdout=stdout,
            stderr=stderr,
            shipper=shipper,
            peer_address=peer_address,
        )
    except JobUnusable as error:
        return job_unusable(str(error), error.hint)
    except OSError as error:
        return runner_failed(f"The job's file cannot be used: {error}")
    install_signals(runner)
    try:
        listener = _listen(variables)
    except OSError as error:
        return port_taken(f"The task runner cannot listen on its port: {error}")
    except ValueError as error:
        return runner_failed(f"The task runner cannot listen on its port: {error}")
    api: List[RunnerServer] = []

    def serve() -> None:
        if listener is not None:
            from dcos_tensorflow.task.report import server

            token = variables[contract.RUNNER_TOKEN_VARIABLE]
            api.append(server.start(runner, token, listener))

    try:
        return runner.run(serve)
    except JobUnusable as error:
        return job_unusable(str(error), error.hint)
    except Exception as error:  # The report must be written whatever it was that went wrong.
        import traceback

        for line in traceback.format_exc().splitlines():
            runner.log(line)
        return runner_failed(f"The task runner could not go on: {error!r}")
    finally:
        for one in api:
            one.end()


def _listen(variables: Mapping[str, str]) -> Optional[socket.socket]:
    """Return the socket on which requests wait for the server; None where there are to be none."""
    port = int(variables.get(contract.RUNNER_PORT_VARIABLE) or "0")
    if port == 0:
        return None
    if not variables.get(contract.RUNNER_TOKEN_VARIABLE):
        raise ValueError(f"{contract.RUNNER_TOKEN_VARIABLE} is empty: no request can be trusted")
    return listening.listen(port)


def _end(
    task: str,
    sandbox: str,
    stderr: BoundedOutput,
    report: ExitReport,
    console: Optional[Console] = None,
) -> int:
    """Leave the report for later readers: a file, and the last line of stderr.

    People read ``console``: why a task failed goes there, and neither an end that was wanted nor
    what is for programs.
    """
    wanted = report.exit_class in (ExitClass.SUCCESS, ExitClass.INTERRUPTED)
    if console is not None and wanted:
        console.close()
    exit_file.write_report(
        sandbox, report, lambda line: stderr.write(f"task-runner: {line}\n".encode())
    )
    document = report.as_json()
    del document["last_lines"], document["progress"]
    stderr.write(f"task-runner: {human_line(task, report)}\n".encode())
    if console is not None and not wanted:
        console.close()
    stderr.write(f"{json.dumps(document)}\n".encode())
    return report.exit_code


def install_signals(runner: Runner) -> None:
    """Let SIGTERM, SIGINT and SIGHUP end the task in order."""

    def handler(name: str) -> Callable[[int, Any], None]:
        return lambda number, frame: runner.stop(f"the task got {name}")

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, handler(signal.Signals(number).name))


def self_command() -> List[str]:
    """Return the command line that starts this program again, from its archive or its sources."""
    archive = getattr(globals().get("__loader__"), "archive", None)
    if archive:
        return [sys.executable, os.path.abspath(archive)]
    root = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
    code = (
        f"import sys; sys.path.insert(0, {root!r}); "
        "from dcos_tensorflow.task.program import main; sys.exit(main(sys.argv[1:]))"
    )
    return [sys.executable, "-c", code]
