"""TensorBoard of the summaries of a service's jobs, started when a browser asks for it.

Used by ``window.app``. One for each service, over its folder on this machine, so that all its runs
are beside each other. It listens on this machine alone, below a path that none can guess, which the
window tells a browser that is logged in: TensorBoard itself asks for no login. It ends with
the window, however that ends: it holds the other end of its standard input.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

from dcos_tensorflow.client.work_directory import ServiceDirectory
from dcos_tensorflow.records import dataclass
from untrusted_input import trees

#: A busy machine needs a part of it.
START_SECONDS = 60.0
#: So much of what it prints is told where it does not start; lines.
_TOLD = 5
#: What it says when it listens.
_LISTENS = re.compile(r"http://127\.0\.0\.1:(\d+)/")
#: Its arguments come in a variable, which other users of the machine cannot read.
_PROGRAM = """
import json, os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
sys.argv = ["tensorboard", *json.loads(os.environ.pop("TENSORBOARD_ARGUMENTS"))]
from tensorboard import main
main.run_main()
"""


class NoBoard(Exception):
    """It cannot be shown; the text says why, and what helps."""


@dataclass
class _Board:
    process: subprocess.Popen[str]
    path: str
    port: int = 0
    listens: threading.Event = field(default_factory=threading.Event)
    printed: deque[str] = field(default_factory=lambda: deque(maxlen=_TOLD))

    def read(self) -> None:
        """Read what it prints, to its end: a pipe that none reads would stop it."""
        assert self.process.stderr is not None
        with self.process.stderr as told:
            for line in told:
                self.printed.append(line.strip())
                found = _LISTENS.search(line)
                if found is not None:
                    self.port = int(found[1])
                    self.listens.set()
        self.listens.set()

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()


class Boards:
    """Those that run. From any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._boards: dict[Path, _Board] = {}

    def address(self, service: ServiceDirectory) -> str:
        """Return where the TensorBoard of a service is; start it if needed. Raises NoBoard."""
        with self._lock:
            board = self._boards.get(service.path)
            if board is not None and board.process.poll() is not None:
                board.end()
                board = None
            if board is None:
                board = self._boards[service.path] = _started(service)
        board.listens.wait(START_SECONDS)
        if not board.port or board.process.poll() is not None:
            board.end()
            told = "; ".join(board.printed) or "it says nothing"
            raise NoBoard(f"TensorBoard did not start: {told}")
        return f"http://127.0.0.1:{board.port}{board.path}/"

    def stop(self) -> None:
        """End all of them."""
        with self._lock:
            for board in self._boards.values():
                board.end()
            self._boards.clear()


def _started(service: ServiceDirectory) -> _Board:
    summaries = service.checkpoints
    if not any("tfevents" in Path(each).name for each in trees.files_below(summaries)):
        raise NoBoard(
            f"no summaries are in {summaries}: a job on this machine writes them to LOG_DIR; those"
            " of another place are shown by dcos-tensorflow open --tensorboard while the job runs"
        )
    python = next(_pythons(), None)
    if python is None:
        raise NoBoard("no TensorBoard is installed here: pip install tensorboard")
    path = f"/{secrets.token_urlsafe(24)}"
    arguments = ["--logdir", str(summaries), "--host", "127.0.0.1", "--port", "0"]
    process = subprocess.Popen(
        [str(python), "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={
            **os.environ,
            "TENSORBOARD_ARGUMENTS": json.dumps([*arguments, "--path_prefix", path]),
            "PYTHONUNBUFFERED": "1",
        },
    )
    board = _Board(process, path)
    threading.Thread(target=board.read, name="tensorboard", daemon=True).start()
    return board


def _pythons() -> Iterator[Path]:
    """Yield each Python with TensorBoard: this one, that of the PATH, those beside this one."""
    own = Path(sys.executable)
    found = shutil.which("tensorboard")
    near = own.parent.parent.parent
    environments = [*sorted(near.glob(".venvs/*"), reverse=True), near / ".venv"]
    places = [
        own.parent,
        *([Path(found).parent] if found else []),
        *(e / "bin" for e in environments),
    ]
    for place in places:
        if (place / "python").exists() and any(
            place.parent.glob("lib/python3*/site-packages/tensorboard/main.py")
        ):
            yield place / "python"
