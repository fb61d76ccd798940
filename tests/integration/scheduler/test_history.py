"""The curves of a run outlive its scheduler: killed, on another machine, and when all is over."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cluster_faults import FaultyCluster
from command_line import write_options
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.core.spec.storage_spec import CheckpointSpec, S3Spec, StorageSpec
from dcos_tensorflow.history.bucket import RunBucket, place_of
from dcos_tensorflow.history.curves import Curves
from dcos_tensorflow.history.folder import RunFolder, runs_in
from dcos_tensorflow.history.keeper import Keeper, Sources
from dcos_tensorflow.history.points import Point, lines_of
from dcos_tensorflow.history.record import record_of, run_id
from dcos_tensorflow.scheduler.gate import Allowed, Gate
from dcos_tensorflow.window.copied_runs import CopiedRuns
from dcos_tensorflow.window.services import NotKept
from samples.states import a_spec, changed, running
from scheduler_process import SchedulerProcess
from servers.s3_server import KEY_ID, SECRET_KEY, Fault, S3Server
from waiting import eventually

pytestmark = pytest.mark.timeout(180)

SECONDS = 60.0
KEYS = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
#: Tells a step and goes on from its last checkpoint; fails, and ends, when the test says so.
TRAINER = """
import os, sys, time
from pathlib import Path
marks = Path(sys.argv[1])
kept = marks / "checkpoint"
step = int(kept.read_text()) if kept.exists() else 0
while not (marks / "finish").exists():
    step += 1
    print(f"step {step}, loss {1 / step:.5f}", flush=True)
    if (marks / "fail").exists():
        (marks / "fail").unlink()
        # As if the last checkpoint had been a while ago.
        kept.write_text(str(max(0, step - 60)))
        sys.exit(3)
    time.sleep(0.05)
"""


@pytest.fixture
def options(tmp_path: Path, marks: Path) -> Path:
    """A job of one worker that tells its steps."""
    trainer = tmp_path / "trainer.py"
    trainer.write_text(TRAINER)
    command = f"{sys.executable} {trainer} {marks}"
    return write_options(tmp_path, service={"name": "job", "job_cmd": command}, retry={"limit": 9})


@pytest.fixture
def start(
    tmp_path: Path, options: Path, cluster: FaultyCluster
) -> Iterator[Callable[..., SchedulerProcess]]:
    """Return a function that starts a scheduler process; all are ended with the test."""
    started: list[SchedulerProcess] = []

    def begin(name: str, state: str, *, environment: dict[str, str]) -> SchedulerProcess:
        place = (name, tmp_path, options, cluster.master, state)
        started.append(SchedulerProcess(*place, environment=environment))
        return started[-1]

    yield begin
    for one in started:
        one.close()


def told(scheduler: SchedulerProcess) -> list[int]:
    """Return the steps of the curve that its API shows."""
    status, body = scheduler.ask("/v1/curves")
    return body.get("worker-0", {}).get("step", []) if status == 200 else []


def reaches(scheduler: SchedulerProcess, step: int) -> list[int]:
    return eventually(
        lambda: found if (found := told(scheduler)) and found[-1] >= step else None,
        seconds=SECONDS,
        what=lambda: f"step {step}: {told(scheduler)}, {scheduler.log[-2000:]}",
    )


def goes_back(steps: list[int]) -> int:
    """Return how often a step is followed by an earlier one."""
    return sum(1 for one, next_ in pairwise(steps) if next_ < one)


def test_a_scheduler_that_is_killed_begins_no_curve_anew_and_replayed_steps_go_back(
    start: Callable[..., SchedulerProcess], tmp_path: Path, marks: Path
) -> None:
    home, state = tmp_path / "home", f"sqlite:///{tmp_path}/state.db"
    environment = {"DCOS_TENSORFLOW_HOME": str(home)}
    known: list[int] = []
    for life in range(3):
        scheduler = start(f"life-{life}", state, environment=environment)
        now = reaches(scheduler, (known or [0])[-1] + 25)
        assert now[: len(known)] == known
        assert now == sorted(set(now)), "the training went on, and nothing was told twice"
        kept = RunFolder(next(home.glob("services/job/history/*")))
        eventually(
            lambda kept=kept, now=now: len(kept.points().get("worker-0", ())) >= len(now),
            seconds=SECONDS,
        )
        known = now
        scheduler.kill()

    scheduler = start("life-3", state, environment=environment)
    last = reaches(scheduler, known[-1])[-1]
    (marks / "fail").touch()
    eventually(
        lambda: goes_back(told(scheduler)),
        seconds=SECONDS,
        what=lambda: f"a step that goes back: {told(scheduler)}",
    )
    replayed = reaches(scheduler, last + 10)
    assert (replayed[: len(known)], goes_back(replayed)) == (known, 1)
    (marks / "finish").touch()
    scheduler.wait_for("done")
    eventually(lambda: scheduler.ask("/v1/runs")[1][0]["outcome"] == "succeeded", seconds=SECONDS)
    scheduler.kill()

    # No scheduler serves it any more, and its state is gone.
    for file in tmp_path.glob("state.db*"):
        file.unlink()
    picture = tmp_path / "loss.svg"
    drawn = subprocess.run(
        [sys.executable, "-m", "dcos_tensorflow", "plot", "job", "--out", str(picture)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert drawn.returncode == 0, drawn.stderr
    svg = picture.read_text()
    assert (svg.count('class="back"'), svg.count('class="incident"')) == (1, 1)


@pytest.fixture
def server() -> Iterator[S3Server]:
    server = S3Server()
    server.empty()
    yield server
    server.close()


def in_s3(server: S3Server) -> ServiceSpec:
    s3 = S3Spec(endpoint_url=server.url, region="us-east-1")
    storage = StorageSpec(checkpoints=CheckpointSpec("s3://bucket/models"), s3=s3)
    return a_spec(storage=storage)


def bucket_of(state: ServiceState) -> RunBucket | None:
    place = place_of(state.spec)
    if place is None:
        return None
    gate = Gate(Allowed(everything=True))
    return RunBucket(gate.objects(state.spec.storage.s3, KEYS, place.uri), place)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a busy machine take its time for what a process that ends would not wait for."""
    for name in ("_LAST_SECONDS", "_EARLIER_SECONDS"):
        monkeypatch.setattr(f"dcos_tensorflow.history.keeper.{name}", SECONDS)


