"""A Keras script of one task: it knows of no cluster, and trains on one by ``run --strategy``.

dcos-tensorflow run train.py
dcos-tensorflow run train.py --workers 2 --strategy mirrored
dcos-tensorflow run train.py --workers 2 --ps 1 --strategy parameter_server
"""

import json

import numpy as np
import tensorflow as tf

random = np.random.default_rng(0)
inputs = random.normal(size=(2048, 16)).astype("float32")
labels = (inputs.sum(axis=1) > 0).astype("int32")

model = tf.keras.Sequential([tf.keras.layers.Dense(32, "relu"), tf.keras.layers.Dense(2)])
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"])
model.fit(inputs, labels, batch_size=32, epochs=4, validation_split=0.1, verbose=2)

print("strategy:", type(tf.distribute.get_strategy()).__name__)
accuracy = model.evaluate(inputs, labels, verbose=0)[1]
print("result:", json.dumps({"test_accuracy": round(accuracy, 4)}))
model.save("model.keras")
