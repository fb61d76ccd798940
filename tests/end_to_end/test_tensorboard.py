"""A real TensorBoard beside a real training whose logs are in S3, asked as a browser asks it."""

import json
import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from command_line import NEWEST, NO_KERAS, OLD, ROOT, CommandLine
from data_files import PROGRAMS
from servers.s3_server import S3Server
from waiting import eventually

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(300)]

WRITER = PROGRAMS / "s3_summaries.py"
SMALL = {"cpus": 0.5, "mem": 1024}
DEADLINE = 120.0


class Shown:
    """A job that writes summaries, and the TensorBoard beside it."""

    def __init__(self, home: CommandLine, name: str, folder: Path, s3: S3Server) -> None:
        self.home = home
        self.name = name
        self.finish = folder / "finish"
        self._folder = folder
        self._s3 = s3
        self.run: subprocess.Popen[str] | None = None

    def begin(
        self, training: str, board: str, *, in_s3: bool = True, keep_running: bool = False
    ) -> None:
        options: dict[str, object] = {
            "service": {
                "name": self.name,
                "job_cmd": f"{training}/bin/python {WRITER} {self.finish}",
                "python": training,
                **NO_KERAS,
                "strategy": "independent",
                "shared_filesystem": "s3://bucket/shown" if in_s3 else "",
                "use_tensorboard": True,
                "kill_grace_seconds": 5,
            },
            "s3": self._s3.options(self._folder),
            "parameter_server": {"count": 0},
            "worker": {"count": 1, "disk": 100, **SMALL},
            "tensorboard": {"python": board, "keep_running": keep_running, **SMALL},
        }
        file = self._folder / "options.json"
        file.write_text(json.dumps(options))
        self.run = self.home.start("run", file, "--yes")

    def task(self) -> dict[str, object]:
        """Return what the scheduler says of TensorBoard."""
        status = self.home.ask("status", self.name, "--json")
        return json.loads(status.out)["tasks"]["tensorboard-0"] if status.code == 0 else {}

    def address(self) -> str:
        task = self.task()
        return f"{task['address']}:{task['ports'][0]}" if task.get("state") == "running" else ""

    def losses(self, address: str) -> list[tuple[int, float]]:
        """Return step and value of each loss that TensorBoard shows."""
        query = urlencode({"run": "train", "tag": "loss"})
        try:
            url = f"http://{address}/data/plugin/scalars/scalars?{query}"
            with urllib.request.urlopen(url, timeout=10) as answer:
                return [(step, value) for _, step, value in json.load(answer)]
        except OSError:
            return []  # It does not listen, or does not know the run yet.

    def wait_for_line(self, text: str) -> str:
        """Return the next line of the run that has ``text`` in it."""
        assert self.run is not None
        assert self.run.stdout is not None
        return next(line for line in self.run.stdout if text in line)

    def end(self) -> None:
        self.finish.touch()
        assert self.run is not None
        out, _ = self.run.communicate(timeout=DEADLINE)
        assert self.run.returncode == 0, out[-4000:]


@pytest.fixture
def shown(
    local_cluster: CommandLine, s3: S3Server, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Shown]:
    """A job of the test's own: the tests share one cluster."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[-40:].strip("-")
    made = Shown(local_cluster, name, tmp_path, s3)
    yield made
    if made.run is not None and made.run.poll() is None:
        local_cluster.ask("stop", name)
        made.run.communicate(timeout=DEADLINE)


def tensorboard_alone() -> str:
    environment = ROOT / ".venvs/tensorboard"
    if not environment.exists():
        pytest.skip("no environment of TensorBoard alone: run 'make test'")
    return str(environment)


def growing_losses(shown: Shown, address: str) -> list[tuple[int, float]]:
    """Wait until TensorBoard has shown the first losses, and then more; return what it shows."""
    first = eventually(lambda: shown.losses(address), seconds=DEADLINE, what="losses")
    assert first[0] == (1, pytest.approx(1.0))
    eventually(
        lambda: shown.losses(address)[len(first) :], seconds=DEADLINE, what="more of the losses"
    )
    return shown.losses(address)


# The other two tests have one without TensorFlow.
@pytest.mark.soak
@pytest.mark.parametrize("board", [OLD, NEWEST])
def test_a_tensorboard_beside_tensorflow_shows_the_growing_scalars_of_a_job_in_s3(
    shown, tensorflow, board
):
    shown.begin(tensorflow(NEWEST), tensorflow(board))
    address = eventually(shown.address, seconds=DEADLINE, what="TensorBoard")
    growing_losses(shown, address)
    shown.end()
    assert shown.losses(address) == []  # It has ended with the job.


def test_tensorboard_shows_a_local_log_directory(shown):
    shown.begin(tensorboard_alone(), tensorboard_alone(), in_s3=False)
    address = eventually(shown.address, seconds=DEADLINE, what="TensorBoard")
    eventually(lambda: shown.losses(address), seconds=DEADLINE, what="losses")
    shown.end()
    assert shown.losses(address) == []  # It has ended with the job.


def test_a_kept_tensorboard_shows_the_growing_scalars_of_a_job_in_s3_and_outlives_it(
    shown, tensorflow
):
    shown.begin(tensorflow(NEWEST), tensorboard_alone(), keep_running=True)
    address = eventually(shown.address, seconds=DEADLINE, what="TensorBoard")
    seen = growing_losses(shown, address)
    shown.finish.touch()
    assert address in shown.wait_for_line("runs on; Ctrl-C ends it")
    # What the job wrote last comes to the bucket at its end, and is shown after it.
    eventually(lambda: shown.losses(address)[len(seen) :], seconds=DEADLINE, what="the last losses")
    assert shown.run.poll() is None
    shown.run.send_signal(signal.SIGINT)
    shown.run.communicate(timeout=DEADLINE)
    assert shown.run.returncode == 0
    assert shown.losses(address) == []
