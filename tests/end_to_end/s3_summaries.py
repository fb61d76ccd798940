"""A training that only writes summaries: a falling loss. Usage: FINISH.

It ends when there is a file FINISH.
"""

import itertools
import os
import sys
import time
from pathlib import Path

import tensorflow as tf

finish = Path(sys.argv[1])
writer = tf.summary.create_file_writer(os.path.join(os.environ["LOG_DIR"], "train"))
for step in itertools.count(1):
    with writer.as_default():
        tf.summary.scalar("loss", 1.0 / step, step=step)
    writer.flush()
    print(f"step {step}", flush=True)
    if finish.exists():
        break
    time.sleep(0.5)
writer.close()
