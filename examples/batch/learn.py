"""Learn the digits of MNIST, and leave the model as OUTPUT_DIR/model.keras, for the batch."""

import gzip
import json
import os

import numpy as np
import tensorflow as tf
from classify import images

EPOCHS, BATCH = 3, 100


def main():
    context = json.loads(os.environ.get("JOB_CONTEXT") or "{}")
    with gzip.open(context["labels"]) as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Input([784]),
            tf.keras.layers.Dense(64, activation="relu"),
            tf.keras.layers.Dense(10),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    told = model.fit(images(context["images"]), labels, BATCH, EPOCHS, verbose=2)
    path = os.path.join(os.environ.get("OUTPUT_DIR", "."), "model.keras")
    model.save(path)
    accuracy = round(told.history["accuracy"][-1], 4)
    print("result: " + json.dumps({"accuracy": accuracy, "model": path}), flush=True)


if __name__ == "__main__":
    main()
