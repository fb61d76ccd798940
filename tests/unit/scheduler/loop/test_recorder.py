"""The last turns are held without a gap, and in a bounded place."""

from collections.abc import Sequence

from dcos_tensorflow.core.kept.recording import RecordedTurn
from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.core.model.events import Event, RunnerReported, Tick
from dcos_tensorflow.core.step import step
from dcos_tensorflow.scheduler.loop.recorder import PART_BYTES, PART_TURNS, TURN_BYTES, Recorder
from samples.states import NOW, a_state

TICK = (Tick(),)


def turn(number: int, events: Sequence[Event] = TICK, writes: Sequence[Write] = ()) -> RecordedTurn:
    return RecordedTurn(f"a-{number}", NOW + number, events, writes, (), "")


def numbers(recorder: Recorder) -> list[str]:
    found = recorder.recording()
    return [each.id for each in found.turns] if found is not None else []


def test_nothing_is_recorded_before_the_first_turn() -> None:
    assert Recorder().recording() is None


def test_a_recording_begins_with_the_state_before_its_first_turn() -> None:
    recorder, first = Recorder(), a_state()
    recorder.note(first, turn(1))
    recorder.note(step(first, TICK, NOW).state, turn(2))
    found = recorder.recording()
    assert found is not None
    assert found.state is first


def test_older_turns_go_and_those_that_stay_follow_each_other() -> None:
    recorder, states = Recorder(), [a_state() for _ in range(4)]
    for number in range(4 * PART_TURNS):
        recorder.note(states[number // PART_TURNS], turn(number))
    found = recorder.recording()
    assert found is not None
    assert found.state is states[2]
    assert numbers(recorder) == [f"a-{n}" for n in range(2 * PART_TURNS, 4 * PART_TURNS)]


def test_many_bytes_let_older_turns_go_sooner() -> None:
    recorder, write = Recorder(), Write("Tasks/worker-0/TaskInfo", bytes(PART_BYTES // 2))
    for number in range(20):
        recorder.note(a_state(), turn(number, writes=(write,)))
    assert numbers(recorder) == ["a-16", "a-17", "a-18", "a-19"]


def test_reports_of_a_hostile_task_are_counted_with_their_bytes() -> None:
    recorder = Recorder()
    reports = [RunnerReported(f"t{n}", {"summary": "x" * 900_000}) for n in range(10)]
    for number in range(50):
        recorder.note(a_state(), turn(number, events=tuple(reports)))
    assert recorder.size < 2 * (PART_BYTES + 10_000_000)


def test_after_a_turn_that_is_too_large_the_recording_begins_anew() -> None:
    recorder = Recorder()
    recorder.note(a_state(), turn(1))
    recorder.note(a_state(), turn(2, writes=(Write("x", bytes(TURN_BYTES + 1)),)))
    assert numbers(recorder) == []
    recorder.note(a_state(), turn(3))
    assert numbers(recorder) == ["a-3"]
