"""A tracking server is told of runs: each point once, whatever is away in between."""

import logging
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.spec.service_spec import UnitKind, UnitsSpec
from dcos_tensorflow.core.spec.tracking_spec import TrackingSpec
from dcos_tensorflow.history import tracking
from dcos_tensorflow.history.folder import RunFolder
from dcos_tensorflow.history.mlflow import MlflowServer, TrackingError
from dcos_tensorflow.history.points import Point, lines_of
from dcos_tensorflow.history.record import record_of, run_id
from dcos_tensorflow.history.tracking import Tracking, TrackingSources
from samples.states import NOW, running, with_job
from servers.mlflow_server import Tracked, tracking_server
from waiting import eventually

OPTIONS = {
    "service": {"job_name": "train", "job_context": '{"lr": 0.5}', "job_args": ["--x"]},
    "worker": {"count": 2},
    "chief": {"count": 0},
}


@pytest.fixture
def server() -> Iterator[Tracked]:
    with tracking_server() as tracked:
        yield tracked


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking, "SECONDS", 0.02)
    monkeypatch.setattr(tracking, "_MOST_SECONDS", 0.1)


class Service:
    """A service whose runs are kept and told of."""

    def __init__(self, folder: Path, server: Tracked) -> None:
        self.folder, self.server = folder, server
        spec = replace(running().spec, tracking=TrackingSpec(server.url, "demo"))
        self.state = replace(running(), spec=spec, instance="0123456789")
        self.trials: list[dict[str, Any]] = []
        self.keep()
        self.points()

    @property
    def run(self) -> RunFolder:
        return RunFolder(self.folder / run_id(self.state))

    @property
    def tag(self) -> str:
        return f"{self.state.spec.name}/{run_id(self.state)}"

    def keep(self, **changes: Any) -> None:
        self.run.keep_record({**record_of(self.state, OPTIONS, {}), **changes})

    def points(self, *values: float, task: str = "worker-0") -> None:
        told = [Point(NOW + n, 10 * n, {"loss": v, "val auc!": v}) for n, v in enumerate(values, 1)]
        self.run.append(lines_of({task: told}, lambda line: line))

    def next_run(self) -> None:
        self.state = replace(self.state, run=self.state.run + 1)
        self.keep()

    def telling(self) -> Tracking:
        sources = TrackingSources(
            lambda: self.state,
            lambda state: MlflowServer(self.server.url, "sesame"),
            lambda state: {"output": "/out/1", "checkpoints": ""},
            lambda state: {"objective": {"metric": "auc"}, "units": self.trials},
        )
        found = Tracking(self.folder, sources)
        found.start()
        return found

    def end(self, **changes: Any) -> None:
        self.state = with_job(self.state, phase=JobPhase.DONE)
        self.keep(is_over=True, finished_at=NOW + 99, outcome="succeeded", **changes)


@pytest.fixture
def service(tmp_path: Path, server: Tracked) -> Service:
    return Service(tmp_path / "history", server)


def told(server: Tracked, name: str = "tensorflow@1") -> Any:
    return next((run for run in server.runs.values() if run.name == name), None)


def test_a_run_is_told_with_parameters_metrics_places_and_its_end(
    service: Service, server: Tracked
) -> None:
    telling = service.telling()
    service.points(0.5, 0.25, math.nan)
    eventually(lambda: told(server) and told(server).metrics.get("loss"))
    service.end(result={"test_accuracy": 0.9, "model": "/m"}, step=30)
    eventually(lambda: told(server).status == "FINISHED")
    telling.finish()
    run = server.called("tensorflow@1")
    assert run.experiment == "demo"
    assert run.parameters == {"lr": "0.5", "service.job_args": '["--x"]', "worker.count": "2"}
    assert run.metrics["loss"] == [(10, 0.5), (20, 0.25), (30, "NaN")]
    assert run.metrics["val auc_"][0] == (10, 0.5)
    assert run.metrics["test_accuracy"] == [(30, 0.9)]
    tags = ("dcos_tensorflow.run", "dcos_tensorflow.output", "result.model")
    assert [run.tags[tag] for tag in tags] == [service.tag, "/out/1", "/m"]
    assert server.logins == {"Bearer sesame"}


def test_others_metrics_stand_below_their_names(service: Service, server: Tracked) -> None:
    service.points(0.5)
    service.points(0.75, task="evaluator-0")
    telling = service.telling()
    eventually(lambda: told(server) and "evaluator-0/loss" in told(server).metrics)
    telling.finish()
    assert server.called("tensorflow@1").metrics["loss"] == [(10, 0.5)]


