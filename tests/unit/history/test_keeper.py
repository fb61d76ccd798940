"""The keeper: what is in the folder while a run goes on, and after any end of its scheduler."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.api.redaction import redact, secret_values
from dcos_tensorflow.core.model.job import JobPhase, Outcome, Verdict
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.history import folder
from dcos_tensorflow.history.curves import Curves
from dcos_tensorflow.history.folder import RunFolder, runs_in
from dcos_tensorflow.history.keeper import Keeper, Sources
from samples.states import NOW, a_spec, an_incident, changed, running, with_job
from waiting import eventually

INSTANCE = "4c632903-0000"
#: Nothing takes so long; a busy machine needs a part of it.
SECONDS = 30.0
OPTIONS = {"service": {"name": "tensorflow"}}


def told(step: int, state: ServiceState | None = None, **metrics: float) -> ServiceState:
    """Return a running service of which worker-0 has told a step."""
    state = replace(state or running(), instance=INSTANCE)
    progress = {"step": step, "at": NOW + step, "loss": 1.0 / (step + 1), "metrics": metrics}
    return changed(state, reports={state.tasks["worker-0"].task_id: {"progress": progress}})


class Life:
    """One life of a scheduler, as its keeper sees it."""

    def __init__(self, path: Path) -> None:
        self.state: ServiceState | None = None
        self.curves = Curves()
        self.options: Callable[[], Mapping[str, Any]] = lambda: OPTIONS
        self.keeper = Keeper(
            path,
            self.curves,
            Sources(
                lambda: self.state,
                self._options,
                lambda state, known: redact(known, secret_values(state)),
                lambda state: None,
            ),
        )
        self.keeper.start()

    def _options(self) -> Mapping[str, Any]:
        return self.options()

    def tells(self, *states: ServiceState) -> None:
        for state in states:
            self.state = state
            self.curves.observe(state)
            self.keeper.observe(state)

    def is_killed(self) -> None:
        """End as a process does that is killed: nothing is written any more."""
        self.state = None
        self.keeper.finish(leads=True)


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[[], Life]]:
    """Return a function that begins one life of the scheduler after the other."""
    lives: list[Life] = []

    def life() -> Life:
        lives.append(Life(tmp_path))
        return lives[-1]

    yield life
    for each in lives:
        each.keeper.finish(leads=True)


def steps(path: Path) -> list[int | None]:
    runs = runs_in(path)
    return [p.step for p in runs[0].points().get("worker-0", [])] if runs else []


def record(path: Path) -> Mapping[str, Any]:
    runs = runs_in(path)
    return runs[0].record() if runs else {}


def test_what_is_told_is_kept_while_the_run_goes_on(begin: Any, tmp_path: Path) -> None:
    begin().tells(told(1), told(2))
    eventually(lambda: steps(tmp_path) == [1, 2], seconds=SECONDS)


def test_what_is_told_last_is_kept_when_the_scheduler_ends(begin: Any, tmp_path: Path) -> None:
    life = begin()
    life.tells(told(1), told(2), told(3))
    life.keeper.finish(leads=True)
    assert steps(tmp_path) == [1, 2, 3]


def test_what_is_told_while_all_is_written_is_kept_once(begin: Any, tmp_path: Path) -> None:
    life = begin()

    def options_while_the_training_goes_on() -> Mapping[str, Any]:
        life.options = lambda: OPTIONS
        life.curves.observe(told(2))
        return OPTIONS

    life.options = options_while_the_training_goes_on
    life.tells(told(1))
    life.keeper.wait_for_earlier()
    life.keeper.finish(leads=True)
    assert steps(tmp_path) == [1, 2]


def test_the_curve_of_a_scheduler_that_was_killed_goes_on(begin: Any, tmp_path: Path) -> None:
    first = begin()
    first.tells(told(1), told(2))
    eventually(lambda: steps(tmp_path) == [1, 2], seconds=SECONDS)
    first.is_killed()
    second = begin()
    # The runner says again what it had said last.
    second.tells(told(2), told(3))
    second.keeper.wait_for_earlier()
    assert [point.step for point in second.curves.points()["worker-0"]] == [1, 2, 3]


def test_steps_that_are_replayed_after_a_restore_stand_behind_the_first_ones(
    begin: Any, tmp_path: Path
) -> None:
    life = begin()
    replayed = told(1)
    report = {"step": 1, "at": NOW + 99, "loss": 0.4}
    task = replayed.tasks["worker-0"].task_id
    life.tells(told(1), told(2), changed(replayed, reports={task: {"progress": report}}))
    life.keeper.finish(leads=True)
    assert steps(tmp_path) == [1, 2, 1]


def test_a_torn_line_is_gone_when_the_next_scheduler_has_begun(begin: Any, tmp_path: Path) -> None:
    run = RunFolder(tmp_path / f"1-{INSTANCE[:8]}")
    run.append(['{"task":"worker-0","at":1.0,"step":1,"metrics":{}}\n', '{"task":"work'])
    life = begin()
    life.tells(told(5))
    life.keeper.finish(leads=True)
    lines = [json.loads(line)["step"] for line in run.points_file.read_text().splitlines()]
    assert lines == [1, 5]


def test_how_the_run_ends_is_kept(begin: Any, tmp_path: Path) -> None:
    verdict = Verdict(Outcome.SUCCEEDED, 0, "worker-0 finished with 0")
    life = begin()
    done = with_job(told(9), phase=JobPhase.DONE, verdict=verdict, finished_at=NOW + 60)
    life.tells(told(9), done)
    life.keeper.tell({"result": {"test_accuracy": 0.9}})
    life.keeper.finish(leads=True)
    kept = record(tmp_path)
    assert (kept["outcome"], kept["step"], kept["result"]) == (
        "succeeded",
        9,
        {"test_accuracy": 0.9},
    )
    assert kept["options"] == OPTIONS


def test_a_run_before_anything_was_told_is_known(begin: Any, tmp_path: Path) -> None:
    begin().tells(replace(running(), instance=INSTANCE))
    eventually(lambda: record(tmp_path).get("service") == "tensorflow", seconds=SECONDS)


def test_of_a_service_the_newest_fifty_runs_are_kept(begin: Any, tmp_path: Path) -> None:
    for number in range(folder.MOST_RUNS + 3):
        RunFolder(tmp_path / f"{number}-old").keep_record({"id": "old", "started_at": number})
    life = begin()
    life.tells(told(1))
    life.keeper.finish(leads=True)
    names = {each.path.name for each in runs_in(tmp_path)}
    assert (len(names), f"1-{INSTANCE[:8]}" in names) == (folder.MOST_RUNS, True)


def test_a_file_stays_bounded_however_much_is_told(
    begin: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dcos_tensorflow.history.curves.MOST_POINTS", 100)
    life = begin()
    for step in range(1000):
        life.tells(told(step))
    life.keeper.finish(leads=True)
    assert len(steps(tmp_path)) <= 100
    # What was thinned out is known all the same.
    assert record(tmp_path)["metrics"]["loss"]["least"] == pytest.approx(0.001)


def test_a_disk_that_cannot_be_written_to_is_waited_for(
    begin: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = tmp_path / f"1-{INSTANCE[:8]}"
    # A file where the folder is to be: no user can write there, root included.
    run.write_text("")
    life = begin()
    life.tells(told(1), told(2))
    eventually(lambda: "is not kept" in caplog.text, seconds=SECONDS)
    run.unlink()
    eventually(lambda: steps(tmp_path) == [1, 2], seconds=SECONDS)


def test_no_secret_is_kept(begin: Any, tmp_path: Path) -> None:
    canary = "canary-4711-hush"
    plain = a_spec()
    roles = tuple(replace(r, env={"DB_PASSWORD": canary}) for r in plain.roles)
    state = replace(running(), spec=replace(plain, roles=roles))
    state = with_job(state, why=canary, incidents=(an_incident(summary=f"failed of {canary}"),))
    life = begin()
    life.tells(told(1, state, **{canary: 1.0}))
    life.keeper.tell({"result": {"at": f"https://me:{canary}@host/", "x": canary}})
    life.keeper.finish(leads=True)
    files = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 2
    assert [canary in text for text in files] == [False, False]
