"""A job under a ParameterServerStrategy whose every step adds one to a variable: none may be lost.

Arguments: a file after whose appearance it ends, and one to which it writes how many steps it has
scheduled, how many are done, and how many workers there are. Between them it leaves the machine to
those that join.
"""

import os
import sys
import time

import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type != "chief":
    server = tf.distribute.Server(
        resolver.cluster_spec(), resolver.task_type, resolver.task_id, protocol="grpc"
    )
    server.join()
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    counted = tf.Variable(0, dtype=tf.int64)


def ones() -> tf.data.Dataset:
    return tf.data.Dataset.from_tensors(tf.ones([], tf.int64)).repeat()


data = iter(coordinator.create_per_worker_dataset(ones))


@tf.function
def step(batches):
    strategy.run(counted.assign_add, args=(next(batches),))


scheduled = 0
while not os.path.exists(sys.argv[1]):
    for _ in range(10):
        coordinator.schedule(step, args=(data,))
    scheduled += 10
    coordinator.join()
    workers = len(coordinator._cluster.workers)
    with open(sys.argv[2], "a") as told:
        told.write(f"{scheduled} {int(counted)} {workers}\n")
    time.sleep(0.2)
