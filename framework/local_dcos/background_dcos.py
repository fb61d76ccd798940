"""The local DC/OS as a background process: up, status, down.

The folder holds ``daemon.json`` (process id, start time of the process, address), the log, the
state and the sandboxes. The process itself is a program of the starter's, which calls ``main`` with
its integration. When it is killed, the apps' processes go on, and the next one finds them again.
"""

from __future__ import annotations

import logging
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from embedded_mesos import (
    BackgroundProcess,
    BackgroundProcessError,
    answers,
    read_json,
    stop_requested,
    write_json,
)
from local_dcos.cluster_calls import Login
from local_dcos.dcos import DcosConfig, LocalDcos
from local_dcos.integration import Integration
from local_dcos.state_file import StateFileError
from untrusted_input.seldom import SeldomFilter

Json = dict[str, Any]

_CONFIG = "config.json"
#: How long ``up`` waits for an answer, and ``down`` for the end of every app, in seconds.
START_SECONDS = 20.0
STOP_SECONDS = 60.0


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


def up(config: DcosConfig, program: str) -> DcosStatus:
    """Start a local DC/OS in the background, or return the one that runs there already.

    ``program`` is what ``python -m`` is given: it calls ``main`` with its integration.

    One that stands in front of another master is ended and started anew: its cluster is gone.
    Raises BackgroundProcessError when it did not answer in time or ended, with the end of its log.
    """
    folder = config.folder.resolve()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    background = _background(folder, program)
    with background.locked():
        running = status(folder)
        if running is not None and running.master == config.master and running.answering:
            return running
        if running is not None:
            background.stop(running.pid, STOP_SECONDS)
        background.forget()
        write_json(folder / _CONFIG, _to_json(config))
        background.start({}, START_SECONDS)
        started = status(folder)
    if started is None or not started.answering:
        raise BackgroundProcessError(f"the local DC/OS does not answer: {background.log_end()}")
    return started


def follow(folder: Path, master: str, program: str) -> None:
    """Put a local DC/OS that runs in front of the master that runs now. Raises as ``up``."""
    running = status(folder)
    stored = read_json(Path(folder).resolve() / _CONFIG)
    if running is not None and running.master != master and stored is not None:
        up(replace(_from_json(stored, folder), master=master), program)


def status(folder: Path) -> DcosStatus | None:
    """Return the local DC/OS of a folder, None when none runs. Stale files are none."""
    record = _background(Path(folder).resolve()).record()
    if record is None:
        return None
    address = record["address"]
    return DcosStatus(record["pid"], address, record["master"], answers(address, "/"))


def down(folder: Path) -> bool:
    """End the local DC/OS and its apps' tasks; say whether there was one.

    Raises BackgroundProcessError when one of them is still there.
    """
    return _background(Path(folder).resolve()).down(STOP_SECONDS)


def serve(folder: Path, integration: Integration) -> None:
    """Run the local DC/OS of a folder until SIGTERM or SIGINT: the background process."""
    folder = folder.resolve()
    background = _background(folder)
    if background.handed_over() is None:
        return
    stored = read_json(folder / _CONFIG)
    if stored is None:
        raise BackgroundProcessError(f"no {_CONFIG} in {folder}")
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(SeldomFilter("asyncio", "local_dcos.application"))
    logging.basicConfig(
        handlers=[handler], level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    stopping = stop_requested()
    config = _from_json(stored, folder)
    with LocalDcos(config, integration) as dcos:
        background.announce(address=dcos.address, master=config.master)
        background.await_end(stopping)
    if not background.is_lost():
        background.forget()


def _to_json(config: DcosConfig) -> Json:
    plugin, credential = config.core_cli, config.credential
    return {
        **{name: getattr(config, name) for name in ("master", "port", "version", "variant")},
        "login": None if config.login is None else asdict(config.login),
        "core_cli": None if plugin is None else str(plugin.resolve()),
        "credential": None if credential is None else str(credential.resolve()),
        "pythons": dict(config.pythons),
        "uninstall_interval": config.uninstall_interval,
    }


def _from_json(stored: Json, folder: Path) -> DcosConfig:
    login, plugin = stored["login"], stored["core_cli"]
    credential = stored.get("credential")
    return DcosConfig(
        **{
            **stored,
            "folder": folder,
            "login": None if login is None else Login(**login),
            "core_cli": None if plugin is None else Path(plugin),
            "credential": None if credential is None else Path(credential),
        }
    )


def _background(folder: Path, program: str = "") -> BackgroundProcess:
    return BackgroundProcess(
        folder=folder,
        title="the local DC/OS",
        module=program,
        arguments=(str(folder),),
        record_name="daemon.json",
        log_name="dcos.log",
    )


def main(arguments: list[str], integration: Integration) -> int:
    """Run the local DC/OS of a folder: the whole of a program that ``up`` starts."""
    if len(arguments) != 1:
        print("The folder of the local DC/OS is the one argument.", file=sys.stderr)
        return 64
    try:
        serve(Path(arguments[0]), integration)
    except (BackgroundProcessError, StateFileError, OSError, ValueError) as error:
        print(f"the local DC/OS cannot start: {error}", file=sys.stderr)
        return 1
    return 0
