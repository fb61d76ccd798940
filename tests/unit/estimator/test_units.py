"""What Python tells of the units of a sweep."""

from pathlib import Path
from typing import Any

from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.snapshot import Snapshot
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.estimator.unit_jobs import DrawnUnits, Sweep, rows_of
from dcos_tensorflow.workloads.sweep.leaderboard import Board, board_of


def a_board(**parameters: Any) -> Board:
    values = enumerate((0.5, 0.75))
    units = [
        {"number": n, "state": "succeeded", "parameters": parameters, "value": value, "tries": 1}
        for n, value in values
    ]
    objective = {"metric": "auc", "goal": "maximize"}
    return board_of({"objective": objective, "units": units, "total": 2, "counts": {}})


def test_the_leaderboard_has_a_column_for_each_parameter_and_the_best_first():
    first, second = rows_of(a_board(rate=0.1))
    assert (first["rank"], first["number"], first["value"], first["rate"]) == (1, 1, 0.75, 0.1)
    assert second["rank"] == 2


def test_a_parameter_that_is_called_like_a_column_has_one_of_its_own():
    first, _ = rows_of(a_board(step=7))
    assert (first["step"], first["PARAM_STEP"]) == (None, 7)


class Told:
    """What is drawn of units, and how often it was asked for."""

    def __init__(self) -> None:
        self.times = 0
        self.away = False

    def __call__(self) -> str:
        if self.away:
            raise CliError("no scheduler answers")
        self.times += 1
        return f"drawn {self.times}"


def at(done: int) -> Snapshot:
    return Snapshot({"units": {"kind": "trial", "counts": {"succeeded": done}}}, {})


def test_units_are_asked_for_when_more_of_them_are_done_and_at_the_end():
    told = Told()
    drawn = DrawnUnits(told)
    found = [drawn.html(each) for each in (at(0), at(0), at(1), None)]
    assert found == ["drawn 1", "drawn 1", "drawn 2", "drawn 3"]


def test_what_was_drawn_stays_while_no_scheduler_answers():
    told = Told()
    drawn = DrawnUnits(told)
    drawn.html(at(0))
    told.away = True
    assert drawn.html(at(1)) == "drawn 1"
    told.away = False
    assert drawn.html(at(1)) == "drawn 2"


def test_a_service_that_is_not_there_any_more_has_no_best_trial(tmp_path: Path):
    assert "No scheduler of gone runs" in repr(Sweep("gone", WorkDirectory(tmp_path)))
