"""What is shown of a sweep: the board, the picture, and the table of the command line."""

import csv
import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from dcos_tensorflow.cli.commands.units_of_work import sweep
from dcos_tensorflow.cli.drawing import picture_bytes
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.units import batch_lines, board_as_csv, board_lines
from dcos_tensorflow.core.spec.workload_spec import EarlyStopping, SearchMethod
from dcos_tensorflow.workloads.sweep.leaderboard import board_of
from dcos_tensorflow.workloads.sweep.picture import picture
from jobs.worked_sweep import Slots, a_sweep


def a_trial(number: int, state: str = "succeeded", **more: Any) -> dict[str, Any]:
    known = {"parameters": {"rate": 10.0 ** -(number + 1), "kind": "<adam>"}, "value": None}
    times = {"tries": 1, "begun_at": 100.0, "ended_at": 134.0}
    return {"number": number, "state": state, **times, **known, "why": "", **more}


def a_document(*units: dict[str, Any], goal: str = "maximize") -> dict[str, Any]:
    return {
        "kind": "trial",
        "total": 9,
        "counts": {"waiting": 0, "running": 1, "succeeded": max(0, len(units) - 1)},
        "objective": {"metric": "acc", "goal": goal},
        "units": list(units),
    }


UNITS = (
    a_trial(0, value=0.5),
    a_trial(1, "failed", why="it exited with 1 on a2"),
    # It went on behind the last step that it was judged at.
    a_trial(2, value=0.9, measured={"step": 9, "value": 0.8}),
    a_trial(3, "running", ended_at=0.0, measured={"step": 9, "value": 0.95}),
    a_trial(4, "pruned", stopped_at=3, measured={"step": 3, "value": 0.1}, why="is not the best"),
    a_trial(5, stopped_at=9, measured={"step": 9, "value": 0.2}),
    a_trial(6, why="its metric acc never came; it told loss"),
    a_trial(7, value=0.9),
)


def test_those_that_have_finished_are_ranked_and_the_others_follow() -> None:
    board = board_of(a_document(*UNITS))
    assert [(row.rank, row.number, row.state) for row in board.rows] == [
        (1, 2, "finished"),
        (2, 7, "finished"),
        (3, 0, "finished"),
        (None, 5, "stopped"),
        (None, 4, "stopped"),
        (None, 3, "running"),
        (None, 6, "no value"),
        (None, 1, "failed"),
    ]


def test_less_is_better_where_the_goal_says_so() -> None:
    board = board_of(a_document(*UNITS, goal="minimize"))
    assert [row.number for row in board.finished] == [0, 2, 7]
    assert board.best_so_far() == [(0, 0.5), (2, 0.5), (7, 0.5)]


@pytest.mark.parametrize("goal", ["maximize", "minimize"])
def test_what_is_not_finite_is_the_worst_and_shown_by_its_name(goal: str) -> None:
    units = [a_trial(0, value="NaN"), a_trial(1, value=0.5), a_trial(2, value="Infinity")]
    board = board_of(a_document(*units, goal=goal))
    assert [(row.rank, row.number) for row in board.rows] == [(1, 1), (2, 0), (3, 2)]
    assert board.best_so_far()[1:] == [(1, 0.5), (2, 0.5)]
    rows = [line.split() for line in board_lines(board, None)]
    assert [row[2] for row in rows[2:]] == ["0.5", "nan", "inf"]
    assert "2 trials ended with NaN or infinity" in picture(board, "diverging")


def test_of_trials_that_have_all_diverged_none_is_the_best() -> None:
    board = board_of(a_document(a_trial(0, value="NaN"), a_trial(1, value="Infinity")))
    assert board.best is None
    assert "2 trials ended with NaN or infinity" in picture(board, "diverged")


@pytest.mark.parametrize(
    ("values", "doubts"), [((0.9,) * 3, True), ((0.9, 0.9, 0.8), False), ((0.9,) * 2, False)]
)
def test_of_trials_that_all_tell_the_same_a_doubt_is_told(
    values: tuple[float, ...], doubts: bool
) -> None:
    board = board_of(a_document(*(a_trial(n, value=v) for n, v in enumerate(values))))
    told = "all 3 trials told the same acc 0.9: the code may not read its parameters"
    assert any(told in line for line in board_lines(board, None)) is doubts
    assert board.doubt.startswith(told) is doubts


def test_the_best_so_far_follows_the_numbers_of_the_trials() -> None:
    assert board_of(a_document(*UNITS)).best_so_far() == [(0, 0.5), (2, 0.9), (7, 0.9)]


