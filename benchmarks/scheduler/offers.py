"""From the offers of many agents in one event to the calls that answer them, through all layers.

Read it so: ``seconds`` is from the first byte of an OFFERS event that a master writes until it has
received the last call that answers one of its offers; ``calls`` is how many these are, ``MB`` how
much they say. Of the seconds, ``read`` is until the event has become offers of the core,
``decided`` the step, ``committed`` the commit that comes before any call, ``written`` the calls.
``CPU`` is what the scheduler takes of a core for all of it: the figure to compare where other
programs run. ``growth`` is the exponent of CPU from the row of fewer agents to this one: 1 is
linear. All are medians of the rounds, each of which begins with a service of its own.

    python -m benchmarks.scheduler.offers [--agents 10 100 1000 10000] [--tasks 100 1000]
        [--json FILE]

Services: ``idle`` wants nothing, and declines everything; ``too large`` wants a task that fits
nowhere, and declines every offer with a reason; the others launch so many workers, one on each
agent or ``--each`` of them, and decline the rest. A row that has no room for its workers is left
out. The master is a process of its own that does nothing but answer; gateway, event loop, core and
SQLite are the scheduler's own.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from benchmarks import figures
from benchmarks.scheduler import large_service  # noqa: F401 - puts the tests on the path
from dcos_tensorflow.core.kept.writes import first_writes, writes_between
from dcos_tensorflow.core.model.actions import Accept, Decline, Reconcile, Revive, Suppress
from dcos_tensorflow.core.model.events import Event, OffersReceived
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import LaunchSettings, ServiceState
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import Strategy, TaskRole
from dcos_tensorflow.mesos.gateway import MesosConfig, MesosGateway
from dcos_tensorflow.mesos.wire.convert import framework_info
from dcos_tensorflow.scheduler.loop.event_loop import EventLoop
from dcos_tensorflow.scheduler.loop.turn import Turn
from dcos_tensorflow.state.store import open_store
from samples.states import FRAMEWORK_ID, TOKEN_KEY, a_record, a_role, a_spec, a_state
from waiting import eventually

MESOS = (Accept, Decline, Reconcile, Revive, Suppress)
DEADLINE_SECONDS = 120.0

AGENT = Resources(cpus=8, mem=32768, disk=100_000)
MESOS_ID = "aa328114-5b42-4747-ae70-14e4bbe7f350"
#: Subscribes one framework. Each line of its input is an OFFERS event; each of its output says how
#: many calls have answered all of the offers by when.
MASTER = r"""
import json, re, socket, sys, threading, time

SUBSCRIBED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nMesos-Stream-Id: s\r\n\r\n"

def record(event):
    data = b"%d\n%s" % (len(event), event)
    return b"%x\r\n%s\r\n" % (len(data), data)

def write_offers(stream):
    global waiting, began, calls, size
    for line in sys.stdin.buffer:
        event = record(line.strip())
        waiting, calls, size = offers_in(line), 0, 0
        began = time.monotonic()
        stream.sendall(event)

def offers_in(text):
    return len(re.findall(rb'-O\d+"', text))

