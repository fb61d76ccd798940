"""Jobs from Python, on the embedded cluster: begun, followed, asked, left, stopped."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import CommandLine
from dcos_tensorflow import (
    Batch,
    CliError,
    Job,
    JobFailed,
    OptionsError,
    Sweep,
    TensorFlow,
)
from embedded_mesos import AgentConfig, EmbeddedCluster
from waiting import eventually

CODE = """
import json, os, sys, time
from dcos_tensorflow import report

context = json.loads(os.environ["JOB_CONTEXT"])
print("begins with", context, sys.argv[1:], sorted(os.listdir(os.environ["INPUT_TRAIN"]))
      if "INPUT_TRAIN" in os.environ else "nothing", flush=True)
for step in range(1, 4):
    report(step, loss=1 / step, val_auc=step / 10)
finish = os.path.join(os.environ["CHECKPOINT_DIR"], "finish")
while "waits" in context and not os.path.exists(finish):
    time.sleep(0.1)
open(os.path.join(os.environ["OUTPUT_DIR"], "model.keras"), "w").close()
print("result:", json.dumps({"rate": os.environ.get("PARAM_RATE")}))
sys.exit(context.get("code", 0))
"""
SHARD = """
def main(shard, context):
    if shard["index"] == context.get("bad"):
        raise ValueError("a bad shard")
    with open(shard["output"], "w") as output:
        output.write(" ".join(map(str, range(shard["begin"], shard["end"]))))
"""
SIZE = {"cpus": 0.1, "mem": 64, "disk": 10}
OPTIONS = {
    "service": {"python": sys.executable, "kill_grace_seconds": 1, "outcome_grace_seconds": 1},
    "worker": SIZE,
    "retry": {"limit": 0},
}

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of services, with an embedded cluster that fit starts there."""
    found = tmp_path_factory.mktemp("home")
    yield found
    down = CommandLine(found).ask("local", "down")
    assert down.code == 0, down.out


@pytest.fixture
def begin(home: Path, tmp_path: Path) -> Iterator[Any]:
    """Return a function that describes a training of a name, with what is given beside."""
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text(CODE)
    (code / "shard.py").write_text(SHARD)
    # That of the script that is interrupted, too, should its test fail.
    names = {"left"}

    def describe(name: str, script: str = "train.py", **given: Any) -> TensorFlow:
        names.add(name)
        given = {"options": OPTIONS, **given}
        return TensorFlow(script, source_dir=code, name=name, work_dir=home, **given)

    yield describe
    for name in names:
        CommandLine(home).ask("stop", name)


def rows(found: Any) -> list[dict[str, Any]]:
    """Return the rows of a frame, whether pandas is installed here or not."""
    return list(found if isinstance(found, list) else found.to_dict("records"))


def rows_in(job: Job) -> list[dict[str, Any]]:
    """Return what a job has told."""
    return rows(job.metrics())


def test_a_training_is_followed_to_its_end_and_asked_then(
    begin: Any, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "digits.csv").touch()
    training = begin("whole", hyperparameters={"rate": 0.1}, script_arguments=["--a", "b c"])
    job = training.fit({"train": str(tmp_path / "digits.csv")})
    out = capsys.readouterr().out
    assert "begins with {'rate': 0.1} ['--a', 'b c'] ['digits.csv']" in out
    assert "The job whole has succeeded" in out
    assert (job.status, job.result) == ("succeeded", {"rate": "0.1"})
    assert job.output_dir == str(home / "services" / "whole" / "output" / "1" / "worker-0")
    assert os.listdir(job.model_dir) == ["model.keras"]
    assert job.checkpoint_dir == str(home / "services" / "whole" / "checkpoints")
    rows = rows_in(job)
    assert rows[0] == {"task": "worker-0", "step": 1, "loss": 1.0, "val_auc": 0.1}
    assert [row["step"] for row in rows] == [1, 2, 3]
    job.logs(lines=1)
    assert capsys.readouterr().out == 'result: {"rate": "0.1"}\n'
    again = TensorFlow.attach("whole", work_dir=home)
    assert repr(again.wait(timeout=0)) == "<job whole: succeeded>"
    # At once, though the scheduler of the first run may not have left yet.
    assert training.fit(wait=False).wait().output_dir.endswith("/output/2/worker-0")


def test_a_failure_is_an_exception_with_the_verdict_and_the_last_lines(begin: Any) -> None:
    with pytest.raises(JobFailed, match="The job bad has failed") as raised:
        begin("bad", hyperparameters={"code": 3}).fit(logs=False)
    assert raised.value.outcome == "failed"
    assert "exit code 3" in raised.value.verdict
    assert raised.value.last_lines[-1].startswith("result:")
    assert raised.value.exit_code == 3
    assert raised.value.job.status == "failed"


