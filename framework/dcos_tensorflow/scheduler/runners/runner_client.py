"""Asking the task runners how far they are, and telling them which start is wanted.

Used by ``scheduler.scheduler``. Level-triggered: every live task's runner is asked again and again,
and one that is not under its order (``core.cluster.orders``) is sent that order until it is. A
report that the state does not hold yet becomes a RunnerReported event. While there are not too
many, a runner holds its answer back until something has happened (``after`` and ``wait``,
docs/task-runner.md), so that a failure is known at once. All of it happens in one thread with one
asyncio loop, so that runners that hang delay no other; its work follows the number of changes and
of due runners, not of all. Training never depends on it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import resource
import threading
import time
from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from typing import Any

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.cluster import orders
from dcos_tensorflow.core.cluster.launch import task_token
from dcos_tensorflow.core.model.events import RunnerReported
from dcos_tensorflow.core.model.report import needs_order, usage_of
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.spec.service_spec import gang_named
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.scheduler.runners.runner_request import NotARunner, RunnerRefused, ask, signed

log = logging.getLogger(__name__)

#: How often each runner is asked: usually, and while it is not under its order. Seconds.
PERIOD_SECONDS = 0.5
URGENT_SECONDS = 0.2
#: How long a runner holds its answer back at least, as long as nothing happens. One that vanishes
#: without a word is missed that much later.
HELD_BACK_SECONDS = 2.0
#: How often one is asked at least that has never answered: its container has just started. Later
#: it is asked again after this share of the time since then, so that it is heard of soon after its
#: first word, however long its machine takes until then.
BEGINNING_SECONDS = 0.1
_BEGINNING_SHARE = 0.1
#: How often one that refuses its order is sent it again; the longest wait for one that is silent.
REFUSED_SECONDS = 1.0
SILENT_SECONDS = 2.0
#: Requests in a second that nothing has happened for, and requests at once: file descriptors are
#: limited, often to 1024.
RATE = 200.0
MOST_UNDER_WAY = 256
#: With more runners than this, none is asked to hold its answer back: each takes a connection.
MOST_WAITED_FOR = 1_000
_SHARE_OF_FILES = 4
#: As long as nothing happens, all that hold their answers back make this many requests a second.
_WAITED_FOR_RATE = 100.0
_LONGEST_WAIT_SECONDS = 30.0
#: A status is there at once; an order waits for the runner's loop, which may be ending a process.
STATUS_TIMEOUT_SECONDS = 2.0
ORDER_TIMEOUT_SECONDS = 5.0
#: So many failed requests in a row are told in the log.
_TOLD_AFTER = 5
#: Of memory, a smaller change than this is no news: it would be one event for every answer.
_MEMORY_SHARE = 0.02
#: A round begins so many seconds after the one before at the soonest, or so many for each task.
_SHORTEST_WAIT_SECONDS = 0.01
_ROUND_SHARE = 0.00005

_ASKED_STATES = frozenset({TaskState.STARTING, TaskState.RUNNING, TaskState.UNREACHABLE})


@dataclass
class _Runner:
    """What is known of one attempt's runner. Times are of the monotonic clock.

    ``known_since`` is when it was first to be asked.
    ``revision`` is that of its last answer, None for a runner that has none. ``ordered`` is the
    (start, run) that it was last sent, ``refused`` the last refusal of it. ``waits`` is set while
    it holds an answer back: an order need not wait for that. ``due_at`` is when it is to be asked
    again. ``turns`` counts what was begun.
    """

    record: TaskRecord
    known_since: float = 0.0
    report: Mapping[str, Any] | None = None
    revision: int | None = None
    done_at: float = float("-inf")
    due_at: float = float("-inf")
    ordered: tuple[int, bool] | None = None
    refused: str = ""
    silent: int = 0
    busy: bool = False
    waits: bool = False
    turns: int = 0

    @property
    def hopeful(self) -> bool:
        """Say whether it is likely to come under its order soon: it answers, and obeys."""
        return self.silent < _TOLD_AFTER and not self.refused

    @property
    def astray(self) -> bool:
        """Say whether it has reported that it is not under its order. One that ends needs none."""
        if self.report is None or self.record.kill_reason:
            return False
        return needs_order(self.record, self.report)


class RunnerClient:
    """A thread that keeps asking all runners and keeps them under their orders.

    ``state`` returns the newest state and ``emit`` takes events; ``may_order`` says whether no
    other can lead the service now, without which nothing is ordered; ``clean`` takes secrets out of
    a report. All are called from that thread and must not block.
    """

    def __init__(
        self,
        state: Callable[[], ServiceState],
        emit: Callable[[RunnerReported], None],
        may_order: Callable[[], bool] = lambda: True,
        clean: Callable[[dict[str, Any]], dict[str, Any]] = lambda report: report,
    ) -> None:
        self._state = state
        self._emit = emit
        self._may_order = may_order
        self._clean = clean
        #: By task id: all that are asked, and which of them are astray.
        self._runners: dict[str, _Runner] = {}
        self._astray: set[str] = set()
        #: By task id: what each task used when its runner was asked last.
        self._usages: dict[str, Mapping[str, Any]] = {}
        #: The tasks that ``_runners`` was made of.
        self._tasks: Mapping[str, TaskRecord] | None = None
        #: When each runner is to be asked; what is not a runner's ``due_at`` any more is void.
        self._due: list[tuple[float, str]] = []
        self._under_way: set[asyncio.Task[None]] = set()
        self._held_back = 0
        self._most_waited_for = min(MOST_WAITED_FOR, _file_limit() // _SHARE_OF_FILES)
        self._allowance = RATE
        self._refilled_at = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken = asyncio.Event()
        self._stopping = threading.Event()
        self._guard = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="runner-client", daemon=True)

    def start(self) -> None:
        """Start asking."""
        self._thread.start()

    def wake(self) -> None:
        """Look at the state again now: it has changed. Any thread; never blocks."""
        with self._guard:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._woken.set)

    def usages(self) -> Mapping[str, Mapping[str, Any]]:
        """Return what each live task uses, by task id, where that is known. Any thread."""
        return self._usages.copy()

    def stop(self) -> None:
        """Stop asking. What is under way is given up; a runner may still act on it."""
        self._stopping.set()
        self.wake()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        with self._guard:
            self._loop = asyncio.get_running_loop()
        try:
            await self._keep_asking()
        finally:
            # Before the loop is closed: it cannot be woken then.
            with self._guard:
                self._loop = None

    async def _keep_asking(self) -> None:
        self._refilled_at = time.monotonic()
        while not self._stopping.is_set():
            self._woken.clear()
            began = time.monotonic()
            wait = self._round(self._state(), began)
            try:
                await asyncio.wait_for(self._woken.wait(), wait)
            except TimeoutError:
                continue
            # However often the state changes: a round looks at every task, and the answers must
            # be read as well. What comes after a while of silence waits for nothing.
            shortest = max(_SHORTEST_WAIT_SECONDS, len(self._runners) * _ROUND_SHARE)
            await asyncio.sleep(began + shortest - time.monotonic())
        for request in self._under_way:
            request.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def _round(self, state: ServiceState, now: float) -> float:
        """Start every request that is due; return how long to wait for the next, in seconds."""
        if state.tasks is not self._tasks:
            self._follow(state.tasks, now)
        self._allowance = min(RATE, self._allowance + (now - self._refilled_at) * RATE)
        self._refilled_at = now
        unruly, wait = self._send_orders(state, now)
        while self._due:
            at, task_id = self._due[0]
            runner = self._runners.get(task_id)
            if runner is None or runner.due_at != at or runner.busy or runner.waits:
                heappop(self._due)
            elif at > now:
                return min(wait, at - now)
            elif task_id in unruly:
                heappop(self._due)
                self._ask_at(runner, now + URGENT_SECONDS)
            elif not self._may_begin(runner, order=False):
                return min(wait, URGENT_SECONDS / 4)
            else:
                heappop(self._due)
                self._start(runner, order=False)
        return wait

    def _follow(self, tasks: Mapping[str, TaskRecord], now: float) -> None:
        """Ask the runners that are there now, and no others."""
        self._tasks = tasks
        asked = {
            record.task_id: record
            for record in tasks.values()
            if record.state in _ASKED_STATES and record.address and record.ports
        }
        for task_id in self._runners.keys() - asked.keys():
            del self._runners[task_id]
            self._astray.discard(task_id)
            self._usages.pop(task_id, None)
        for task_id, record in asked.items():
            runner = self._runners.get(task_id)
            if runner is None:
                self._runners[task_id] = runner = _Runner(record, known_since=now)
                self._ask_at(runner, now)
            elif runner.record is not record:
                runner.record = record
                self._judge(runner)

    def _judge(self, runner: _Runner) -> None:
        """Note whether a runner is under its order; its record or its report has changed."""
        task_id = runner.record.task_id
        if runner.astray and self._runners.get(task_id) is runner:
            self._astray.add(task_id)
        else:
            self._astray.discard(task_id)

    def _ask_at(self, runner: _Runner, at: float) -> None:
        runner.due_at = at
        heappush(self._due, (at, runner.record.task_id))

    def _send_orders(self, state: ServiceState, now: float) -> tuple[set[str], float]:
        """Send the orders that are due; return which need one, and how long to wait next."""
        if not self._astray:
            # A change of the state or an answer wakes the round before that.
            return set(), HELD_BACK_SECONDS
        wait = PERIOD_SECONDS
        if not self._may_order():
            return set(), wait
        unruly = {t for t in self._astray if _has_order(state, self._runners[t].record)}
        due = []
        for task_id in unruly:
            runner = self._runners[task_id]
            if runner.busy:
                continue
            at = _order_due_at(runner)
            if at <= now:
                due.append((at, task_id))
            else:
                wait = min(wait, at - now)
        for _, task_id in sorted(due):
            if not self._may_begin(self._runners[task_id], order=True):
                return unruly, min(wait, URGENT_SECONDS / 4)
            self._start(self._runners[task_id], order=True)
        return unruly, wait

    def _may_begin(self, runner: _Runner, *, order: bool) -> bool:
        """Say whether one more request may begin now."""
        allowed = self._allowance >= 1 or not self._counts(runner, order=order)
        return allowed and len(self._under_way) - self._held_back < MOST_UNDER_WAY

    def _counts(self, runner: _Runner, *, order: bool) -> bool:
        """Say whether a request is one of those that ``RATE`` is for.

        One that is held back ends when something has happened, and an order is new once: units of a
        second or less each lead to two of these.
        """
        return not (_is_new_order(runner) if order else self._waits_for(runner))

    def _waits_for(self, runner: _Runner) -> bool:
        """Say whether a runner is asked to hold its answer back until there is something new."""
        few = len(self._runners) <= self._most_waited_for
        return few and runner.revision is not None and not runner.silent

    def _start(self, runner: _Runner, *, order: bool) -> None:
        self._allowance -= self._counts(runner, order=order)
        runner.turns += 1
        waits = not order and self._waits_for(runner)
        if waits:
            runner.waits = True
            self._held_back += 1
        else:
            runner.busy = True
        request = asyncio.create_task(self._turn(runner, order=order, waits=waits))
        self._under_way.add(request)
        request.add_done_callback(self._under_way.discard)

    async def _turn(self, runner: _Runner, *, order: bool, waits: bool) -> None:
        """Ask one runner, or send it its order, and take in what comes of it."""
        record = runner.record
        try:
            if order:
                await self._order(record, runner)
            elif waits:
                await self._wait_for_news(record, runner)
            else:
                self._take(record, runner, await self._ask(record, "GET", contract.STATUS_PATH))
            self._answered(record, runner)
        except RunnerRefused as error:
            self._told(record, runner, str(error))
            self._answered(record, runner)
        except (OSError, NotARunner) as error:
            self._unanswered(record, runner, error)
        except asyncio.CancelledError:
            raise
        except Exception:
            # One runner's strangeness must not end the asking of all the others.
            log.exception("asking the task runner of %s failed", record.name)
            runner.silent += 1
        finally:
            if waits:
                runner.waits = False
                self._held_back -= 1
            else:
                runner.busy = False
            runner.done_at = time.monotonic()
            at = runner.done_at if self._waits_for(runner) else _due_at(runner, PERIOD_SECONDS)
            self._ask_at(runner, at)
            self._woken.set()

    async def _wait_for_news(self, record: TaskRecord, runner: _Runner) -> None:
        """Ask for the status as soon as something has happened, or after a while."""
        turn = runner.turns
        most = len(self._runners) / _WAITED_FOR_RATE
        seconds = min(max(HELD_BACK_SECONDS, most), _LONGEST_WAIT_SECONDS)
        path = f"{contract.STATUS_PATH}?after={runner.revision}&wait={seconds:g}"
        report = await self._ask(record, "GET", path, held_back=seconds)
        # The answer to an order that was sent meanwhile is newer.
        if runner.turns == turn:
            self._take(record, runner, report)

    async def _order(self, record: TaskRecord, runner: _Runner) -> None:
        state, gang = self._state(), gang_named(record.name)
        order = orders.order(state.view(gang), record) if gang in state.gangs else None
        if order is None:
            return
        runner.ordered = (record.start, not record.held)
        body = json.dumps(order).encode()
        report = await self._ask(record, "PUT", contract.CLUSTER_PATH, body)
        runner.refused = ""
        self._take(record, runner, report)

    async def _ask(
        self,
        record: TaskRecord,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        held_back: float = 0.0,
    ) -> dict[str, Any]:
        token = task_token(self._state().settings.token_key, record.task_id)
        # The runner's machine agrees with ours about the time of day, not about what has passed.
        request = signed(token, method, path, body, time.time())
        limit = STATUS_TIMEOUT_SECONDS if method == "GET" else ORDER_TIMEOUT_SECONDS
        async with asyncio.timeout(limit + held_back):
            return dict(await ask(record.address, record.ports[-1], request))

    def _take(self, record: TaskRecord, runner: _Runner, report: dict[str, Any]) -> None:
        # Three things that are no part of a report: two are about this conversation, and what a
        # task uses is another number each time, and is shown, not kept.
        report.pop("changed", None)
        usage = usage_of(report.pop("usage", None))
        if usage is not None:
            self._usages[record.task_id] = usage
        else:
            self._usages.pop(record.task_id, None)
        revision = report.pop("revision", None)
        runner.revision = revision if isinstance(revision, int) else None
        # What is compared with what is kept has to be the same.
        runner.report = report = self._clean(report)
        self._judge(runner)
        if not _same(self._state().told.reports.get(record.task_id), report):
            self._emit(RunnerReported(record.task_id, report))

    def _answered(self, record: TaskRecord, runner: _Runner) -> None:
        if runner.silent >= _TOLD_AFTER:
            log.info("the task runner of %s answers again", record.name)
        runner.silent = 0

    def _unanswered(self, record: TaskRecord, runner: _Runner, error: Exception) -> None:
        runner.silent += 1
        reason = str(error) or type(error).__name__
        log.debug("the task runner of %s does not answer: %s", record.name, reason)
        if runner.silent == _TOLD_AFTER:
            where = f"{record.address}:{record.ports[-1]}"
            log.info("the task runner of %s at %s does not answer: %s", record.name, where, reason)

    def _told(self, record: TaskRecord, runner: _Runner, refusal: str) -> None:
        """Log a refusal once, however often it comes."""
        if runner.refused != refusal:
            log.warning("the task runner of %s refuses: %s", record.name, refusal)
        runner.refused = refusal


def _has_order(state: ServiceState, record: TaskRecord) -> bool:
    gang = gang_named(record.name)
    return gang in state.gangs and orders.has_order(state.view(gang), record)


def _order_due_at(runner: _Runner) -> float:
    """Return when a runner is to be sent its order; one that is new is sent at once."""
    if not runner.silent and _is_new_order(runner):
        return runner.done_at
    if not runner.silent and runner.refused:
        return runner.done_at + REFUSED_SECONDS
    return _due_at(runner, URGENT_SECONDS if runner.hopeful else PERIOD_SECONDS)


def _is_new_order(runner: _Runner) -> bool:
    return runner.ordered != (runner.record.start, not runner.record.held)


def _due_at(runner: _Runner, period: float) -> float:
    """Return when a runner that does not hold its answers back is to be asked again."""
    if runner.report is None:
        since = (runner.done_at - runner.known_since) * _BEGINNING_SHARE
        return runner.done_at + min(max(BEGINNING_SECONDS, since), SILENT_SECONDS)
    if runner.silent:
        period = max(period, min(period * 2.0**runner.silent, SILENT_SECONDS))
    return runner.done_at + period


def _file_limit() -> int:
    """Return how many files and connections this process may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else MOST_WAITED_FOR * _SHARE_OF_FILES


def _same(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> bool:
    if before is None or before == after:
        return before is not None
    old, new = before.get("memory_bytes"), after.get("memory_bytes")
    if not isinstance(old, int) or not isinstance(new, int) or abs(new - old) > _MEMORY_SHARE * old:
        return False
    return {**before, "memory_bytes": 0} == {**after, "memory_bytes": 0}
