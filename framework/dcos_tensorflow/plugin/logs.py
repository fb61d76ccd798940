"""``logs``: the output of the tasks of a service, interleaved line by line.

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
import urllib.error
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from dcos_tensorflow.plugin.client import CommandError, DcosCluster, NotNow
from dcos_tensorflow.plugin.log_lines import LineFormat, final_states
from dcos_tensorflow.plugin.plain_text import escaped

#: Mesos' states that a task does not leave, as the scheduler's pod status names them.
_ENDED = frozenset(
    ("FINISHED", "FAILED", "KILLED", "LOST", "ERROR", "DROPPED", "GONE", "GONE_BY_OPERATOR")
)
_LOOK_SECONDS = 2.0
_AGAIN_SECONDS = 1.0
#: How long after the end of the job, and the last line, a log is asked for that is not given.
_PATIENCE_SECONDS = 30.0


class TaskStart(NamedTuple):
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
        with self._lock:
            self.last = time.monotonic()
            for line in final_states(text):
                print(self._format.line(pod, line), flush=True)


def logs(cluster: DcosCluster, given: argparse.Namespace) -> None:
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
            told = f"{task.pod}: {given.file} cannot be read ({answer.status} {answer.reason})"
            print(escaped(told), file=sys.stderr)
            continue
        for line in answer.text.rstrip("\n").split("\n") if answer.text else ():
            printer.line(task.pod, line)


class _Stream:
    """What one task prints, from where it was last read to; ``begin`` it."""

    def __init__(
        self, cluster: DcosCluster, task: TaskStart, given: argparse.Namespace, printer: _Printer
    ) -> None:
        self.task = task
        #: Why the cluster refuses to give it, if it does.
        self.refused = ""
        self._cluster = cluster
        self._given = given
        self._printer = printer
        self._after = ""
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._at_its_end = False
        self._quiet_since: Optional[float] = None

    def begin(self) -> None:
        """Read on, on a new connection: what an older one still gives is not printed."""
        with self._lock:
            self._over.set()
            self._over = over = threading.Event()
            self._at_its_end, self._quiet_since = False, None
        # A daemon: one that waits for its task's next line must not keep this process.
        threading.Thread(target=self._read, args=(over,), daemon=True).start()

    def end(self) -> None:
        with self._lock:
            self._over.set()

    def is_read(self) -> bool:
        """Say whether an answer that was asked for since ``begin`` had nothing left to tell.

        Most log services never close a stream: one that was opened and stays quiet is read, too.
        """
        with self._lock:
            quiet = self._quiet_since
            return self._at_its_end or (
                quiet is not None and time.monotonic() - quiet > _LOOK_SECONDS
            )

    def _read(self, over: threading.Event) -> None:
        """Print lines as they come, until it is ``over``. A broken stream is opened again."""
        task, given = self.task, self._given
        while not over.is_set():
            try:
                with self._cluster.follow(task.id, given.file, given.lines, self._after) as stream:
                    self._note(over, quiet_since=time.monotonic())
                    lines = 0
                    for name, text in events(stream):
                        if not self._take(over, name, text):
                            return
                        lines += 1
                    self._note(over, at_its_end=not lines)
            except urllib.error.HTTPError as error:
                with error:
                    # What has written nothing is not there.
                    refused = "" if error.code == 404 else f"{error.code} {error.reason}"
                    self._note(over, at_its_end=error.code < 500, refused=refused)
            except (OSError, ValueError, RecursionError, http.client.HTTPException):
                self._note(over)
            over.wait(_AGAIN_SECONDS)

    def _take(self, over: threading.Event, name: str, text: str) -> bool:
        """Print a line; False when this connection's lines are not wanted any more."""
        with self._lock:
            if over.is_set():
                return False
            self._after = name or self._after
            self._at_its_end, self._quiet_since = False, time.monotonic()
            self._printer.line(self.task.pod, text)
            return True

    def _note(
        self,
        over: threading.Event,
        *,
        at_its_end: bool = False,
        quiet_since: Optional[float] = None,
        refused: str = "",
    ) -> None:
        with self._lock:
            if not over.is_set() and not self._at_its_end:
                self._at_its_end = at_its_end
                self._quiet_since = quiet_since
                self.refused = refused


def _follow(cluster: DcosCluster, given: argparse.Namespace, printer: _Printer) -> None:
    streams: Dict[str, _Stream] = {}
    ended: Optional[float] = None
    told_away = ""
    try:
        while True:
            try:
                tasks = _chosen(_tasks(cluster), given.tasks)
                done = all(task.ended for task in tasks) and _job_is_done(cluster)
                told_away = ""
            except NotNow as away:
                told_away = _waiting_for(away, told_away, known=bool(streams))
                time.sleep(_LOOK_SECONDS / 2)
                continue
            for task in (each for each in tasks if each.id not in streams):
                streams[task.id] = _Stream(cluster, task, given, printer)
                streams[task.id].begin()
            if not done:
                ended = None
            elif time.monotonic() - printer.last > _LOOK_SECONDS:
                if ended is None:
                    # Nothing is written any more: what these connections give is all there is.
                    ended = time.monotonic()
                    for stream in streams.values():
                        stream.begin()
                unread = [stream for stream in streams.values() if not stream.is_read()]
                waited = time.monotonic() - max(ended, printer.last)
                if not unread or waited > _PATIENCE_SECONDS:
                    _tell_of_the_unread(streams.values(), unread, given.file)
                    return
            time.sleep(_LOOK_SECONDS / 2)
    finally:
        for stream in streams.values():
            stream.end()


def _waiting_for(away: NotNow, told: str, *, known: bool) -> str:
    """Tell once which tasks do not answer; return that. Raises NotNow if none ever did."""
    if not known:
        raise away
    why = str(away)
    if why != told:
        print(f"{escaped(why)} Waiting for it to come back.", file=sys.stderr)
    return why


def _tell_of_the_unread(streams: Iterable[_Stream], unread: Sequence[_Stream], file: str) -> None:
    for stream in streams:
        why = stream.refused or ("no answer" if stream in unread else "")
        if why:
            told = f"{stream.task.pod}: {file} cannot be read to its end ({why})"
            print(escaped(told), file=sys.stderr)


def _job_is_done(cluster: DcosCluster) -> bool:
    """Say whether no task will be started any more: between two starts all have ended, too."""
    answer = cluster.scheduler("GET", "job")
    return answer.status == 200 and answer.json().get("phase") == "done"


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


def _tasks(cluster: DcosCluster) -> List[TaskStart]:
    answer = cluster.scheduler("GET", "pod/status")
    if answer.status not in (200, 202):
        raise CommandError(f"The scheduler answers {answer.status} {answer.reason}.")
    return [
        TaskStart(str(instance.get("name")), str(task["id"]), task.get("status") in _ENDED)
        for pod in answer.json().get("pods", ())
        for instance in pod.get("instances", ())
        for task in instance.get("tasks", ())
        if task.get("id")
    ]


def _chosen(tasks: List[TaskStart], names: Sequence[str]) -> List[TaskStart]:
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
