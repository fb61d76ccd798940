"""``queue attend``: the process in a task of ``scheduler_tasks``, the scheduler of one queued job.

It asks the queue for its job, fetches the code, and serves the job as ``scheduler`` does, with
the API at the task's own port. A job that is over, or not wanted any more, ends it at once; it
reports a job that can never run to the queue. It stores nothing but a scheduler's state.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import time
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dcos_tensorflow.client.api_address import named
from dcos_tensorflow.client.api_client import connection_to
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.kept.stored import stored_state
from dcos_tensorflow.client.work_directory import ServiceDirectory, work_directory
from dcos_tensorflow.core import contract
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.deploy import daemon
from dcos_tensorflow.deploy.embedded.machine import AgentWishes
from dcos_tensorflow.deploy.job.deployment import RunRequest
from dcos_tensorflow.deploy.job.given_options import GivenOptions
from dcos_tensorflow.deploy.run import prepared_alone
from dcos_tensorflow.deploy.scheduler_settings import state_of
from dcos_tensorflow.deploy.service_login import CREDENTIAL_VARIABLE
from dcos_tensorflow.deploy.settings import Settings, collect
from dcos_tensorflow.options import OptionsError
from dcos_tensorflow.queue_service.rights import api_token
from dcos_tensorflow.queue_service.scheduler_tasks import (
    JOB_VARIABLE,
    QUEUE_VARIABLE,
    SETTINGS_FILE,
)
from dcos_tensorflow.records import dataclass
from untrusted_input.json_text import read_json

_ANSWER_SECONDS = 30.0
#: A queue that starts again answers within that, or has another address and begins this anew.
_AWAY_SECONDS = 15.0
_LOOK_SECONDS = 1.0
#: Of what ends by a signal: it is started again, and that costs nothing.
_INTERRUPTED = 143
_PIECE_BYTES = 256 * 1024
#: Of the name of code; behind them is its ending.
_DIGEST = 64


@dataclass(frozen=True)
class Task:
    """What the environment of the task says."""

    #: The job, and the queue that has it.
    job: str
    queue: str
    #: What is said to the queue, and what the job's own API asks for.
    token: str = field(repr=False)
    settings: Mapping[str, Any] = field(repr=False)
    #: The service account to log in to DC/OS with; empty for none.
    account: str = field(repr=False)
    #: ``host:port`` that is the task's own.
    address: str
    sandbox: Path


def task_of(environ: Mapping[str, str]) -> Task:
    """Return what the environment says. Raises UsageError."""
    sandbox = Path(environ.get("MESOS_SANDBOX") or ".").absolute()
    try:
        told = read_json((sandbox / SETTINGS_FILE).read_text(encoding="utf-8"))
        job, queue = environ[JOB_VARIABLE], environ[QUEUE_VARIABLE]
        address = environ[contract.WORKER_HOSTS]
        account = str(told.get("account", ""))
        return Task(job, queue, str(told["token"]), told["settings"], account, address, sandbox)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"This is no task of a queue: {error!r}.") from error


def attend(environ: Mapping[str, str]) -> int:
    """Serve the job until it is over; return the exit code. Raises CliError."""
    task = task_of(environ)
    if task.account:
        # Where the scheduler of a package has it.
        os.environ[CREDENTIAL_VARIABLE] = task.account
    wanted = _asked(task, "GET", "")
    if wanted is None:
        return 0
    settings = _settings(task)
    work = work_directory(Path(settings["work_dir"]), environ)
    directory = work.service(task.job)
    directory.prepare()
    url = state_of(settings, directory)
    if _is_over(url, task.job, float(wanted["began_at"])):
        return 0
    known = stored_state(url, task.job)
    goes_on = known is not None and known.job.phase is not JobPhase.DONE
    given = GivenOptions(
        _with_code(task, wanted, directory), tuple(wanted["overrides"]), Path(wanted["folder"])
    )
    request = RunRequest(
        given=given,
        settings=settings,
        wishes=AgentWishes(),
        work=work,
        detach=True,
        resume=bool(wanted["again"]),
        # A sweep that is under way may have another number of slots by now.
        update=True,
        json=True,
    )
    try:
        with prepared_alone(request) as deployed:
            given = deployed.request.given
    except (UsageError, OptionsError) as error:
        if goes_on:
            raise CliError(str(error)) from error
        _asked(task, "POST", "/refused", json.dumps({"why": str(error)}).encode())
        return 0
    if not goes_on:
        # Else one that leads it still may end it, and there is to be no other run then.
        settings = settings.with_value("rerun", True, "the queue")
    if given.published_defaults:
        settings = settings.with_value("published_defaults", True, "the job that runs")
    daemon.serve(given.file(directory), given.overrides, settings, given.folder)
    # A signal ends it as well, and then the job is not over.
    return 0 if _is_over(url, task.job, float(wanted["began_at"])) else _INTERRUPTED


def _settings(task: Task) -> Settings:
    host, _, port = task.address.rpartition(":")
    own = {
        "api_host": host.strip("[]"),
        "api_port": int(port),
        "api_token": api_token(task.token, task.job),
        "exit_when_done": True,
    }
    given = {"work_dir": str(task.sandbox / "work"), **task.settings, **own}
    return collect(None, {}, given)


def _is_over(url: str, service: str, began_at: float) -> bool:
    """Say whether the job that the queue has admitted has ended, and not only the one before."""
    state = stored_state(url, service)
    if state is None or state.job.phase is not JobPhase.DONE:
        return False
    return (state.job.finished_at or 0.0) >= began_at


def _with_code(
    task: Task, wanted: Mapping[str, Any], directory: ServiceDirectory
) -> Mapping[str, Any]:
    options, name = dict(wanted["options"]), str(wanted["code"])
    if not name:
        return options
    place = directory.artifacts / f"queued-code{name[_DIGEST:]}"
    partial = place.with_suffix(".part")
    with partial.open("wb") as file:
        digest = hashlib.sha256()
        for piece in _pieces(task):
            digest.update(piece)
            file.write(piece)
    if not name.startswith(digest.hexdigest()):
        raise CliError(f"The code of {task.job} has not come whole.")
    os.replace(partial, place)
    return {**options, "service": {**options.get("service", {}), "job_url": str(place)}}


def _asked(task: Task, method: str, path: str, body: bytes | None = None) -> Any:
    """Return what the queue answers; None where the job is not to run any more."""
    deadline = time.monotonic() + _AWAY_SECONDS
    while True:
        try:
            connection = _requested(task, method, path, body)
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
            connection.close()
            if answer.status == 404:
                return None
            if answer.status < 300:
                return read_json(text)
            trouble = f"{answer.status}: {text[:200]}"
        except (OSError, http.client.HTTPException, ValueError) as error:
            trouble = str(error)
        if time.monotonic() >= deadline:
            raise CliError(f"The queue at {task.queue} does not say what {task.job} is: {trouble}.")
        time.sleep(_LOOK_SECONDS)


def _pieces(task: Task) -> Any:
    connection = _requested(task, "GET", "/code", None)
    try:
        answer = connection.getresponse()
        if answer.status != 200:
            raise CliError(f"The queue does not have the code of {task.job}: {answer.status}.")
        while piece := answer.read(_PIECE_BYTES):
            yield piece
    except (OSError, http.client.HTTPException) as error:
        raise CliError(f"The code of {task.job} cannot be fetched: {error}.") from error
    finally:
        connection.close()


def _requested(
    task: Task, method: str, path: str, body: bytes | None
) -> http.client.HTTPConnection:
    address = replace(named(task.queue, None, in_clear=True), token=task.token)
    connection = connection_to(address, _ANSWER_SECONDS)
    headers = {"authorization": f"Bearer {task.token}"}
    where = f"{address.prefix}/v1/schedulers/{quote(task.job)}{path}"
    connection.request(method, where, body, headers)
    return connection
