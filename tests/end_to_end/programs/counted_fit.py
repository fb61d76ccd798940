"""Keras' ``fit`` under parameter servers, which tells each epoch: STOP-FILE and TOLD-FILE.

A line is: how many steps were asked for, how many the optimizer has counted, how many workers.
"""

import sys
import time
from pathlib import Path

import tensorflow as tf

STOP, TOLD = map(Path, sys.argv[1:3])
STEPS = 10

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id
    ).join()
strategy = tf.distribute.ParameterServerStrategy(resolver)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
    model.compile("sgd", "mse")


def examples(_):
    x = tf.random.stateless_uniform((64, 4), (1, 2))
    return tf.data.Dataset.from_tensors((x, tf.reduce_sum(x, 1, keepdims=True))).repeat()


class Told(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        workers = len(strategy._cluster_coordinator._cluster.workers)
        counted = int(self.model.optimizer.iterations.numpy())
        with TOLD.open("a") as told:
            print(STEPS * (epoch + 1), counted, workers, file=told)
        self.model.stop_training = STOP.exists()
        # The processes of the workers that join need the cores, too.
        time.sleep(0.2)


data = tf.keras.utils.experimental.DatasetCreator(examples)
model.fit(data, epochs=10**6, steps_per_epoch=STEPS, callbacks=[Told()], verbose=0)
