"""A scheduler in the background that outlives this terminal: of ``run --detach``, and of Python.

It is the command ``scheduler`` in a session of its own, with the same options and settings, its
output in the service's log. Secrets reach it by its environment, never by its command line.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from dcos_tensorflow.client import ending, registry
from dcos_tensorflow.client.api_client import client_of
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.output import say, show_json
from dcos_tensorflow.client.registry import Registration
from dcos_tensorflow.client.work_directory import ServiceDirectory, WorkDirectory
from dcos_tensorflow.deploy.embedded.cluster import lasting_cluster, tell
from dcos_tensorflow.deploy.job.deployment import Deployment
from dcos_tensorflow.deploy.job.given_options import GivenOptions
from dcos_tensorflow.deploy.settings import OTHER_VARIABLES, PREFIX, SETTINGS, Settings
from untrusted_input.process_table import leave_running

_START_SECONDS = 60.0
_LOOK_SECONDS = 0.1
_LOG_LINES = 20


def in_background(deployed: Deployment) -> Registration:
    """Start the job's scheduler in the background and return where it is.

    A job of this machine goes to the embedded cluster that lasts, which is started where none runs.
    Raises CliError with what the scheduler said when it ends at once.
    """
    request, service = deployed.request, deployed.prepared.spec.name
    if request.local:
        cluster = lasting_cluster(
            request.work,
            deployed.directory,
            deployed.prepared.spec,
            request.wishes,
            strict=request.strict,
        )
        tell(cluster, request.stream)
    return start_scheduler(
        request.given,
        request.settings,
        deployed.directory,
        request.work,
        local=request.local,
        service=service,
    )


def detach(deployed: Deployment) -> int:
    """Start the job's scheduler in the background, and say how to follow and stop the job."""
    service, directory = deployed.prepared.spec.name, deployed.directory
    registration = in_background(deployed)
    if deployed.request.json:
        show_json(
            {
                "service": service,
                "pid": registration.pid,
                "api": registration.api,
                "log": str(directory.log),
            }
        )
    else:
        say(f"{service} runs in the background (scheduler pid {registration.pid}).")
        say(f"  follow it  dcos-tensorflow status {service} --follow")
        say(f"  stop it    dcos-tensorflow stop {service}")
        say(f"  its log    {directory.log}")
    return 0


def start_scheduler(
    given: GivenOptions,
    settings: Settings,
    directory: ServiceDirectory,
    work: WorkDirectory,
    *,
    local: bool,
    service: str,
) -> Registration:
    """Start the scheduler and return where it is, or was where its job is over already.

    ``local``: on the embedded cluster that lasts. Raises CliError.
    """
    command = [
        *(sys.executable, "-m", "dcos_tensorflow", "scheduler"),
        str(given.file(directory).absolute()),
        *(f"--set={override}" for override in given.overrides),
        *([f"--options-folder={given.folder}"] if given.folder is not None else []),
        *(f"--work-dir={work.path}", "--rerun", "--exit-when-done", "--no-wait-for-leadership"),
        *(["--published-defaults"] if given.published_defaults else []),
        *_flags(settings, local=local),
    ]
    start = directory.log.stat().st_size if directory.log.exists() else 0
    earlier = ending.last(directory)
    with open(directory.log, "ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**_plain_environment(), **_secrets(settings)},
        )
    registration = _started(process, directory, service, start, earlier)
    leave_running(process)
    return registration


def _flags(settings: Settings, *, local: bool) -> list[str]:
    decided = {
        *("options", "published_defaults", "work_dir", "local"),
        *("rerun", "exit_when_done", "wait_for_leadership"),
    }
    flags = ["--local"] if local else []
    for setting in SETTINGS:
        if setting.secret or setting.name in decided or not settings.given(setting.name):
            continue
        value = settings[setting.name]
        if isinstance(value, bool):
            flags.append(setting.flag if value else setting.flag.replace("--", "--no-", 1))
        elif not _holds_login(settings, setting.name):
            flags.append(f"{setting.flag}={value}")
    return flags


def _plain_environment() -> dict[str, str]:
    """Return this environment without settings: those that count are handed on one by one."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(PREFIX) or name in OTHER_VARIABLES
    }


def _holds_login(settings: Settings, name: str) -> bool:
    """Say whether a setting is an address with the login of ZooKeeper in it."""
    return name in ("master", "state") and "@" in settings[name]


def _secrets(settings: Settings) -> dict[str, str]:
    """Return the settings that must not show in a list of processes."""
    found = {}
    for setting in SETTINGS:
        given = settings.given(setting.name)
        if given and (setting.secret or _holds_login(settings, setting.name)):
            found[setting.variable] = str(settings[setting.name])
    return found


def _started(
    process: subprocess.Popen[bytes],
    directory: ServiceDirectory,
    service: str,
    start: int,
    earlier: dict[str, Any] | None,
) -> Registration:
    """Return where the scheduler is once it answers, or was when its job is over already.

    ``start`` is the end of the log before it was started, ``earlier`` how the last job had ended.
    Raises CliError.
    """
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        found = registry.read(directory)
        if found is not None and found.pid == process.pid and _answers(found):
            return found
        if process.poll() is not None:
            # A job of a second may be over before anybody looked, whatever has become of it.
            ended = ending.last(directory)
            if ended not in (None, earlier) or (found is None and process.returncode == 0):
                return Registration(service, process.pid, "")
            raise CliError(
                f"The scheduler of {service} ended at once:\n{_said(directory.log, start)}",
                process.returncode or 1,
            )
        time.sleep(_LOOK_SECONDS)
    process.terminate()
    process.wait()
    raise CliError(
        f"The scheduler of {service} did not answer within {_START_SECONDS:g} s; its log is"
        f" {directory.log}."
    )


def _answers(registration: Registration) -> bool:
    try:
        client_of(registration).get("/v1/job")
    except CliError:
        return False
    return True


def _said(log: Path, start: int) -> str:
    """Return what was written to the log since ``start``, its end."""
    with open(log, "rb") as file:
        file.seek(start)
        lines = file.read().decode("utf-8", "replace").splitlines()
    return "\n".join(f"  {line}" for line in lines[-_LOG_LINES:])
