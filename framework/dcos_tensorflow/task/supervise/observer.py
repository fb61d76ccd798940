"""Looks at the user's process from outside, for the watchdog and for the status.

``runner`` makes one for each start and asks it several times a second. It reads /proc and event
files only: it never signals the process, and judges nothing (``watchdog`` does). Nor does it
connect to the process' server: the kernel would accept that for a frozen one as well, and fill its
backlog.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Iterable, List, Mapping, Optional, Set, Tuple

from dcos_tensorflow.core import contract
from dcos_tensorflow.job_code.modules import Found
from dcos_tensorflow.task.exits.exit_analysis import ExitVerdict
from dcos_tensorflow.task.output.event_files import EventFiles, Scalar
from dcos_tensorflow.task.output.progress import Progress
from dcos_tensorflow.task.spec import TaskCluster
from dcos_tensorflow.task.supervise import memory, watchdog
from dcos_tensorflow.task.supervise.process import UserProcess
from untrusted_input import process_table
from untrusted_input.process_table import open_files

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTEN = b"0A"


def listening_inodes(port: int) -> Optional[Set[int]]:
    """Return the inodes of the sockets that listen on ``port``; None when it cannot be read."""
    inodes: Set[int] = set()
    readable = False
    wanted = b":%04X" % port
    for table in _TABLES:
        try:
            with open(table, "rb") as file:
                next(file, None)
                readable = True
                for line in file:
                    fields = line.split()
                    # The kernel lists those that listen first; of the others there may be many.
                    if len(fields) < 10 or fields[3] != _LISTEN:
                        break
                    if fields[1].endswith(wanted):
                        inodes.add(int(fields[9]))
        except (OSError, ValueError):
            continue
    return inodes if readable else None


def owner_of(inodes: Set[int], pids: Iterable[int]) -> Optional[int]:
    """Return the first of ``pids`` that holds one of the sockets; None when none does."""
    wanted = {f"socket:[{inode}]" for inode in inodes}
    return next((pid for pid in pids if not wanted.isdisjoint(open_files(pid))), None)


#: How often the port and the processes are looked at: that reads tables of the whole machine.
TABLE_SECONDS = 1.0
#: How often the event files are: TensorFlow flushes them every few seconds or minutes.
EVENTS_SECONDS = 3.0
#: How often its activity is: no task is called idle for what is shorter.
ACTIVITY_SECONDS = 10.0
#: After a longer pause the runner itself did not run: what happened meanwhile is not known.
ACTIVITY_PAUSE_SECONDS = 3 * ACTIVITY_SECONDS
#: How often the memory is: the kernel walks the pages of each process for it.
MEMORY_SECONDS = 10.0


class Observer:
    """What can be seen of one start of the user's process.

    ``port`` is that of its own TensorFlow server, 0 for none. With ``in_shell`` the process is a
    shell, and what it runs is looked at too. ``directories`` are where its event files may lie;
    with ``measures`` no other task's lie there. What takes a table of the
    whole machine waits for ``first_look`` seconds.
    """

    def __init__(
        self,
        process: UserProcess,
        limits: watchdog.WatchdogLimits,
        *,
        port: int,
        in_shell: bool,
        directories: Tuple[str, ...],
        measures: bool = False,
        first_look: float = 0.0,
    ) -> None:
        self._process = process
        self._limits = limits
        self._port = port
        self._in_shell = in_shell
        self._watch = watchdog.Watch()
        self._looked_at = time.monotonic()
        self._chain: List[int] = [process.pid]
        self._server: Optional[process_table.Process] = None
        self._port_open: Optional[bool] = None
        self._table_due = self._looked_at + first_look
        self._events = EventFiles(directories, own=measures)
        self._events_due = self._looked_at + TABLE_SECONDS
        self._activity = watchdog.Activity()
        self._activity_at = self._looked_at
        #: Since when the process does nothing, in unix seconds; None while it does something.
        self.idle_since: Optional[float] = None
        #: Since when its server listens, in unix seconds; None while it does not.
        self.listens_since: Optional[float] = None
        self._memory: Optional[int] = None
        self._memory_due = self._looked_at + first_look
        self._memory_lock = threading.Lock()

    @property
    def frozen_seconds(self) -> float:
        """Return for how long the process has been stopped."""
        return self._watch.frozen_seconds

    def look(self, known: Progress, lines: int = 0) -> Optional[ExitVerdict]:
        """Look once; return why the process is to be given up, if it is.

        ``known`` is how far the job is as it has said, ``lines`` how many lines it has printed.
        """
        now = time.monotonic()
        self._look_at_activity((known.start_step, known.at, lines), now)
        # A port that was closed just then may be open again, or its process be gone, at once.
        if now >= self._table_due or self._port_open is False:
            self._table_due = now + TABLE_SECONDS
            self._look_at_tables()
        states = [p.state for p in map(process_table.read_process, self._chain) if p]
        sight = watchdog.ProcessSight(
            stopped="T" in states,
            step=known.start_step,
            steps=known.start_steps,
            port=self._port,
            port_open=self._port_open,
        )
        elapsed, self._looked_at = now - self._looked_at, now
        self._watch, verdict = watchdog.examine(self._watch, sight, self._limits, elapsed)
        return verdict

    def event_step(self, *, last: bool = False) -> Optional[int]:
        """Return the newest step in the event files of the process; None if none.

        They are read every ``EVENTS_SECONDS``, and at the ``last`` look; in between there is
        nothing new.
        """
        now = time.monotonic()
        if now < self._events_due and not last:
            return None
        self._events_due = now + EVENTS_SECONDS
        return self._events.newest_step([process.pid for process in self.members()])

    def take_scalars(self) -> List[Scalar]:
        """Return the scalars of the event files that were read since they were last taken."""
        return self._events.take_scalars()

    def members(self) -> Tuple[process_table.Process, ...]:
        """Return the process and all that it has started. From any thread."""
        return self._process.members()

    def memory_bytes(self) -> Optional[int]:
        """Return the memory of the process and all that it has started. From any thread."""
        with self._memory_lock:
            now = time.monotonic()
            if now >= self._memory_due:
                self._memory_due = now + MEMORY_SECONDS
                pids = [process.pid for process in self.members()]
                self._memory = memory.resident_bytes(pids)
            return self._memory

    def _look_at_activity(self, told: object, now: float) -> None:
        elapsed = now - self._activity_at
        if elapsed < ACTIVITY_SECONDS:
            return
        self._activity_at = now
        if elapsed > ACTIVITY_PAUSE_SECONDS:
            self._activity = watchdog.Activity()
        times = [process_table.cpu_seconds(process) for process in self.members()]
        used, waited = sum(time[0] for time in times), sum(time[1] for time in times)
        self._activity = watchdog.rest(self._activity, (used, waited), told, elapsed)
        if self._activity.idle < watchdog.IDLE_SECONDS:
            self.idle_since = None
        elif self.idle_since is None:
            self.idle_since = time.time() - self._activity.idle

    def _look_at_tables(self) -> None:
        if self._in_shell:
            self._chain = process_table.only_children_of(self._process.pid)
        if self._port:
            self._port_open = self._is_port_open()
            if not self._port_open:
                self.listens_since = None
            elif self.listens_since is None:
                self.listens_since = time.time()

    def _is_port_open(self) -> Optional[bool]:
        """Say whether the task's server listens; None where nothing can be said.

        A port counts from when one of the task's processes was seen to listen on it, and for as
        long as that process lives: one that has ended has closed it in order.
        """
        inodes = listening_inodes(self._port)
        if inodes is None:
            return None
        if inodes:
            if self._server is None:
                pids = [process.pid for process in self.members()]
                owner = owner_of(inodes, pids)
                self._server = process_table.read_process(owner) if owner else None
            return True if self._server else None
        if self._server is None or not self._is_same(self._server):
            self._server = None
            return None
        return False

    def _is_same(self, process: process_table.Process) -> bool:
        now = process_table.read_process(process.pid)
        return now is not None and now.state not in "ZX" and now.session == process.session


def own_port(found: Found, cluster: TaskCluster) -> int:
    """Return the port of the task's own TensorFlow server in ``cluster``; 0 when it has none."""
    if found.contract in contract.CONTRACTS_BESIDE:
        return 0
    if found.contract == contract.CONTRACT_FUNCTION:
        server = cluster.server
        return _port(server.cluster[server.job_name][server.task_index]) if server else 0
    return _port_in_tf_config(cluster.tf_config or {})


def _port_in_tf_config(tf_config: Mapping[str, Any]) -> int:
    """Read what the scheduler has rendered; another form means no server that we know of."""
    try:
        task = tf_config["task"]
        return _port(tf_config["cluster"][task["type"]][int(task["index"])])
    except (KeyError, IndexError, TypeError, ValueError):
        return 0


def _port(address: str) -> int:
    port = address.rpartition(":")[2]
    return int(port) if port.isascii() and port.isdigit() else 0
