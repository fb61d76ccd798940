"""Units of work in a slot: one start after the other in the same container."""

import json
import os
from pathlib import Path

import pytest

from runner_process import Task

SHOWS = """\
echo "$SHARD_INDEX $PARAM_RATE $JOB_CONTEXT" >> seen
echo "step $SHARD_INDEX loss 0.5"
echo "result: {\\"index\\": $SHARD_INDEX}"
"""
#: Tells what it writes, waits for a file of its name to end with the code in it.
WAITS = """\
echo half > "$SHARD_OUTPUT"; echo "$$" > "pid-$SHARD_INDEX"
while [ ! -e "go-$SHARD_INDEX" ]; do sleep 0.01; done
exit "$(cat go-$SHARD_INDEX)"
"""
SERVES = """\
import os
open("loaded", "a").write("once\\n")
def main(shard, context):
    print("step", shard["index"], "loss 0.5")
    print(f'result: {{"index": {shard["index"]}}}', end="")
    if shard["index"] == context.get("crashes_at"):
        os.abort()
    if shard["index"] == context.get("raises_at"):
        raise KeyError("image")
    with open(shard["output"], "w") as output:
        output.write(f"{shard['begin']}-{shard['end']} {os.environ['SHARD_INDEX']}")
"""


def slot(start, command: str = "", **spec) -> Task:
    job = {"command": command} if command else {"name": "job"}
    job.update(spec.pop("job", {}))
    task = start(held=True, hold_on_failure=True, takes_units=True, job=job, **spec)
    task.wait_for_state("held")
    return task


def payload(index: int, output: Path | None = None, **more) -> dict:
    shard = {"index": index, "begin": 10 * index, "end": 10 * index + 10}
    where = {} if output is None else {"output": str(output / f"part-{index}")}
    return {"env": {"SHARD_INDEX": str(index)}, "shard": shard, **where, **more}


def outputs(folder: Path) -> list[str]:
    """Return what is in a folder of outputs, without the records of what they were made of."""
    return sorted(name for name in os.listdir(folder) if name != ".shards")


def give(task: Task, start: int, what: dict, attempt: int = 1) -> None:
    unit = {"number": what["shard"]["index"], "attempt": attempt, "payload": what}
    code, answer = task.order(start, epoch=1, unit=unit)
    assert code == 200, answer


def done(task: Task, start: int) -> dict:
    status = task.wait_for_status(
        lambda status: status["start"] == start and status["state"] in ("done", "failed", "exited"),
        f"the end of start {start}",
    )
    assert status["state"] == "done", status
    return status["unit"]


def failed(task: Task, start: int) -> dict:
    return task.wait_for_state("failed", start=start)


def test_one_unit_after_the_other_is_done_in_the_same_container(start):
    task = slot(start, SHOWS, job={"context": '{"rate": 1, "layers": 2}'})
    for index in (3, 4):
        more = {"env": {"SHARD_INDEX": str(index), "PARAM_RATE": "0.5"}, "context": {"rate": 0.5}}
        give(task, index, payload(index, **more))
        unit = done(task, index)
        assert (unit["number"], unit["attempt"]) == (index, 1)
        assert unit["seconds"] > 0
        assert unit["result"]["result"] == {"index": index}
        assert unit["result"]["metrics"] == {"loss": 0.5}
    assert task.status()["starts"] == 2
    context = json.dumps({"rate": 0.5, "layers": 2})
    assert task.text("seen") == f"3 0.5 {context}\n4 0.5 {context}\n"


def test_nothing_of_the_unit_before_remains(start):
    tells = """\
if [ "$SHARD_INDEX" = 0 ]; then
  echo '{"step": 7, "loss": 0.1, "result": {"a": 1}}' >> "$PROGRESS_FILE"
fi"""
    task = slot(start, tells)
    give(task, 1, payload(0))
    assert done(task, 1)["result"]["result"] == {"a": 1}
    give(task, 2, payload(1))
    unit, status = done(task, 2), task.status()
    assert (unit["result"]["result"], unit["result"]["metrics"]) == ({}, {})
    assert (status["result"], status["progress"]["step"]) == (None, None)
    assert task.text("progress.jsonl") == ""


def test_a_unit_has_directories_of_its_own_and_goes_on_from_its_checkpoints(start, tmp_path):
    saves = (
        'echo "$SHARD_INDEX" >> $CHECKPOINT_DIR/saved; ls -d $LOG_DIR $OUTPUT_DIR; [ -z "$FAILS" ]'
    )
    task = slot(start, saves, shared_filesystem=str(tmp_path / "shared"))
    trial = {"directory": "trial-17"}
    fails = {"SHARD_INDEX": "1", "FAILS": "1"}
    give(task, 1, payload(1, **trial, env=fails))
    failed(task, 1)
    give(task, 2, payload(1, **trial), attempt=2)
    done(task, 2)
    give(task, 3, payload(2, directory="trial-18"))
    done(task, 3)
    assert (tmp_path / "shared/trial-17/saved").read_text() == "1\n1\n"
    assert (tmp_path / "shared/trial-18/saved").read_text() == "2\n"
    assert (task.sandbox / "job-output/trial-17").is_dir()


def test_the_output_is_found_under_its_name_once_it_is_whole(start, tmp_path):
    task = slot(start, WAITS)
    give(task, 1, payload(5, tmp_path / "out"))
    task.pid_in("pid-5")
    assert not (tmp_path / "out/part-5").exists()
    (task.sandbox / "go-5").write_text("0")
    assert done(task, 1)["published"] is True
    assert (tmp_path / "out/part-5").read_text() == "half\n"
    assert outputs(tmp_path / "out") == ["part-5"]