def test_a_job_goes_on_alone_is_found_again_and_stopped(begin: Any, home: Path) -> None:
    waits = {"hyperparameters": {"waits": True}}
    job = begin("alone", **waits).fit(wait=False)
    eventually(lambda: job.status == "running", seconds=180, what=lambda: job.status)
    with pytest.raises(TimeoutError, match=r"alone has not ended within 0\.5 s\. It goes on\."):
        job.wait(0.5)
    for again in (begin("alone", **waits), begin("alone", workers=2, **waits)):
        with pytest.raises(CliError, match="A job of the service alone is under way"):
            again.fit()
    assert job.model_dir == job.output_dir == str(home / "services" / "alone" / "output" / "1")
    found = TensorFlow.attach("alone", work_dir=home)
    found.stop()
    assert found.status == job.status == "stopped"
    found.stop()
    with pytest.raises(JobFailed, match="was stopped"):
        job.wait()


def test_a_job_is_followed_in_a_thread(begin: Any) -> None:
    ended: list[str] = []
    training = begin("threaded")
    thread = threading.Thread(target=lambda: ended.append(training.fit(logs=True).status))
    thread.start()
    thread.join()
    assert ended == ["succeeded"]


def test_an_interrupt_leaves_the_job_running_and_says_how_to_go_on(
    begin: Any, home: Path, tmp_path: Path
) -> None:
    script = tmp_path / "my_fit.py"
    # No guard by __name__, and whatever a person types.
    script.write_text(
        "from dcos_tensorflow import TensorFlow\n"
        f"TensorFlow('code/train.py', name='left', hyperparameters={{'waits': True}},\n"
        f"           options={OPTIONS!r}).fit()\n"
    )
    environment = {**os.environ, "DCOS_TENSORFLOW_HOME": str(home)}
    process = subprocess.Popen(
        # A shell that runs the tests in the background may ignore interrupts, and hand that on.
        ["env", "--default-signal=INT", sys.executable, script],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    seen = ""
    while "begins with" not in seen:
        line = process.stdout.readline()
        assert line, seen
        seen += line
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=300)
    assert "left goes on. To follow it again: TensorFlow.attach('left').wait()" in rest
    job = TensorFlow.attach("left", work_dir=home)
    (Path(job.checkpoint_dir) / "finish").touch()
    job.wait()
    assert job.status == "succeeded"


def test_on_another_cluster_data_is_brought_and_what_was_told_is_known_after_the_end(
    begin: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "code" / "images").mkdir()
    (tmp_path / "code" / "images" / "1.png").touch()
    with EmbeddedCluster([AgentConfig()], tmp_path / "elsewhere") as cluster:
        training = begin("elsewhere", hyperparameters={"rate": 0.1}, master=cluster.master)
        job = training.fit({"train": tmp_path / "code" / "images"}, logs=False)
    assert "note: " not in capsys.readouterr().out.replace("note: worker.mem", "")
    assert (job.status, job.result) == ("succeeded", {"rate": "0.1"})
    assert [row["val_auc"] for row in rows_in(job)] == [0.1, 0.2, 0.3]
    job.logs(lines=2)
    assert "['1.png']" in capsys.readouterr().out


def test_what_is_wrong_is_told_as_on_the_command_line(begin: Any, home: Path) -> None:
    with pytest.raises(OptionsError, match=r"worker\.cpu"):
        begin("wrong", options={"worker": {"cpu": 1}}).fit()
    with pytest.raises(CliError, match=r"There is no file nothing\.py"):
        TensorFlow("nothing.py", work_dir=home).fit()
    with pytest.raises(CliError, match="There is no service nobody"):
        TensorFlow.attach("nobody", work_dir=home)
    with pytest.raises(OptionsError, match=r"chief\.count: must be a whole number, not text"):
        begin("wrong", chief="yes").fit()
    with pytest.raises(OptionsError, match=r"worker\.count: no task would train"):
        begin("wrong", workers=0).fit()
    with pytest.raises(OptionsError, match=r"sweep\.max_trial: unknown .* sweep\.max_trials\?"):
        begin("wrong").sweep({"rate": [1, 2]}, "loss", max_trial=2)
    with pytest.raises(OptionsError, match="the range is empty"):
        begin("wrong").batch(range(0), "parts/")


def test_jobs_are_begun_at_once_and_share_the_cluster_that_the_first_of_them_starts(
    tmp_path: Path,
) -> None:
    (tmp_path / "train.py").write_text("print('step 1 loss 1')")
    told: dict[str, str] = {}

    def fit(name: str) -> None:
        training = TensorFlow(
            tmp_path / "train.py", name=name, options=OPTIONS, work_dir=tmp_path / "home"
        )
        told[name] = training.fit(logs=False).status

    threads = [threading.Thread(target=fit, args=(name,)) for name in ("one", "other")]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert told == {"one": "succeeded", "other": "succeeded"}
    finally:
        down = CommandLine(tmp_path / "home").ask("local", "down")
    assert "The embedded cluster is down." in down.out


