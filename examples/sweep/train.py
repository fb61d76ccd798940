"""Handwritten digits with parameters that a sweep chooses: one trial is one run of this file.

The parameters come in JOB_CONTEXT; without one it trains with those below. Epoch by epoch it is
kept in CHECKPOINT_DIR, and goes on from there after whatever ended it, with the same numbers:
everything that is drawn is drawn from a seed. So a sweep finds the same best, whatever fails.
"""

import json
import os

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

EPOCHS = 12
DEFAULTS = {"learning_rate": 0.001, "units": 32, "layers": 1, "batch_size": 32}


def main():
    parameters = {**DEFAULTS, **json.loads(os.environ.get("JOB_CONTEXT") or "{}")}
    kept = os.environ.get("CHECKPOINT_DIR", "checkpoints")
    tf.keras.utils.set_random_seed(1)
    tf.config.experimental.enable_op_determinism()
    (images, labels), (others, answers) = data()
    model = build(parameters)
    optimizer = tf.keras.optimizers.Adam(parameters["learning_rate"])
    optimizer.build(model.trainable_variables)
    epoch = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, epoch=epoch)
    manager = tf.train.CheckpointManager(checkpoint, kept, max_to_keep=2)
    if manager.restore_or_initialize():
        print(f"goes on behind epoch {int(epoch)}", flush=True)

    @tf.function
    def learn(some_images, some_labels):
        with tf.GradientTape() as tape:
            loss = mean_loss(model(some_images, training=True), some_labels)
        gradients = tape.gradient(loss, model.trainable_variables)
        pairs = zip(gradients, model.trainable_variables)  # noqa: B905
        optimizer.apply_gradients(pairs)
        return loss

    size = parameters["batch_size"]
    while int(epoch) < EPOCHS:
        order = np.random.RandomState(int(epoch)).permutation(len(labels))
        for begin in range(0, len(order) - size + 1, size):
            batch = order[begin : begin + size]
            loss = learn(images[batch], labels[batch])
        epoch.assign_add(1)
        # Before it is kept: an attempt that goes on from here does not tell it again.
        tell(step=int(epoch), loss=float(loss), val_accuracy=accuracy(model, others, answers))
        manager.save()
    print("result: " + json.dumps({"val_accuracy": accuracy(model, others, answers)}), flush=True)


def build(parameters):
    layers = [tf.keras.layers.Input([64])]
    for _ in range(parameters["layers"]):
        layers.append(tf.keras.layers.Dense(parameters["units"], activation="relu"))
    return tf.keras.Sequential([*layers, tf.keras.layers.Dense(10)])


def mean_loss(logits, labels):
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_mean(each)


def accuracy(model, images, labels):
    found = np.argmax(model(images, training=False), axis=1)
    return round(float(np.mean(found == labels)), 4)


def tell(**numbers):
    """Append a line to the progress file: that is where the sweep reads them."""
    print(" ".join(f"{name} {value:.4g}" for name, value in numbers.items()), flush=True)
    path = os.environ.get("PROGRESS_FILE")
    if path:
        with open(path, "a") as progress:
            progress.write(json.dumps(numbers) + "\n")


def data():
    """Return ((images, labels) to train, (images, labels) to judge by), the same in every trial."""
    digits = load_digits()
    order = np.random.RandomState(0).permutation(len(digits.target))
    images, labels = digits.data[order].astype("float32") / 16, digits.target[order]
    return (images[360:], labels[360:]), (images[:360], labels[:360])


if __name__ == "__main__":
    main()
