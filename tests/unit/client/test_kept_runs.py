"""``runs`` and ``plot``: what is kept of the runs of this machine's services."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.cli.main import run_command_line
from dcos_tensorflow.client.registry import Registration, register
from dcos_tensorflow.client.work_directory import ServiceDirectory, WorkDirectory
from dcos_tensorflow.history.folder import RunFolder
from dcos_tensorflow.history.points import Point, line_of
from dcos_tensorflow.history.record import record_of, with_points
from samples.states import NOW, failed

Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WorkDirectory:
    monkeypatch.setenv("DCOS_TENSORFLOW_HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    return WorkDirectory(tmp_path)


@pytest.fixture
def said(work: WorkDirectory, capsys: pytest.CaptureFixture[str]) -> Said:
    """Return a function that runs a command: its code, its output, its errors."""

    def run(*words: str) -> tuple[int, str, str]:
        code = run_command_line([*words])
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


def keep(work: WorkDirectory, name: str, number: int, *losses: float, **more: Any) -> None:
    """Leave what is kept of a run; each loss is that of one step."""
    directory = work.service(name)
    directory.prepare()
    run = RunFolder(directory.history / f"{number}-abc")
    points = [Point(NOW + n, n, {"loss": loss, "auc": 1 - loss}) for n, loss in enumerate(losses)]
    record = record_of(failed(), {"service": {"name": name}}, {})
    known = {"service": name, "run": number, "id": run.path.name, "started_at": NOW + number}
    run.keep_record(
        with_points({**record, **known, "finished_at": NOW + number + 61, **more}, points)
    )
    run.append([line_of("worker-0", point, lambda told: told) for point in points])


def test_the_runs_of_all_services_are_listed_the_newest_first(
    work: WorkDirectory, said: Said
) -> None:
    keep(work, "digits", 1, 0.9, 0.25)
    keep(work, "mnist", 2, 0.5)
    _, told, _ = said("runs")
    lines = [line.split() for line in told.splitlines()]
    assert [line[0] for line in lines] == ["run", "mnist@2", "digits@1"]
    assert lines[2][1:7] == ["failed", "1", "min", "1", "s", "loss"]
    assert lines[2][7:9] == ["0.25", "1"]


def test_of_one_service_its_own_are_listed(work: WorkDirectory, said: Said) -> None:
    keep(work, "digits", 1, 0.9)
    keep(work, "mnist", 2, 0.5)
    told = json.loads(said("runs", "digits", "--json")[1])
    assert [each["name"] for each in told] == ["digits@1"]


def test_of_very_many_the_newest_twenty_are_listed(work: WorkDirectory, said: Said) -> None:
    for number in range(23):
        keep(work, "digits", number)
    told = said("runs")[1].splitlines()
    assert (len(told), told[1].split()[0], told[-1]) == (
        22,
        "digits@22",
        "... and 3 more: --all shows them.",
    )
    assert len(said("runs", "--all")[1].splitlines()) == 24


def test_another_metric_than_the_usual_one_can_be_asked_for(
    work: WorkDirectory, said: Said
) -> None:
    keep(work, "digits", 1, 0.9, 0.25)
    assert "auc 0.75" in said("runs", "--metric", "auc")[1]


def test_the_best_of_a_sweep_is_that_of_its_best_trial(work: WorkDirectory, said: Said) -> None:
    best = {"metric": "val_loss", "value": 0.125, "number": 3, "parameters": {}}
    keep(work, "search", 1, 0.9, units={"best": best})
    assert "val_loss 0.125" in said("runs")[1]


def test_that_no_run_is_kept_is_said(said: Said) -> None:
    assert said("runs")[:2] == (0, "No run of any service is kept.\n")


@pytest.mark.parametrize(
    ("is_served", "standing"), [(True, "running"), (False, "not served")], ids=["served", "left"]
)
def test_a_run_that_has_not_ended_is_served_or_not(
    work: WorkDirectory, said: Said, is_served: bool, standing: str
) -> None:
    keep(work, "digits", 1, 0.5, outcome=None, phase="running")
    directory: ServiceDirectory = work.service("digits")
    if is_served:
        register(directory, Registration("digits", os.getpid(), "127.0.0.1:1"))
    (told,) = json.loads(said("runs", "--json")[1])
    assert told["standing"] == standing


def test_a_run_is_shown_with_its_options(work: WorkDirectory, said: Said) -> None:
    keep(work, "digits", 1, 0.9, 0.25)
    keep(work, "digits", 2, 0.8)
    code, told, _ = said("runs", "show", "digits@1")
    assert code == 0
    assert told.startswith("digits@1 failed: ")
    assert "0.25, between 0.25 and 0.9" in told
    assert json.loads(told[told.index("{") :]) == {"service": {"name": "digits"}}


def test_the_newest_run_is_meant_where_none_is_named(work: WorkDirectory, said: Said) -> None:
    keep(work, "digits", 1, 0.9)
    keep(work, "digits", 2, 0.8)
    assert said("runs", "show", "digits")[1].startswith("digits@2 ")


def test_a_run_that_is_not_kept_is_said_to_be_none(work: WorkDirectory, said: Said) -> None:
    keep(work, "digits", 1, 0.9)
    code, _, error = said("runs", "show", "digits@7")
    assert (code, error) == (1, "Error: No run 7 of digits is kept; there are 1.\n")
    assert said("runs", "show", "mnist")[2] == "Error: No run of mnist is kept.\n"


def test_two_runs_are_drawn_over_each_other(
    work: WorkDirectory, said: Said, tmp_path: Path
) -> None:
    keep(work, "digits", 1, 0.9, 0.5)
    keep(work, "digits", 2, 0.8, 0.4)
    out = tmp_path / "loss.svg"
    code, told, _ = said("plot", "digits@1", "digits@2", "--out", str(out))
    assert (code, told) == (0, f"{out} is drawn.\n")
    assert "loss of digits@1, digits@2" in out.read_text()


def test_a_png_is_drawn_where_the_name_asks_for_one(
    work: WorkDirectory, said: Said, tmp_path: Path
) -> None:
    keep(work, "digits", 1, 0.9, 0.5)
    said("plot", "digits", "--metric", "auc", "--out", str(tmp_path / "auc.png"))
    assert (tmp_path / "auc.png").read_bytes().startswith(b"\x89PNG")


def test_an_unknown_metric_is_named_with_the_known_ones(
    work: WorkDirectory, said: Said, tmp_path: Path
) -> None:
    keep(work, "digits", 1, 0.9)
    code, _, error = said("plot", "digits", "--metric", "lost", "--out", str(tmp_path / "a.svg"))
    assert (code, error) == (
        2,
        "Error: --metric: no run has lost; there are loss, auc. Did you mean loss?\n",
    )


def test_a_run_that_told_nothing_cannot_be_drawn(
    work: WorkDirectory, said: Said, tmp_path: Path
) -> None:
    keep(work, "digits", 1)
    code, _, error = said("plot", "digits", "--out", str(tmp_path / "a.svg"))
    assert (code, error) == (1, "Error: digits@1 told no metric.\n")


def test_what_is_kept_outlives_the_service(work: WorkDirectory, said: Said) -> None:
    keep(work, "digits", 1, 0.9)
    work.service("digits").remove()
    assert "digits@1" in said("runs")[1]


def test_the_next_run_of_a_service_that_was_uninstalled_has_a_number_of_its_own(
    work: WorkDirectory,
) -> None:
    keep(work, "digits", 4, 0.9)
    assert work.service("digits").next_run() == 5
