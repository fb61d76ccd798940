"""A training and the evaluator that follows it, by its checkpoints alone. Usage: MARKS API.

API is ``iterator`` (``tf.train.checkpoints_iterator``) or ``sidecar`` (Keras 2's SidecarEvaluator).
The evaluator notes the step of each checkpoint that it has evaluated in MARKS; the training ends
when there is a file ``finish``.
"""

import itertools
import os
import sys
import time
from pathlib import Path

import tensorflow as tf

marks = Path(sys.argv[1])
directory = os.environ["CHECKPOINT_DIR"]
data = tf.data.Dataset.from_tensor_slices((tf.zeros([4, 1]), tf.zeros([4, 1]))).batch(2)


def note(step: int) -> None:
    with (marks / "evaluated").open("a") as file:
        file.write(f"{step}\n")


class Model(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.step = tf.Variable(0, dtype=tf.int64)
        self.square = tf.Variable(0, dtype=tf.int64)
        self.padding = tf.Variable(tf.zeros([100_000]))


def train_module() -> None:
    model = Model()
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model), directory, 2)
    for step in itertools.count(1):
        model.step.assign(step)
        model.square.assign(step * step)
        manager.save(checkpoint_number=step)
        print(f"step {step}", flush=True)
        if (marks / "finish").exists():
            return
        time.sleep(0.5)


def evaluate_module() -> None:
    for path in tf.train.checkpoints_iterator(directory, min_interval_secs=0):
        model = Model()
        tf.train.Checkpoint(model=model).restore(path).assert_existing_objects_matched()
        step = int(model.step.numpy())
        assert int(model.square.numpy()) == step * step
        note(step)


def keras_model() -> "tf.keras.Model":
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
    model.compile(optimizer="sgd", loss="mse")
    return model


def train_keras() -> None:
    model = keras_model()
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    manager = tf.train.CheckpointManager(checkpoint, directory, 2)
    while not (marks / "finish").exists():
        model.fit(data, verbose=0)
        step = int(model.optimizer.iterations.numpy())
        manager.save(checkpoint_number=step)
        print(f"step {step}", flush=True)
        time.sleep(0.5)


def evaluate_keras() -> None:
    from keras.utils import SidecarEvaluator

    model = keras_model()
    model.optimizer.build(model.trainable_variables)

    class Note(tf.keras.callbacks.Callback):
        def on_test_end(self, logs: object = None) -> None:
            note(int(model.optimizer.iterations.numpy()))

    SidecarEvaluator(
        model=model, data=data, checkpoint_dir=directory, steps=2, callbacks=[Note()]
    ).start()


evaluates = os.environ["TASK_NAME"].startswith("evaluator")
{
    "iterator": evaluate_module if evaluates else train_module,
    "sidecar": evaluate_keras if evaluates else train_keras,
}[sys.argv[2]]()
