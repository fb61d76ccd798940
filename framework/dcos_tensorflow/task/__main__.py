"""Lets ``python -m dcos_tensorflow.task`` run the same as ``python task-runner.pyz``."""

import sys

from dcos_tensorflow.task.program import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
