"""What ``validate`` says of the run that will be."""

import json
import sys

import pytest

from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.deploy.job.describing import document, lines
from dcos_tensorflow.deploy.job.preparation import preview
from dcos_tensorflow.options import load

MIRRORED = "import tensorflow as tf\ns = tf.distribute.MultiWorkerMirroredStrategy()\n"
SERVERS = "import tensorflow as tf\ns = tf.distribute.ParameterServerStrategy(r)\n"
FUNCTION = "def main(server, log_dir, context):\n    pass\n"


@pytest.fixture
def directory(tmp_path):
    return WorkDirectory(tmp_path / "work").service("job")


@pytest.fixture
def described(tmp_path, directory):
    """Return a function that describes a job of one file."""

    def of(source=MIRRORED, *, local=True, worker=2, service=(), **more):
        (tmp_path / "train.py").write_text(source)
        base = {"name": "job", "python": sys.executable, "job_url": ".", "job_name": "train"}
        options = {
            "service": {**base, **dict(service)},
            "parameter_server": {"count": 0},
            "worker": {"count": worker},
            **more,
        }
        (tmp_path / "options.json").write_text(json.dumps(options))
        prepared, _ = preview(load(tmp_path / "options.json"), directory, {}, local=local)
        return document(prepared, local=local)

    return of


def test_the_arguments_of_the_code_are_shown_as_they_would_be_typed(described):
    told = lines(described(service={"job_args": ["--rate", "two words"]}))
    assert any("train --rate 'two words' from ." in line for line in told)


def test_a_sweep_says_what_it_tries_and_how_often(described):
    sweep = {
        "parameters": {"rate": {"uniform": [0, 1]}, "layers": [1, 2]},
        "objective": {"metric": "acc"},
        "max_trials": 60,
        "early_stopping": "asha",
    }
    found = described("import os\nos.environ['JOB_CONTEXT']\n", worker=1, sweep=sweep)
    told = lines(found)
    assert found["units"]["count"] == 60
    assert told[0] == "job would run 1 task on this machine for each trial at a time:"
    rows = [line.split(maxsplit=1)[1] for line in told if line.startswith("sweep")]
    assert rows == [
        "60 trials by tpe, as many as fit at a time: maximize acc over rate, layers",
        "bad trials are stopped early by asha",
    ]


def test_a_batch_says_how_many_shards_there_are_and_where_they_go(described):
    batch = {
        "inputs": {"range": [0, 1000, 300]},
        "output": "/data/part-{index}",
        "parallelism": 2,
    }
    told = lines(described(worker=1, batch=batch))
    rows = [line.split(maxsplit=1)[1] for line in told if line.startswith("batch")]
    assert rows == ["4 shards of 300 of 0 to 1000, 2 at a time", "into /data/part-{index}"]


@pytest.mark.parametrize(
    ("source", "more", "strategy"),
    [
        (
            MIRRORED,
            {},
            "multi_worker: recognised by MultiWorkerMirroredStrategy (train.py:2)",
        ),
        (
            SERVERS,
            {"chief": {"count": 1}, "parameter_server": {"count": 1}},
            "parameter_server: recognised by ParameterServerStrategy (train.py:2)",
        ),
        (FUNCTION, {}, "between_graph: the function is given a server"),
        ("x = 1", {"worker": 1}, "independent: one task trains"),
        ("print(1)", {}, "multi_worker: by the roles; the code names none"),
        (
            "import ours",
            {},
            "multi_worker: by the roles; the code names none, as far as it can be read"
            " (train.py:1 imports ours)",
        ),
        (MIRRORED + SERVERS, {}, "multi_worker: by the roles; the code names several"),
        (MIRRORED, {"service": {"strategy": "multi_worker"}}, "multi_worker: service.strategy"),
        (
            MIRRORED,
            {"service": {"strategy": "between_graph"}},
            "between_graph: service.strategy; the code names MultiWorkerMirroredStrategy"
            " (train.py:2)",
        ),
        (
            "",
            {"service": {"job_url": "https://example.org/job.zip"}},
            "multi_worker: by the roles; the code is not on this machine",
        ),
    ],
)
def test_the_strategy_is_told_with_where_it_is_from(described, source, more, strategy):
    told = described(source, **more)
    assert f"{told['strategy']}: {told['strategy_from']}" == strategy
    assert any(line.split(maxsplit=1) == ["strategy", strategy] for line in lines(told))


def test_one_task_is_not_said_to_be_told_of_a_cluster(described):
    def contract(**more):
        (line,) = [line for line in lines(described("print(1)", **more)) if "contract" in line]
        return line

    assert contract(worker=1).endswith("script: the module is run")
    assert contract(worker=2).endswith("script: the module is run with TF_CONFIG")


def test_what_the_tasks_run_with_is_told_once(described):
    service = {"python": "", "tensorflow_version": "2.15.1"}
    told = lines(described(local=False, service=service, chief={"count": 1}))
    (line,) = [line for line in told if "image" in line]
    assert "image tensorflow/tensorflow:2.15.1, TensorFlow 2.15.1" in line


def test_roles_that_run_with_something_else_are_told_apart(described):
    service = {"python": "", "tensorflow_version": "2.15.1"}
    told = lines(described(local=False, service=service, chief={"count": 1, "python": "/opt/tf"}))
    assert any("chief: python /opt/tf" in line for line in told)
    assert any("worker: image tensorflow/tensorflow:2.15.1" in line for line in told)


def test_checkpoints_that_a_run_would_go_on_from_are_told(described, directory):
    def checkpoints():
        (line,) = [line for line in lines(described()) if line.startswith("checkpoints")]
        return line

    assert checkpoints().endswith(f"{directory.checkpoints}, kept between runs")
    directory.checkpoints.mkdir(parents=True)
    for name in ("ckpt-600.index", "ckpt-600.data-00000-of-00001"):
        (directory.checkpoints / name).touch()
    (directory.checkpoints / "checkpoint").write_text('model_checkpoint_path: "ckpt-600"\n')
    assert checkpoints().endswith("; goes on from ckpt-600")


def test_data_and_tensorboard_are_told(described):
    told = lines(
        described(
            local=False,
            service={"use_tensorboard": True, "shared_filesystem": "/shared"},
            data=[{"uri": "s3://bucket/mnist", "path": "mnist"}],
            tensorboard={"port": 6006},
        )
    )
    assert any("s3://bucket/mnist at mnist" in line for line in told)
    assert any("on port 6006 of the machine it comes to" in line for line in told)
