"""The process of one task: its sandbox, environment, start, and end.

``marathon`` calls it. Functions that act once; they decide nothing and keep nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dcos_tensorflow.local.dcos.app_definition import App, PortDefinition
from dcos_tensorflow.local.dcos.app_records import TaskRecord
from dcos_tensorflow.local.dcos.download_cache import DownloadCache, DownloadError
from dcos_tensorflow.local.machine.fetcher import FetchError, fetch
from dcos_tensorflow.local.machine.process_tree import descendants, signal_group, start_time
from dcos_tensorflow.task.process_table import has_mark, read_processes

_HOST = "127.0.0.1"
_LOOK_SECONDS = 0.02
#: How long a killed process may take to be gone: one that waits for a disk takes a while.
_KILLED_SECONDS = 5.0


@dataclass(frozen=True)
class Machine:
    """What tasks get of this machine.

    Attributes:
        environment: variables below those of the app.
        overrides: gives the variables above those of the app.
        secrets: the folder with a file for each secret.

    """

    environment: Mapping[str, str]
    overrides: Callable[[App], Mapping[str, str]]
    secrets: Path


class TaskNotStarted(Exception):
    """A task cannot be started. The text says why."""


def free_ports(wanted: Sequence[PortDefinition], *, required: bool) -> tuple[int, ...]:
    """Return a port for each definition: its own when ports are required, else a free one."""
    held = []
    try:
        for _ in wanted:
            one = socket.socket()
            held.append(one)
            one.bind((_HOST, 0))
        free = [int(one.getsockname()[1]) for one in held]
    finally:
        for one in held:
            one.close()
    return tuple(
        definition.port if required and definition.port else port
        for definition, port in zip(wanted, free, strict=True)
    )


def bring(app: App, sandbox: Path, cache: DownloadCache) -> None:
    """Fetch what the app asks for into its sandbox.

    Raises:
        TaskNotStarted: something could not be fetched.
    """
    try:
        fetch([_mesos_uri(one, cache) for one in app.fetch], str(sandbox))
    except (FetchError, DownloadError) as error:
        raise TaskNotStarted(str(error)) from error


def _mesos_uri(given: Mapping[str, Any], cache: DownloadCache) -> dict[str, Any]:
    uri = given["uri"].strip()
    found: dict[str, Any] = {
        "value": uri,
        "extract": given.get("extract", True),
        "executable": given.get("executable", False),
    }
    if given.get("destPath"):
        found["output_file"] = given["destPath"]
    if given.get("cache") and uri.partition("://")[0].lower() in ("http", "https"):
        found.setdefault("output_file", os.path.basename(uri.partition("?")[0]))
        found["value"] = str(cache.get(uri))
    return found


def environment(app: App, task: TaskRecord, version: str, machine: Machine) -> dict[str, str]:
    """Return the variables of a task, as Mesos and Marathon give them.

    Raises:
        TaskNotStarted: a secret is not there.
    """
    found = dict(machine.environment)
    found |= _of_marathon(app, task, version)
    found |= app.env
    for name, source in app.secret_env.items():
        found[name] = _secret(machine.secrets, source)
    found |= machine.overrides(app)
    found |= {"MESOS_TASK_ID": task.task_id, "MESOS_SANDBOX": task.sandbox, "HOST": _HOST}
    found |= {"MESOS_CONTAINER_ID": task.container_id, "MESOS_DIRECTORY": task.sandbox}
    found["PORTS"] = ",".join(map(str, task.ports))
    for index, port in enumerate(task.ports):
        found[f"PORT{index}"] = str(port)
        name = app.ports[index].name
        if name:
            found[f"PORT_{_upper(name)}"] = str(port)
    if task.ports:
        found["PORT"] = str(task.ports[0])
    return found


def _of_marathon(app: App, task: TaskRecord, version: str) -> dict[str, str]:
    found = {
        "MARATHON_APP_ID": app.app_id,
        "MARATHON_APP_VERSION": version,
        "MARATHON_APP_ENFORCE_GROUP_ROLE": "false",
        "MESOS_ALLOCATION_ROLE": app.role,
        "MARATHON_APP_LABELS": " ".join(_upper(name) for name in app.labels),
    }
    for name, amount in app.resources.items():
        found[f"MARATHON_APP_RESOURCE_{name.upper()}"] = str(amount)
    for name, value in app.labels.items():
        # Marathon leaves long ones away: the environment of a process is limited.
        if len(value) <= 512:
            found[f"MARATHON_APP_LABEL_{_upper(name)}"] = value
    return found


def _upper(name: str) -> str:
    return re.sub(r"[^A-Z0-9_]", "_", name.upper())


def _secret(folder: Path, source: str) -> str:
    path = (folder / source).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise TaskNotStarted(f"the secret '{source}' is no path below the secrets' folder")
    try:
        return path.read_text()
    except OSError as error:
        raise TaskNotStarted(
            f"there is no secret '{source}': put it into the file {path}"
        ) from error


def start(app: App, env: Mapping[str, str], sandbox: Path) -> subprocess.Popen[bytes]:
    """Start the command in its sandbox, in a session of its own; output goes to files there.

    Raises:
        TaskNotStarted: the command is not there.
    """
    line = ["/bin/sh", "-c", app.command] if app.command is not None else list(app.args)
    with open(sandbox / "stdout", "ab") as out, open(sandbox / "stderr", "ab") as err:
        try:
            return subprocess.Popen(
                line,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=sandbox,
                env=dict(env),
                start_new_session=True,
            )
        except OSError as error:
            raise TaskNotStarted(f"{line[0]} cannot be run: {error.strerror}") from error


def wait_for(pid: int, started: int, seconds: float | None = None) -> bool:
    """Wait until a process that need not be a child has ended; False when time ran out."""
    if start_time(pid) != started:
        return True
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        if start_time(pid) != started:
            return True
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        return bool(poll.poll(None if seconds is None else max(0, int(seconds * 1000))))
    finally:
        os.close(handle)


def end(pid: int, started: int, grace: float) -> None:
    """End a task: SIGTERM to its process group, after ``grace`` seconds SIGKILL to its tree."""
    if start_time(pid) == started:
        signal_group(pid, signal.SIGTERM)
        wait_for_group(pid, grace)
        kill_tree(pid)
    end_group(pid)


def wait_for_group(pid: int, seconds: float) -> bool:
    """Wait until nothing of a process group lives; False when time ran out.

    The shell that leads a task's group dies of SIGTERM at once: what it started has its grace.
    """
    deadline = time.monotonic() + seconds
    while _living_in_group(pid):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_SECONDS)
    return True


def end_group(pid: int) -> None:
    """SIGKILL what is left of a task's process group, until nothing of it lives."""
    if _living_in_group(pid):
        signal_group(pid, signal.SIGKILL)
        wait_for_group(pid, _KILLED_SECONDS)


def _living_in_group(group: int) -> bool:
    return any(one.group == group and not one.ended for one in read_processes())


def kill_tree(pid: int) -> None:
    """SIGKILL a process and all below it, again until none of them lives.

    Nothing is reaped here: whoever waits for a child of this process gets its status.
    """
    for _ in range(10):
        living = [one for one in [*descendants(pid), pid] if start_time(one) is not None]
        if not living:
            return
        for one in living:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(one, signal.SIGKILL)
        wait_for(pid, start_time(pid) or 0, 0.1)


def find(task_id: str) -> int | None:
    """Return the process that leads a task's session, None when there is none.

    For a task whose start was written down, and whose process was not.
    """
    mark = f"MESOS_TASK_ID={task_id}"
    leaders = (one.pid for one in read_processes() if one.session == one.pid)
    return next((pid for pid in leaders if has_mark(pid, mark)), None)
