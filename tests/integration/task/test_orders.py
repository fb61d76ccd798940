"""Starts that are ordered, held and failed; and what comes at the wrong time."""

import json
import time
from pathlib import Path

import pytest

from processes import alive
from waiting import eventually

READY = "print('ready', flush=True)\n"
WAIT = READY + "import time\nwhile True: time.sleep(60)\n"
STARTS = "open('begun', 'a').write('start\\n')\n" + WAIT
IGNORES_SIGTERM = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WAIT
#: Fails at the first start of a sandbox and waits at every later one.
FAILS_ONCE = (
    """\
import os
if not os.path.exists('failed'):
    open('failed', 'w').close()
    raise KeyError('images')
"""
    + WAIT
)
FAILS = "raise KeyError('images')\n"


def running(start, source=WAIT, **spec):
    task = start(source, **spec)
    task.wait_for_text("ready")
    return task


def failed(start, source=FAILS, **spec):
    task = start(source, hold_on_failure=True, **spec)
    task.wait_for_state("failed")
    return task


def peers(*addresses):
    return {"distribute": {"tf_config": None, "wait_for": list(addresses)}}


def test_the_status_tells_which_start_is_wanted(start):
    task = running(start)
    wanted = {"start": 1, "run": True, "exit": None, "checkpoint": None, "frozen_seconds": 0.0}
    status = task.status()
    assert wanted.items() <= status.items()
    assert status["memory_bytes"] > 1_000_000
    task.order(4)
    task.wait_for_state("running", start=4, epoch=4, starts=2)


def test_the_status_tells_the_strategy_of_the_code(start):
    code = "def unused(): tf.distribute.MultiWorkerMirroredStrategy()\n" + WAIT
    assert running(start, code).status()["strategy"] == "multi_worker"


def test_a_process_is_stopped_and_the_next_start_held_and_let_go(start):
    task = running(start)
    pid = task.status()["pid"]
    task.order(2, run=False)
    status = task.wait_for_state("held", start=2, run=False)
    assert not alive(pid)
    assert (status["exit"], status["pid"], status["memory_bytes"]) == (None, None, None)
    task.order(2)
    task.wait_for_state("running", start=2, starts=2)


def test_orders_during_the_preparation_are_taken(start):
    task = start(STARTS)

    def ordered():
        try:
            return task.order(2)[0] == 200
        except OSError:
            return False

    eventually(ordered, what="the runner takes an order")
    task.wait_for_state("running", start=2, epoch=2)


def test_orders_that_come_without_pause_keep_no_deadline_waiting(start):
    task = running(start, IGNORES_SIGTERM, grace_seconds=0.5)
    eventually(
        lambda: task.order(2)[1]["state"] == "running" and task.status()["starts"] == 2,
        what="the next start",
    )


def test_grandchildren_are_gone_before_the_next_start(start):
    source = """\
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import signal, time, os\\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\\n"
    "open('deep', 'w').write(f'{os.getpid()}\\\\n')\\ntime.sleep(600)"], start_new_session=True)
"""
    task = running(start, source + WAIT)
    grandchild = task.pid_in("deep")
    task.order(2, run=False)
    task.wait_for_state("held")
    assert not alive(grandchild)


def test_a_failure_is_told_and_the_container_kept(start):
    task = failed(start)
    status = task.status()
    told = status["exit"]
    assert (told["class"], told["code"], told["start"]) == ("user_error", 1, 1)
    assert (told["summary"], status["summary"]) == ("KeyError: 'images' (job.py, line 1)",) * 2
    error = {"exception": "KeyError", "file": "job.py", "line": 1, "step": None}
    assert told["error"] == task.report()["error"] == error
    assert "KeyError: 'images'" in told["last_lines"]
    assert time.time() - told["ended_at"] < 60
    assert task.report()["class"] == "user_error"
    assert task.process.poll() is None


def test_the_report_of_a_failed_start_is_not_taken_for_that_of_the_next_one(start):
    task = failed(start, FAILS_ONCE)
    assert task.report()["class"] == "user_error"
    task.order(2)
    status = task.wait_for_state("running", start=2, starts=2)
    assert status["exit"]["start"] == 1
    task.wait_for_text("ready")
    assert task.text("task-exit.json") == ""
    assert json.loads(task.text("task-exits.jsonl"))["class"] == "user_error"