class Machine:
    """A machine with a scheduler that keeps its runs in a folder of its own, and in S3."""

    def __init__(self, path: Path, server: S3Server) -> None:
        self.path, self.curves = path, Curves()
        self.state = changed(running(), spec=in_s3(server), instance="4c632903-0000")
        #: How often a bucket, and with it its keys, was asked for.
        self.asked = 0
        sources = Sources(lambda: self.state, dict, lambda state, told: told, self._bucket)
        self.keeper = Keeper(path, self.curves, sources)
        self.keeper.start()

    def tells(self, *steps: int) -> None:
        for step in steps:
            report = {"progress": {"step": step, "at": time.time(), "loss": 1.0 / step}}
            self.state = changed(self.state, reports={self.state.tasks["worker-0"].task_id: report})
            self.curves.observe(self.state)

    def _bucket(self, state: ServiceState) -> RunBucket | None:
        self.asked += 1
        return bucket_of(state)

    def steps(self) -> list[int | None]:
        return [point.step for point in self.curves.points().get("worker-0", ())]


def test_a_scheduler_on_another_machine_takes_the_curve_from_s3(
    server: S3Server, tmp_path: Path
) -> None:
    one = Machine(tmp_path / "one", server)
    one.tells(1, 2, 3)
    one.keeper.wait_for_earlier()
    assert one.keeper.note(run_id(one.state), {"tags": ["paper"], "note": "mine"})
    one.keeper.finish(leads=True)
    other = Machine(tmp_path / "other", server)
    other.tells(4)
    other.keeper.wait_for_earlier()
    assert other.steps() == [1, 2, 3, 4]
    other.keeper.finish(leads=True)
    assert other.keeper.records()[0]["tags"] == ["paper"]
    # And when it comes back to the first one.
    back = Machine(tmp_path / "one", server)
    back.keeper.wait_for_earlier()
    back.keeper.finish(leads=True)
    assert back.steps() == [1, 2, 3, 4]


