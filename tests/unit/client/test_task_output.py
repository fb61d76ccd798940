"""What tasks have printed: last lines, whole lines, and the sandboxes that lie on this machine."""

from pathlib import Path

import pytest

from dcos_tensorflow.client.api_client import SchedulerAway, SchedulerClient
from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.following.job_output import FollowedOutput
from dcos_tensorflow.client.following.logs import Follower
from dcos_tensorflow.client.following.task_output import (
    Attempt,
    FolderOutput,
    LineCutter,
    Lost,
    NotThere,
    last_lines,
    refuse_nonsense,
    whole_file,
)
from dcos_tensorflow.client.service_choice import KnownService
from dcos_tensorflow.client.work_directory import ServiceDirectory

TASK_ID = "job__worker-0__2"
EARLIER = "job__worker-0__1"


def sandbox(root: Path, agent: str, task_id: str) -> Path:
    path = root / f"cluster/work/agents/{agent}/slaves/S/frameworks/F/executors/{task_id}/runs/r"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def output(tmp_path: Path) -> FolderOutput:
    """A service's folder with the sandbox of one task, and of an attempt before it."""
    directory = ServiceDirectory(tmp_path)
    directory.task_logs.mkdir()
    sandbox(tmp_path, "a1", EARLIER).joinpath("stdout").write_text("before\n")
    last = sandbox(tmp_path, "a2", TASK_ID)
    (last / "stdout").write_text("a\nb\nc\n")
    (directory.task_logs / "worker-0").symlink_to(last)
    return FolderOutput(directory)


@pytest.fixture
def attempt(output: FolderOutput) -> Attempt:
    found = output.attempt("worker-0")
    assert found is not None
    return found


def write(tmp_path: Path, text: str) -> None:
    (tmp_path / "tasks/worker-0/stdout").write_text(text)


def test_a_whole_file_has_what_was_copied_out_of_it_when_it_was_full(
    tmp_path: Path, output: FolderOutput, attempt: Attempt
) -> None:
    assert list(whole_file(output, attempt, "stdout")) == ["a", "b", "c"]
    (tmp_path / "tasks/worker-0/stdout.1").write_text("x\n" * 100_000 + "y")
    found = list(whole_file(output, attempt, "stdout"))
    assert (len(found), found[-3:]) == (100_003, ["ya", "b", "c"])
    with pytest.raises(NotThere):
        list(whole_file(output, attempt, "nothing"))


class TestFolder:
    def test_it_knows_its_tasks_and_their_attempts(self, output: FolderOutput) -> None:
        assert output.tasks() == ["worker-0"]
        assert output.attempt("worker-0") == Attempt("worker-0", TASK_ID)
        assert output.attempt("worker-1") is None

    def test_an_earlier_attempt_is_found_beside_the_last(self, output: FolderOutput) -> None:
        part = output.read(Attempt("worker-0", EARLIER, "S"), "stdout", 0)
        assert (part.text, part.at_end) == ("before\n", True)

    def test_an_attempt_that_is_not_here_is_lost(self, output: FolderOutput) -> None:
        with pytest.raises(Lost):
            output.read(Attempt("worker-0", "job__worker-0__9"), "stdout", 0)

    def test_a_file_that_is_not_there_is_told(self, output: FolderOutput, attempt: Attempt) -> None:
        with pytest.raises(NotThere):
            output.read(attempt, "stderr", 0)

    def test_nothing_outside_the_sandbox_is_read(
        self, output: FolderOutput, attempt: Attempt, tmp_path: Path
    ) -> None:
        (tmp_path / "secret").write_text("x")
        (tmp_path / "tasks/worker-0/link").symlink_to(tmp_path / "secret")
        with pytest.raises(NotThere):
            output.read(attempt, "link", 0)

    def test_a_part_that_is_not_the_end_ends_with_a_line(
        self, output: FolderOutput, attempt: Attempt
    ) -> None:
        part = output.read(attempt, "stdout", 0, 3)
        assert (part.text, part.next_offset, part.size) == ("a\n", 2, 6)


