"""Handwritten digits, learned by workers that share parameter servers.

The function contract: the task runner calls ``main(server, log_dir, context)`` on every worker and
runs the parameter servers by itself. Worker 0 is the chief: it keeps the checkpoints in
``log_dir``, and at the end measures the accuracy and exports the model.

Context: ``steps`` (all workers together), ``batch_size``, ``learning_rate``.
"""

import json
import os
import time

import numpy as np
import tensorflow.compat.v1 as tf
from sklearn.datasets import load_digits

tf.disable_v2_behavior()

PIXELS, HIDDEN, CLASSES = 64, 64, 10


def main(server, log_dir, context):
    steps = context.get("steps", 1500)
    definition = server.server_def
    job, index = definition.job_name, definition.task_index
    cluster = tf.train.ClusterSpec(definition.cluster)
    chief = index == 0
    train, _ = data()
    images, labels = shard(train, index, cluster.num_tasks(job))

    setter = tf.train.replica_device_setter(
        worker_device=f"/job:{job}/task:{index}", cluster=cluster
    )
    with tf.device(setter):
        model = build(context.get("learning_rate", 0.003))
    # The chief alone writes checkpoints, whole ones, on its own disk: the parameter servers would
    # otherwise write their parts on theirs.
    with tf.device(f"/job:{job}/task:0/cpu:0"):
        saver = tf.train.Saver(sharded=False, save_relative_paths=True, max_to_keep=3)

    if chief and tf.train.latest_checkpoint(log_dir):
        print(f"goes on from {tf.train.latest_checkpoint(log_dir)}", flush=True)
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=chief,
        checkpoint_dir=log_dir if chief else None,
        scaffold=tf.train.Scaffold(saver=saver),
        hooks=[tf.train.StopAtStepHook(last_step=steps)],
        save_checkpoint_steps=250,
        log_step_count_steps=None,
    ) as session:
        batches = batches_of(images, labels, context.get("batch_size", 64), seed=index)
        reported = time.monotonic()
        while not session.should_stop():
            batch_images, batch_labels = next(batches)
            _, step, loss, accuracy = session.run(
                [model["train"], model["step"], model["loss"], model["accuracy"]],
                {model["images"]: batch_images, model["labels"]: batch_labels},
            )
            if time.monotonic() - reported > 0.5:
                reported = time.monotonic()
                print(f"step {step} loss {loss:.4f} accuracy {accuracy:.4f}", flush=True)
    if chief:
        finish(log_dir)


def build(learning_rate):
    """One hidden layer; returns the tensors by name."""
    images = tf.placeholder(tf.float32, [None, PIXELS], name="images")
    labels = tf.placeholder(tf.int64, [None], name="labels")
    hidden = tf.nn.relu(dense(images, "hidden", PIXELS, HIDDEN))
    logits = dense(hidden, "logits", HIDDEN, CLASSES)
    step = tf.train.get_or_create_global_step()
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )
    prediction = tf.argmax(logits, 1)
    return {
        "images": images,
        "labels": labels,
        "step": step,
        "loss": loss,
        "prediction": prediction,
        "accuracy": tf.reduce_mean(tf.cast(tf.equal(prediction, labels), tf.float32)),
        "train": tf.train.AdamOptimizer(learning_rate).minimize(loss, global_step=step),
    }


def dense(inputs, name, width, units):
    with tf.variable_scope(name):
        weights = tf.get_variable("weights", [width, units])
        bias = tf.get_variable("bias", [units], initializer=tf.zeros_initializer())
        return tf.matmul(inputs, weights) + bias


def finish(log_dir):
    """Restore the last checkpoint in a session of our own, measure, export, tell."""
    checkpoint = tf.train.latest_checkpoint(log_dir)
    (_, (images, labels)) = data()
    with tf.Graph().as_default():
        model = build(learning_rate=0.0)
        with tf.Session() as session:
            tf.train.Saver().restore(session, checkpoint)
            values = {model["images"]: images, model["labels"]: labels}
            accuracy, step = session.run([model["accuracy"], model["step"]], values)
            exported = os.path.join(log_dir, "model", str(step))
            if not tf.gfile.Exists(exported):
                tf.saved_model.simple_save(
                    session,
                    exported,
                    inputs={"images": model["images"]},
                    outputs={"digit": model["prediction"]},
                )
    print(f"test accuracy {accuracy:.4f}", flush=True)
    result = {
        "test_accuracy": round(float(accuracy), 4),
        "steps": int(step),
        "model": exported,
        "checkpoint": checkpoint,
    }
    print("result: " + json.dumps(result), flush=True)


def data():
    """Return ((images, labels) to train, (images, labels) to test), the same in every task."""
    digits = load_digits()
    order = np.random.RandomState(0).permutation(len(digits.target))
    images, labels = digits.data[order].astype("float32") / 16, digits.target[order]
    return (images[360:], labels[360:]), (images[:360], labels[:360])


def shard(pair, index, count):
    return pair[0][index::count], pair[1][index::count]


def batches_of(images, labels, size, seed):
    random = np.random.RandomState(seed)
    while True:
        chosen = random.randint(0, len(labels), size)
        yield images[chosen], labels[chosen]