def test_a_server_that_is_away_is_warned_of_once_and_told_later(
    service: Service, server: Tracked, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server.refuses = 503
    telling = service.telling()
    service.points(0.5, 0.25)
    eventually(lambda: server.asked >= 3)
    server.refuses = 0
    eventually(lambda: told(server) and len(told(server).metrics.get("loss", ())) == 2)
    telling.finish()
    warnings = [r.message for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert f"{server.url} answers 503: not now; it gets the missing values later" in warnings[0]
    assert "answers again" in caplog.text


def test_another_scheduler_goes_on_and_tells_no_point_twice(
    service: Service, server: Tracked
) -> None:
    service.points(0.5)
    first = service.telling()
    eventually(lambda: told(server) and told(server).metrics)
    first.finish()
    service.points(0.5, 0.25)
    second = service.telling()
    eventually(lambda: len(told(server).metrics["loss"]) == 2)
    second.finish()
    assert len(server.runs) == 1


def test_a_run_is_found_again_where_all_was_lost_here(service: Service, server: Tracked) -> None:
    first = service.telling()
    eventually(lambda: service.run.tracking().get("run_id"))
    first.finish()
    service.run.tracking_file.unlink()
    second = service.telling()
    eventually(lambda: service.run.tracking().get("run_id"))
    second.finish()
    assert len(server.runs) == 1


def test_what_a_run_of_before_has_not_told_is_told_with_the_next_one(
    service: Service, server: Tracked
) -> None:
    server.refuses = 500
    first = service.telling()
    eventually(service.run.tracking)
    first.finish()
    service.points(0.5)
    service.next_run()
    server.refuses = 0
    second = service.telling()
    eventually(lambda: {run.status for run in server.runs.values()} == {"RUNNING", "KILLED"})
    second.finish()
    assert server.called("tensorflow@1").metrics["loss"] == [(10, 0.5)]


def test_runs_of_before_there_was_a_server_are_none_of_its(
    service: Service, server: Tracked
) -> None:
    service.next_run()
    telling = service.telling()
    eventually(lambda: told(server, "tensorflow@2"))
    telling.finish()
    assert [run.name for run in server.runs.values()] == ["tensorflow@2"]


def test_each_trial_of_a_sweep_is_a_run_below_it(service: Service, server: Tracked) -> None:
    units = UnitsSpec(UnitKind.TRIAL, 1, 3)
    service.state = replace(service.state, spec=replace(service.state.spec, units=units))
    unit = {"begun_at": NOW, "ended_at": NOW + 1, "parameters": {"lr": 0.5, "opt": "sgd"}}
    service.trials = [
        {**unit, "number": 0, "state": "succeeded", "value": 0.75, "measured": None},
        {**unit, "number": 1, "state": "running", "value": None},
        {**unit, "number": 2, "state": "failed", "value": None, "why": "ValueError"},
    ]
    telling = service.telling()
    eventually(lambda: told(server, "trial 2") and told(server, "trial 2").status == "FAILED")
    telling.finish()
    trial = server.called("trial 0")
    parent = next(name for name, run in server.runs.items() if run.name == "tensorflow@1")
    assert trial.tags["mlflow.parentRunId"] == parent
    assert (trial.status, trial.metrics) == ("FINISHED", {"auc": [(0, 0.75)]})
    assert trial.parameters == {"lr": "0.5", "opt": "sgd"}
    assert server.called("trial 2").tags["why"] == "ValueError"
    assert len(server.runs) == 3


def test_without_a_server_none_is_asked(service: Service, server: Tracked) -> None:
    service.state = replace(service.state, spec=replace(service.state.spec, tracking=None))
    seen: list[ServiceState] = []
    sources = TrackingSources(
        lambda: seen.append(service.state) or service.state,
        None,
        None,
        None,  # type: ignore
    )
    telling = Tracking(service.folder, sources)
    telling.start()
    eventually(lambda: len(seen) > 1)
    telling.finish()
    assert server.asked == 0


class TestServer:
    def test_user_and_password_are_told_as_such(self, server: Tracked) -> None:
        MlflowServer(server.url, "ann:sesame").experiment("x")
        assert server.logins == {"Basic YW5uOnNlc2FtZQ=="}

    def test_one_that_is_not_there_is_told_by_its_address(self) -> None:
        with pytest.raises(TrackingError, match=r"http://127\.0\.0\.1:1 cannot be reached: .+"):
            MlflowServer("http://127.0.0.1:1").experiment("x")

    def test_what_it_says_is_no_order_to_a_terminal(
        self, server: Tracked, monkeypatch: Any
    ) -> None:
        monkeypatch.setattr(server, "refuses", 403)
        monkeypatch.setattr(server, "why", "not\x1b[31m now")
        with pytest.raises(TrackingError) as refused:
            MlflowServer(server.url).experiment("a/b c")
        assert str(refused.value) == f"{server.url} answers 403: not now"

    def test_one_that_is_none_is_told(self, server: Tracked, monkeypatch: Any) -> None:
        monkeypatch.setattr(server, "answer", lambda path, body: {"hello": 1})
        with pytest.raises(TrackingError, match="answers in another way than MLflow does"):
            MlflowServer(server.url).experiment("x")
