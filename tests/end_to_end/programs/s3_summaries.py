"""A training that only writes summaries: a falling loss. Usage: FINISH.

It ends when there is a file FINISH. Where there is no TensorFlow, TensorBoard's own writer writes.
"""

import itertools
import os
import sys
import time
from pathlib import Path

finish = Path(sys.argv[1])
folder = os.path.join(os.environ["LOG_DIR"], "train")
try:
    import tensorflow as tf
except ImportError:
    from tensorboard.summary import Writer

    writer = Writer(folder)
    write = writer.add_scalar
else:
    writer = tf.summary.create_file_writer(folder)

    def write(name: str, value: float, step: int) -> None:
        with writer.as_default():
            tf.summary.scalar(name, value, step=step)


for step in itertools.count(1):
    write("loss", 1.0 / step, step)
    writer.flush()
    print(f"step {step}", flush=True)
    if finish.exists():
        break
    time.sleep(0.5)
writer.close()
