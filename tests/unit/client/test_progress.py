"""Progress as plain lines and as a live view."""

import io
import sys
from dataclasses import replace

import pytest
from rich.console import Console

from dcos_tensorflow.client.following.job import PlainView
from dcos_tensorflow.client.following.live_progress import LiveProgress, render
from dcos_tensorflow.client.following.plain_progress import (
    PROGRESS_SECONDS,
    WAITING_SECONDS,
    PlainProgress,
)
from dcos_tensorflow.client.snapshot import Snapshot, snapshot_of
from dcos_tensorflow.core.model.job import JobPhase, Outcome, Verdict
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.service_spec import TaskRole
from samples.states import (
    NOW,
    a_record,
    a_role,
    a_spec,
    a_state,
    an_incident,
    failed,
    gang,
    running,
)


def training(step, state=None):
    state = state or running()
    task_id = state.tasks["worker-0"].task_id
    report = {"state": "running", "progress": {"step": step, "loss": 0.25, "accuracy": 0.5}}
    others = {record.task_id: {"state": "running"} for record in state.tasks.values()}
    reports = {**others, task_id: report}
    return snapshot_of(a_state(JobPhase.RUNNING, state.tasks.values(), reports=reports))


def waiting(reason):
    return snapshot_of(a_state(misfits={"worker-0": reason}))


def text(lines):
    return "\n".join(lines)


def test_nothing_is_said_twice():
    progress = PlainProgress()
    assert progress.lines(training(1), NOW)
    assert progress.lines(training(1), NOW + 100) == []


def test_every_line_begins_with_the_time_of_day():
    assert all(line[2] == line[5] == ":" for line in PlainProgress().lines(training(1), NOW))


def test_a_change_of_phase_is_told_with_its_reason():
    state = a_state(JobPhase.BACKING_OFF, job={"why": "it starts again in 2.0 s"})
    assert "backing off: it starts again in 2.0 s" in text(
        PlainProgress().lines(snapshot_of(state), NOW)
    )


def with_reports(**states):
    """A running job whose task runners say what their processes do."""
    known = running()
    reports = {
        known.tasks[name.replace("_", "-")].task_id: {"state": said}
        for name, said in states.items()
    }
    return snapshot_of(a_state(JobPhase.RUNNING, known.tasks.values(), reports=reports))


@pytest.mark.parametrize("said", ["waiting", "preparing"])
def test_a_job_is_said_to_run_once_its_processes_do(said):
    progress = PlainProgress()
    begun = with_reports(ps_0="running", worker_0="running", worker_1=said)
    assert "running:" not in text(progress.lines(begun, NOW))
    all_run = with_reports(ps_0="running", worker_0="running", worker_1="running")
    lines = progress.lines(all_run, NOW + 1)
    assert "running:" in lines[-1]


def test_what_a_task_is_prepared_with_is_told_when_it_changes():
    known = running()
    progress = PlainProgress()

    def told(summary, at):
        report = {"state": "preparing", "summary": summary}
        reports = {known.tasks["worker-0"].task_id: report}
        state = a_state(JobPhase.RUNNING, known.tasks.values(), reports=reports)
        lines = text(progress.lines(snapshot_of(state), at))
        return "worker-0 preparing: " + summary in lines

    assert told("Makes an environment with TensorFlow 2.15.1", NOW)
    assert not told("Makes an environment with TensorFlow 2.15.1", NOW + 60)
    assert told("Makes an environment with service.requirements", NOW + 70)


def test_a_first_report_is_waited_for_but_not_for_ever():
    known = with_reports(ps_0="running", worker_0="running")
    asked_at = known.job["tasks"]["worker-1"]["changed_at"]
    assert known.standing(asked_at + 1)[0] == "starting"
    assert known.standing(asked_at + 60)[0] == "running"


def test_a_tensorboard_that_comes_up_keeps_no_job_from_running():
    said = {"ps_0": "running", "worker_0": "running", "worker_1": "running"}
    assert with_reports(**said, tensorboard_0="preparing").standing(NOW)[0] == "running"


def test_a_job_is_done_after_the_end_of_its_last_task():
    progress = PlainProgress()
    progress.lines(snapshot_of(running()), NOW)
    lines = progress.lines(snapshot_of(failed()), NOW + 1)
    ends = [n for n, line in enumerate(lines) if " ended" in line or " failed" in line]
    (done,) = [n for n, line in enumerate(lines) if "done" in line]
    assert len(ends) >= 3
    assert max(ends) <= done


