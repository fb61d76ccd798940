"""Which digit is on each image of a shard, by a model that a job has trained before (``learn.py``).

The function contract of a batch: the task runner imports this file once in each slot and calls
``main(shard, context)`` for each shard that the slot takes. So what ``functools.cache`` holds is
loaded once, not once a shard. A shard has ``index``, ``begin``, ``end``, ``inputs`` (of a listing)
and ``output``: where to write, which is published once ``main`` has returned.
"""

import functools
import gzip
import json
import os

import numpy as np
import tensorflow as tf


def main(shard, context):
    begin, end = shard["begin"], shard["end"]
    digits = np.argmax(model()(images(context["images"])[begin:end], training=False), axis=1)
    with open(shard["output"], "w") as output:
        for image, digit in enumerate(digits, begin):
            output.write(json.dumps({"image": image, "digit": int(digit)}) + "\n")


@functools.cache
def model():
    print(f"loads the model {os.environ['MODEL']}", flush=True)
    return tf.keras.models.load_model(os.environ["MODEL"])


@functools.cache
def images(path):
    """Return all images, which are in MNIST's IDX format, as rows of numbers from 0 to 1."""
    with gzip.open(path) as file:
        content = file.read()
    return np.frombuffer(content, np.uint8, offset=16).reshape(-1, 784).astype("float32") / 255
