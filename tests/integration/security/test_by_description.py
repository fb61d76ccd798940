"""A running scheduler's API, asked everything that its own description allows, and what it forbids.

schemathesis draws the requests from ``config-schemas/openapi.json`` and holds each answer against
it: its status, its type, its body, no 500, and what needs a token is refused without.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded_mesos import AgentConfig, EmbeddedCluster
from scheduler_process import SchedulerProcess
from waiting import eventually

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

DESCRIPTION = Path(__file__).resolve().parents[3] / "config-schemas" / "openapi.json"
TOKEN = "the-operators-token"
#: They end what the others ask for; a stream has no end that could be waited for.
LAST = ("stop", "uninstall")
ENDLESS = "events"
#: Whether a request can be had is not only a matter of its form: a step needs its phase.
NOT_HELD = "positive_data_acceptance"


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[SchedulerProcess]:
    options = tmp_path / "options.json"
    small = {"cpus": 0.1, "mem": 64, "disk": 10}
    service = {"name": "described", "job_cmd": "sleep 100000", "strategy": "independent"}
    roles = {"worker": {"count": 2, **small}, "parameter_server": {"count": 0, **small}}
    options.write_text(json.dumps({"service": service, **roles}))
    with EmbeddedCluster([AgentConfig(cpus=4, mem=1000)], tmp_path / "mesos") as cluster:
        found = SchedulerProcess(
            "scheduler",
            tmp_path,
            options,
            cluster.master,
            f"sqlite:///{tmp_path}/state.db",
            environment={"DCOS_TENSORFLOW_API_TOKEN": TOKEN, "DCOS_TENSORFLOW_API_OPEN": "false"},
        )
        try:
            eventually(lambda: "all 2 tasks of the gang run" in found.log, seconds=60)
            yield found
        finally:
            found.close()


def findings(scheduler: SchedulerProcess, folder: Path, *flags: str) -> str:
    """Return what schemathesis has to say, if it has found anything."""
    ended = subprocess.run(
        [
            *(sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()"),
            *("run", str(DESCRIPTION), "--url", f"http://{scheduler.api}", "--no-color"),
            *("--phases", "coverage,fuzzing", "--request-timeout", "30", "--continue-on-failure"),
            *("--exclude-checks", NOT_HELD, "--exclude-operation-id", ENDLESS, *flags),
        ],
        cwd=folder,
        env={
            name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if ended.returncode == 0 else ended.stdout + ended.stderr


@pytest.mark.parametrize(
    "draws",
    [
        pytest.param(("--generation-deterministic", "--max-examples=5"), id="the same each time"),
        pytest.param(("--max-examples=100",), id="others each time"),
    ],
)
class TestDescribed:
    def test_with_its_token(
        self, scheduler: SchedulerProcess, tmp_path: Path, draws: tuple[str, ...]
    ) -> None:
        known = ("--header", f"Authorization: Bearer {TOKEN}")
        but_the_last = [flag for name in LAST for flag in ("--exclude-operation-id", name)]
        assert not findings(scheduler, tmp_path, *known, *draws, *but_the_last)
        only_the_last = [flag for name in LAST for flag in ("--include-operation-id", name)]
        assert not findings(scheduler, tmp_path, *known, *draws, *only_the_last)
        assert "internal error" not in scheduler.log

    def test_without_one(
        self, scheduler: SchedulerProcess, tmp_path: Path, draws: tuple[str, ...]
    ) -> None:
        assert not findings(scheduler, tmp_path, *draws)
        assert "Traceback" not in scheduler.log
        assert scheduler.process.poll() is None
