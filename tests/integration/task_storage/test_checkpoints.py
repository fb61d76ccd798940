"""Tasks with checkpoints in S3: what they start from, what is kept of them, who may publish."""

import json

import pytest

from servers.s3_server import Fault

#: Saves checkpoints as TensorFlow does: what is restored, plus ten, then at the words in a file.
TRAIN = """
import os, sys, time
folder = os.environ["CHECKPOINT_DIR"]
def restored():
    try:
        text = open(os.path.join(folder, "checkpoint")).read()
    except FileNotFoundError:
        return 0
    return int(text.partition('"')[2].partition('"')[0].rpartition("-")[2])
def save(step):
    for name in (f"ckpt-{step}.data-00000-of-00001", f"ckpt-{step}.index"):
        with open(os.path.join(folder, name), "w") as file:
            file.write(f"{name} " * 100)
    with open(os.path.join(folder, "checkpoint.tmp0"), "w") as file:
        file.write(f'model_checkpoint_path: "{folder}/ckpt-{step}"\\n')
    os.replace(os.path.join(folder, "checkpoint.tmp0"), os.path.join(folder, "checkpoint"))
first = restored()
print(f"restored {first}", flush=True)
"""
TRAIN_ON = TRAIN + "save(first + 10)\nprint('saved', flush=True)\ntime.sleep(600)\n"
TRAIN_AND_END = TRAIN + "save(first + 10)\n"
TRAIN_AND_FAIL = TRAIN + "save(first + 10)\nsys.exit(3)\n"
SAVE_AT_THE_END = (
    TRAIN
    + """
import signal
def end(*_):
    save(first + 7)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
time.sleep(600)
"""
)
ONLY_RESTORE = TRAIN + "time.sleep(600)\n"


def publish(start, source=TRAIN_AND_END, **spec):
    """Run a task to its end, which leaves a checkpoint of step 10."""
    task = start(source, **spec)
    assert task.wait() == 0, task.text("stderr")


def wait_until_published(task):
    return task.wait_for_status(
        lambda status: status["state"] == "running" and status["checkpoint"],
        "a published checkpoint of a running process",
    )


def newest(s3):
    body = s3.client.get_object(Bucket="bucket", Key="job/latest.json")["Body"].read()
    return json.loads(body)["published"][0]["step"]


def test_a_running_process_is_published_and_trains_on_while_s3_is_away(start, s3):
    task = start(TRAIN_ON)
    status = wait_until_published(task)
    assert (status["checkpoint"]["step"], status["state"]) == (10, "running")
    assert "very/secret+key" not in json.dumps(status) + task.text("stderr")
    assert len(list(task.sandbox.glob(".task-runner/libraries-*/boto3"))) == 1
    s3.fault = lambda request: Fault(status=403, code="AccessDenied")
    (task.sandbox / "checkpoints" / "extra").write_text("more")
    status = task.wait_for_status(
        lambda status: status["storage"]["checkpoints"]["state"] == "blocked", "the problem"
    )
    assert status["state"] == "running"


def test_what_is_saved_at_a_stop_is_published(start, s3):
    task = start(SAVE_AT_THE_END, checkpoints={"interval_seconds": 600})
    task.wait_for_text("ready")
    assert task.request("POST", "/v1/stop")[0] == 202
    assert task.wait() == 0
    assert newest(s3) == 7


def test_what_a_failed_process_left_is_published(start, s3):
    task = start(TRAIN_AND_FAIL, checkpoints={"interval_seconds": 600})
    status = task.wait_for_state("failed")
    assert (status["checkpoint"]["step"], newest(s3)) == (10, 10)


def test_how_much_of_the_last_checkpoint_is_published_is_told(start, s3):
    s3.fault = lambda request: Fault(delay=5.0) if "manifests" in request.path else None
    task = start(TRAIN_AND_END, checkpoints={"interval_seconds": 600})
    told = "its last checkpoint is published: 100 % of "
    task.wait_for_status(lambda status: told in status["summary"], told)


def test_a_new_start_goes_on_with_the_state_in_the_sandbox_though_s3_is_away(start, s3):
    task = start(TRAIN_AND_FAIL)
    task.wait_for_state("failed")
    task.order(2)
    task.wait_for_state("failed", start=2)
    assert "restored 10" in task.text()
    assert newest(s3) == 20
    s3.fault = lambda request: Fault(status=403, code="AccessDenied")
    task.order(3)
    task.wait_for_text("restored 20")


def test_a_held_task_says_what_is_published(start, s3):
    publish(start)
    task = start(ONLY_RESTORE, writer=2, held=True)
    assert task.wait_for_state("held")["checkpoint"]["step"] == 10


