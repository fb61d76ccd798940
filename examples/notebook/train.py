"""Handwritten digits with Keras, as the notebook beside it trains them.

What it is to work with is in JOB_CONTEXT, how far it is it reports, and what it has learned lies in
OUTPUT_DIR. Started by hand it finds none of these, and trains all the same.
"""

import json
import os

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

try:
    from dcos_tensorflow import report
except ImportError:  # Not within a job.

    def report(step, **metrics):
        print(step, metrics)


class Report(tf.keras.callbacks.Callback):
    """Tell the metrics of each epoch."""

    def on_epoch_end(self, epoch, logs=None):
        report(epoch + 1, **logs)


def main():
    context = {"units": 32, "learning_rate": 0.01, "epochs": 5}
    context.update(json.loads(os.environ.get("JOB_CONTEXT") or "{}"))
    data = load_digits()
    order = np.random.RandomState(0).permutation(len(data.target))
    images, labels = data.data[order].astype("float32") / 16, data.target[order]
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Dense(context["units"], activation="relu"),
            tf.keras.layers.Dense(10),
        ]
    )
    model.compile(
        tf.keras.optimizers.Adam(context["learning_rate"]),
        tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(
        images[360:],
        labels[360:],
        epochs=context["epochs"],
        validation_data=(images[:360], labels[:360]),
        callbacks=[Report()],
        verbose=0,
    )
    model.save(os.path.join(os.environ.get("OUTPUT_DIR", "."), "digits.keras"))
    _, accuracy = model.evaluate(images[:360], labels[:360], verbose=0)
    print("result:", json.dumps({"test_accuracy": round(float(accuracy), 4)}))


if __name__ == "__main__":
    main()
