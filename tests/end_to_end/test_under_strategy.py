"""``run --strategy``: a Keras script of one task trains on several, and is not edited for that."""

import pytest

from command_line import NEWEST, OLD, accuracy_in

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(700)]

DEADLINE = 300.0
SCRIPT = """\
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
x = rng.normal(size=(2048, 16)).astype("float32")
y = (x.sum(axis=1) > 0).astype("int32")
model = tf.keras.Sequential([tf.keras.layers.Dense(32, "relu"), tf.keras.layers.Dense(2)])
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"])
model.fit(x, y, batch_size=32, epochs=4, validation_split=0.1, verbose=2)
print("devices", tf.distribute.get_strategy().num_replicas_in_sync)
print('result: {"test_accuracy": %.4f}' % model.evaluate(x, y, verbose=0)[1])
model.save("model.keras")
"""
MIRRORED = ("mirrored", "--workers", "2")
SERVED = ("parameter_server", "--workers", "2", "--ps", "1")


def row(way, version, *, gate=False):
    marks = () if gate else (pytest.mark.soak,)
    return pytest.param(way, version, id=f"{way[0]}-{version}", marks=marks)


@pytest.mark.parametrize(
    ("way", "version"),
    [
        row(MIRRORED, NEWEST, gate=True),
        row(MIRRORED, OLD),
        row(SERVED, OLD, gate=True),
        row(SERVED, NEWEST),
    ],
)
def test_a_script_of_one_task_trains_on_all_of_them(
    local_cluster, tensorflow, tmp_path, way, version
):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    name = f"under-{way[0].replace('_', '-')}-{version.replace('.', '-')}"
    python = f"service.python={tensorflow(version)}"
    run = local_cluster.start(
        "run", script, "--name", name, "--set", python, "--strategy", *way, "--yes"
    )
    out, _ = run.communicate(timeout=DEADLINE)
    assert run.returncode == 0, out[-4000:]
    assert accuracy_in(out) > 0.8
    trainer = "chief-0" if "--ps" in way else "worker-0"
    tasks = local_cluster.home / "services" / name / "tasks"
    printed = (tasks / trainer / "stdout").read_text()
    assert "devices 2" in printed
    # The others train as well, and one model is kept.
    assert [f.parent.name for f in tasks.glob("*/model.keras")] == [trainer]
