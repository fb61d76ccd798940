"""Saves and restores with two parameter servers. Usage: GO HOW...

Each HOW is what is given to ``save``: ``nothing``; ``job``, the chief's job alone; ``device``, the
chief's whole device, spelt both ways. Before another HOW it waits until there is a file GO.
"""

import os
import sys
import time
from pathlib import Path

import tensorflow as tf

DEVICES = {
    "nothing": [None],
    "job": ["/job:chief"],
    "device": ["/job:chief/replica:0/task:0/cpu:0", "/job:chief/replica:0/task:0/device:CPU:0"],
}

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    tf.distribute.Server(
        resolver.cluster_spec(),
        job_name=resolver.task_type,
        task_index=resolver.task_id,
        protocol="grpc",
    ).join()
strategy = tf.distribute.ParameterServerStrategy(resolver)
tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    variables = [tf.Variable(float(number)) for number in range(4)]
print("variables are on", {variable.device for variable in variables}, flush=True)
checkpoint = tf.train.Checkpoint(variables=variables)
manager = tf.train.CheckpointManager(checkpoint, os.environ["CHECKPOINT_DIR"], max_to_keep=3)
number = 0
for how in sys.argv[2:]:
    while number and not Path(sys.argv[1]).exists():
        time.sleep(0.1)
    for device in DEVICES[how]:
        number += 1
        options = tf.train.CheckpointOptions(experimental_io_device=device) if device else None
        for variable in variables:
            variable.assign(float(number))
        path = manager.save(checkpoint_number=number, options=options)
        for variable in variables:
            variable.assign(0.0)
        checkpoint.restore(path, options).assert_consumed()
        found = [float(variable.numpy()) for variable in variables]
        assert found == [number] * 4, found
        print(f"saved and restored through {device}", flush=True)