def test_a_member_restores_the_agreed_step_and_no_other(start, s3):
    publish(start)
    publish(start, writer=2)
    member = start(ONLY_RESTORE, writer=None, held=True)
    member.wait_for_state("held")
    member.order(2, expects_restore_step=True, restore_step=4)
    failure = member.wait_for_state("failed")["exit"]
    # It is not charged.
    assert (failure["class"], failure["code"], failure["start"]) == ("storage", 74, 2)
    assert "step 4" in failure["summary"]
    # A gang that agreed on nothing does not pass over what is there.
    member.order(3, expects_restore_step=True, restore_step=None)
    assert member.wait_for_state("failed", start=3)["exit"]["class"] == "storage"
    member.order(4, expects_restore_step=True, restore_step=10)
    member.wait_for_text("restored 10")


def test_the_status_is_answered_while_the_start_is_prepared(start, s3):
    publish(start)
    s3.fault = lambda request: Fault(delay=5.0) if "data/" in request.path else None
    task = start(ONLY_RESTORE, writer=2)
    status = task.wait_for_state("preparing", summary="Brings data and checkpoint to the sandbox")
    assert status["storage"]["state"] == "fetching"


def test_a_stop_ends_the_preparation(start, s3):
    publish(start)
    s3.fault = lambda request: Fault(status=503)
    task = start(ONLY_RESTORE, writer=2)
    task.wait_for_status(lambda status: status["storage"]["problem"], "a problem")
    task.request("POST", "/v1/stop")
    assert task.wait() == 143


def test_a_start_that_is_denied_says_what_to_do_and_is_tried_again_when_s3_is_back(start, s3):
    publish(start)
    s3.fault = lambda request: Fault(status=403, code="AccessDenied")
    task = start(ONLY_RESTORE, writer=2)
    failure = task.wait_for_state("failed")["exit"]
    assert failure["class"] == "storage_refused"
    assert "s3:GetObject" in failure["hint"]
    s3.fault = lambda request: None
    task.order(2)
    task.wait_for_text("restored 10")


def test_a_zombie_says_so_and_ends_without_a_charge(start, s3):
    zombie = start(TRAIN_ON)
    wait_until_published(zombie)
    start(ONLY_RESTORE, writer=2).wait_for_text("restored 10")
    (zombie.sandbox / "checkpoints" / "extra").write_text("more")
    failure = zombie.wait_for_state("failed")["exit"]
    assert failure["class"] == "storage"
    assert "attempt 2 publishes here" in failure["summary"]


def test_data_is_there_before_the_first_start(start, s3):
    s3.client.put_object(Bucket="bucket", Key="mnist/x", Body=b"data")
    task = start(
        "print(open('data/x').read())", data=[{"uri": "s3://bucket/mnist", "path": "data"}]
    )
    assert task.wait() == 0
    assert task.text() == "data\n"


def test_summaries_are_copied(start, s3):
    source = "open(os.environ['LOG_DIR'] + '/events.out.tfevents.1', 'w').write('event')"
    task = start(f"import os\n{source}", summaries={"uri": "s3://bucket/logs"})
    assert task.wait() == 0
    assert s3.list_keys("logs/") == ["logs/events.out.tfevents.1"]


@pytest.mark.parametrize("code", ["user", pytest.param("crash", marks=pytest.mark.soak)])
def test_the_exit_code_stays_that_of_the_job(start, s3, code):
    source = "raise SystemExit(3)" if code == "user" else "import os; os.kill(os.getpid(), 6)"
    task = start(source, hold_on_failure=False)
    assert task.wait() == {"user": 3, "crash": 134}[code]


NOT_UTF_8 = (
    TRAIN
    + """
for place in (folder, os.environ["LOG_DIR"]):
    open(os.path.join(os.fsencode(place), b"n\\xff"), "w").write("x")
    open(os.path.join(os.fsencode(place), b"events.out.tfevents.n\\xff"), "w").write("x")
save(first + 10)
"""
)


def test_a_name_that_is_not_utf_8_keeps_no_checkpoint_from_being_published(start, s3):
    publish(start, NOT_UTF_8, summaries={"uri": "s3://bucket/logs"})
    assert newest(s3) == 10


def test_a_file_that_is_not_kept_for_its_name_is_logged_once(start, s3):
    task = start(NOT_UTF_8.replace("save(first", "time.sleep(1); save(first"))
    assert task.wait() == 0
    lines = [line.split("Z ", 1)[1] for line in task.text("stderr").splitlines() if "udcff" in line]
    assert lines == [
        f"{name}\\udcff: is not kept in S3: its name is not UTF-8"
        for name in ("events.out.tfevents.n", "n")
    ]
