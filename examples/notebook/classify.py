"""Which digit is on each image of a shard, by a model that ``train.py`` has trained before.

The function contract of a batch: this file is imported once in each slot, and ``main`` is called
for each shard that the slot takes. So what ``functools.cache`` holds is loaded once in a slot.
"""

import functools
import json

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits


def main(shard, context):
    begin, end = shard["begin"], shard["end"]
    digits = load_digits()
    images = digits.data[begin:end].astype("float32") / 16
    found = np.argmax(model(context["model"])(images, training=False), axis=1)
    with open(shard["output"], "w") as output:
        for image, digit in enumerate(found, begin):
            told = {
                "image": image,
                "digit": int(digit),
                "right": bool(digit == digits.target[image]),
            }
            output.write(json.dumps(told) + "\n")


@functools.cache
def model(path):
    print(f"loads the model {path}", flush=True)
    return tf.keras.models.load_model(path)
