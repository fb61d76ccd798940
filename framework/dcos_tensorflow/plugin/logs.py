"""``logs``: what the tasks of a service print, all of them interleaved line by line.

Called by ``main``. Task ids come from the scheduler, the lines from the cluster's log service; its
event streams are read by one thread for each task. A task that is started again has a new id, and
is followed under it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import sys
import threading
import time
from typing import Any, Iterator, List, NamedTuple, Sequence, Set, Tuple

from dcos_tensorflow.plugin.client import Cluster
from dcos_tensorflow.plugin.errors import CommandError
from dcos_tensorflow.plugin.log_lines import LineFormat

#: Mesos' states that a task does not leave, as the scheduler's pod status names them.
_ENDED = frozenset(
    ("FINISHED", "FAILED", "KILLED", "LOST", "ERROR", "DROPPED", "GONE", "GONE_BY_OPERATOR")
)
_LOOK_SECONDS = 2.0
_AGAIN_SECONDS = 1.0


class Task(NamedTuple):
    """One start of a task. ``pod`` is the name that people use: worker-0."""

    pod: str
    id: str
    ended: bool


class _Printer:
    """Prints lines whole, whichever thread they come from."""

    def __init__(self, pods: Sequence[str], as_json: bool = False) -> None:
        coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self._format = LineFormat(pods, as_json=as_json, coloured=coloured)
        self._lock = threading.Lock()
        self.last = time.monotonic()

    def line(self, pod: str, text: str) -> None:
        """Print one line of a task."""
        with self._lock:
            self.last = time.monotonic()
            print(self._format.line(pod, text), flush=True)


def logs(cluster: Cluster, given: argparse.Namespace) -> None:
    """Print the last lines of the tasks that were named, or of all, and follow them if asked."""
    tasks = _chosen(_tasks(cluster), given.tasks)
    printer = _Printer([task.pod for task in tasks], given.json)
    if given.follow:
        _follow(cluster, given, printer)
        return
    for task in tasks:
        answer = cluster.log(task.id, given.file, given.lines)
        if answer.status == 204:
            continue
        if answer.status != 200:
            print(
                f"{task.pod}: {given.file} cannot be read ({answer.status} {answer.reason})",
                file=sys.stderr,
            )
            continue
        for line in answer.text.splitlines():
            printer.line(task.pod, line)


def _follow(cluster: Cluster, given: argparse.Namespace, printer: _Printer) -> None:
    followed: Set[str] = set()
    over = threading.Event()
    try:
        while True:
            tasks = _chosen(_tasks(cluster), given.tasks)
            for task in tasks:
                if task.id not in followed:
                    followed.add(task.id)
                    # A daemon: one that waits for its task's next line must keep nobody here.
                    arguments = (cluster, task, given, printer, over)
                    threading.Thread(target=_stream, args=arguments, daemon=True).start()
            quiet = time.monotonic() - printer.last > _LOOK_SECONDS
            if quiet and all(task.ended for task in tasks) and _job_is_done(cluster):
                return
            time.sleep(_LOOK_SECONDS / 2)
    finally:
        over.set()


def _job_is_done(cluster: Cluster) -> bool:
    """Say whether no task will be started any more: between two starts all have ended, too."""
    answer = cluster.scheduler("GET", "job")
    return answer.status == 200 and answer.json().get("phase") == "done"


def _stream(
    cluster: Cluster,
    task: Task,
    given: argparse.Namespace,
    printer: _Printer,
    over: threading.Event,
) -> None:
    """Print a task's lines as they come, until it is ``over``. A broken stream is opened again."""
    after = ""
    while not over.is_set():
        try:
            with cluster.follow(task.id, given.file, given.lines, after) as stream:
                for name, text in events(stream):
                    after = name or after
                    printer.line(task.pod, text)
        except (OSError, ValueError, http.client.HTTPException):
            # A connection that broke, or a task that has no output yet: both pass.
            pass
        over.wait(_AGAIN_SECONDS)


def events(stream: Any) -> Iterator[Tuple[str, str]]:
    """Yield id and line of each event of the log service. Raises ValueError, OSError."""
    name, data = "", []
    for raw in stream:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if line.startswith("id:"):
            name = line[3:].strip()
        elif line.startswith("data:"):
            data.append(line[5:].strip())
        elif not line and data:
            message = json.loads("".join(data)).get("fields", {}).get("MESSAGE", "")
            data = []
            yield name, str(message)


def _tasks(cluster: Cluster) -> List[Task]:
    answer = cluster.scheduler("GET", "pod/status")
    if answer.status not in (200, 202):
        raise CommandError(f"The scheduler answers {answer.status} {answer.reason}.")
    return [
        Task(str(instance.get("name")), str(task["id"]), task.get("status") in _ENDED)
        for pod in answer.json().get("pods", ())
        for instance in pod.get("instances", ())
        for task in instance.get("tasks", ())
        if task.get("id")
    ]


def _chosen(tasks: List[Task], names: Sequence[str]) -> List[Task]:
    """Return the tasks that are meant. Raises CommandError for a name that none has."""
    if not names:
        return tasks
    known = {task.pod for task in tasks}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise CommandError(
            f"No task {', '.join(unknown)} has been started; there are"
            f" {', '.join(sorted(known)) or 'none yet'}."
        )
    return [task for task in tasks if task.pod in names]