def test_of_two_jobs_that_are_begun_as_one_service_at_once_one_is(begin: Any) -> None:
    training = [begin("twin", hyperparameters={"waits": 1, "number": n}) for n in range(2)]
    found: list[Job | CliError] = []

    def fit(one: TensorFlow) -> None:
        try:
            found.append(one.fit(wait=False))
        except CliError as refused:
            found.append(refused)

    threads = [threading.Thread(target=fit, args=(one,)) for one in training]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (job,) = [one for one in found if isinstance(one, Job)]
    (refused,) = [one for one in found if isinstance(one, CliError)]
    assert "is under way" in str(refused)
    (Path(job.checkpoint_dir) / "finish").touch()
    job.wait()


def test_a_sweep_has_a_leaderboard_while_it_runs_and_when_it_has_ended(
    begin: Any, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = begin("searched", hyperparameters={"rate": 9}).sweep(
        {"rate": [0.1, 0.2], "depth": (1, 2)},
        "loss",
        goal="minimize",
        method="grid",
        parallelism=2,
        wait=False,
    )
    assert isinstance(sweep, Sweep)
    sweep.leaderboard()
    sweep.wait(logs=True)
    assert "begins with" in capsys.readouterr().out
    found = TensorFlow.attach("searched", work_dir=home)
    assert isinstance(found, Sweep)
    assert found.status == "succeeded"
    board = rows(found.leaderboard())
    assert [row["rank"] for row in board] == [1, 2, 3, 4]
    assert {(row["rate"], row["depth"]) for row in board} == {
        (r, d) for r in (0.1, 0.2) for d in (1, 2)
    }
    assert found.best is not None
    assert found.best.value == pytest.approx(1 / 3)
    found.logs(lines=1)
    assert 'result: {"rate": "0.' in capsys.readouterr().out


def test_of_a_batch_what_failed_is_known_and_only_what_is_missing_is_done_again(
    begin: Any, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    work: dict[str, Any] = {"inputs": range(0, 10, 3), "output": "parts/{index}.txt"}
    with pytest.raises(JobFailed, match="3 of 4 shards have succeeded, 1 ha") as raised:
        begin("pieces", "shard.py", hyperparameters={"bad": 2}).batch(
            **work, parallelism=2, max_retries=0
        )
    batch = raised.value.job
    assert isinstance(batch, Batch)
    assert batch.progress == {
        **{"total": 4, "waiting": 0, "running": 0, "succeeded": 3, "failed": 1},
        "seconds_left": None,
    }
    (failed,) = batch.failed
    assert (failed["index"], failed["begin"], failed["end"]) == (2, 6, 9)
    assert "a bad shard" in failed["why"]
    with pytest.raises(JobFailed, match="3 outputs of this batch are there already"):
        begin("pieces", "shard.py").batch(**work)
    again = begin("pieces", "shard.py").batch(**work, resume=True)
    assert again.progress["total"] == again.progress["succeeded"] == 1
    found = TensorFlow.attach("pieces", work_dir=home)
    assert isinstance(found, Batch)
    parts = [Path(found.output.format(index=index)).read_text() for index in range(4)]
    assert parts == ["0 1 2", "3 4 5", "6 7 8", "9"]


def test_a_cluster_that_was_started_for_a_smaller_job_grows(begin: Any) -> None:
    begin("small").fit(logs=False)
    cpus = 4 * (os.cpu_count() or 1)
    larger = {**OPTIONS, "worker": {**SIZE, "cpus": cpus}}
    assert begin("large", options=larger).fit(logs=False).status == "succeeded"


def test_one_whose_cluster_is_killed_ends_with_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CODE)
    home = tmp_path / "home"
    training = TensorFlow(
        "train.py",
        source_dir=tmp_path,
        name="lost",
        work_dir=home,
        options=OPTIONS,
        hyperparameters={"waits": True},
    )
    raised: list[CliError] = []

    def fit() -> None:
        try:
            training.fit()
        except CliError as error:
            raised.append(error)

    followed = threading.Thread(target=fit)
    followed.start()
    try:
        status = CommandLine(home).ask
        eventually(lambda: "is running" in status("status", "lost").out, seconds=180)
        os.kill(json.loads((home / "local/cluster.json").read_text())["pid"], signal.SIGKILL)
        followed.join(120)
        assert not followed.is_alive()
    finally:
        CommandLine(home).ask("local", "down", "--yes")
    (error,) = raised
    assert "The embedded cluster of lost has ended" in str(error)
    assert "dcos-tensorflow resume lost" in str(error)