def test_a_tasks_last_numbers_come_before_its_end():
    progress = PlainProgress()
    progress.lines(training(1), NOW)
    state = running()
    record = state.tasks["worker-0"]
    report = {"state": "exited", "progress": {"step": 2}}
    ended = replace(record, state=TaskState.FINISHED)
    tasks = {**state.tasks, "worker-0": ended}
    snapshot = snapshot_of(
        a_state(JobPhase.RUNNING, tasks.values(), reports={record.task_id: report})
    )
    told = [line.split(" ", 1)[1] for line in progress.lines(snapshot, NOW + 1)]
    assert told.index("worker-0 step 2") < told.index("worker-0 finished")
    assert not any("step" in line for line in progress.lines(snapshot, NOW + 100))


def test_steps_are_told_at_a_bounded_rate():
    progress = PlainProgress()
    progress.lines(training(1), NOW)
    assert progress.lines(training(2), NOW + PROGRESS_SECONDS / 2) == []
    assert "worker-0 step 3, loss 0.25, accuracy 0.5" in text(
        progress.lines(training(3), NOW + PROGRESS_SECONDS)
    )


def test_why_a_task_waits_is_told_at_a_bounded_rate():
    progress = PlainProgress()
    assert "worker-0 placing: needs 2 gpus" in text(progress.lines(waiting("needs 2 gpus"), NOW))
    assert progress.lines(waiting("needs 3 gpus"), NOW + 1) == []
    assert "needs 3 gpus" in text(progress.lines(waiting("needs 3 gpus"), NOW + WAITING_SECONDS))


def test_what_holds_for_the_whole_job_is_not_repeated_for_each_task():
    lines = PlainProgress().lines(snapshot_of(a_state(job={"why": "waiting for offers"})), NOW)
    assert len([line for line in lines if "waiting for offers" in line]) == 1


def test_an_incident_is_told_once():
    progress = PlainProgress()
    state = a_state(JobPhase.STOPPING, gang(TaskState.KILLED), job={"incidents": (an_incident(),)})
    first = text(progress.lines(snapshot_of(state), NOW))
    assert "failure: worker-1 failed on node1: exited with status 3" in first
    assert "failure" not in text(progress.lines(snapshot_of(state), NOW + 60))


def test_each_failure_is_told_once_where_the_job_goes_on():
    incident = an_incident(summary="worker-1 failed: KeyError: 'x' (train.py, line 5)")
    why = f"{incident.summary}; worker-1 starts again (retry 1 of 3)"
    job = {"why": why, "incidents": (incident,)}
    told = text(PlainProgress().lines(snapshot_of(a_state(JobPhase.STOPPING, job=job)), NOW))
    assert told.count("KeyError") == 1
    assert "stopping: worker-1 starts again (retry 1 of 3)" in told


def test_the_failure_that_ends_the_job_is_left_to_the_line_that_tells_its_end():
    incident = an_incident(summary="worker-1 failed: KeyError: 'x' (train.py, line 5)")
    verdict = Verdict(Outcome.FAILED, 1, f"{incident.summary} (3 retries are used up)")
    progress, lines = PlainProgress(), []
    for phase, why in ((JobPhase.ENDING, "the job has failed"), (JobPhase.DONE, "failed")):
        job = {"why": f"{why}: {verdict.summary}", "incidents": (incident,), "verdict": verdict}
        lines += progress.lines(snapshot_of(a_state(phase, job=job)), NOW)
    assert "KeyError" not in text(lines)
    assert [line[9:] for line in lines if "job" in line or "done" in line] == [
        "ending: the job has failed",
        "done: failed",
    ]


def test_the_live_view_tells_a_failure_once():
    incident = an_incident(summary="worker-1 failed: KeyError")
    why = "worker-1 failed: KeyError; worker-1 starts again"
    job = {"why": why, "incidents": (incident,)}
    view = shown(snapshot_of(a_state(JobPhase.STOPPING, job=job)))
    assert view.count("KeyError") == 1
    assert "run 1" in view


@pytest.mark.parametrize(("port", "note"), [(6006, ""), (12005, "does not offer port 6006")])
def test_tensorboard_is_shown_with_its_address_and_why_its_port_is_another(port, note):
    state = running()
    board = next(r for r in a_state(JobPhase.RUNNING, gang(TaskState.RUNNING)).tasks.values())
    spec = a_spec(roles=(a_role(TaskRole.WORKER, 2), a_role(TaskRole.TENSORBOARD, 1, port=6006)))
    board = replace(
        board, name="tensorboard-0", role=TaskRole.TENSORBOARD, address="10.0.0.7", ports=(port,)
    )
    records = [*state.tasks.values(), board]
    found = snapshot_of(
        a_state(JobPhase.RUNNING, records, spec=spec, reports={board.task_id: {"state": "running"}})
    )
    detail = next(t.detail for t in found.tasks if t.name == "tensorboard-0")
    assert detail.startswith(f"at http://10.0.0.7:{port}")
    assert note in detail


