"""A task runner as Mesos would start it: a sandbox, an environment, files for its output."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dcos_tensorflow.task.report.authentication import signed_headers
from free_ports import free_port
from waiting import eventually

#: Generous: an unhurried machine needs a twentieth of it.
DEADLINE_SECONDS = 60.0
TOKEN = "the token of this task"


class Task:
    """One task runner and the sandbox that it works in."""

    def __init__(self, sandbox: Path, process: subprocess.Popen[bytes], port: int) -> None:
        self.sandbox = sandbox
        self.process = process
        self.port = port

    def wait(self) -> int:
        try:
            return self.process.wait(DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"the task has not ended within {DEADLINE_SECONDS} s: {self.text('stderr')}"
            ) from None

    def text(self, name: str = "stdout") -> str:
        path = self.sandbox / name
        return path.read_text(errors="replace") if path.exists() else ""

    def wait_for_text(self, text: str, name: str = "stdout") -> None:
        eventually(
            lambda: text in self.text(name),
            seconds=DEADLINE_SECONDS,
            what=lambda: f"{text!r} in {name}: {self.text('stderr')}",
        )

    def pid_in(self, name: str) -> int:
        """Return the pid that the job has written to a file."""
        eventually(
            lambda: self.text(name).endswith("\n"),
            seconds=DEADLINE_SECONDS,
            what=f"the pid in {name}",
        )
        return int(self.text(name))

    def report(self) -> dict[str, Any]:
        return json.loads(self.text("task-exit.json"))

    def request(
        self, method: str, path: str, body: Any = None, token: str = TOKEN, **headers: str
    ) -> tuple[int, dict[str, Any]]:
        data = (
            b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        )
        signed = {**signed_headers(token, method, path, int(time.time()), data), **headers}
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, data or None, signed, method=method)
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def order(self, start: int, run: bool = True, **fields: Any) -> tuple[int, dict[str, Any]]:
        """Order a start, with a cluster whose epoch is the same number unless given."""
        body = {"epoch": start, "start": start, "run": run, **fields}
        return self.request("PUT", "/v1/cluster", body)

    def status(self) -> dict[str, Any]:
        code, document = self.request("GET", "/v1/status")
        assert code == 200
        return document

    def wait_for_status(self, holds: Callable[[dict[str, Any]], Any], what: str) -> dict[str, Any]:
        """Return the first status of which ``holds`` says yes; the port may still be closed."""

        def reached() -> dict[str, Any] | None:
            try:
                status = self.status()
            except (urllib.error.URLError, ConnectionError):
                return None
            return status if holds(status) else None

        return eventually(
            reached, seconds=DEADLINE_SECONDS, what=lambda: f"{what}: {self.text('stderr')}"
        )

    def wait_for_state(self, state: str, **fields: Any) -> dict[str, Any]:
        wanted = {"state": state, **fields}
        return self.wait_for_status(
            lambda status: wanted.items() <= status.items(), f"state {state} {fields}"
        )


class Starter:
    """Starts tasks with ``program``, each in a sandbox below ``folder``; ``close`` ends them."""

    def __init__(self, folder: Path, program: list[str]) -> None:
        self._folder = folder
        self._program = program
        self._tasks: list[Task] = []

    def __call__(
        self,
        source: str = "",
        *,
        python: str = sys.executable,
        variables: dict[str, str] | None = None,
        port: int | None = None,
        token: str = TOKEN,
        files: dict[str, str] | None = None,
        **spec: Any,
    ) -> Task:
        sandbox = self._folder / f"sandbox-{len(self._tasks)}"
        sandbox.mkdir()
        for name, text in {"job.py": source, **(files or {})}.items():
            (sandbox / name).parent.mkdir(parents=True, exist_ok=True)
            (sandbox / name).write_text(text)
        document = {
            "version": 1,
            "service": "mnist",
            "task": "worker-0",
            "cluster": {"epoch": 1},
            "job": {"name": "job"},
            "grace_seconds": 10,
            **spec,
        }
        port = free_port() if port is None else port
        environment = {
            "PATH": os.environ["PATH"],
            "MESOS_SANDBOX": str(sandbox),
            "TASK_RUNNER_SPEC": json.dumps(document),
            "TASK_RUNNER_PORT": str(port),
            "TASK_RUNNER_TOKEN": token,
            **(variables or {}),
        }
        with (
            (sandbox / "stdout").open("ab") as stdout,
            (sandbox / "stderr").open("ab") as stderr,
        ):
            process = subprocess.Popen(
                [python, *self._program],
                env=environment,
                cwd=sandbox,
                stdout=stdout,
                stderr=stderr,
            )
        self._tasks.append(Task(sandbox, process, port))
        return self._tasks[-1]

    def close(self) -> None:
        for task in self._tasks:
            if task.process.poll() is None:
                task.process.send_signal(signal.SIGKILL)
                task.process.wait()
