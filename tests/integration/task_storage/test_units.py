"""Units of work that keep things in S3: a shard's output, and a trial's checkpoints."""

import pytest

from servers.s3_server import Fault

#: Adds ten to what it was restored from, and fails where it is told to.
TRAIN = """
import os, sys
folder = os.environ["CHECKPOINT_DIR"]
state = os.path.join(folder, "checkpoint")
first = 0
if os.path.exists(state):
    first = int(open(state).read().partition('"')[2].partition('"')[0].rpartition("-")[2])
step = first + 10
for name in (f"ckpt-{step}.data-00000-of-00001", f"ckpt-{step}.index"):
    with open(os.path.join(folder, name), "w") as file:
        file.write(f"{name} " * 100)
with open(state + ".tmp0", "w") as file:
    file.write(f'model_checkpoint_path: "{folder}/ckpt-{step}"\\n')
os.replace(state + ".tmp0", state)
print(f'result: {{"first": {first}}}', flush=True)
sys.exit(int(os.environ.get("CODE", "0")))
"""


def slot(start, source="", command="", **spec):
    job = {"command": command} if command else {"name": "job"}
    task = start(source, held=True, takes_units=True, job=job, **spec)
    task.wait_for_state("held")
    return task


def give(task, start, number, attempt=1, **payload):
    unit = {"number": number, "attempt": attempt, "payload": payload}
    code, answer = task.order(start, epoch=1, unit=unit)
    assert code == 200, answer
    return task.wait_for_status(
        lambda s: s["start"] == start and s["state"] in ("done", "failed", "exited"), "its end"
    )


def writer(start, command):
    return slot(start, command=command, writer=None)


def test_the_output_of_a_shard_is_an_object_that_the_first_has_written(start, s3):
    output = {"output": "s3://bucket/out/part-7.txt"}
    one, other = (writer(start, f"echo {name} > $SHARD_OUTPUT") for name in ("one", "other"))
    assert give(one, 1, 7, **output)["unit"]["published"] is True
    assert give(other, 1, 7, attempt=2, **output)["unit"]["published"] is False
    assert s3.client.get_object(Bucket="bucket", Key="out/part-7.txt")["Body"].read() == b"one\n"
    assert s3.list_keys("out/") == ["out/part-7.txt"]


@pytest.mark.parametrize("fault", [Fault(status=503), Fault(lost_answer=True)])
def test_an_output_is_there_once_whatever_happens_to_a_request(start, s3, fault):
    faults = [fault, fault]
    s3.fault = lambda request: faults.pop() if request.method == "PUT" and faults else None
    task = writer(start, "echo one > $SHARD_OUTPUT")
    assert give(task, 1, 7, output="s3://bucket/out/part-7.txt")["state"] == "done"
    assert s3.list_keys("out/") == ["out/part-7.txt"]


def test_a_large_output_comes_in_parts_and_is_not_seen_before_it_is_whole(start, s3):
    task = writer(start, "head -c 20000000 /dev/zero > $SHARD_OUTPUT")
    assert give(task, 1, 7, output="s3://bucket/out/part-7.bin")["unit"]["published"] is True
    assert s3.client.head_object(Bucket="bucket", Key="out/part-7.bin")["ContentLength"] == 20000000
    assert give(task, 2, 7, output="s3://bucket/out/part-7.bin")["unit"]["published"] is False
    assert s3.uploads() == []


def test_a_folder_cannot_be_an_output_in_s3(start, s3):
    task = writer(start, "mkdir $SHARD_OUTPUT")
    status = give(task, 1, 7, output="s3://bucket/out/part-7")
    assert (status["state"], status["exit"]["class"]) == ("failed", "storage_refused")
    assert "is a folder" in status["exit"]["summary"]


def test_each_trial_has_checkpoints_of_its_own_and_goes_on_from_them_anywhere(start, s3):
    trial = {"directory": "trial-7", "env": {"CODE": "3"}}
    one = slot(start, TRAIN)
    assert give(one, 1, 7, **trial)["state"] == "failed"
    other = slot(start, TRAIN, writer=2)
    assert give(other, 1, 7, attempt=2, **trial)["unit"]["result"]["result"] == {"first": 10}
    # It was elsewhere meanwhile: what is left here is old.
    status = give(one, 2, 7, attempt=3, directory="trial-7")
    assert status["unit"]["result"]["result"] == {"first": 20}
    status = give(one, 3, 8, directory="trial-8")
    assert (status["state"], status["unit"]["result"]["result"]) == ("done", {"first": 0})
    folders = {key.split("/")[1] for key in s3.list_keys("job/")}
    assert folders == {"trial-7", "trial-8"}
