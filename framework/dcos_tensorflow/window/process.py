"""The window's process: how it is found, started, and when it ends.

``open`` finds it by a file in the work directory, which holds its address and its key, and which
this user alone can read. The process ends when that file is gone or another's, and when no browser
has asked for a day.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from urllib.parse import quote

from dcos_tensorflow import __version__
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.registry import record_in, write_private
from dcos_tensorflow.client.work_directory import WorkDirectory, make_folder
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.window.app import Window
from dcos_tensorflow.window.login import Login
from dcos_tensorflow.window.of_this_machine import OfThisMachine
from untrusted_input.asgi_server import AsgiServer
from untrusted_input.json_text import read_json
from untrusted_input.listening import ServerNotStarted
from untrusted_input.process_table import leave_running, start_time

#: Where it listens if that is free: a tunnel to another machine can name it.
PORT = 8422
_HOST = "127.0.0.1"
_IDLE_SECONDS = 24 * 3600.0
_LOOK_SECONDS = 2.0
_START_SECONDS = 30.0
_ANSWER_SECONDS = 10.0


@dataclass(frozen=True)
class Serving:
    """A window that is served: where, by which process, and the key that gives links."""

    pid: int
    #: When the process began, in clock ticks since boot: its number may be another's by now.
    started: int
    address: str
    key: str
    version: str

    def lives(self) -> bool:
        """Say whether this process runs, and is of this release."""
        return self.version == __version__ and start_time(self.pid) == self.started


def link(work: WorkDirectory, service: str = "") -> str:
    """Return an address that logs one browser in, at a service's page; start the window if needed.

    Raises CliError.
    """
    make_folder(work.path)
    serving = _read(work)
    if serving is None or not serving.lives():
        serving = _started(work)
    connection = http.client.HTTPConnection(serving.address, timeout=_ANSWER_SECONDS)
    try:
        connection.request("POST", "/links", headers={"authorization": f"Bearer {serving.key}"})
        path = read_json(connection.getresponse().read().decode())["path"]
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
        raise CliError(f"The window at {serving.address} gives no link: {error}.") from error
    finally:
        connection.close()
    at = f"&service={quote(service, safe='')}" if service else ""
    return f"http://{serving.address}{path}{at}"


def serve(work: WorkDirectory) -> None:
    """Serve the window until nothing needs it. Raises CliError."""
    server = _bound()
    port = int(server.address.rpartition(":")[2])
    key = secrets.token_urlsafe(32)
    services = OfThisMachine(work)
    window = Window(services, Login(key), port)
    mine = Serving(os.getpid(), start_time(os.getpid()) or 0, server.address, key, __version__)
    server.serve(window.app(), "window")
    try:
        write_private(_file(work), json.dumps(asdict(mine)) + "\n")
        while time.monotonic() - window.asked_at < _IDLE_SECONDS and _read(work) == mine:
            time.sleep(_LOOK_SECONDS)
    finally:
        server.stop()
        services.stop()
        if _read(work) == mine:
            _file(work).unlink(missing_ok=True)


def _bound() -> AsgiServer:
    for port in (PORT, 0):
        server = AsgiServer("the window", _HOST, port)
        try:
            server.bind()
        except ServerNotStarted as error:
            if port == 0:
                raise CliError(f"{error}.") from error
        else:
            return server
    raise AssertionError("a free port is found or an error is raised")


def _started(work: WorkDirectory) -> Serving:
    log = work.path / "window.log"
    command = [sys.executable, "-m", "dcos_tensorflow.window", str(work.path)]
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd="/",
        )
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        serving = _read(work)
        if serving is not None and serving.lives():
            leave_running(process)
            return serving
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise CliError(f"The window did not start; its log is {log}.")


def _read(work: WorkDirectory) -> Serving | None:
    return record_in(_file(work), Serving)


def _file(work: WorkDirectory) -> Path:
    return work.path / "window.json"
