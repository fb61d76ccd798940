"""The scheduler as a process of its own: to be killed, frozen, and asked from outside."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from waiting import eventually

T = TypeVar("T")

#: Seconds; an unhurried machine needs a twentieth of it.
DEADLINE = 120.0
#: A leader that stands still is followed by another one this soon.
SHORT_SESSION = ("--session-seconds", "2")
_API = re.compile(r"API listens on http://([^\s\"]+)")


class SchedulerProcess:
    """``dcos-tensorflow scheduler`` with these options; ``name`` is for its files in ``folder``.

    Its session with ZooKeeper outlasts the pauses of a busy machine; where its end is awaited,
    ``flags`` hold ``SHORT_SESSION``. ``program`` is what Python runs in place of the command line,
    with its arguments.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        options: Path,
        master: str,
        state: str,
        *flags: str,
        environment: Mapping[str, str],
        program: Sequence[str] = ("-m", "dcos_tensorflow"),
    ) -> None:
        self._log = folder / f"{name}.log"
        own = {k: v for k, v in os.environ.items() if not k.startswith("DCOS_TENSORFLOW_")}
        own["DCOS_TENSORFLOW_HOME"] = str(folder / f"{name}-home")
        own["DCOS_TENSORFLOW_API_OPEN"] = "true"
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, *program, "scheduler", str(options)),
                    *("--master", master, "--state", state, "--artifacts", "file"),
                    *("--artifacts-dir", str(folder / "artifacts"), "--session-seconds", "30"),
                    *flags,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**own, **environment},
                start_new_session=True,
            )

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def api(self) -> str:
        """The API's address, once it listens."""
        return eventually(
            lambda: self._found() or self._ended(), seconds=DEADLINE, what="the API's address"
        )

    def _found(self) -> str:
        found = _API.search(self.log)
        return found.group(1) if found else ""

    def _ended(self) -> str:
        assert self.process.poll() is None, f"ended with {self.process.returncode}:\n{self.log}"
        return ""

    def ask(self, path: str) -> tuple[int, Any]:
        """Return status and body of an answer; 0 and the error when there is none."""
        try:
            with urllib.request.urlopen(f"http://{self.api}{path}", timeout=10) as answer:
                return answer.status, _plain(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, _plain(error.read())
        except OSError as error:
            return 0, str(error)

    def job(self) -> dict[str, Any]:
        """Return /v1/job; empty while the scheduler does not lead."""
        status, body = self.ask("/v1/job")
        return body if status == 200 else {}

    def wait_for(self, phase: str) -> dict[str, Any]:
        """Wait until this scheduler leads and the job is in this phase; return /v1/job."""
        return self._eventually(
            lambda: job if (job := self.job()).get("phase") == phase else None, f"the phase {phase}"
        )

    def says(self, text: str) -> None:
        """Wait until the log says this."""
        self._eventually(lambda: text in self.log, repr(text))

    def _eventually(self, condition: Callable[[], T | None], what: str) -> T:
        try:
            return eventually(condition, seconds=DEADLINE, what=what)
        except AssertionError as error:
            raise AssertionError(f"{error}; its log:\n{self.log}") from None

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        """SIGSTOP."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        self.process.send_signal(signal.SIGCONT)

    def exit_code(self) -> int:
        """Wait until it ends by itself; return its exit code."""
        return self.process.wait(timeout=DEADLINE)

    def close(self) -> None:
        """End it however it is."""
        if self.process.poll() is None:
            self.thaw()
            self.kill()


def _plain(body: bytes) -> Any:
    """Return a body as JSON, or as text where the SDK answers with text."""
    try:
        return json.loads(body)
    except ValueError:
        return body.decode()