def test_every_failure_is_kept(start):
    task = failed(start, "import sys, os; sys.exit(int(os.environ['TF_EPOCH']))")
    for number in (2, 3):
        task.order(number)
        task.wait_for_state("failed", start=number)
    history = [json.loads(line) for line in task.text("task-exits.jsonl").splitlines()]
    assert [(end["start"], end["exit_code"]) for end in history] == [(1, 1), (2, 2), (3, 3)]
    assert task.report()["exit_code"] == 3


def test_nothing_survives_a_runner_that_is_killed_while_held(start):
    task = running(start)
    task.order(2, run=False)
    task.wait_for_state("held")
    children = Path(f"/proc/{task.process.pid}/task/{task.process.pid}/children")
    left = [int(pid) for pid in children.read_text().split()]
    assert left
    task.process.kill()
    task.process.wait()
    eventually(lambda: not any(map(alive, left)), what="the guard is gone")


def test_a_program_that_is_missing_at_a_later_start_ends_the_task(start):
    task = running(start, job={"command": "echo ready; sleep 600"}, hold_on_failure=True)
    task.sandbox.rename(task.sandbox.with_name("elsewhere"))
    task.order(2)
    assert task.wait() == 71


def save_checkpoint(task, step):
    directory = task.sandbox / "checkpoints"
    for name in (f"ckpt-{step}.index", f"ckpt-{step}.data-00000-of-00001"):
        (directory / name).touch()
    (directory / "checkpoint").write_text(f'model_checkpoint_path: "ckpt-{step}"\n')


def test_the_status_tells_what_a_start_would_restore(start):
    task = start(WAIT, held=True)
    task.wait_for_state("held")
    save_checkpoint(task, 1200)
    found = task.status()["checkpoint"]
    assert (found["step"], found["path"]) == (1200, "ckpt-1200")


@pytest.mark.parametrize(("there", "wanted"), [(1200, 1200), (None, None)])
def test_a_start_begins_where_the_checkpoint_is_the_one_that_is_expected(start, there, wanted):
    task = start(WAIT, held=True)
    task.wait_for_state("held")
    if there:
        save_checkpoint(task, there)
    task.order(2, restore_step=wanted, expects_restore_step=True)
    task.wait_for_state("running", start=2)


@pytest.mark.parametrize(
    ("there", "wanted", "summary"),
    [
        (
            1200,
            1300,
            "the checkpoint of step 1200, but all tasks are to go on from the checkpoint ",
        ),
        (1200, None, "the checkpoint of step 1200, but all tasks are to go on from no checkpoint"),
        (None, 1200, "no checkpoint, but all tasks are to go on from the checkpoint of step 1200"),
    ],
)
def test_a_start_fails_where_the_checkpoint_is_another(start, there, wanted, summary):
    task = start(STARTS, held=True, hold_on_failure=True)
    task.wait_for_state("held")
    if there:
        save_checkpoint(task, there)
    task.order(2, restore_step=wanted, expects_restore_step=True)
    told = task.wait_for_state("failed", start=2)["exit"]
    assert (told["class"], told["code"]) == ("checkpoint_mismatch", 65)
    assert told["summary"].startswith(f"{task.sandbox}/checkpoints holds {summary}")
    assert task.text("begun") == ""


def test_a_checkpoint_is_not_compared_unless_it_is_expected(start):
    task = start(STARTS, held=True)
    task.wait_for_state("held")
    task.order(2, restore_step=5)
    task.wait_for_state("running", start=2)


def test_nothing_in_the_place_of_the_reports_stops_the_runner(start):
    source = "import os\nos.mkfifo('task-exits.jsonl')\nos.mkfifo('task-exit.json.tmp')\n"
    task = failed(start, source + FAILS)
    assert "task-exits.jsonl cannot be written" in task.text("stderr")
    task.process.terminate()
    assert task.wait() == 1
