"""A data set of Keras on machines without the Internet.

``keras.datasets`` downloads into ``.keras/datasets``, and takes what lies there already. Here that
folder comes from S3, by the option ``data``, and ``KERAS_HOME`` leads to it. Copy your own there
once, from a machine that has downloaded the set::

    aws s3 cp --recursive ~/.keras/datasets s3://bucket/keras/datasets
"""

import json
import os

import keras


def main():
    context = json.loads(os.environ["JOB_CONTEXT"])
    data = getattr(keras.datasets, context["dataset"])
    (images, labels), test = data.load_data()
    print(f"{len(images)} images to train with", flush=True)
    model = keras.Sequential(
        [
            keras.Input(images.shape[1:]),
            keras.layers.Flatten(),
            keras.layers.Rescaling(1 / 255),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"])
    kept = os.path.join(os.environ["CHECKPOINT_DIR"], "backup")
    model.fit(
        images,
        labels,
        epochs=context["epochs"],
        verbose=2,
        callbacks=[keras.callbacks.BackupAndRestore(kept)],
    )
    _, accuracy = model.evaluate(*test, verbose=0)
    print("result: " + json.dumps({"test_accuracy": round(float(accuracy), 4)}), flush=True)


if __name__ == "__main__":
    main()
