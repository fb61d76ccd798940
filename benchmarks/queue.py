"""The door of ``queues.queue_replay``: ``python benchmarks/queue.py --traces DIR --json FILE``.

Python puts the folder of a script first on the path of imports, where one of this name hides the
standard library's ``queue``: the repository takes its place.
"""

import sys
from pathlib import Path

if not __package__:
    # As a script: its own folder would hide the standard library's queue.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.queues.queue_replay import main

if __name__ == "__main__":
    main()
