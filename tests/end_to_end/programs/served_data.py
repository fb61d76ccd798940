"""A training of many short epochs whose data comes from the job's tf.data service.

Arguments: a file after whose appearance it ends, and one to which it writes, an epoch a line, its
process, the epoch and how many elements it had. Each element takes 20 ms to make.
"""

import os
import sys

import tensorflow as tf
from tensorflow.python.data.experimental.ops import testing

ELEMENTS = 40
slow = tf.data.Dataset.range(ELEMENTS).apply(testing.sleep(20_000))
if "TF_DATA_SERVICE" in os.environ:
    slow = slow.apply(
        tf.data.experimental.service.distribute(
            "distributed_epoch", service=os.environ["TF_DATA_SERVICE"]
        )
    )
epoch = 0
while not os.path.exists(sys.argv[1]):
    epoch += 1
    elements = [int(element) for element in slow]
    assert len(set(elements)) == len(elements)
    with open(sys.argv[2], "a") as told:
        told.write(f"{os.getpid()} {epoch} {len(elements)}\n")