def stopping(*incidents):
    gone = gang(TaskState.KILLED)
    return snapshot_of(a_state(JobPhase.STOPPING, gone, job={"incidents": incidents}))


def test_an_incident_is_told_again_when_more_is_known_of_it():
    progress = PlainProgress()
    progress.lines(stopping(an_incident()), NOW)
    later = stopping(an_incident(summary="worker-1 failed: the port was taken"))
    assert "failure: worker-1 failed: the port was taken" in text(progress.lines(later, NOW))


def test_a_second_incident_in_the_same_container_is_told():
    progress = PlainProgress()
    progress.lines(stopping(an_incident()), NOW)
    both = stopping(an_incident(), an_incident(at=NOW + 9))
    assert len(progress.lines(both, NOW)) == 1


def shown(snapshot, width=120):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(render(snapshot, NOW))
    return console.file.getvalue()


def test_the_live_view_has_a_row_for_each_task():
    view = shown(training(7))
    for name in ("ps-0", "worker-0", "worker-1", "tensorboard-0"):
        assert sum(name in line for line in view.splitlines()) == 1


def test_the_live_view_shows_the_numbers():
    row = next(line for line in shown(training(7)).splitlines() if "worker-0" in line)
    assert row.split()[:5] == ["worker-0", "running", "7", "0.25", "0.5"]


def test_the_live_view_keeps_the_epoch_beside_the_step_and_the_loss():
    record = a_record("worker-0")
    told = {"step": 420, "loss": 0.25, "epoch": 2, "epochs": 10}
    reports = {record.task_id: {"state": "running", "progress": told}}
    state = a_state(JobPhase.RUNNING, [record], reports=reports)
    row = next(line for line in shown(snapshot_of(state)).splitlines() if "worker-0" in line)
    assert row.split()[:5] == ["worker-0", "running", "2/10", "420", "0.25"]


def test_the_live_view_shows_the_last_failure():
    assert "last failure: worker-1 failed on node1" in shown(snapshot_of(failed()))


@pytest.mark.parametrize("reason", ["[bold]needs[/bold]", "[/]", "needs [rack:UNIQUE]"])
def test_brackets_in_a_reason_are_text(reason):
    assert reason in shown(waiting(reason))


@pytest.mark.parametrize("width", [20, 40, 200])
def test_the_live_view_fits_any_width(width):
    assert all(len(line) <= width for line in shown(training(7), width).splitlines())


def test_closing_the_live_view_leaves_the_terminal_usable():
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    view = LiveProgress(console)
    view.show(training(1), NOW)
    view.close()
    view.close()
    assert (
        console.file.getvalue().rstrip().endswith("\x1b[?25h") or "25h" in console.file.getvalue()
    )


def test_the_live_view_never_goes_over_what_was_asked_meanwhile():
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    view = LiveProgress(console)
    view.show(training(1), NOW)
    view.close()
    asked = console.file.tell()
    view.show(training(2), NOW)
    goes_up = "\x1b[1A"
    assert goes_up not in console.file.getvalue()[asked:]
    view.close()
    assert goes_up in console.file.getvalue()[asked:]


def denied(summary):
    state = running()
    problem = {"kind": "denied", "retryable": False, "summary": summary, "hint": "allow it"}
    report = {"storage": {"checkpoints": {"state": "blocked", "problem": problem}}}
    reports = {state.tasks["worker-0"].task_id: report}
    return snapshot_of(a_state(JobPhase.RUNNING, state.tasks.values(), reports=reports))


def test_what_keeps_a_task_from_s3_is_told_once_and_when_it_is_over():
    progress = PlainProgress()
    told = "worker-0: its checkpoints cannot be kept in S3: write a: S3 answered x (allow it)"
    assert told in text(progress.lines(denied("write a: S3 answered x"), NOW))
    assert progress.lines(denied("write b: S3 answered x"), NOW + 1) == []
    assert "worker-0: S3 answers again" in text(progress.lines(training(1), NOW + 2))


def test_a_task_that_is_started_again_of_it_has_no_s3_that_answers_again():
    progress = PlainProgress()
    progress.lines(denied("write a: S3 answered x"), NOW)
    for number, phase in enumerate((JobPhase.STOPPING, JobPhase.PLACING, JobPhase.STARTING), 1):
        between = snapshot_of(a_state(phase, gang(TaskState.STAGING)))
        assert "S3" not in text(progress.lines(between, NOW + number))
    assert "S3" not in text(progress.lines(denied("write a: S3 answered x"), NOW + 4))
    assert "worker-0: S3 answers again" in text(progress.lines(training(1), NOW + 5))


