"""How long to wait before trying again: doubling, bounded, with jitter that needs no randomness.

Used by every verb of the core that waits; pure numbers.
"""

from __future__ import annotations

import hashlib

from dcos_tensorflow.core.spec.service_spec import RetrySpec


def spread(seed: str) -> float:
    """Return a number in [0.75, 1.25) that depends on ``seed`` alone: jitter without randomness."""
    digest = hashlib.sha256(seed.encode()).digest()
    return 0.75 + int.from_bytes(digest[:4], "big") / 2**33


def backoff_seconds(retry: RetrySpec, failures: int, seed: str) -> float:
    """Return how long to wait after the ``failures``-th failure in a row; 0 for none."""
    if failures <= 0:
        return 0.0
    wait = retry.initial_backoff_seconds * retry.backoff_factor ** min(failures - 1, 32)
    return min(wait, retry.max_backoff_seconds) * spread(seed)