@pytest.mark.parametrize("code", ["1", "137"])
def test_what_a_failed_attempt_has_written_is_removed(start, tmp_path, code):
    task = slot(start, WAITS)
    give(task, 1, payload(5, tmp_path / "out"))
    task.pid_in("pid-5")
    (task.sandbox / "go-5").write_text(code)
    failed(task, 1)
    assert os.listdir(tmp_path / "out") == []


@pytest.mark.parametrize("names", [[], ["a", "b c"]])
def test_beside_an_output_is_kept_which_inputs_it_was_made_of(start, tmp_path, names):
    task = slot(start, "echo > $SHARD_OUTPUT")
    what = payload(5, tmp_path / "out")
    what["shard"].update({"prefix": "s3://b/", "names": names, "stamps": "01234567--------"})
    give(task, 1, what)
    done(task, 1)
    record = json.loads((tmp_path / "out/.shards/part-5.json").read_text())
    inputs = {"inputs": ["s3://b/a", "s3://b/b c"]} if names else {}
    assert record == {"begin": 50, "end": 60, "stamps": "01234567--------", **inputs}


def test_a_shard_that_leaves_no_output_has_failed(start, tmp_path):
    task = slot(start, "true")
    give(task, 1, payload(5, tmp_path / "out"))
    status = failed(task, 1)
    assert "SHARD_OUTPUT" in status["exit"]["summary"]
    assert status["exit"]["class"] == "user_error"


def test_a_folder_may_be_the_output(start, tmp_path):
    task = slot(start, 'mkdir "$SHARD_OUTPUT"; touch "$SHARD_OUTPUT/model"')
    give(task, 1, payload(5, tmp_path / "out"))
    assert done(task, 1)["published"] is True
    assert os.listdir(tmp_path / "out/part-5") == ["model"]


def test_a_command_finds_the_names_of_its_inputs_in_a_file(start):
    task = slot(start, 'cat "$SHARD_INPUTS"')
    what = payload(0)
    what["shard"].update(prefix="s3://bucket/", names=["a", "b c"])
    give(task, 1, what)
    done(task, 1)
    assert task.text() == "s3://bucket/a\ns3://bucket/b c\n"


def test_a_function_of_shards_is_loaded_once(start, tmp_path):
    task = slot(start, source=SERVES)
    for index in range(5):
        give(task, index + 1, payload(index, tmp_path))
        unit = done(task, index + 1)
        assert unit["result"]["result"] == {"index": index}
        assert unit["result"]["metrics"] == {"loss": 0.5}
        printed = (task.sandbox / f"unit-{index}.log").read_text().splitlines()[1:]
        assert printed == [f"step {index} loss 0.5", f'result: {{"index": {index}}}']
    assert task.text("loaded") == "once\n"
    assert (tmp_path / "part-4").read_text() == "40-50 4"
    assert task.status()["starts"] == 1


@pytest.mark.parametrize("how", ["raises_at", "crashes_at"])
def test_a_shard_that_crashes_is_lost_alone(start, tmp_path, how):
    task = slot(start, source=SERVES, job={"context": json.dumps({how: 1})})
    give(task, 1, payload(0, tmp_path))
    done(task, 1)
    give(task, 2, payload(1, tmp_path))
    assert failed(task, 2)["exit"]["start"] == 2
    give(task, 3, payload(2, tmp_path))
    done(task, 3)
    assert task.text("loaded") == "once\nonce\n"
    assert sorted(name for name in os.listdir(tmp_path) if "part" in name) == ["part-0", "part-2"]


def test_a_function_of_shards_that_leaves_early_has_not_done_its_shard(start):
    task = slot(start, source="def main(shard, context): raise SystemExit(0)\n")
    give(task, 1, payload(0))
    assert "before main(shard, context) had returned" in failed(task, 1)["exit"]["summary"]


def test_a_trial_tells_the_first_value_in_each_span_and_goes_on_with_them(start, tmp_path):
    trains = """\
for step in $STEPS; do
  echo "{\\"step\\": $step, \\"val_accuracy\\": 0.$step}" >> "$PROGRESS_FILE"
done
exit $CODE"""
    task = slot(start, trains, shared_filesystem=str(tmp_path / "shared"))
    measure = {"metric": "val_accuracy", "spans": [1, 3, 9]}

    def trial(steps, code):
        env = {"STEPS": steps, "CODE": code}
        return payload(0, directory="trial-0", measure=measure, env=env)

    give(task, 1, trial("1 2 4", "1"))
    assert failed(task, 1)["unit"]["result"]["measured"] == [[1, 0.1], [4, 0.4]]
    give(task, 2, trial("5 6 12", "0"), attempt=2)
    assert done(task, 2)["result"]["measured"] == [[1, 0.1], [4, 0.4], [12, 0.12]]


def test_a_trial_finds_its_parameters_in_the_arguments_that_name_them(start):
    parses = "import json, sys\nprint('result:', json.dumps({'argv': sys.argv[1:]}))\n# --lr\n"
    context = json.dumps({"lr": 9, "batch": 8})
    words = ["--rate={lr}", "{{lr}}", "{other}"]
    job = {"arguments": words, "context": context, "parameters_as_arguments": "true"}
    task = slot(start, job=job, files={"job.py": parses})
    give(task, 1, payload(0, context={"lr": 0.5, "units": 3}))
    # What the trial has it has from there alone; the rest is passed on as before.
    argv = ["--batch", "8", "--rate=0.5", "{lr}", "{other}", "--units", "3"]
    assert done(task, 1)["result"]["result"] == {"argv": argv}