def test_the_live_view_shows_what_keeps_a_task_from_s3():
    console = Console(file=io.StringIO(), width=200)
    console.print(render(denied("write a: S3 answered x"), NOW))
    assert "its checkpoints cannot be kept in S3" in console.file.getvalue()


def hostile():
    """A task of a job that says what a terminal would obey."""
    said = "\x1b]0;x\x07\x1b[2J\r\ud800"
    state = a_state(
        JobPhase.STOPPING,
        gang(TaskState.FAILED, message=said),
        job={"why": said, "incidents": (an_incident(summary=f"worker-1 failed: {said}"),)},
    )
    return snapshot_of(state)


def test_what_a_task_says_reaches_no_terminal_as_an_order(capsys):
    view = PlainView(sys.stdout)
    view.show(hostile(), NOW)
    told = capsys.readouterr().out
    assert r"\x1b]0;x\x07\x1b[2J\r\ud800" in told
    assert not {"\x1b", "\x07", "\r", "\ud800"} & set(told)


def test_the_live_view_writes_controls_out():
    view = shown(hostile(), width=200)
    assert r"\x1b]0;x\x07\x1b[2J\r\ud800" in view
    assert not {"\x1b", "\x07", "\r", "\ud800"} & set(view)


def who_waits(seconds):
    """A running job whose worker-0 waits for a parameter server that listens no more."""
    state = running()
    ps, worker = state.tasks["ps-0"], state.tasks["worker-0"]
    report = {"state": "waiting", "waiting_for": [f"{ps.address}:{ps.ports[0]}"]}
    reports = {r.task_id: {"state": "running"} for r in state.tasks.values()}
    state = a_state(
        JobPhase.RUNNING, state.tasks.values(), reports={**reports, worker.task_id: report}
    )
    looked = replace(state.subscription, stepped_at=NOW + seconds)
    return snapshot_of(replace(state, subscription=looked))


def test_who_waits_for_longer_than_a_start_takes_is_told_once_with_what_ends_it():
    progress = PlainProgress()
    assert "to listen" not in text(progress.lines(who_waits(10), NOW + 10))
    lines = text(progress.lines(who_waits(40), NOW + 40))
    assert "worker-0 waits for ps-0" in lines
    assert "it starts without after 300 s" in lines
    assert "to listen" not in text(progress.lines(who_waits(50), NOW + 50))
    assert "worker-0 waits no more" in text(progress.lines(training(1), NOW + 60))


def test_the_live_view_tells_who_waits():
    assert "it starts without after 300 s" in shown(who_waits(40), width=200)


def with_slot(doing, done, failure=None):
    """A sweep one of whose slots does this, and of which so many trials are done."""
    counts = {"running": 1, "waiting": 11 - done, "succeeded": done, "failed": 0, "pruned": 0}
    task = {"state": "running", "attempt": 1, "hostname": "host-1", "report": {"state": doing}}
    job = {
        "service": "searched",
        "phase": "running",
        "why": "slots work on units",
        "units": {"kind": "trial", "total": 12, "counts": counts, "failure": failure},
        "tasks": {"slot-0-worker-0": task},
    }
    return Snapshot(job, {})


def test_slots_that_go_from_unit_to_unit_are_told_of_by_what_is_done():
    progress = PlainProgress()
    first = text(progress.lines(with_slot("running", 0), NOW))
    assert "slot-0-worker-0 running" in first
    assert "0 of 12 trials done, 1 running" in first
    assert progress.lines(with_slot("waiting", 1), NOW + 1) == []
    later = progress.lines(with_slot("preparing", 2), NOW + PROGRESS_SECONDS)
    assert [line.partition(" ")[2] for line in later] == ["2 of 12 trials done, 1 running"]


def test_the_newest_failure_of_a_unit_is_told_while_it_is_tried_again():
    progress = PlainProgress()
    failure = {"number": 3, "at": NOW, "why": "no data"}
    first = text(progress.lines(with_slot("running", 0, failure), NOW))
    assert "failure: trial 3: no data" in first
    assert progress.lines(with_slot("running", 0, failure), NOW + 60) == []
    console = Console(file=io.StringIO(), width=120)
    console.print(render(with_slot("running", 3, failure), NOW))
    assert "last failure: trial 3: no data" in console.file.getvalue()


def test_the_live_view_tells_how_many_units_are_done():
    console = Console(file=io.StringIO(), width=120)
    console.print(render(with_slot("running", 3), NOW))
    assert "3 of 12 trials done, 1 running" in console.file.getvalue()