def test_a_scheduler_that_has_lost_the_service_writes_over_nothing(
    server: S3Server, tmp_path: Path
) -> None:
    deposed = Machine(tmp_path / "one", server)
    deposed.keeper.wait_for_earlier()
    deposed.tells(1)
    deposed.keeper.finish(leads=False)
    bucket = bucket_of(deposed.state)
    assert bucket is not None
    assert bucket.get(run_id(deposed.state))[1] == {}


def test_runs_of_before_are_brought_to_a_new_machine(server: S3Server, tmp_path: Path) -> None:
    machine = Machine(tmp_path / "before", server)
    machine.keeper.finish(leads=True)
    bucket, state = (
        bucket_of(machine.state),
        replace(machine.state, run=7, instance="01d10000-1111"),
    )
    assert bucket is not None
    points = {"worker-0": [Point(1.0, 7, {"loss": 0.5})]}
    bucket.put(run_id(state), record_of(state, {}, {}), lines_of(points, lambda told: told))
    new = Machine(tmp_path / "new", server)
    new.keeper.wait_for_earlier()
    new.keeper.finish(leads=True)
    found = {run.path.name: run.points() for run in runs_in(tmp_path / "new")}
    assert found[run_id(state)] == points


def test_the_page_of_a_state_store_shows_the_copies_in_s3_that_its_operator_allows(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, server)
    machine.tells(1, 2)
    machine.keeper.finish(leads=True)
    for name, value in {**KEYS, "AWS_ENDPOINT_URL": server.url}.items():
        monkeypatch.setenv(name, value)
    spec, run = machine.state.spec, run_id(machine.state)
    runs = CopiedRuns(Gate(Allowed(s3=frozenset({"s3://bucket"}))))
    assert [record["id"] for record in runs.records(spec)] == [run]
    for called in (run, ""):
        assert [point.step for point in runs.points(spec, called)["worker-0"]] == [1, 2]
    assert runs.points(spec, "7-abc") == {}
    with pytest.raises(NotKept, match="--s3-places"):
        CopiedRuns(Gate(Allowed(s3=frozenset({"s3://another"})))).records(spec)


def test_of_many_runs_the_newest_stay_in_s3(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dcos_tensorflow.history.folder.MOST_RUNS", 3)
    machine = Machine(tmp_path / "before", server)
    machine.keeper.finish(leads=True)
    bucket = bucket_of(machine.state)
    assert bucket is not None
    for number in range(10, 16):
        bucket.put(f"{number}-abc", {"id": f"{number}-abc"}, [])
    new = Machine(tmp_path / "new", server)
    new.keeper.wait_for_earlier()
    new.keeper.finish(leads=True)
    assert sorted(bucket.runs()) == ["1-4c632903", "14-abc", "15-abc"]


def test_while_s3_refuses_everything_is_kept_here(server: S3Server, tmp_path: Path) -> None:
    server.fault = lambda request: Fault(status=403, code="AccessDenied")
    machine = Machine(tmp_path, server)
    machine.tells(1, 2)
    machine.keeper.finish(leads=True)
    (run,) = runs_in(tmp_path)
    assert [point.step for point in run.points()["worker-0"]] == [1, 2]


def test_keys_that_have_run_out_are_read_again(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dcos_tensorflow.history.keeper.COPY_SECONDS", 0.0)
    machine = Machine(tmp_path, server)
    machine.tells(1)
    machine.keeper.wait_for_earlier()
    asked = machine.asked
    server.fault = lambda request: Fault(status=403, code="ExpiredToken")
    machine.tells(2)
    eventually(lambda: machine.asked > asked, seconds=SECONDS)
    server.fault = lambda request: None
    machine.keeper.finish(leads=True)
    bucket = bucket_of(machine.state)
    assert bucket is not None
    points = bucket.get(run_id(machine.state))[1]["worker-0"]
    assert [point.step for point in points] == [1, 2]


def test_an_object_that_is_none_of_ours_is_no_run(server: S3Server) -> None:
    state: Any = changed(running(), spec=in_s3(server), instance="4c632903-0000")
    bucket = bucket_of(state)
    assert bucket is not None
    key = f"models/history/tensorflow/{run_id(state)}.jsonl.gz"
    server.client.put_object(Bucket="bucket", Key=key, Body=b"no gzip")
    assert bucket.get(run_id(state)) == ({}, {})
