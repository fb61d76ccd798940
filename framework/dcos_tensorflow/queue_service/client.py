"""Asking a queue, and handing a job in: used by the commands and the Python API.

A queue of this machine is found by the file that its process leaves; one elsewhere is named by its
address. Code is packed here, and goes to the queue once, under its SHA-256.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from dcos_tensorflow.client.api_address import ApiAddress
from dcos_tensorflow.client.api_client import connection_to
from dcos_tensorflow.client.errors import EXIT_FAILED, CliError, UsageError
from dcos_tensorflow.client.served_queue import served_queue
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.deploy.job.given_options import GivenOptions
from dcos_tensorflow.deploy.job.job_archive import pack
from dcos_tensorflow.options import HIDDEN, as_given, effective
from dcos_tensorflow.queue.model import JobState
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.scheduler.gate import Allowed, Gate
from untrusted_input import trees
from untrusted_input.archives import SUFFIXES
from untrusted_input.json_text import read_json

QUEUE_VARIABLE = "DCOS_TENSORFLOW_QUEUE"

_ANSWER_SECONDS = 30.0
_CODE_SECONDS = 600.0
_LOOK_SECONDS = 1.0
#: A queue that is started again is back within that; seconds.
_AWAY_SECONDS = 120.0


class QueueAway(CliError):
    """No queue answers now; that may pass."""


@dataclass(frozen=True)
class Wishes:
    """What is said of a job beside its options."""

    team: str = ""
    priority: int = 0
    #: Seconds.
    time_limit: float | None = None
    #: Unix seconds.
    deadline: float | None = None
    after: str | None = None
    hold: bool = False


class QueueClient:
    """The API of one queue."""

    def __init__(self, api: ApiAddress, work: WorkDirectory) -> None:
        self.api = api
        #: Where services of this machine are; what lies there is no code of a job.
        self.work = work

    def submit(self, given: GivenOptions, wishes: Wishes) -> str:
        """Hand a job in and return its name. Raises CliError, OptionsError."""
        options = given.load()
        if HIDDEN in json.dumps(effective(options)):
            raise UsageError(
                "The options hold a secret in clear, and a queue would store it: name a file or a"
                " secret store in its place (docs/secrets.md)."
            )
        document = as_given(options)
        folder = options.base_directory or Path.cwd()
        code = ""
        source = _local(options.service.job_url, folder)
        if source is not None:
            scratch = Path(tempfile.mkdtemp())
            try:
                code = self._brought(
                    pack(source, scratch / "code.zip", apart=(self.work.path,), gate=_GATE)
                )
            finally:
                trees.remove(scratch)
        body = {
            "options": document,
            "folder": str(folder.absolute()),
            "code": code,
            **asdict(wishes),
        }
        return str(self._ask("POST", "/v1/jobs", json.dumps(body).encode())["job"])

    def order(self, job: str, verb: str) -> None:
        """Have a job cancelled, held or released. Raises CliError."""
        self._ask("POST", f"/v1/jobs/{quote(job)}/{verb}")

    def jobs(self) -> list[dict[str, Any]]:
        """Return the jobs that this caller may see. Raises CliError."""
        return list(self._ask("GET", "/v1/jobs"))

    def job(self, job: str) -> dict[str, Any]:
        """Return one job. Raises CliError."""
        return dict(self._ask("GET", f"/v1/jobs/{quote(job)}"))

    def teams(self) -> list[dict[str, Any]]:
        """Return the teams. Raises CliError."""
        return list(self._ask("GET", "/v1/teams"))

    def follow(
        self, job: str, tell: Callable[[str], None], watch: Callable[[], object]
    ) -> dict[str, Any]:
        """Return a job once it has ended; ``tell`` each change of its place in the line.

        While it runs ``watch`` is called, which may follow it and returns when that is over: it may
        have given way, and wait again. Raises CliError.
        """
        told, heard = "", time.monotonic()
        while True:
            try:
                found = self.job(job)
            except QueueAway:
                if time.monotonic() - heard > _AWAY_SECONDS:
                    raise
                time.sleep(_LOOK_SECONDS)
                continue
            heard = time.monotonic()
            verb = "is" if found["ended_at"] is None or found["state"] == "cancelled" else "has"
            line = f"{job} {verb} {found['state']}: {found['why']}"
            if line != told:
                told = line
                tell(line)
            if found["ended_at"] is not None:
                return found
            if found["state"] == JobState.RUNNING:
                watch()
            time.sleep(_LOOK_SECONDS)

    def _brought(self, archive: Path) -> str:
        """Bring code to the queue if it is not there, and return its name."""
        with archive.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        name = f"{digest}{_ending(archive.name)}"
        status, _ = self._answer("GET", f"/v1/code/{name}")
        if status != 200:
            with archive.open("rb") as file:
                headers = {"content-length": str(os.fstat(file.fileno()).st_size)}
                self._ask("PUT", f"/v1/code/{name}", file, headers, _CODE_SECONDS)
        return name

    def _ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        seconds: float = _ANSWER_SECONDS,
    ) -> Any:
        status, document = self._answer(method, path, body, headers, seconds)
        if status < 300:
            return document
        told = document.get("message", "") if isinstance(document, dict) else ""
        if status == 503:
            raise QueueAway(f"The queue at {self.api.url} is not ready: {told}.")
        raise CliError(f"The queue says: {told.rstrip('.') or status}.")

    def _answer(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        seconds: float = _ANSWER_SECONDS,
    ) -> tuple[int, Any]:
        sent = {"accept": "application/json", **(headers or {})}
        if self.api.token:
            sent["authorization"] = f"Bearer {self.api.token}"
        connection = connection_to(self.api, seconds)
        try:
            connection.request(method, f"{self.api.prefix}{path}", body, sent)
            answer = connection.getresponse()
            return answer.status, read_json(answer.read().decode("utf-8", "replace"))
        except (OSError, http.client.HTTPException) as error:
            raise QueueAway(f"No queue answers at {self.api.url}: {error}.") from error
        except ValueError as error:
            raise CliError(f"The server at {self.api.url} is no queue.") from error
        finally:
            connection.close()


#: What is packed for a queue is the caller's own.
_GATE = Gate(Allowed(everything=True))


def queue_of(work: WorkDirectory, named: ApiAddress | None) -> QueueClient:
    """Return the queue that is named, or that of this machine. Raises CliError."""
    if named is not None:
        return QueueClient(named, work)
    found = served_queue(work)
    if found is None:
        raise CliError(
            "No queue runs on this machine: start one with dcos-tensorflow queue serve TEAMS.json,"
            f" or name one with --queue ({QUEUE_VARIABLE}).",
            EXIT_FAILED,
        )
    return QueueClient(found.address, work)


def _local(url: str, folder: Path) -> Path | None:
    """Return what of this machine an option names; None for a URL, or nothing."""
    if not url or urlsplit(url).scheme not in ("", "file"):
        return None
    path = Path(urlsplit(url).path if url.startswith("file:") else url).expanduser()
    return path if path.is_absolute() else folder / path


def _ending(name: str) -> str:
    return next((each for each in SUFFIXES if name.lower().endswith(each)), ".zip")
