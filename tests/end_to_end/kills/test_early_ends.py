"""A task that ends with 0 too early is named with a remedy, and no other task waits for it."""

import re
from pathlib import Path

import pytest

from command_line import OLD, CommandLine, write_options

SAVES_ALONE = """
import json
import os

import numpy
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
    model.compile("sgd", "mse")
inputs, wanted = numpy.random.rand(64, 4), numpy.random.rand(64, 1)
data = tf.data.Dataset.from_tensor_slices((inputs, wanted)).repeat().batch(16)
model.fit(data, epochs=1, steps_per_epoch=10, verbose=2)
if json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 0:
    model.save(os.path.join(os.environ["CHECKPOINT_DIR"], "model"))
"""


def a_job(folder: Path, code: str, **sections: dict[str, object]) -> Path:
    """Write a job with this module, and return its options."""
    source = folder / "code"
    source.mkdir()
    (source / "train.py").write_text(code)
    service = {"job_url": str(source), "job_name": "train", **sections.pop("service")}
    return write_options(folder, service=service, **sections)


# ``unit/core/test_clean_ends`` and the simulation have it without processes; TensorFlow's part is
# that the others end, and how, which takes a minute.
@pytest.mark.soak
@pytest.mark.tensorflow
@pytest.mark.timeout(400)
def test_of_a_gang_in_which_one_saves_alone_the_end_of_the_others_is_the_cause(
    local_cluster: CommandLine, tmp_path: Path, tensorflow
) -> None:
    options = a_job(
        tmp_path,
        SAVES_ALONE,
        service={"name": "saves-alone", "python": tensorflow(OLD)},
        worker={"count": 2, "mem": 900},
        retry={"limit": 3},
    )
    ended = local_cluster("run", options, "--yes", timeout=350)
    assert ended.code == 1, ended.out[-4000:]
    # The second failure is the verdict, and is told as that.
    told = re.findall(r"(?:failure|has failed after .* restart): (.*)", ended.out)
    assert len(told) == 2, ended.out[-4000:]
    assert all("worker-1 ended with exit code 0 while worker-0" in each for each in told)
    assert "2 times the same, " in ended.out
    assert "directory to be thrown away" in ended.out
    assert "look at the task that failed first" not in ended.out
