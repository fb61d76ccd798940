"""Handwritten digits with Keras, as a program with arguments of its own (service.job_cmd)."""

import argparse
import json
import os

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--directory", required=True, help="where the model is kept")
    arguments = parser.parse_args()
    path = os.path.join(arguments.directory, "digits.keras")
    state = os.path.join(arguments.directory, "epochs.json")

    digits = load_digits()
    order = np.random.RandomState(0).permutation(len(digits.target))
    images, labels = digits.data[order].astype("float32") / 16, digits.target[order]
    model, done = load_or_build(path, state)

    def save(epoch, logs):
        # The model first, the number last, each by a rename: a crash repeats an epoch at worst.
        model.save(path + ".new.keras")
        os.replace(path + ".new.keras", path)
        with open(state + ".new", "w") as file:
            json.dump(epoch + 1, file)
        os.replace(state + ".new", state)

    model.fit(
        images[360:],
        labels[360:],
        epochs=max(arguments.epochs, done),
        initial_epoch=done,
        verbose=2,
        callbacks=[tf.keras.callbacks.LambdaCallback(on_epoch_end=save)],
    )
    _, accuracy = model.evaluate(images[:360], labels[:360], verbose=0)
    print(f"test accuracy {accuracy:.4f}", flush=True)
    result = {"test_accuracy": round(float(accuracy), 4), "model": path, "checkpoint": path}
    print("result: " + json.dumps(result), flush=True)


def load_or_build(path, state):
    """Return the model and how many epochs it has been trained."""
    if os.path.exists(path) and os.path.exists(state):
        with open(state) as file:
            return tf.keras.models.load_model(path), json.load(file)
    model = tf.keras.Sequential(
        [
            tf.keras.Input((64,)),
            tf.keras.layers.Dense(64, activation="relu"),
            tf.keras.layers.Dense(10),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    return model, 0


if __name__ == "__main__":
    main()
