"""The two clients by which a service on DC/OS is updated, and what they say of its update.

``Plugin`` is the project's own command, packed as its package brings it. ``SdkClient`` is the
service command of the DC/OS SDK: its requests are sent as they were recorded, and what it prints of
an answer is printed alike (``tests/unit/plugin/test_trees.py``).
"""

import json
import re
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from dcos_tensorflow.plugin.sdk_verbs import plan_lines

from . import recordings
from .world import Reply, World

#: The commands that tell how far an update is.
COMMANDS = ("update status", "plan status deploy")
#: What is said while the scheduler before has ended, and the next one does not lead yet.
NO_SCHEDULER = "no scheduler answers"
#: What is said of a service that is not there any more.
NO_SERVICE = "no such service"

_PLAN = re.compile(r"^deploy \(\S+ strategy\) \((\w+)\)$", re.MULTILINE)


class UpdateRefused(Exception):
    """``update start`` failed; the text is what the client prints."""


class Client(Protocol):
    """One client of one service."""

    def update(self, options: dict[str, Any]) -> None:
        """Lay options over those in force, as ``update start`` does. Raises UpdateRefused."""

    def says(self, command: str) -> str:
        """Return a plan's status by one of ``COMMANDS``, or which of the two is missing.

        Any other text is an error as the client prints it.
        """


@dataclass
class SdkClient:
    """See the module."""

    world: World
    service: str

    def update(self, options: dict[str, Any]) -> None:
        reply = self._play("tensorflow-update-start", options=options)
        if reply.status != 200:
            raise UpdateRefused(reply.json()["message"])

    def describe(self) -> dict[str, Any]:
        """Return the options that ``describe`` prints."""
        return dict(self._play("tensorflow-describe").json()["resolvedOptions"])

    def says(self, command: str) -> str:
        reply = self._play(f"tensorflow-{command.replace(' ', '-')}")
        if reply.status in (502, 503):
            return NO_SCHEDULER
        if reply.status == 404 and reply.body != b"Element not found":
            return NO_SERVICE
        if reply.status not in (200, 202, 417):
            return f"{reply.status}: {reply.body.decode()}"
        return _status_in("\n".join(plan_lines("deploy", reply.json(), reasons=False)))

    def _play(self, recording: str, **asked: Any) -> Reply:
        (request,) = recordings.read(recording)
        path = request.path.replace("/service/tensorflow/", f"/service/{self.service}/")
        body = request.body and {**request.body, "appId": self.service, **asked}
        return self.world.ask(request.method, path, body, request.headers)


@dataclass
class Plugin:
    """See the module. ``folder`` is for files of options."""

    world: World
    service: str
    packed: Path
    folder: Path

    def update(self, options: dict[str, Any]) -> None:
        file = self.folder / f"{uuid.uuid4()}.json"
        file.write_text(json.dumps(options))
        done = self._run("update", "start", f"--options={file}")
        if done.returncode:
            raise UpdateRefused(done.stderr)

    def says(self, command: str) -> str:
        done = self._run(*command.split())
        if done.returncode == 0:
            return _status_in(done.stdout)
        told = {"starting": NO_SCHEDULER, "There is no service": NO_SERVICE}
        return next((said for text, said in told.items() if text in done.stderr), done.stderr)

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                *(sys.executable, "-I", str(self.packed)),
                *("tensorflow", f"--name={self.service}", *words),
            ],
            env={"DCOS_URL": f"http://{self.world.dcos.address}"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


def _status_in(printed: str) -> str:
    found = _PLAN.search(printed)
    return found[1] if found else printed
