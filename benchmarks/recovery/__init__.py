"""Measures how jobs heal: real TensorFlow, real processes, the embedded cluster, the command line.

``python -m benchmarks.recovery`` plays faults on running jobs and measures what became of them,
beside the same TensorFlow processes restarted by hand with a shell script. It writes the table of
``docs/recovery.md``. It needs the TensorFlow environments that ``make test`` prepares, and root for
the faults of the network (each run has a network namespace of its own).
"""

import sys
from pathlib import Path

# The faults that the benchmark plays are those that tests order.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
