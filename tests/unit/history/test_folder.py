"""The folder of a run: what is appended, what a crash leaves, what is removed."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.history.folder import RunFolder, remove_oldest, run_called, runs_in
from dcos_tensorflow.history.points import Point, line_of
from dcos_tensorflow.history.record import MOST_TAGS, NOTE_BYTES, TAG_BYTES, notes_of, record_of
from samples.states import running


def line(step: int) -> str:
    return line_of("worker-0", Point(float(step), step, {"loss": 1.0}), lambda told: told)


def steps(run: RunFolder) -> list[int | None]:
    return [point.step for point in run.points().get("worker-0", [])]


def a_run(history: Path, name: str, started: float, **more: Any) -> RunFolder:
    run = RunFolder(history / name)
    run.keep_record({**record_of(running(), {}, {}), "id": name, "started_at": started, **more})
    return run


def test_points_are_appended(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "history" / "1-abc")
    run.append([line(1)])
    run.append([line(2), line(3)])
    assert steps(run) == [1, 2, 3]


def test_a_line_that_was_torn_by_a_crash_is_no_point(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "1-abc")
    run.append([line(1), line(2)])
    whole = run.points_file.read_bytes()
    for length in range(len(line(1)) + 1, len(whole) - 1):
        run.points_file.write_bytes(whole[:length])
        assert steps(run) == [1]


def test_what_is_kept_is_for_its_user_alone(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "history" / "1-abc")
    run.append([line(1)])
    run.keep_record({"id": "1-abc"})
    modes = [stat.S_IMODE(p.stat().st_mode) for p in (run.points_file, run.record_file, run.path)]
    assert modes == [0o600, 0o600, 0o700]


def test_nothing_is_known_of_a_run_whose_file_is_damaged(tmp_path: Path) -> None:
    run = a_run(tmp_path, "1-abc", 1.0)
    run.record_file.write_text('{"id": "1-a')
    assert run.record() == {}


def test_the_oldest_runs_are_removed_and_nothing_else(tmp_path: Path) -> None:
    for number in range(1, 8):
        a_run(tmp_path, f"{number}-abc", float(number))
    (tmp_path / "notes").mkdir()
    remove_oldest(tmp_path, 3)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["5-abc", "6-abc", "7-abc", "notes"]


def test_a_run_of_a_number_that_two_lives_of_the_service_have_had_is_the_newer_one(
    tmp_path: Path,
) -> None:
    a_run(tmp_path, "1-old", 1.0)
    newer = a_run(tmp_path, "1-new", 2.0)
    assert run_called(tmp_path, "1") == newer


def test_the_other_one_is_called_by_the_whole_of_its_id(tmp_path: Path) -> None:
    older = a_run(tmp_path, "1-old", 1.0)
    a_run(tmp_path, "1-new", 2.0)
    assert run_called(tmp_path, "1-old") == older


def test_a_link_is_no_run(tmp_path: Path) -> None:
    a_run(tmp_path / "elsewhere", "1-abc", 1.0)
    (tmp_path / "history").mkdir()
    (tmp_path / "history" / "1-abc").symlink_to(tmp_path / "elsewhere" / "1-abc")
    assert runs_in(tmp_path / "history") == []


def test_what_a_person_says_of_a_run_is_in_its_record_and_no_scheduler_writes_over_it(
    tmp_path: Path,
) -> None:
    run = a_run(tmp_path, "1-abc", 1.0)
    assert (run.record()["tags"], run.record()["note"]) == ([], "")
    run.keep_notes(notes_of({"tags": ["paper", "paper", " v2 "], "note": " the best one\n"}))
    a_run(tmp_path, "1-abc", 2.0)
    assert (run.record()["tags"], run.record()["note"]) == (["paper", "v2"], "the best one")


def test_notes_that_a_copy_has_brought_stand_behind_those_that_are_here(tmp_path: Path) -> None:
    run = a_run(tmp_path, "1-abc", 1.0, tags=["of before"], note="there")
    assert run.record()["tags"] == ["of before"]
    run.begin_with_notes(run.record())
    run.keep_notes(notes_of({"tags": [], "note": "here"}))
    run.begin_with_notes({"tags": ["of before"], "note": "there"})
    assert (run.record()["tags"], run.record()["note"]) == ([], "here")


@pytest.mark.parametrize(
    "given",
    [
        [],
        "note",
        {"tags": "a"},
        {"tags": [1]},
        {"tags": [" "]},
        {"tags": ["a,b"]},
        {"tags": ["x" * (TAG_BYTES + 1)]},
        {"tags": [str(number) for number in range(MOST_TAGS + 1)]},
        {"note": None},
        {"note": "\u00e9" * NOTE_BYTES},
    ],
)
def test_notes_that_are_none_or_too_long_are_refused_and_those_of_a_damaged_file_are_none(
    tmp_path: Path, given: Any
) -> None:
    with pytest.raises(ValueError, match="at most 20 tags of 50 bytes"):
        notes_of(given)
    run = a_run(tmp_path, "1-abc", 1.0)
    run.notes_file.write_text(json.dumps(given))
    assert (run.record()["tags"], run.record()["note"]) == ([], "")
