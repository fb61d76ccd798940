"""What a scheduler has recorded is decided again by the core, and what is not is told."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.api import recorded
from dcos_tensorflow.core.kept.recording import RecordedTurn, Recording
from dcos_tensorflow.core.model.events import ConfigurationChanged, Event
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.step import Decision
from dcos_tensorflow.scheduler.loop.recorder import Recorder
from samples.states import TOKEN_KEY
from samples.telltale_state import CONTEXT_SECRET, SECRETS, SIGNATURE, URL_SECRET, telltale
from simulated.mesos import Cluster
from simulated.scheduler import Scheduler, fail, recover, small_job

sys.path.insert(0, str(Path(__file__).parents[1]))

import replay
from history import FaultyScheduler, History
from slot_history import SlotHistory
from volume_history import VolumeHistory

SCRIPT = Path(replay.__file__)


class Recorded(Scheduler):
    """A scheduler that records its turns, as the event loop does."""

    def __init__(self, spec: Any) -> None:
        self.recorder = Recorder()
        super().__init__(spec, Cluster())
        self.cluster.subscribe()

    def handle(self, *together: Event) -> Decision:
        before, now = self.state, self.cluster.now
        decision = super().handle(*together)
        note(self.recorder, before, together, decision, now)
        return decision


def note(
    recorder: Recorder,
    before: ServiceState,
    together: tuple[Event, ...],
    decision: Decision,
    now: float,
) -> None:
    decided = (decision.writes, decision.actions, decision.why)
    recorder.note(before, RecordedTurn(f"a-{int(now * 10)}", now, together, *decided))


def text(recording: Recording | None, state: ServiceState | None = None) -> str:
    """Return what an operator gets of a recording."""
    assert recording is not None
    reply = recorded.record(state or recording.state, recording, ())
    assert reply.then is not None
    return bytes(reply.then().body).decode()


def written(scheduler: Recorded, folder: Path) -> Path:
    file = folder / "turns.json"
    file.write_text(text(scheduler.recorder.recording(), scheduler.state))
    return file


def played(file: Path) -> list[replay.DifferentTurn]:
    return list(replay.play(*replay.read(file)))


@pytest.fixture
def killed() -> Recorded:
    """A job whose tasks were killed, that has gone on, and whose secret option has changed."""
    roles = tuple(replace(r, env={"DB_PASSWORD": "hunter2-and-more"}) for r in small_job().roles)
    spec = small_job(roles=roles)
    scheduler = Recorded(spec)
    scheduler.run(2)
    scheduler.cluster.run_everything()
    scheduler.run(3)
    for name in ("worker-1", "ps-0"):
        fail(scheduler, name, f"Container exited: {SECRETS['DB_PASSWORD']}")
        recover(scheduler)
    other = (replace(roles[0], env={"DB_PASSWORD": "another-secret-value"}), *roles[1:])
    scheduler.handle(ConfigurationChanged(replace(spec, roles=other)))
    recover(scheduler)
    return scheduler


def test_a_job_with_kills_is_decided_again_by_another_process(
    killed: Recorded, tmp_path: Path
) -> None:
    command = [sys.executable, str(SCRIPT), str(written(killed, tmp_path))]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "the core decides the same" in ended.stdout, ended.stdout + ended.stderr
    assert ended.returncode == 0


@pytest.mark.parametrize("kind", [History, SlotHistory, VolumeHistory])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_history_of_faults_is_decided_again(
    kind: Callable[[int], History], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorders: list[Recorder] = []
    last: list[ServiceState | None] = [None]
    after_commit = FaultyScheduler.after_commit

    def noted(scheduler: FaultyScheduler, before: ServiceState, decision: Decision) -> None:
        if before is not last[0]:
            # Another life of the scheduler: it knows nothing of the turns before.
            recorders.append(Recorder())
        now = decision.state.subscription.stepped_at
        note(recorders[-1], before, scheduler._events, decision, now)
        last[0] = decision.state
        after_commit(scheduler, before, decision)

    monkeypatch.setattr(FaultyScheduler, "after_commit", noted)
    kind(seed).play()
    for recorder in recorders:
        document = json.loads(text(recorder.recording()))
        assert list(replay.play(*replay.recording.read(document))) == []


def test_another_decision_is_told_with_its_turn_its_events_and_the_part(
    killed: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(killed, tmp_path)
    monkeypatch.setattr(
        "dcos_tensorflow.core.offers.launching.launch_task", _launched_with("PLANTED")
    )
    first = played(file)[0]
    assert first.turn.startswith("a-")
    assert any(event.startswith("OffersReceived") for event in first.events)
    assert {d.part for d in first.differences} >= {"actions[0][1].launches[0].env.PLANTED"}
    assert "PLANTED: recorded None, now 'yes'" in str(first)


def _launched_with(name: str) -> Callable[..., Any]:
    from dcos_tensorflow.core.cluster.launch import launch_task

    def launched(*given: Any, **named: Any) -> Any:
        task = launch_task(*given, **named)
        return replace(task, env={**task.env, name: "yes"})

    return launched


def test_a_step_that_fails_is_told(
    killed: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(killed, tmp_path)

    def broken(*_: Any) -> None:
        raise KeyError("worker-9")

    monkeypatch.setattr("dcos_tensorflow.core.step.absorb", broken)
    assert "KeyError: 'worker-9'" in str(played(file)[-1])


def test_no_secret_is_in_a_recording(killed: Recorded) -> None:
    state = telltale()
    leaking = Recording(state, (RecordedTurn("a-1", 1.0, (), (), (), state.only_gang.job.why),))
    found = text(leaking) + text(killed.recorder.recording(), killed.state)
    secrets = [*SECRETS.values(), *URL_SECRET.split(":"), SIGNATURE, CONTEXT_SECRET, TOKEN_KEY]
    assert [secret for secret in (*secrets, "another-secret-value") if secret in found] == []


def test_a_number_that_is_none_is_played_as_it_was(tmp_path: Path) -> None:
    scheduler = Recorded(small_job())
    scheduler.run(2)
    scheduler.cluster.run_everything()
    task = scheduler.cluster.id_of("worker-0")
    scheduler.cluster.tasks[task].runner.progress = {"step": 1, "loss": float("nan")}
    scheduler.run(3)
    assert played(written(scheduler, tmp_path)) == []


BAD = {
    "nothing": "",
    "no JSON": "{",
    "no recording": "[]",
    "a page": '{"turns": 5}',
    "another format": '{"turns": [], "format": 99}',
    "no state": '{"turns": [], "format": 1}',
    "deep": '{"turns":' + "[" * 100_000 + "]" * 100_000 + "}",
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD.keys())
def test_a_file_that_is_no_recording_is_refused(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "turns.json"
    file.write_text(content)
    assert replay.main([str(file)]) == 2
    assert "is no recording" in capsys.readouterr().err


def change(document: Any, *path: Any, to: Any) -> None:
    for step in path[:-1]:
        document = document[step]
    document[path[-1]] = to


WRONG: dict[str, tuple[Any, ...]] = {
    "state.spec: it asks for more": ("state", "spec", "roles", 0, "count", 10**12),
    "turns[0].events[0]": ("turns", 0, "events", [["Nothing", {}]]),
    "turns[0].now": ("turns", 0, "now", "soon"),
    "state.gangs.main.tasks.ps-0": ("state", "gangs", "main", "tasks", "ps-0", 5),
    "state.gangs.main: field": ("state", "gangs", "main", {}),
}


@pytest.mark.parametrize("problem", WRONG)
def test_what_a_hand_has_changed_is_named(problem: str, killed: Recorded, tmp_path: Path) -> None:
    file = written(killed, tmp_path)
    document = json.loads(file.read_text())
    *path, value = WRONG[problem]
    change(document, *path, to=value)
    file.write_text(json.dumps(document))
    with pytest.raises(replay.NoRecording) as refused:
        replay.read(file)
    assert problem in str(refused.value)


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "turns.json"
    with file.open("wb") as huge:
        huge.truncate(replay.MOST_BYTES + 1)
    with pytest.raises(replay.NoRecording, match="bytes"):
        replay.read(file)
