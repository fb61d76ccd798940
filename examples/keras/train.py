"""Handwritten digits with Keras: on one worker, on several, or with parameter servers.

The same file for all three. Every task runs it; TF_CONFIG says what the others are and what this
one does, and is not there where there is only one. Epoch by epoch the training is kept in
CHECKPOINT_DIR: it goes on from there after whatever ended it.
"""

import argparse
import importlib.util
import json
import os
import tempfile
import time

# Under a strategy of several tasks Keras 2 alone trains. It is TensorFlow's own up to 2.15, and the
# package tf_keras from 2.16 on; TensorFlow wants to know of that before it is imported.
if importlib.util.find_spec("tf_keras"):
    os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

BATCH = 32
KEPT = os.environ.get("CHECKPOINT_DIR", "checkpoints")
LOGS = os.environ.get("LOG_DIR", "logs")
OUTPUT = os.environ.get("OUTPUT_DIR", LOGS)
WEIGHTS = os.path.join(KEPT, "epoch-{epoch:03d}.weights.h5")


def main():
    parser = argparse.ArgumentParser(description="Learn handwritten digits.")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--steps-per-epoch", type=int, default=100)
    arguments = parser.parse_args()
    config = json.loads(os.environ.get("TF_CONFIG") or "{}")
    cluster, task = config.get("cluster", {}), config.get("task", {})
    role, index = task.get("type", "worker"), task.get("index", 0)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if role == "evaluator":
        evaluate(arguments.epochs)
    elif "ps" in cluster and role != "chief":
        # Computes what the chief orders, and is ended when the chief is done.
        tf.distribute.Server(resolver.cluster_spec(), job_name=role, task_index=index).join()
    elif "ps" in cluster:
        train(arguments, tf.distribute.ParameterServerStrategy(resolver), batches())
    elif cluster:
        chief = role == "chief" or (index == 0 and "chief" not in cluster)
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        train(arguments, strategy, strategy.distribute_datasets_from_function(shard), chief)
    else:
        train(arguments, tf.distribute.get_strategy(), batches())


def train(arguments, strategy, data, chief=True):
    with strategy.scope():
        model = build()
    callbacks = [
        tf.keras.callbacks.TensorBoard(LOGS),
        tf.keras.callbacks.ModelCheckpoint(WEIGHTS, save_weights_only=True),
        # The last one: an epoch is over when all the others have done with it.
        tf.keras.callbacks.BackupAndRestore(os.path.join(KEPT, "backup"), delete_checkpoint=False),
    ]
    model.fit(
        data,
        epochs=arguments.epochs,
        steps_per_epoch=arguments.steps_per_epoch,
        callbacks=callbacks,
        verbose=2,
    )
    # All workers of a MultiWorkerMirroredStrategy save together; the chief's file is the one.
    path = os.path.join(OUTPUT if chief else tempfile.mkdtemp(), "digits.keras")
    model.save(path)
    if chief:
        _, accuracy = tf.keras.models.load_model(path).evaluate(*digits()[1], verbose=0)
        steps = int(model.optimizer.iterations.numpy())
        result = {"test_accuracy": round(accuracy, 4), "steps": steps, "model": path}
        print("result: " + json.dumps(result), flush=True)


def evaluate(epochs):
    """Measure the model of each epoch beside the training, which does not wait for it."""
    model, test = build(), digits()[1]
    curve = tf.summary.create_file_writer(os.path.join(LOGS, "evaluator"))
    for epoch in range(1, epochs + 1):
        path = WEIGHTS.format(epoch=epoch)
        while not os.path.exists(path) or time.time() - os.path.getmtime(path) < 2:
            time.sleep(1)  # It is not written to its end yet.
        model.load_weights(path)
        _, accuracy = model.evaluate(*test, verbose=0)
        print(f"after epoch {epoch}: test accuracy {accuracy:.4f}", flush=True)
        with curve.as_default():
            tf.summary.scalar("test_accuracy", accuracy, step=epoch)


def build():
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Dense(64, activation="relu", input_shape=(64,)),
            tf.keras.layers.Dense(10),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    return model


def shard(context):
    """Return the batches of one of several workers: a part of the data that no other one has."""
    return batches(context.num_input_pipelines, context.input_pipeline_id)


def batches(count=1, index=0):
    data = tf.data.Dataset.from_tensor_slices(digits()[0]).shard(count, index)
    return data.shuffle(2000).repeat().batch(BATCH).prefetch(tf.data.AUTOTUNE)


def digits():
    """Return ((images, labels) to train, (images, labels) to test), the same in every task."""
    data = load_digits()
    order = np.random.RandomState(0).permutation(len(data.target))
    images, labels = data.data[order].astype("float32") / 16, data.target[order]
    return (images[360:], labels[360:]), (images[:360], labels[:360])


if __name__ == "__main__":
    main()
