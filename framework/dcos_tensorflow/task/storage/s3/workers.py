"""Runs many small jobs on a bounded number of threads, and stops all at the first failure.

``upload``, ``download`` and ``mirror`` use it. Jobs are taken one by one from an iterable, so a
million of them cost no memory.
"""

from __future__ import annotations

import threading
from typing import Callable, Iterable, Iterator, List, Optional

WorkItem = Callable[[], None]


def run_all(jobs: Iterable[WorkItem], threads: int) -> None:
    """Run ``jobs`` on at most ``threads`` threads and return when all are done.

    Raises the first failure, after the jobs that were running have ended; no further ones begin.
    """
    run = _Run(iter(jobs))
    helpers = [
        threading.Thread(target=run.work, name="storage-transfer", daemon=True)
        for _ in range(max(0, threads - 1))
    ]
    for helper in helpers:
        helper.start()
    run.work()
    for helper in helpers:
        helper.join()
    if run.failures:
        raise run.failures[0]


class _Run:
    def __init__(self, jobs: Iterator[WorkItem]) -> None:
        self._jobs = jobs
        self._lock = threading.Lock()
        self.failures: List[BaseException] = []

    def work(self) -> None:
        job = self._next()
        while job is not None:
            try:
                job()
            except BaseException as error:
                with self._lock:
                    self.failures.append(error)
                return
            job = self._next()

    def _next(self) -> Optional[WorkItem]:
        with self._lock:
            if self.failures:
                return None
            try:
                return next(self._jobs, None)
            except BaseException as error:
                self.failures.append(error)
                return None
