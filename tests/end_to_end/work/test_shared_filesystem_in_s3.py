"""``service.shared_filesystem`` in S3: log directory and final model of a job that knows no S3."""

import json
import subprocess
from pathlib import Path

import pytest

from command_line import EXAMPLES, NEWEST, NO_KERAS, CommandLine, accuracy_in
from servers.s3_server import S3Server

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(300)]

#: Loads a SavedModel and asks it for the digits of the test set.
PREDICT = """
import sys
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
digits = load_digits()
predict = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
images = tf.constant(digits.data.astype("float32") / 16)
print(np.mean(predict(images=images)["digit"].numpy() == digits.target))
"""


def test_events_model_and_checkpoint_of_a_job_arrive_in_s3(
    local_cluster: CommandLine, s3: S3Server, tmp_path: Path, tensorflow
) -> None:
    python = tensorflow(NEWEST)
    options = json.loads((EXAMPLES / "digits" / "options.json").read_text())
    options["service"] |= {
        "job_url": str(EXAMPLES / "digits"),
        "python": python,
        **NO_KERAS,
        "shared_filesystem": "s3://bucket/digits",
        "outcome": "all_workers",
        "job_context": '{"steps": 500}',
    }
    file = tmp_path / "options.json"
    options["worker"]["count"] = 1
    file.write_text(json.dumps({**options, "s3": s3.options(tmp_path)}))
    ended = local_cluster.ask("run", file, "--yes")
    assert ended.code == 0, ended.out[-4000:]
    assert accuracy_in(ended.out) > 0.9

    keys = s3.list_keys("digits/")
    assert any(key.startswith("digits/events.out.tfevents.") for key in keys)
    assert "digits/checkpoints/latest.json" in keys
    # The parts of a checkpoint are there once, published, and not one by one.
    assert not [key for key in keys if key.startswith("digits/model.ckpt")]
    models = s3.list_keys("digits/model/")
    (model,) = {key.rpartition("/")[0] for key in models if key.endswith("saved_model.pb")}
    for key in s3.list_keys(f"{model}/"):
        path = tmp_path / "model" / key[len(model) + 1 :]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(s3.client.get_object(Bucket="bucket", Key=key)["Body"].read())
    asked = subprocess.run(
        [f"{python}/bin/python", "-c", PREDICT, str(tmp_path / "model")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(asked.stdout) >= accuracy_in(ended.out) - 0.05
