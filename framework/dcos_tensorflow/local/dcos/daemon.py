"""The local DC/OS as a background process: up, status, down.

Called by the command line (``dcos-tensorflow local up --dcos``). The folder holds ``daemon.json``
(process id, start time of the process, address), the log, the state and the sandboxes. The process
itself is ``python -m dcos_tensorflow.local.dcos FOLDER``. When it is killed, the apps' processes
go on, and the next one finds them again.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dcos_tensorflow.local.dcos.cluster_calls import Login
from dcos_tensorflow.local.dcos.local_dcos import DcosConfig, LocalDcos
from dcos_tensorflow.local.dcos.state_file import StateFileError
from dcos_tensorflow.local.process_tree import kill_tree, start_time

Json = dict[str, Any]

_RECORD = "daemon.json"
_CONFIG = "config.json"
_LOG = "dcos.log"
#: How long ``up`` waits for an answer, and ``down`` for the end of every app, in seconds.
START_SECONDS = 20.0
STOP_SECONDS = 60.0


class DcosError(Exception):
    """The local DC/OS could not be started or stopped. The text says why."""


@dataclass(frozen=True)
class DcosStatus:
    """A local DC/OS that runs in the background; ``master`` is the one it stands in front of."""

    pid: int
    address: str
    master: str
    answering: bool

    @property
    def url(self) -> str:
        """Return what ``dcos cluster setup`` is given."""
        return f"http://{self.address}"


def up(config: DcosConfig) -> DcosStatus:
    """Start a local DC/OS in the background, or return the one that runs there already.

    One that stands in front of another master is ended and started anew: its cluster is gone.

    Raises:
        DcosError: it did not answer in time or ended; the text has the end of its log.
    """
    folder = config.folder.resolve()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(folder):
        running = status(folder)
        if running is not None and running.master == config.master and running.answering:
            return running
        if running is not None:
            _stop(folder, running)
        (folder / _RECORD).unlink(missing_ok=True)
        _write(folder / _CONFIG, _to_json(config))
        return _wait_for_answer(folder, _spawn(folder))


def follow(folder: Path, master: str) -> None:
    """Put a local DC/OS that runs in front of the master that runs now, if it is another one.

    Raises:
        DcosError: as ``up``.
    """
    running = status(folder)
    stored = _read(Path(folder).resolve() / _CONFIG)
    if running is not None and running.master != master and stored is not None:
        up(replace(_from_json(stored, folder), master=master))


def status(folder: Path) -> DcosStatus | None:
    """Return the local DC/OS of a folder, None when none runs. Stale files are none."""
    record = _read(Path(folder).resolve() / _RECORD)
    if record is None or start_time(record["pid"]) != record["started"]:
        return None
    return DcosStatus(
        record["pid"], record["address"], record["master"], _answers(record["address"])
    )


def down(folder: Path) -> bool:
    """End the local DC/OS and its apps' tasks; say whether there was one. Raises DcosError."""
    folder = Path(folder).resolve()
    if not folder.is_dir():
        return False
    with _locked(folder):
        running = status(folder)
        if running is None:
            (folder / _RECORD).unlink(missing_ok=True)
            return False
        _stop(folder, running)
        return True


def serve(folder: Path) -> None:
    """Run the local DC/OS of a folder until SIGTERM or SIGINT: the background process."""
    folder = folder.resolve()
    stored = _read(folder / _CONFIG)
    if stored is None:
        raise DcosError(f"no {_CONFIG} in {folder}")
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    config = _from_json(stored, folder)
    with LocalDcos(config) as dcos:
        record = {
            "pid": os.getpid(),
            "started": start_time(os.getpid()),
            "address": dcos.address,
            "master": config.master,
        }
        _write(folder / _RECORD, record)
        stopping.wait()
    (folder / _RECORD).unlink(missing_ok=True)


def _to_json(config: DcosConfig) -> Json:
    plugin = config.core_cli
    return {
        **{name: getattr(config, name) for name in ("master", "port", "version", "variant")},
        "login": None if config.login is None else asdict(config.login),
        "core_cli": None if plugin is None else str(plugin.resolve()),
        "pythons": dict(config.pythons),
        "uninstall_interval": config.uninstall_interval,
    }


def _from_json(stored: Json, folder: Path) -> DcosConfig:
    login, plugin = stored["login"], stored["core_cli"]
    return DcosConfig(
        **{
            **stored,
            "folder": folder,
            "login": None if login is None else Login(**login),
            "core_cli": None if plugin is None else Path(plugin),
        }
    )


def _spawn(folder: Path) -> subprocess.Popen[bytes]:
    root = str(Path(__file__).resolve().parents[3])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    with open(folder / _LOG, "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "dcos_tensorflow.local.dcos", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=True,
        )


def _wait_for_answer(folder: Path, process: subprocess.Popen[bytes]) -> DcosStatus:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        code = process.poll()
        if code is not None:
            raise DcosError(f"the local DC/OS ended with {code}: {_log_end(folder)}")
        found = status(folder)
        if found is not None and found.answering and found.pid == process.pid:
            # It goes on without us: nobody waits for it any more, and Popen need not complain.
            process.returncode = 0
            return found
        time.sleep(0.05)
    kill_tree(process.pid)
    process.wait()
    raise DcosError(
        f"the local DC/OS did not answer within {START_SECONDS:g} s: {_log_end(folder)}"
    )


def _stop(folder: Path, running: DcosStatus) -> None:
    started = start_time(running.pid)
    with contextlib.suppress(ProcessLookupError):
        os.kill(running.pid, signal.SIGTERM)
    if not _ended(running.pid, started, STOP_SECONDS):
        kill_tree(running.pid)
        if not _ended(running.pid, started, 5.0):
            raise DcosError(f"process {running.pid} does not end")
    (folder / _RECORD).unlink(missing_ok=True)


def _ended(pid: int, started: int | None, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while started is not None and start_time(pid) == started:
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)
    with contextlib.suppress(ChildProcessError):
        # When this process started it, it is a zombie until it is waited for.
        os.waitpid(pid, os.WNOHANG)
    return True


def _answers(address: str) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://{address}/", timeout=2) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def _log_end(folder: Path) -> str:
    with contextlib.suppress(FileNotFoundError):
        lines = (folder / _LOG).read_text(errors="replace").splitlines()
        if lines:
            return " / ".join(lines[-5:])
    return "its log is empty"


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    # Two commands at a time must not start two.
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _write(path: Path, value: object) -> None:
    temporary = path.with_suffix(".new")
    # The configuration may hold a password.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w") as file:
        json.dump(value, file)
    temporary.replace(path)


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def main(arguments: list[str]) -> int:
    """Run the local DC/OS of a folder."""
    if len(arguments) != 1:
        print("usage: python -m dcos_tensorflow.local.dcos FOLDER", file=sys.stderr)
        return 64
    try:
        serve(Path(arguments[0]))
    except (DcosError, StateFileError, OSError, ValueError) as error:
        print(f"the local DC/OS cannot start: {error}", file=sys.stderr)
        return 1
    return 0
