"""Lets ``python -m dcos_tensorflow.task`` do what ``python task-runner.pyz`` does."""

import sys

from dcos_tensorflow.task.program import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
