"""Measures how jobs heal: real TensorFlow, real processes, the embedded cluster, the command line.

``python -m benchmarks.recovery`` plays faults on running jobs and measures what became of them,
beside the same TensorFlow processes restarted by hand with a shell script. It writes the table of
``docs/recovery.md``. It needs the TensorFlow environments that ``make test`` prepares, and root for
the faults of the network (each run has a network namespace of its own).
"""
