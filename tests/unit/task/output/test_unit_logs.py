"""What is printed of each unit of work has a file of its own."""

import os
from pathlib import Path

import pytest

from dcos_tensorflow.task.output import logs as output_logs
from dcos_tensorflow.task.output.logs import BoundedOutput, UnitLogs


@pytest.fixture
def stdout() -> BoundedOutput:
    """A stream that no file is behind."""
    return BoundedOutput(os.open(os.devnull, os.O_WRONLY), 0, 0)


def printed(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in sorted(folder.iterdir())}


def test_a_unit_s_file_has_its_lines_and_no_other_s(tmp_path: Path, stdout: BoundedOutput) -> None:
    logs = UnitLogs(str(tmp_path), [stdout])
    for number in (3, 4):
        logs.begin(number)
        stdout.write(b"of %d\n" % number)
        logs.end()
        stdout.write(b"between\n")
    assert printed(tmp_path) == {"unit-3.log": "of 3\n", "unit-4.log": "of 4\n"}


def test_the_end_of_a_unit_that_prints_much_is_kept(
    tmp_path: Path, stdout: BoundedOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_logs, "_MOST_BYTES", 4)
    UnitLogs(str(tmp_path), [stdout]).begin(3)
    for line in (b"aa\n", b"bb\n", b"cc\n"):
        stdout.write(line)
    assert printed(tmp_path) == {"unit-3.log": "cc\n", "unit-3.log.1": "bb\n"}


def test_another_attempt_of_a_unit_takes_the_place_of_the_former(
    tmp_path: Path, stdout: BoundedOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_logs, "_MOST_BYTES", 4)
    logs = UnitLogs(str(tmp_path), [stdout])
    logs.begin(3)
    for line in (b"aa\n", b"bb\n"):
        stdout.write(line)
    logs.begin(3)
    assert printed(tmp_path) == {"unit-3.log": ""}


def test_the_files_of_the_newest_units_are_kept_and_none_stays_open(
    tmp_path: Path, stdout: BoundedOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_logs, "_KEPT", 2)
    logs = UnitLogs(str(tmp_path), [stdout])
    before = len(os.listdir("/proc/self/fd"))
    for number in range(5):
        logs.begin(number)
    logs.end()
    assert list(printed(tmp_path)) == ["unit-3.log", "unit-4.log"]
    assert len(os.listdir("/proc/self/fd")) == before