def test_the_table_has_the_best_first_and_says_why_others_count_for_nothing() -> None:
    told = list(board_lines(board_of(a_document(*UNITS)), None))
    assert told[0] == "9 trials: 3 finished, 2 stopped, 1 running, 1 no value, 1 failed."
    assert told[1].split() == ["trial", "acc", "rate", "kind", "time", "state"]
    assert told[2].split() == ["1", "2", "0.9", "0.001", "<adam>", "34", "s", "finished"]
    assert told[-2].endswith("no value: its metric acc never came; it told loss")
    assert "running at step 9" in told[7]


def test_a_long_table_is_cut_and_says_so() -> None:
    told = list(board_lines(board_of(a_document(*UNITS)), 3))
    assert told[-1] == "... and 5 more: --all shows them."


def test_the_values_for_programs_have_every_trial() -> None:
    rows = list(csv.DictReader(io.StringIO(board_as_csv(board_of(a_document(*UNITS))))))
    assert [row["trial"] for row in rows] == ["2", "7", "0", "5", "4", "3", "6", "1"]
    assert rows[0] | {"why": ""} == {
        "rank": "1",
        "trial": "2",
        "state": "finished",
        "acc": "0.9",
        "step": "",
        "seconds": "34.0",
        "tries": "1",
        "why": "",
        "rate": "0.001",
        "kind": "<adam>",
    }


def paths(text: str) -> list[ElementTree.Element]:
    return ElementTree.fromstring(text).findall(".//{http://www.w3.org/2000/svg}path")


def test_the_picture_has_a_line_for_each_finished_trial() -> None:
    drawn = picture(board_of(a_document(*UNITS)), "a <title>")
    lines_drawn = [path for path in paths(drawn) if path.get("class") != "axis"]
    assert len(lines_drawn) == 1 + 3
    assert "&lt;adam&gt;" in drawn


def test_trials_of_other_options_have_no_line_of_their_own() -> None:
    other = a_trial(8, value=0.1) | {"parameters": {"depth": 3}}
    drawn = picture(board_of(a_document(*UNITS, other)), "two kinds")
    assert len([path for path in paths(drawn) if path.get("class") != "axis"]) == 1 + 3


def test_a_picture_is_svg_or_png_and_nothing_else(tmp_path: Path) -> None:
    ended = CliRunner().invoke(sweep, ["--plot", str(tmp_path / "sweep.jpg")])
    assert "ends in .svg or .png" in str(ended.exception)


def test_a_png_is_the_same_picture_in_dots(tmp_path: Path) -> None:
    svg = picture(board_of(a_document(*UNITS)), "a sweep")
    drawn = picture_bytes(svg, tmp_path / "sweep.PNG")
    assert drawn.startswith(b"\x89PNG")
    assert picture_bytes(svg, tmp_path / "sweep.svg") == svg.encode()


def test_where_a_png_cannot_be_drawn_it_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(CliError, match="pip install resvg-py, or name another"):
        picture_bytes("<svg/>", tmp_path / "sweep.png")
    nothing = SimpleNamespace(svg_to_bytes=lambda svg_string: b"blank")
    monkeypatch.setitem(sys.modules, "resvg_py", nothing)
    with pytest.raises(CliError, match="this machine has no font to write with"):
        picture_bytes("<svg/>", tmp_path / "sweep.png")


def test_a_sweep_of_which_nothing_is_known_can_be_shown() -> None:
    nothing = board_of(a_document())
    assert ElementTree.fromstring(picture(nothing, "nothing")) is not None
    assert nothing.best is None
    assert list(board_lines(nothing, 20)) == ["9 trials: none yet."]


def test_a_sweep_that_was_worked_on_is_shown_whole() -> None:
    slots = Slots(a_sweep(20, SearchMethod.RANDOM, EarlyStopping.ASHA), 0)
    worked = slots.work()
    units = [
        {"number": unit.number, "state": unit.outcome, **worked.shown(unit.number)}
        for unit in slots.kept
    ]
    board = board_of(a_document(*units))
    values = [row.value for row in board.finished]
    assert values == sorted(values, key=lambda value: -(value or 0.0))
    assert {row.state for row in board.rows} == {"finished", "stopped"}
    assert paths(picture(board, "a sweep"))


def test_a_batch_says_how_far_it_is_and_what_has_failed() -> None:
    document = {
        "kind": "shard",
        "total": 100,
        "counts": {"succeeded": 40, "running": 4, "waiting": 20, "failed": 2},
        "usual_seconds": 6.0,
        "units": [
            {"number": 7, "index": 9, "begin": 900, "end": 1000, "state": "failed", "why": "exit 1"}
        ],
    }
    assert list(batch_lines(document)) == [
        "100 shards: 40 done (40 %), 4 running, 20 waiting, 2 failed.",
        "About 1 min 27 s to go for 58 shards.",
        "  shard 9 [900:1000] failed: exit 1",
    ]
