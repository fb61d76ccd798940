"""Which processes there are, and which of them belong to the user: /proc, read and judged.

The task runner ends with it the processes that the user's process left behind, its guard does the
same when the runner itself was killed, and the embedded cluster ends its tasks. Reading is apart
from judging, so the judging can be tested with tables.
"""

from __future__ import annotations

import os
import signal
import time
from typing import (
    TYPE_CHECKING,
    AbstractSet,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Set,
    Tuple,
)

if TYPE_CHECKING:
    import subprocess

END_SECONDS = 5.0
LOOK_AGAIN_SECONDS = 0.02
_READ_BYTES = 64 * 1024
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


# No dataclass: that import costs the guard a tenth of its memory and a third of its start.
class Process(NamedTuple):
    """One line of the process table. ``state`` is that of proc(5), ``Z`` for a zombie."""

    pid: int
    parent: int
    group: int
    session: int
    state: str
    #: Clock ticks from the machine's boot to its start: with it a process id that was given to
    #: another process is not mistaken for the first.
    started: int = 0
    #: Clock ticks of CPU time that it and the children that it has waited for have used.
    cpu: int = 0

    @property
    def ended(self) -> bool:
        """Say whether it is dead and only waits for its parent to look."""
        return self.state in ("Z", "X")


def read_process(pid: int) -> Optional[Process]:
    """Return the process ``pid``, or None when there is none."""
    # The name is in brackets and may itself hold blanks and brackets.
    fields = _content(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    if len(fields) < 20:
        return None
    state, parent, group, session = fields[:4]
    return Process(
        pid,
        int(parent),
        int(group),
        int(session),
        state.decode(),
        started=int(fields[19]),
        cpu=sum(map(int, fields[11:15])),
    )


def start_time(pid: int) -> Optional[int]:
    """Return when a process started, in clock ticks since boot; None when there is none.

    It tells a process from a later one with the same id. A zombie is no process.
    """
    process = read_process(pid)
    return None if process is None or process.ended else process.started


def _content(path: str) -> bytes:
    """Return what is in a file of /proc; nothing where it cannot be read, or not any more.

    A file object would cost three times as much, and this is read for each process of the machine.
    """
    parts: List[bytes] = []
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        while not parts or parts[-1]:
            parts.append(os.read(file, _READ_BYTES))
    except OSError:
        # Its process has ended meanwhile.
        return b""
    finally:
        os.close(file)
    return b"".join(parts)


def read_processes() -> List[Process]:
    """Return all processes that can be seen."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [process for process in map(read_process, pids) if process is not None]


def cpu_used(process: Process) -> float:
    """Return the CPU time that a process has used, in seconds."""
    return process.cpu / _TICKS_PER_SECOND


def cpu_seconds(process: Process) -> Tuple[float, float]:
    """Return the CPU time that a process has used, and for how long its threads waited for one.

    On a machine that is too busy a process that computes gets hardly any: it waits for it.
    """
    waited = 0
    try:
        threads = os.listdir(f"/proc/{process.pid}/task")
    except OSError:
        threads = []
    for thread in threads:
        try:
            with open(f"/proc/{process.pid}/task/{thread}/schedstat", "rb") as file:
                waited += int(file.read().split()[1])
        except (OSError, IndexError):
            # The thread has ended, or this kernel does not count.
            continue
    return cpu_used(process), waited / 1e9


def open_files(pid: int) -> Iterator[str]:
    """Yield what ``pid`` has open; nothing of one that has ended, or is another user's."""
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return
    for name in names:
        try:
            yield os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue


def has_mark(pid: int, mark: str) -> bool:
    """Say whether ``pid`` was started with ``mark`` (``NAME=value``) in its environment."""
    return mark.encode() in _content(f"/proc/{pid}/environ").split(b"\0")


def children_of(pid: int) -> Optional[Set[int]]:
    """Return the children of a process, zombies too; None where this kernel does not tell.

    The kernel may leave one out when a child is waited for meanwhile. It costs as much as a look at
    one process, and not at all of the machine.
    """
    found: Set[int] = set()
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb", 0) as file:
                found.update(map(int, file.read().split()))
    except OSError:
        # Or the thread has ended: its children are another's now, who may have been read.
        return None
    return found


def descendants_of(pid: int, but: AbstractSet[int] = frozenset()) -> List[Process]:
    """Return what is below a process, zombies too, without ``but`` and what is below these.

    It costs as much as these are, and a look at all of the machine where this kernel does not tell
    children, or one has ended under the look.
    """
    found: List[Process] = []
    waiting = [pid]
    while waiting:
        children = children_of(waiting.pop())
        if children is None:
            return below([p for p in read_processes() if p.pid not in but], pid)
        its_own = [p for p in map(read_process, children - but) if p is not None]
        found += its_own
        waiting += [process.pid for process in its_own]
    return found


def only_children_of(pid: int) -> List[int]:
    """Return what ``only_children`` does, with no look at all of the machine where that can be."""
    chain = [pid]
    while (children := children_of(chain[-1])) is not None:
        living = [p.pid for p in map(read_process, children) if p is not None and not p.ended]
        if len(living) != 1 or living[0] in chain:
            return chain
        chain += living
    return only_children(read_processes(), pid)


def belonging(
    processes: Iterable[Process], first: Set[int], spared: Set[int]
) -> Tuple[Process, ...]:
    """Return ``first``, their descendants, and everyone in a group or session that one leads.

    Zombies are left out: they are dead already. ``spared`` and what they lead is never returned.
    """
    candidates = [p for p in processes if p.pid not in spared]
    mine: Set[int] = set(first) - spared
    while True:
        more = {
            p.pid
            for p in candidates
            if p.pid not in mine and (p.parent in mine or p.group in mine or p.session in mine)
        }
        if not more:
            break
        mine |= more
    return tuple(p for p in candidates if p.pid in mine and not p.ended)


def below(processes: Iterable[Process], pid: int) -> List[Process]:
    """Return what ``pid`` has started and what these have, parents before children."""
    children: Dict[int, List[Process]] = {}
    for process in processes:
        children.setdefault(process.parent, []).append(process)
    found: List[Process] = []
    waiting = [pid]
    while waiting:
        its_own = children.get(waiting.pop(), [])
        found += its_own
        waiting += [process.pid for process in its_own]
    return found


def only_children(processes: Iterable[Process], pid: int) -> List[int]:
    """Return ``pid`` and, as long as each has one child alone, its child and so on.

    Those are a shell and the command that it waits for.
    """
    children: Dict[int, List[int]] = {}
    for process in processes:
        if not process.ended:
            children.setdefault(process.parent, []).append(process.pid)
    chain = [pid]
    while len(children.get(chain[-1], ())) == 1 and children[chain[-1]][0] not in chain:
        chain += children[chain[-1]]
    return chain


def kill_all(select: Callable[[], Tuple[Process, ...]], seconds: float = END_SECONDS) -> int:
    """Send SIGKILL to what ``select`` returns until it returns nothing; return how many it were.

    A process may start another before it dies, so one round is not enough. Gives up after
    ``seconds``: a process in uninterruptible sleep cannot be waited for.
    """
    killed: Set[int] = set()
    deadline = time.monotonic() + seconds
    while True:
        found = select()
        for process in found:
            try:
                os.kill(process.pid, signal.SIGKILL)
                killed.add(process.pid)
            except ProcessLookupError:
                continue
            except PermissionError:
                # A set-user-id program of the user: not ours to end, Mesos' cgroup does.
                continue
        if not found or time.monotonic() > deadline:
            return len(killed)
        time.sleep(LOOK_AGAIN_SECONDS)


def marked(mark: str, spared: Set[int]) -> Tuple[Process, ...]:
    """Return the processes that carry ``mark`` and all that belong to them."""
    processes = read_processes()
    first = {p.pid for p in processes if p.pid not in spared and has_mark(p.pid, mark)}
    return belonging(processes, first, spared)


def leave_running(process: "subprocess.Popen[bytes]") -> None:
    """Let a process that was started outlive this one.

    ``Popen`` would warn of that; and should it end first, it is no zombie, which counts as alive.
    """
    # The guard of a task needs neither.
    import threading

    if process.returncode is None:
        process.returncode = 0
        threading.Thread(target=os.waitpid, args=(process.pid, 0), daemon=True).start()
