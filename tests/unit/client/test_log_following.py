"""Following logs: every line of every attempt once and in order, whatever comes in between."""

import threading
from collections.abc import Callable

import pytest

from dcos_tensorflow.client.errors import CliError
from dcos_tensorflow.client.following import logs
from dcos_tensorflow.client.following.logs import FollowedState, Follower
from dcos_tensorflow.client.following.task_output import (
    Attempt,
    Lost,
    NotThere,
    OutputPart,
    Unreadable,
)

FIRST = Attempt("worker-0", "job__worker-0__1", "S1")
SECOND = Attempt("worker-0", "job__worker-0__2", "S2")
OTHER = Attempt("worker-1", "job__worker-1__1", "S1")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(logs, "_AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(logs, "_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(logs, "GIVE_UP_SECONDS", 0.1)


class Files:
    """What attempts have written so far; an exception is raised in a file's place."""

    def __init__(self) -> None:
        self.written: dict[tuple[str, str], bytes | Exception] = {}
        self.reads: dict[str, int] = {}

    def write(self, attempt: Attempt, text: str, file: str = "stdout") -> None:
        before = self.written.get((attempt.task_id, file), b"")
        assert isinstance(before, bytes)
        self.written[attempt.task_id, file] = before + text.encode()

    def read(self, attempt: Attempt, file: str, offset: int, length: int = 10) -> OutputPart:
        found = self.written.get((attempt.task_id, file), NotThere("there is no such file"))
        self.reads[attempt.task_id] = self.reads.get(attempt.task_id, 0) + 1
        if isinstance(found, Exception):
            raise found
        data = found[offset : offset + length]
        return OutputPart(data.decode(), offset + len(data), len(found))


class Job:
    """A job that stands, look by look, as the test says; the last one stays."""

    def __init__(self, files: Files, *looks: FollowedState | Callable[[], FollowedState]) -> None:
        self.files = files
        self.looks = list(looks)
        self.output_of = lambda: self.files

    def look(self) -> FollowedState:
        standing = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        return standing if isinstance(standing, FollowedState) else standing()

    def output(self) -> Files:
        return self.output_of()


class Screen:
    """Keeps what is shown."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.notes: list[str] = []
        self.is_gone = False

    def line(self, attempt: Attempt, text: str) -> None:
        self.lines.append(f"{attempt.task_id.rpartition('__')[2]}: {text}")

    def note(self, text: str) -> None:
        self.notes.append(text)

    def gone(self) -> bool:
        return self.is_gone


def standing(*attempts: Attempt, done: bool = False) -> FollowedState:
    return FollowedState({each.task: each for each in attempts}, done)


def followed(job: Job, lines: int = 10, screen: Screen | None = None) -> Screen:
    screen = screen or Screen()
    worker = threading.Thread(target=Follower(job, screen, "stdout", lines).run, daemon=True)
    worker.start()
    worker.join(20)
    assert not worker.is_alive()
    return screen


def test_a_job_that_is_done_is_shown_from_its_last_lines_on() -> None:
    files = Files()
    files.write(FIRST, "a\nb\nc\n")
    assert followed(Job(files, standing(FIRST, done=True)), lines=2).lines == ["1: b", "1: c"]


def test_what_is_written_meanwhile_is_shown_once() -> None:
    files = Files()
    files.write(FIRST, "before\n")

    def more() -> FollowedState:
        files.write(FIRST, "a line that is longer than a part\nand ")
        return standing(FIRST)

    def rest() -> FollowedState:
        files.write(FIRST, "another\n")
        return standing(FIRST, done=True)

    screen = followed(Job(files, standing(FIRST), more, rest, standing(FIRST, done=True)))
    assert screen.lines == ["1: before", "1: a line that is longer than a part", "1: and another"]


def test_the_next_attempt_is_shown_from_its_beginning_when_the_one_before_is_at_its_end() -> None:
    files = Files()
    files.write(FIRST, "a\n")

    def replaced() -> FollowedState:
        files.write(FIRST, "last words")
        files.write(SECOND, "x\n" * 20)
        return standing(SECOND)

    screen = followed(Job(files, standing(FIRST), replaced, standing(SECOND, done=True)), lines=1)
    assert screen.lines == ["1: a", "1: last words", *["2: x"] * 20]


def test_attempts_that_came_and_went_keep_their_order() -> None:
    files = Files()
    third = Attempt("worker-0", "job__worker-0__3", "S1")
    for number, attempt in enumerate((FIRST, SECOND, third)):
        files.write(attempt, f"attempt {number}\n")
    job = Job(files, standing(FIRST), standing(SECOND), standing(third, done=True))
    assert followed(job).lines == ["1: attempt 0", "2: attempt 1", "3: attempt 2"]


def test_an_agent_that_does_not_answer_keeps_no_other_task_back() -> None:
    files = Files()
    answers = threading.Event()
    files.write(FIRST, "from the slow one\n")
    files.write(OTHER, "a\n")
    read = files.read

    def slow(attempt: Attempt, file: str, offset: int, length: int = 10) -> OutputPart:
        if attempt is FIRST:
            answers.wait(10)
        return read(attempt, file, offset, length)

    files.read = slow  # type: ignore[method-assign]
    screen = Screen()

    class Watched(Screen):
        def line(self, attempt: Attempt, text: str) -> None:
            screen.line(attempt, text)
            if attempt is OTHER:
                answers.set()

    Follower(Job(files, standing(FIRST, OTHER, done=True)), Watched(), "stdout", 10).run()
    assert screen.lines == ["1: a", "1: from the slow one"]


def test_a_scheduler_that_is_away_is_waited_for_and_told_once() -> None:
    files = Files()
    files.write(FIRST, "a\n")
    away = FollowedState(away="The scheduler does not answer.")

    def back() -> FollowedState:
        files.write(FIRST, "b\n")
        return standing(FIRST, done=True)

    screen = followed(Job(files, standing(FIRST), away, away, back, standing(FIRST, done=True)))
    assert (screen.lines, screen.notes) == (["1: a", "1: b"], [away.away])


def test_what_cannot_be_read_for_a_moment_is_shown_later() -> None:
    files = Files()
    files.written[FIRST.task_id, "stdout"] = Unreadable("no answer in time")

    def answers() -> FollowedState:
        files.written.clear()
        files.write(FIRST, "a\n")
        return standing(FIRST, done=True)

    looks = (standing(FIRST), standing(FIRST), answers, standing(FIRST, done=True))
    assert followed(Job(files, *looks)).lines == ["1: a"]


def test_the_end_of_an_attempt_on_a_lost_agent_is_given_up_with_a_note() -> None:
    files = Files()
    files.write(FIRST, "a\n")
    files.write(SECOND, "b\n")

    def lost() -> FollowedState:
        files.written[FIRST.task_id, "stdout"] = Unreadable("agent S1: no answer in time")
        return standing(SECOND, done=True)

    screen = followed(Job(files, standing(FIRST), standing(FIRST), lost, lost))
    assert screen.lines[-1] == "2: b"
    assert screen.notes == [
        "worker-0: the rest of stdout is not shown: agent S1: no answer in time"
    ]


def test_what_can_never_be_read_is_given_up_at_once() -> None:
    files = Files()
    files.written[FIRST.task_id, "stdout"] = Lost("its sandbox is not on this machine")
    screen = followed(Job(files, standing(FIRST, done=True)))
    assert "its sandbox is not on this machine" in screen.notes[0]


def test_a_task_that_printed_nothing_is_nothing_to_wait_for() -> None:
    assert followed(Job(Files(), standing(FIRST, done=True))).lines == []


def test_what_a_task_printed_just_before_its_end_is_shown() -> None:
    files = Files()
    asked, over = threading.Event(), threading.Event()
    read = files.read

    def too_early(attempt: Attempt, file: str, offset: int, length: int = 10) -> OutputPart:
        if over.is_set():
            return read(attempt, file, offset, length)
        asked.set()
        over.wait(10)
        raise NotThere("there is no such file")

    def ends() -> FollowedState:
        assert asked.wait(10)
        files.write(FIRST, "a\n")
        over.set()
        return standing(FIRST, done=True)

    files.read = too_early  # type: ignore[method-assign]
    screen = followed(Job(files, standing(FIRST), ends, standing(FIRST, done=True)))
    assert (screen.lines, screen.notes) == (["1: a"], [])


def test_a_file_that_was_cut_is_read_from_its_copy_first() -> None:
    files = Files()
    files.write(FIRST, "a\nb\n")
    screen = Screen()

    def rotated() -> FollowedState:
        if "1: b" not in screen.lines:
            return standing(FIRST)
        files.written[FIRST.task_id, "stdout.1"] = b"a\nb\nc\nd\n"
        files.written[FIRST.task_id, "stdout"] = b"e\n"
        return standing(FIRST, done=True)

    followed(Job(files, rotated), screen=screen)
    assert screen.lines == ["1: a", "1: b", "1: c", "1: d", "1: e"]


CONSOLE = "task-console.log"


def printed(job: Job) -> list[str]:
    """Return all that a job's tasks print to both streams, followed to its end."""
    screen = Screen()
    worker = threading.Thread(target=Follower(job, screen, None, 10).run, daemon=True)
    worker.start()
    worker.join(20)
    assert not worker.is_alive()
    return screen.lines


def test_without_a_file_both_streams_are_shown_as_the_runner_has_them_together() -> None:
    files = Files()
    for file, text in (("stdout", "a\n"), ("stderr", "b\n"), (CONSOLE, "a\nb\n")):
        files.write(FIRST, text, file)
    assert printed(Job(files, standing(FIRST, done=True))) == ["1: a", "1: b"]


def test_what_stands_in_a_stream_before_the_runner_begins_is_shown_once_and_first() -> None:
    files = Files()
    files.write(FIRST, "by the executor", "stdout")

    def begun() -> FollowedState:
        if files.reads.get(FIRST.task_id, 0) < 4:
            return standing(FIRST)
        files.write(FIRST, "\na\n", "stdout")
        files.write(FIRST, "a\nb\n", CONSOLE)
        looks.append(standing(FIRST, done=True))
        return looks[0]

    looks: list[FollowedState] = []
    job = Job(files, lambda: looks[0] if looks else begun())
    assert printed(job) == ["1: by the executor", "1: a", "1: b"]


@pytest.mark.parametrize("file", ["stdout", "stderr"])
def test_of_an_attempt_without_a_runner_that_has_them_together_the_one_used_is_shown(
    file: str,
) -> None:
    files = Files()
    files.write(FIRST, "", "stdout")
    files.write(FIRST, "no such program\n", file)
    assert printed(Job(files, standing(FIRST, done=True))) == ["1: no such program"]


def test_of_an_attempt_that_has_printed_nothing_nothing_is_shown() -> None:
    assert printed(Job(Files(), standing(FIRST, done=True))) == []


def test_without_a_reader_it_ends() -> None:
    screen = Screen()
    screen.is_gone = True
    with pytest.raises(BrokenPipeError):
        Follower(Job(Files(), standing(FIRST)), screen, "stdout", 10).run()


def test_what_the_scheduler_refuses_ends_it() -> None:
    files = Files()
    files.written[FIRST.task_id, "stdout"] = CliError("it holds a secret")
    with pytest.raises(CliError, match="it holds a secret"):
        Follower(Job(files, standing(FIRST)), Screen(), "stdout", 10).run()
