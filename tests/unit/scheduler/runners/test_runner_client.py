"""The runner client: every runner is asked, and sent its order until it is under it."""

import asyncio
import hashlib
import hmac
import json
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qs

import pytest

from dcos_tensorflow.core import contract
from dcos_tensorflow.core.cluster.launch import task_token
from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.model.events import RunnerReported
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import LaunchSettings
from dcos_tensorflow.core.model.task import TaskRecord, TaskState
from dcos_tensorflow.core.model.task_table import TaskTable
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import (
    JobSpec,
    RoleSpec,
    ServiceSpec,
    Strategy,
    TaskRole,
)
from dcos_tensorflow.scheduler.runners import runner_client
from dcos_tensorflow.scheduler.runners.runner_client import RunnerClient
from samples.states import a_state, changed, with_records
from waiting import end_others

KEY = "00" * 32
DEADLINE = 20.0
#: How long the client waits for an answer where it must not give up before the test does.
PATIENCE = 60.0


@dataclass
class Runner:
    """A task runner as far as its HTTP interface goes; ``behaviour`` is how it answers.

    With ``telling`` it has a revision, and holds answers back from a client that knows the newest.
    """

    token: str
    behaviour: str = "well"
    start: int = 1
    run: bool = True
    orders: list[dict[str, Any]] = field(default_factory=list)
    asked: int = 0
    under_way: int = 0
    most_under_way: int = 0
    port: int = 0
    state: str = "running"
    revision: int = 1
    held_back: int = 0
    told: asyncio.Event = field(default_factory=asyncio.Event)

    def status(self) -> dict[str, Any]:
        found = {"start": self.start, "run": self.run, "state": self.state}
        return {**found, "revision": self.revision} if self.behaviour == "telling" else found

    async def happen(self, state: str) -> None:
        """Something happens to the task."""
        self.state, self.revision = state, self.revision + 1
        self.told.set()

    async def _hold_back(self, query: dict[str, list[str]]) -> None:
        while int(query["after"][0]) == self.revision:
            self.held_back += 1
            await self.told.wait()
            self.told.clear()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await self._answer(reader, writer)
        except asyncio.CancelledError:
            pass  # The test is over.
        finally:
            self.under_way -= 1
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines if line)
        body = await reader.readexactly(int(headers["Content-Length"]))
        self.asked += 1
        if self.behaviour == "hanging":
            await asyncio.sleep(3600)
        method, path, _ = first.split(" ")
        if query := parse_qs(path.partition("?")[2]):
            await self._hold_back(query)
        signed = f"{method} {path}\n{headers[contract.TIME_HEADER]}\n".encode() + body
        right = hmac.new(self.token.encode(), signed, hashlib.sha256).hexdigest()
        status, document = 401, {"error": "the signature is wrong"}
        if headers[contract.TOKEN_HEADER] == right:
            status, document = self._act(method, json.loads(body) if body else {})
        payload = json.dumps(document).encode() if self.behaviour != "strange" else b"hello"
        writer.write(f"HTTP/1.1 {status} x\r\nContent-Length: {len(payload)}\r\n\r\n".encode())
        writer.write(payload)
        await writer.drain()

    def _act(self, method: str, order: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if method == "PUT":
            self.orders.append(order)
            if self.behaviour == "refusing":
                return 409, {"error": "the task is ending"}
            self.start, self.run = order["start"], order["run"]
            self.revision += 1
            return 200, {**self.status(), "changed": True}
        return 200, self.status()


class Runners:
    """Many of them in one thread, each with a port of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.servers: list[asyncio.Server] = []
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def add(self, task_id: str, behaviour: str) -> Runner:
        runner = Runner(task_token(KEY, task_id), behaviour)

        async def listen() -> None:
            server = await asyncio.start_server(runner.serve, "127.0.0.1", 0)
            self.servers.append(server)
            runner.port = server.sockets[0].getsockname()[1]

        asyncio.run_coroutine_threadsafe(listen(), self.loop).result(DEADLINE)
        return runner

    def do(self, work: Coroutine[Any, Any, None]) -> None:
        """Let something happen in the runners' own thread."""
        asyncio.run_coroutine_threadsafe(work, self.loop).result(DEADLINE)

    def close(self) -> None:
        async def end() -> None:
            for server in self.servers:
                server.close()
            await end_others()

        asyncio.run_coroutine_threadsafe(end(), self.loop).result(DEADLINE)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class Watched(TaskTable):
    """Tasks that count how often a caller goes through all of them."""

    looked_at = 0

    def values(self) -> Any:
        self.looked_at += 1
        return super().values()


class Service:
    """A state that tests change, its runners, and the client between them."""

    def __init__(self, behaviours: list[str]) -> None:
        self.runners = Runners()
        self.all = [self.runners.add(f"job__worker-{n}__x", b) for n, b in enumerate(behaviours)]
        records = [_record(n, runner) for n, runner in enumerate(self.all)]
        addresses = {r.name: f"127.0.0.1:{1000 + r.index}" for r in records}
        self.state = a_state(
            JobPhase.RUNNING,
            records,
            spec=_spec(len(behaviours)),
            settings=LaunchSettings(token_key=KEY),
            epoch=ClusterSpec(1, addresses),
        )
        self.events: list[RunnerReported] = []
        self.changed = threading.Condition()
        self.leads = True
        self.began = 0.0
        self.client = RunnerClient(lambda: self.state, self._take, lambda: self.leads)

    def _take(self, event: RunnerReported) -> None:
        with self.changed:
            self.events.append(event)
            # As the core does.
            reports = {**self.state.told.reports, event.task_id: event.report}
            self.state = changed(self.state, reports=reports)
            self.changed.notify_all()

    def change(self, name: str, **fields: Any) -> None:
        with self.changed:
            record = replace(self.state.tasks[name], **fields)
            self.state = with_records(self.state, record)
        self.client.wake()

    def wait(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE
        with self.changed:
            while not condition():
                assert time.monotonic() < deadline
                self.changed.wait(0.01)

    def reported(self, number: int) -> list[RunnerReported]:
        return [event for event in self.events if event.task_id == f"job__worker-{number}__x"]

    def close(self) -> None:
        self.client.stop()
        self.runners.close()


def _spec(workers: int) -> ServiceSpec:
    role = RoleSpec(TaskRole.WORKER, workers, Resources(cpus=1, mem=64))
    job = JobSpec(command="true", contract="command")
    return ServiceSpec("job", (role,), job, strategy=Strategy.INDEPENDENT)


def _record(number: int, runner: Runner) -> TaskRecord:
    return TaskRecord(
        name=f"worker-{number}",
        role=TaskRole.WORKER,
        index=number,
        attempt=1,
        task_id=f"job__worker-{number}__x",
        state=TaskState.RUNNING,
        epoch=1,
        agent_id="a",
        hostname="localhost",
        address="127.0.0.1",
        ports=(1000 + number, runner.port),
        launched_at=0.0,
        changed_at=0.0,
    )


@pytest.fixture
def service() -> Iterator[Callable[..., Service]]:
    """Return a function that starts a client with runners of these behaviours."""
    made: list[Service] = []

    def start(*behaviours: str, listening: bool = True) -> Service:
        service = Service(list(behaviours))
        made.append(service)
        if not listening:
            service.change("worker-0", ports=(1000, 1))
        service.began = time.monotonic()
        service.client.start()
        return service

    yield start
    for one in made:
        one.close()


def test_what_a_runner_reports_becomes_an_event(service):
    one = service("well")
    one.wait(lambda: one.events)
    assert one.events[0].report == {"start": 1, "run": True, "state": "running"}


def test_a_runner_that_does_not_listen_yet_is_asked_again_soon(service, monkeypatch):
    monkeypatch.setattr(runner_client, "PERIOD_SECONDS", 60.0)
    one = service("well", listening=False)
    one.wait(lambda: any(r.silent >= 2 for r in list(one.client._runners.values())))
    one.change("worker-0", ports=(1000, one.all[0].port))
    one.wait(lambda: one.events)


@pytest.mark.parametrize(("since", "seconds"), [(0.0, 0.1), (5.0, 0.5), (600.0, 2.0)])
def test_who_was_never_heard_of_is_asked_after_a_tenth_of_the_time_that_it_was_silent(
    since, seconds
):
    record = _record(0, Runner("token"))
    runner = runner_client._Runner(record, known_since=100.0, done_at=100.0 + since, silent=50)
    assert runner_client._due_at(runner, 0.5) - runner.done_at == pytest.approx(seconds)


def test_a_report_without_news_is_told_once_and_leads_to_no_order(service):
    one = service("well")
    one.wait(lambda: one.all[0].asked >= 4)
    assert len(one.events) == 1
    assert one.all[0].orders == []


def test_a_report_that_the_state_has_lost_is_told_again(service):
    one = service("well")
    one.wait(lambda: one.events)
    one.state = changed(one.state, reports={})
    one.wait(lambda: len(one.events) == 2)


def test_a_new_start_is_ordered_with_the_cluster(service):
    one = service("well", "well")
    one.wait(lambda: len(one.events) == 2)
    one.change("worker-1", start=2)
    one.wait(lambda: one.all[1].start == 2)
    order = one.all[1].orders[0]
    assert (order["start"], order["run"], order["epoch"]) == (2, True, 1)


def test_the_answer_to_an_order_is_a_report(service):
    one = service("well")
    one.wait(lambda: one.events)
    one.change("worker-0", start=2, held=True)
    one.wait(lambda: len(one.events) == 2)
    assert one.events[1].report == {"start": 2, "run": False, "state": "running"}


def test_a_runner_that_can_tell_news_is_waited_for(service):
    one = service("telling")
    one.wait(lambda: one.all[0].held_back)
    one.runners.do(one.all[0].happen("failed"))
    one.wait(lambda: len(one.events) == 2)
    assert one.events[1].report == {"start": 1, "run": True, "state": "failed"}


def test_an_order_waits_for_no_answer_that_is_held_back(service):
    one = service("telling")
    one.wait(lambda: one.all[0].held_back)
    one.change("worker-0", start=2)
    one.wait(lambda: one.all[0].start == 2)
    assert one.all[0].under_way


def test_an_answer_from_before_an_order_is_passed_over(service):
    one = service("telling")
    one.wait(lambda: one.all[0].held_back)
    one.change("worker-0", start=2)
    one.wait(lambda: len(one.events) == 2)
    one.all[0].start = 1
    one.runners.do(one.all[0].happen("running"))
    one.wait(lambda: one.all[0].held_back >= 2)
    assert [event.report["start"] for event in one.events][:2] == [1, 2]


def test_among_many_runners_none_is_waited_for(service, monkeypatch):
    monkeypatch.setattr(runner_client, "MOST_WAITED_FOR", 1)
    one = service("telling", "telling")
    one.wait(lambda: all(runner.asked >= 4 for runner in one.all))
    assert not any(runner.held_back for runner in one.all)


def test_all_tasks_are_looked_at_only_when_they_have_changed(service):
    one = service("well", "well")
    one.wait(lambda: len(one.events) == 2)
    gang = one.state.only_gang
    tasks = Watched(gang.tasks.roster, gang.tasks.values(), one.state.told.reports)
    with one.changed:
        one.state = replace(one.state, gangs={gang.name: replace(gang, tasks=tasks)})
    asked = one.all[0].asked
    one.wait(lambda: one.all[0].asked >= asked + 4)
    assert tasks.looked_at == 1


def test_a_runner_that_forgot_its_order_is_sent_it_again(service):
    one = service("well")
    one.wait(lambda: one.events)
    one.change("worker-0", start=2)
    one.wait(lambda: one.all[0].start == 2)
    one.all[0].start = 1
    one.wait(lambda: one.all[0].start == 2)
    assert [order["start"] for order in one.all[0].orders] == [2, 2]


def test_a_task_that_is_being_killed_is_sent_no_order(service):
    one = service("well")
    one.wait(lambda: one.events)
    one.change("worker-0", start=2, kill_reason="the job is done")
    asked = one.all[0].asked
    one.wait(lambda: one.all[0].asked >= asked + 2)
    assert one.all[0].orders == []


def test_nothing_is_ordered_while_another_scheduler_may_lead(service):
    one = service("well")
    one.wait(lambda: one.events)
    one.leads = False
    one.change("worker-0", start=2)
    asked = one.all[0].asked
    one.wait(lambda: one.all[0].asked >= asked + 2)
    assert one.all[0].orders == []
    one.leads = True
    one.wait(lambda: one.all[0].start == 2)


@pytest.mark.parametrize("state", [TaskState.STARTING, TaskState.UNREACHABLE])
def test_runners_of_tasks_that_may_live_are_asked(service, state):
    one = service("well")
    one.change("worker-0", state=state)
    asked = one.all[0].asked
    one.wait(lambda: one.all[0].asked >= asked + 2)


def test_a_runner_of_a_task_that_ended_is_left_alone(service):
    one = service("well", "well")
    one.wait(lambda: len(one.events) == 2)
    one.change("worker-0", state=TaskState.FINISHED)
    one.wait(lambda: one.all[0].under_way == 0)
    first, second = one.all[0].asked, one.all[1].asked
    one.wait(lambda: one.all[1].asked >= second + 2)
    assert one.all[0].asked - first <= 1


def test_a_refusal_is_logged_once_with_its_text(service, caplog, monkeypatch):
    monkeypatch.setattr(runner_client, "REFUSED_SECONDS", 0.05)
    caplog.set_level(logging.WARNING)
    one = service("refusing")
    one.wait(lambda: one.events)
    one.change("worker-0", start=2)
    one.wait(lambda: len(one.all[0].orders) >= 3)
    assert [r.getMessage() for r in caplog.records] == [
        "the task runner of worker-0 refuses: 409 the task is ending"
    ]


def test_an_answer_that_is_none_of_a_runner_is_no_report(service):
    one = service("strange")
    one.wait(lambda: one.all[0].asked >= 2)
    assert one.events == []


def test_a_runner_is_asked_one_thing_at_a_time(service, monkeypatch):
    monkeypatch.setattr(runner_client, "PERIOD_SECONDS", 0.02)
    # A request that is given up is still under way for a runner that is slow to see it.
    monkeypatch.setattr(runner_client, "STATUS_TIMEOUT_SECONDS", PATIENCE)
    monkeypatch.setattr(runner_client, "ORDER_TIMEOUT_SECONDS", PATIENCE)
    one = service(*["well"] * 4)
    for start in range(2, 12):
        for name in ("worker-0", "worker-1"):
            one.change(name, start=start)
        one.wait(lambda start=start: one.all[0].start == one.all[1].start == start)
    assert max(runner.most_under_way for runner in one.all) == 1


def test_runners_that_hang_delay_no_others(service, monkeypatch):
    monkeypatch.setattr(runner_client, "STATUS_TIMEOUT_SECONDS", PATIENCE)
    one = service(*["hanging"] * 5, *["well"] * 95)
    one.wait(lambda: all(one.reported(number) for number in range(5, 100)))
    began = time.monotonic()
    for number in range(100):
        one.change(f"worker-{number}", start=2)
    one.wait(lambda: all(runner.start == 2 for runner in one.all[5:]))
    assert time.monotonic() - began < PATIENCE


def test_no_more_is_asked_in_a_second_than_the_rate(service, monkeypatch):
    monkeypatch.setattr(runner_client, "RATE", 20.0)
    one = service(*["well"] * 50)
    one.wait(lambda: all(runner.asked for runner in one.all))
    # The first twenty are at once, the other thirty take their time.
    assert time.monotonic() - one.began > 1.0


def test_what_is_wanted_anew_does_not_wait_for_the_rate(service, monkeypatch):
    one = service(*["well"] * 5)
    one.wait(lambda: all(one.reported(number) for number in range(5)))
    monkeypatch.setattr(runner_client, "RATE", 0.0)
    for number in range(5):
        one.change(f"worker-{number}", start=2)
    one.wait(lambda: all(runner.start == 2 for runner in one.all))


def test_a_stop_gives_up_what_is_under_way(service, monkeypatch):
    monkeypatch.setattr(runner_client, "STATUS_TIMEOUT_SECONDS", PATIENCE)
    one = service("hanging")
    one.wait(lambda: one.all[0].asked)
    began = time.monotonic()
    one.client.stop()
    assert time.monotonic() - began < DEADLINE