def serve(sock):
    global waiting, calls, size
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    reader = sock.makefile("rb", 1 << 20)
    while reader.readline():
        length = 0
        while (line := reader.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        body = reader.read(length)
        if b'"SUBSCRIBE"' in body[:100]:
            told = {"framework_id": {"value": sys.argv[1]}, "heartbeat_interval_seconds": 15}
            event = json.dumps({"type": "SUBSCRIBED", "subscribed": told}).encode()
            sock.sendall(SUBSCRIBED + record(event))
            threading.Thread(target=write_offers, args=(sock,), daemon=True).start()
            continue
        ended = time.monotonic()
        sock.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
        if answered := offers_in(body):
            calls, size, waiting = calls + 1, size + len(body), waiting - answered
        if answered and waiting == 0:
            told = {"began": began, "ended": ended, "calls": calls, "bytes": size}
            print(json.dumps(told), flush=True)

waiting = calls = size = began = 0
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


@dataclass(frozen=True)
class Answered:
    """One event: its seconds, and the calls that answer it."""

    seconds: float
    read: float
    decided: float
    committed: float
    written: float
    calls: float
    megabytes: float
    cpu: float

    @staticmethod
    def middle(rounds: Sequence[Answered]) -> Answered:
        names = [field.name for field in fields(Answered)]
        return Answered(*(statistics.median(getattr(one, n) for one in rounds) for n in names))


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the way of many offers in one event.")
    parser.add_argument("--agents", type=int, nargs="+", default=[10, 100, 1_000, 10_000])
    parser.add_argument("--tasks", type=int, nargs="*", default=[100, 1_000])
    parser.add_argument("--each", type=int, default=1, help="how many tasks an agent has room for")
    parser.add_argument("--rounds", type=int, default=5)
    figures.add_option(parser)
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    found: dict[str, float] = {}
    names = ("seconds", "read", "decided", "committed", "written", "CPU", "calls", "MB", "growth")
    print(f"{'agents':>7} {'service':<13}" + "".join(f"{name:>10}" for name in names))
    services = {"idle": 0, "too large": None, **{f"{tasks} tasks": tasks for tasks in given.tasks}}
    for name, tasks in services.items():
        before: tuple[int, float] | None = None
        for agents in given.agents:
            if (tasks or 0) > agents * given.each:
                continue
            rounds = [answered(agents, tasks, given.each) for _ in range(given.rounds)]
            one = Answered.middle(rounds)
            growth = math.log(one.cpu / before[1], agents / before[0]) if before else math.nan
            before = agents, one.cpu
            times = (one.seconds, one.read, one.decided, one.committed, one.written, one.cpu)
            print(
                f"{agents:>7,} {name:<13}"
                + "".join(f"{value:>10.3f}" for value in times)
                + f"{one.calls:>10,.0f}{one.megabytes:>10.2f}{growth:>10.2f}",
                flush=True,
            )
            row = f"offers_{agents}_{name.replace(' ', '_')}"
            found |= {f"{row}_seconds": one.seconds, f"{row}_cpu_seconds": one.cpu}
    figures.write(given.json, found)


def an_offer(number: int) -> Mapping[str, Any]:
    """Return an offer of an agent as Mesos 1.11 makes it (tests/data/mesos-recordings)."""
    where = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
    address = {"hostname": where, "ip": where, "port": 5051}
    role = {"allocation_info": {"role": "tensorflow"}}
    ports = {"range": [{"begin": 31000, "end": 31999}]}
    scalars = {"cpus": AGENT.cpus, "mem": AGENT.mem, "disk": AGENT.disk}
    return {
        "id": {"value": f"{MESOS_ID}-O{number}"},
        "framework_id": {"value": FRAMEWORK_ID},
        "agent_id": {"value": f"{MESOS_ID}-S{number}"},
        "hostname": where,
        "url": {"scheme": "http", "address": address, "path": "/slave(1)"},
        "resources": [
            {"name": "ports", "type": "RANGES", "ranges": ports, **role},
            *(
                {"name": name, "type": "SCALAR", "scalar": {"value": amount}, **role}
                for name, amount in scalars.items()
            ),
        ],
        "attributes": [
            {"name": "rack", "type": "TEXT", "text": {"value": f"rack{number % 40}"}},
            {"name": "agent", "type": "SCALAR", "scalar": {"value": float(number)}},
        ],
        **role,
    }


def a_service(tasks: int | None, each: int) -> ServiceState:
    """Return a service that wants so many tasks, or one that fits nowhere, or nothing."""
    share = Resources(cpus=AGENT.cpus / each, mem=AGENT.mem / each, disk=64)
    worker = a_role(TaskRole.WORKER, tasks or 1, resources=share)
    if tasks is None:
        worker = replace(worker, resources=replace(share, cpus=AGENT.cpus + 1))
    spec = a_spec(roles=(worker,), strategy=Strategy.INDEPENDENT)
    if tasks == 0:
        known = (a_record("worker-0"),)
        return a_state(JobPhase.RUNNING, known, spec=spec, job={"deployed": True}, registered=False)
    state = ServiceState.of_one_gang(spec, "an-instance", LaunchSettings(token_key=TOKEN_KEY))
    return replace(state, framework_id=FRAMEWORK_ID)


def answered(agents: int, tasks: int | None, each: int) -> Answered:
    """Return what one event of so many offers led to."""
    arrived: list[float] = []
    turns: list[Turn] = []

    def take(event: Event) -> None:
        if isinstance(event, OffersReceived):
            arrived.append(time.monotonic())
        loop.submit(event)

    state = a_service(tasks, each)
    with tempfile.TemporaryDirectory(prefix="offers-") as folder, master() as (port, ask):
        store = open_store(f"sqlite:///{folder}/state.db", state.spec.name, timeout_seconds=60.0)
        store.lead("benchmark", 10.0, print)
        store.commit([*first_writes(state), *writes_between(ServiceState(state.spec, ""), state)])
        gateway = MesosGateway(MesosConfig(f"127.0.0.1:{port}"), take)
        loop = EventLoop(
            state,
            store,
            lambda action: gateway.perform(action) if isinstance(action, MESOS) else None,
            tick_seconds=1.0,
        )
        loop.measure(turns.append)
        loop.start()
        try:
            gateway.start(framework_info(state.spec, state.framework_id, "localhost", ""))
            eventually(lambda: loop.state.registered, seconds=DEADLINE_SECONDS)
            told, used = ask(agents)
            eventually(lambda: any(map(has_offers, turns)), seconds=DEADLINE_SECONDS)
        finally:
            loop.stop()
            gateway.stop()
            store.close()
    turn = next(filter(has_offers, turns))
    return Answered(
        told["ended"] - told["began"],
        arrived[0] - told["began"],
        turn.decided,
        turn.committed or 0.0,
        turn.performed,
        told["calls"],
        told["bytes"] / 1e6,
        used,
    )


def has_offers(turn: Turn) -> bool:
    return any(isinstance(event, OffersReceived) for event in turn.events)


@contextlib.contextmanager
def master() -> Iterator[tuple[int, Callable[[int], tuple[Mapping[str, float], float]]]]:
    """Yield a master's port, and what has it make offers and says how they were answered."""
    with subprocess.Popen(
        [sys.executable, "-c", MASTER, FRAMEWORK_ID],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asked, told = process.stdin, process.stdout

        def ask(agents: int) -> tuple[Mapping[str, float], float]:
            offers = [an_offer(number) for number in range(agents)]
            event = json.dumps({"type": "OFFERS", "offers": {"offers": offers}})
            print(event, file=asked, flush=True)
            used = time.process_time()
            answer: Mapping[str, float] = json.loads(told.readline())
            return answer, time.process_time() - used

        try:
            yield int(told.readline()), ask
        finally:
            process.kill()


if __name__ == "__main__":
    main()
