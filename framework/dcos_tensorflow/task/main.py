"""The program: reads its environment, finds the job, runs it, reports, exits.

Started by Mesos (or by hand) as ``python3 task-runner.pyz``; it starts itself again with
``--wrapper`` for user code that needs one, and with ``--guard`` for its guard.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, Callable, List, Mapping, Optional

from dcos_tensorflow.core import contract
from dcos_tensorflow.task import bundle, exit_file, guard, process, server, wrapper
from dcos_tensorflow.task.contracts import JobUnusable, find_contract
from dcos_tensorflow.task.exit_analysis import (
    ExitReport,
    human_line,
    job_unusable,
    port_taken,
    runner_failed,
)
from dcos_tensorflow.task.logs import BoundedOutput
from dcos_tensorflow.task.runner import GUARD_FLAG, WRAPPER_FLAG, Runner
from dcos_tensorflow.task.spec import RunnerSpec, parse_spec
from dcos_tensorflow.task.spec_fields import SpecError


def main(arguments: List[str]) -> int:
    """Run the task that the environment describes and return its exit code."""
    if arguments[:1] == [WRAPPER_FLAG]:
        return wrapper.main()
    if arguments[:1] == [GUARD_FLAG]:
        return guard.main(arguments[1])
    if arguments:
        sys.stderr.write("task-runner takes no arguments: it reads its environment\n")
        return contract.EXIT_RUNNER_FAILED
    return run_task(os.environ)


def run_task(variables: Mapping[str, str]) -> int:
    """Run the task that ``variables`` describe and return its exit code."""
    sandbox = os.path.abspath(variables.get("MESOS_SANDBOX") or os.getcwd())
    try:
        spec = parse_spec(variables.get(contract.RUNNER_SPEC_VARIABLE, ""))
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
    report = _run(spec, sandbox, variables, stdout, stderr)
    return _end(spec.task, sandbox, stderr, report)


def _run(
    spec: RunnerSpec,
    sandbox: str,
    variables: Mapping[str, str],
    stdout: BoundedOutput,
    stderr: BoundedOutput,
) -> ExitReport:
    try:
        if spec.storage.is_used:
            bundle.activate(sandbox)
        found = find_contract(spec.job, sandbox, spec.role)
        runner = Runner(
            spec,
            found,
            sandbox=sandbox,
            inherited=variables,
            self_command=self_command(),
            stdout=stdout,
            stderr=stderr,
        )
    except (JobUnusable, bundle.BundleError) as error:
        return job_unusable(str(error), error.hint)
    install_signals(runner)
    for note in process.shield_runner():
        runner.log(note)
    try:
        api = _listen(runner, variables)
    except OSError as error:
        return port_taken(f"The task runner cannot listen on its port: {error}")
    except ValueError as error:
        return runner_failed(f"The task runner cannot listen on its port: {error}")
    try:
        return runner.run()
    except JobUnusable as error:
        return job_unusable(str(error), error.hint)
    except Exception as error:  # The report must be written whatever it was that went wrong.
        for line in traceback.format_exc().splitlines():
            runner.log(line)
        return runner_failed(f"The task runner could not go on: {error!r}")
    finally:
        if api:
            api.shutdown()
            api.server_close()


def _listen(runner: Runner, variables: Mapping[str, str]) -> "Optional[server.ApiServer]":
    port = int(variables.get(contract.RUNNER_PORT_VARIABLE) or "0")
    if port == 0:
        return None
    token = variables.get(contract.RUNNER_TOKEN_VARIABLE, "")
    if not token:
        raise ValueError(f"{contract.RUNNER_TOKEN_VARIABLE} is empty, so nobody could be trusted")
    return server.start(runner, token, port)


def _end(task: str, sandbox: str, stderr: BoundedOutput, report: ExitReport) -> int:
    """Leave the report for whoever asks later: a file, and the last line of stderr."""
    exit_file.write_report(
        sandbox, report, lambda line: stderr.write(f"task-runner: {line}\n".encode())
    )
    document = report.as_json()
    del document["last_lines"]
    stderr.write(f"task-runner: {human_line(task, report)}\n{json.dumps(document)}\n".encode())
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
    root = str(Path(__file__).resolve().parents[2])
    code = (
        f"import sys; sys.path.insert(0, {root!r}); "
        "from dcos_tensorflow.task.main import main; sys.exit(main(sys.argv[1:]))"
    )
    return [sys.executable, "-c", code]
