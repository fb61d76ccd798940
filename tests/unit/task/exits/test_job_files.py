"""What user code puts in the place of a file holds the runner up nowhere, and shows it nothing."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from dcos_tensorflow.task.exits import exit_file
from dcos_tensorflow.task.exits.exit_analysis import ExitReport, job_unusable
from dcos_tensorflow.task.job_files import create, open_regular, replace_text
from dcos_tensorflow.task.output.left_files import SandboxBefore
from dcos_tensorflow.task.output.logs import BoundedOutput
from dcos_tensorflow.task.supervise.process import UserProcess
from dcos_tensorflow.task.supervise.shard_output import NothingWritten, ShardOutput

# A test that waits for a pipe would wait for ever.
pytestmark = pytest.mark.timeout(30)

REPORT: ExitReport = job_unusable("nothing works")


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def a_link_to_the_kernels(path: Path) -> None:
    path.symlink_to("/proc/self/environ")


def a_folder(path: Path) -> None:
    path.mkdir()


TRICKS = [a_pipe, a_link_to_a_device, a_link_to_the_kernels]
Trick = Callable[[Path], None]


@pytest.mark.parametrize("trick", [*TRICKS, a_folder])
def test_only_a_real_file_is_read(tmp_path: Path, trick: Trick) -> None:
    trick(tmp_path / "file")
    with pytest.raises(OSError, match="no file of its own"):
        open_regular(str(tmp_path / "file"))


def test_a_link_to_another_file_of_the_job_is_read(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("x")
    (tmp_path / "link").symlink_to("real")
    with open_regular(str(tmp_path / "link")) as file:
        assert file.read() == b"x"


@pytest.mark.parametrize("trick", TRICKS)
def test_a_new_file_takes_the_place_of_whatever_is_there(tmp_path: Path, trick: Trick) -> None:
    trick(tmp_path / "file")
    with create(str(tmp_path / "file")) as file:
        file.write(b"x")
    assert (tmp_path / "file").read_text() == "x"
    assert not (tmp_path / "file").is_symlink()


def test_a_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("kept")
    (tmp_path / "file.tmp").symlink_to("precious")
    replace_text(str(tmp_path / "file"), "new")
    assert (tmp_path / "precious").read_text() == "kept"
    assert (tmp_path / "file").read_text() == "new"


@pytest.mark.parametrize("trick", TRICKS)
def test_the_report_of_an_end_is_written_whatever_lies_in_its_place(
    tmp_path: Path, trick: Trick
) -> None:
    for name in ("task-exit.json", "task-exit.json.tmp"):
        trick(tmp_path / name)
    exit_file.write_report(str(tmp_path), REPORT, pytest.fail)
    assert json.loads((tmp_path / "task-exit.json").read_text())["summary"] == "nothing works"


@pytest.fixture
def stdout(tmp_path: Path) -> BoundedOutput:
    """The output of a task whose file is full."""
    file = (tmp_path / "stdout").open("ab", buffering=0)
    output = BoundedOutput(os.dup(file.fileno()), max_bytes=10, keep=1)
    file.close()
    output.write(b"first\n")
    return output


@pytest.mark.parametrize("trick", TRICKS)
def test_what_takes_the_place_of_the_log_is_not_copied(
    tmp_path: Path, stdout: BoundedOutput, trick: Trick
) -> None:
    (tmp_path / "stdout").unlink()
    trick(tmp_path / "stdout")
    stdout.write(b"second\n")
    assert not (tmp_path / "stdout.1").exists()


@pytest.mark.parametrize("trick", TRICKS)
def test_the_copy_of_a_log_takes_the_place_of_whatever_is_there(
    tmp_path: Path, stdout: BoundedOutput, trick: Trick
) -> None:
    trick(tmp_path / "stdout.1")
    stdout.write(b"second\n")
    assert (tmp_path / "stdout.1").read_bytes() == b"first\n"


def test_another_file_in_the_place_of_the_log_is_not_copied(
    tmp_path: Path, stdout: BoundedOutput
) -> None:
    (tmp_path / "other").write_text("the runner may read it")
    (tmp_path / "stdout").unlink()
    (tmp_path / "stdout").symlink_to("other")
    stdout.write(b"second\n")
    assert not (tmp_path / "stdout.1").exists()


@pytest.mark.parametrize("trick", [a_pipe, a_link_to_a_device])
def test_a_shards_output_that_is_no_file_is_nothing(tmp_path: Path, trick: Trick) -> None:
    output = ShardOutput("found/part-0", str(tmp_path), "1-worker-0-1")
    output.prepare()
    trick(Path(output.path))
    with pytest.raises(NothingWritten):
        output.publish()
    with pytest.raises(NothingWritten):
        output.publish(lambda *_: pytest.fail("it was put into S3"))


def test_a_sandbox_of_folders_is_not_walked_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dcos_tensorflow.task.output.left_files._MOST_FILES", 20)
    sandbox = SandboxBefore(str(tmp_path), ())
    for number in range(30):
        (tmp_path / f"folder-{number}").mkdir()
    (tmp_path / "folder-0" / "file").write_text("x")
    assert sandbox.left().count == 0


@pytest.mark.parametrize("line", ["\u00b2", "9" * 5000, "-1", "1 ", ""])
def test_a_word_that_is_no_number_of_a_start_ends_no_thread(line: str) -> None:
    process = cast(UserProcess, SimpleNamespace(_outputs=[]))
    UserProcess._heard(process, f"{line}\n".encode(), pytest.fail)