def test_a_job_that_began_and_ended_between_two_looks_is_shown(
    tmp_path: Path, output: FolderOutput
) -> None:
    def away() -> SchedulerClient:
        raise SchedulerAway("no scheduler")

    directory = ServiceDirectory(tmp_path)
    directory.last_end.write_text('{"exit_code": 0}')
    job = FollowedOutput(KnownService("job", directory, away), ())
    shown: list[str] = []

    class Lines:
        def line(self, attempt: Attempt, text: str) -> None:
            shown.append(f"{attempt.task} {text}")

        def note(self, text: str) -> None:
            raise AssertionError(text)

        def gone(self) -> bool:
            return False

    Follower(job, Lines(), "stdout", 100).run()
    assert shown == ["worker-0 a", "worker-0 b", "worker-0 c"]


class TestLastLines:
    @pytest.mark.parametrize(
        ("lines", "text"), [(1, "c\n"), (2, "b\nc\n"), (9, "a\nb\nc\n"), (0, "")]
    )
    def test_they_are_the_last(
        self, output: FolderOutput, attempt: Attempt, lines: int, text: str
    ) -> None:
        part = last_lines(output, attempt, "stdout", lines)
        assert (part.text, part.next_offset) == (text, 6)

    def test_an_unfinished_one_comes_with_them(
        self, output: FolderOutput, attempt: Attempt, tmp_path: Path
    ) -> None:
        write(tmp_path, "a\nb\nepoch 1")
        assert last_lines(output, attempt, "stdout", 1).text == "b\nepoch 1"

    def test_of_a_long_file_only_the_end_is_read(
        self, output: FolderOutput, attempt: Attempt, tmp_path: Path
    ) -> None:
        write(tmp_path, "".join(f"line {n}\n" for n in range(200_000)))
        assert last_lines(output, attempt, "stdout", 2).text == "line 199998\nline 199999\n"

    def test_many_lines_take_more_of_the_end(
        self, output: FolderOutput, attempt: Attempt, tmp_path: Path
    ) -> None:
        write(tmp_path, "".join(f"line {n}\n" for n in range(50_000)))
        text = last_lines(output, attempt, "stdout", 10_000).text
        assert text.split("\n")[0] == "line 40000"
        assert text.count("\n") == 10_000


class TestLines:
    def test_they_are_cut_at_their_ends_only(self) -> None:
        lines = LineCutter()
        assert lines.whole("a\nb") == ["a"]
        assert lines.whole("c\r\n") == ["bc"]
        assert lines.rest() == []

    def test_the_last_one_may_have_no_end(self) -> None:
        lines = LineCutter()
        assert (lines.whole("a"), lines.rest(), lines.rest()) == ([], ["a"], [])

    def test_one_without_an_end_takes_no_memory_for_ever(self) -> None:
        assert LineCutter().whole("x" * 100_000) == ["x" * 100_000]

    def test_of_a_progress_bar_the_last_state_is_a_line(self) -> None:
        lines = LineCutter()
        assert lines.whole("Epoch 1/2\n 1/45 loss: 2\b\b") == ["Epoch 1/2"]
        assert lines.whole("\b\r 9/45 loss: 1") == []
        assert lines.whole("\r45/45 loss: 0.5\nend\n") == ["45/45 loss: 0.5", "end"]

    def test_a_bar_that_is_still_drawn_is_shown_as_it_is(self) -> None:
        lines = LineCutter()
        lines.whole("\r 1/45 loss: 2\r 9/45 loss: 1")
        assert lines.rest() == [" 9/45 loss: 1"]

    def test_the_states_of_a_long_bar_take_no_memory_and_no_lines(self) -> None:
        lines = LineCutter()
        bar = "".join(f"\r{n:5}/20000 - loss: 0.5" for n in range(1, 20001))
        shown = []
        for start in range(0, len(bar), 999):
            shown += lines.whole(bar[start : start + 999])
        assert shown + lines.whole("\n") == ["20000/20000 - loss: 0.5"]


@pytest.mark.parametrize("file", ["", "/etc/passwd", "../x", "a/../b", "a//b"])
def test_a_file_that_can_be_in_no_sandbox_is_refused(file: str) -> None:
    with pytest.raises(CliError, match="no path below a sandbox"):
        refuse_nonsense(file)
