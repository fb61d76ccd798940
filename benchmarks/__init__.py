"""What things cost and how that grows, measured: ``python -m benchmarks.ROOM.NAME --help``.

``bench`` runs nearly all and ``report`` writes their figures into docs/performance.md. Rooms:
``scheduler`` (its core, loop, API, stores), ``jobs`` (what a job costs its author), ``machines``
(spot capacity), ``queues`` (the queue of teams), ``recovery`` (jobs that heal, beside the same by
hand). Never a test: the figures of a busy machine are its own.
"""

import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]

# What is measured is this tree; states and servers are those of its tests.
sys.path[:0] = [str(_ROOT / "framework"), str(_ROOT / "tests")]
