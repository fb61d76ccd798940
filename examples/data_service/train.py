"""A training whose input takes longer than its steps: data workers make its batches beside it.

dcos-tensorflow run train.py
dcos-tensorflow run train.py --set data_worker.count=2

Each picture is turned, cut, and recoloured anew in every epoch. All of that is TensorFlow's own
operations, which go to the data workers as they are; Python code (tf.py_function) cannot.
"""

import json
import os
import time

import tensorflow as tf

SIZE, PICTURES, BATCH, EPOCHS = 96, 512, 32, 3


def picture(index):
    """Make a picture out of its number: as a file would be, it is the same in every epoch."""
    seed = tf.stack([index, index])
    label = tf.cast(index % 2, tf.float32)
    return tf.random.stateless_uniform([2 * SIZE, 2 * SIZE, 3], seed) * (0.5 + label / 2), label


def changed(image, label):
    image = tf.image.random_crop(image, [SIZE, SIZE, 3])
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_hue(image, 0.1)
    image = tf.image.random_saturation(image, 0.8, 1.2)
    return tf.image.resize(tf.image.resize(image, [4 * SIZE, 4 * SIZE]), [SIZE, SIZE]), label


def pictures():
    data = tf.data.Dataset.range(PICTURES).shuffle(PICTURES)
    data = data.map(picture, tf.data.AUTOTUNE).map(changed, tf.data.AUTOTUNE).batch(BATCH)
    if "TF_DATA_SERVICE" in os.environ:
        served = tf.data.experimental.service.distribute(
            # Each picture once an epoch, by whichever data worker is free.
            "distributed_epoch",
            service=os.environ["TF_DATA_SERVICE"],
        )
        data = data.apply(served)
    return data.prefetch(tf.data.AUTOTUNE)


def main():
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Input([SIZE, SIZE, 3]),
            tf.keras.layers.GlobalAveragePooling2D(),
            tf.keras.layers.Dense(1),
        ]
    )
    loss = tf.keras.losses.BinaryCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(0.05), loss, metrics=["accuracy"])
    began = time.monotonic()
    told = model.fit(pictures(), epochs=EPOCHS, verbose=2)
    seconds = time.monotonic() - began
    found = {
        "accuracy": round(told.history["accuracy"][-1], 4),
        "images_per_second": round(EPOCHS * PICTURES / seconds, 1),
    }
    print("result: " + json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
