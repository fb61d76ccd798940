"""What each GET of the HTTP API costs the scheduler's process: CPU, and how long the answer is.

Read it so: ``first ms`` is the CPU of the first answer for a state that nothing was asked of,
``ms`` that of the next one for a state which has changed in one task, as a dashboard asks again and
again; ``kB`` is the length of the answer, before it is compressed. The service has so many tasks of
one gang, or as many units in slots, and a ledger of bought machines, half of which have ended.
``api_worst_ms`` is the largest ``ms`` of all routes; ``api_worst_ms_per_mb`` the largest cost of an
answer by its length, of those that take more than ``MOST_MS``.

    python benchmarks/api.py [--tasks 10000] [--units 10000] [--machines 1000]
        [--json FILE]
"""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:
    # As a script: its own folder would hide the standard library's queue.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import argparse
import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from benchmarks import figures
from benchmarks.scheduler.large_service import AGENTS, running_service, settled
from dcos_tensorflow.api.app import create_app
from dcos_tensorflow.api.callers.access import Access
from dcos_tensorflow.api.operations import OPERATIONS
from dcos_tensorflow.capacity.ledger import Entry, Ledger, OwnedMachine, Stage
from dcos_tensorflow.capacity.market import Market, Pool
from dcos_tensorflow.core.model.events import RunnerReported
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.units import UnitState
from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec, CommandSpec
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import UnitKind, UnitsSpec
from dcos_tensorflow.core.spec.workload_spec import BatchSpec
from dcos_tensorflow.core.step import step
from dcos_tensorflow.scheduler.machines.ledger_records import changes_between
from dcos_tensorflow.workloads import producer_of
from samples.state_source import Source
from samples.states import NOW

#: No client may hold up what the scheduler is for any longer.
MOST_MS = 20.0
#: No plain answers: one has no end, the others read what is beside the state.
LEFT_OUT = {"events", "artifact", "pod_file", "curves", "runs", "openapi"}
PARTS = {"name": "worker-7", "plan": "deploy", "id": "00000000-0000-0000-0000-000000000000"}


def used_by(state: ServiceState) -> dict[str, Mapping[str, Any]]:
    """Return what each task uses, by its id."""
    used = {"cpu_percent": 90.0, "mem_bytes": 1 << 30, "gpus": [], "steps_per_second": 3.0}
    return {record.task_id: used for record in state.tasks.values()}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what each GET costs.")
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--units", type=int, default=10_000)
    parser.add_argument("--machines", type=int, default=1_000)
    figures.add_option(parser)
    arguments = parser.parse_args()
    gang = with_machines(settled(running_service(arguments.tasks)), arguments.machines)
    slots = with_units(settled(running_service(AGENTS // 10)), arguments.units)
    found: dict[str, float] = {}
    beyond: list[float] = []
    print(f"{'GET':<44} {'first ms':>9} {'ms':>8} {'kB':>8}")
    for name, path, state in asked_for(gang, slots):
        first, again, size = measured(state, path)
        print(f"{path:<44} {first:>9.1f} {again:>8.1f} {size / 1000:>8.0f}", flush=True)
        found[f"api_{name}_ms"] = again
        if again > MOST_MS:
            beyond.append(again / (size / 1e6))
    found["api_worst_ms"] = max(found.values())
    found["api_worst_ms_per_mb"] = max(beyond, default=0.0)
    figures.write(arguments.json, found)


def asked_for(gang: ServiceState, slots: ServiceState) -> Iterator[tuple[str, str, ServiceState]]:
    """Yield every route with the state that makes it dear, by its operation's name."""
    for operation in OPERATIONS:
        if operation.is_verb or operation.id in LEFT_OUT:
            continue
        path = operation.path
        for name, part in PARTS.items():
            path = path.replace(f"{{{name}}}", part)
        yield operation.id, path, gang
        if operation.id in ("units", "job", "why", "plans", "prometheus", "metrics"):
            yield f"{operation.id}_of_units", path, slots


def measured(state: ServiceState, path: str) -> tuple[float, float, int]:
    """Return the CPU of the first answer and of a later one (ms), and the length of that."""
    source = Source(state=state)
    source.used = used_by(state)
    app = create_app(source, access=Access())
    costs, size = [], 0
    for number in range(4):
        began = time.process_time()
        size = asyncio.run(answered(app, path))
        costs.append(1000 * (time.process_time() - began))
        source.current = state = changed(state, number)
    return costs[0], min(costs[1:]), size


def changed(state: ServiceState, number: int) -> ServiceState:
    """Return the state after one runner has told another step."""
    record = next(iter(state.tasks.values()))
    report = {**state.told.reports.get(record.task_id, {}), "progress": {"step": 100 + number}}
    return step(state, (RunnerReported(record.task_id, report),), NOW + 100 + number).state


async def answered(app: Any, path: str) -> int:
    """Let the application answer a GET; return how long the answer is."""
    sizes: list[int] = []
    status = 0

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Mapping[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)
        sizes.append(len(message.get("body", b"")))

    scope = {
        **{"type": "http", "method": "GET", "path": path, "raw_path": path.encode()},
        **{"query_string": b"", "headers": [], "scheme": "http", "http_version": "1.1"},
        **{"server": ("127.0.0.1", 80), "client": ("127.0.0.1", 9), "root_path": ""},
    }
    await app(scope, receive, send)
    # Where another part of the cluster is asked it is silent; any other error is this script's.
    assert status < 500 or status == 502, f"{path} is answered {status}"
    return sum(sizes)


def with_machines(state: ServiceState, count: int) -> ServiceState:
    """Return the state with so many machines that were bought one by one; half of them ended."""
    pool = Pool("p3.2xlarge", "us-east-1a", Market.SPOT, 0.918, Resources(cpus=8, mem=60_000))
    ledger = Ledger()
    for number in range(count):
        ended = number % 2 == 0
        machine = OwnedMachine(
            *(f"i-{number:08x}", pool.instance_type, pool.zone, NOW - 9000.0, NOW - 8990.0, 0.0),
            prices=((NOW - 9000.0, 0.918),),
            hostnames=(f"node{number}", f"10.0.{number // 250}.{number % 250}"),
            started_at=NOW - 8995.0,
            listed=True,
            busy_since=NOW - 8000.0,
            ended_at=NOW - number if ended else 0.0,
            stopped_at=NOW - number if ended else 0.0,
        )
        stage = Stage.OVER if ended else Stage.BOUGHT
        entry = Entry(
            *(f"purchase-{number}", (pool,), 1, ("main",), NOW - 9000.0, (3.06,)),
            stage=stage,
            machines=(machine,),
        )
        ledger = ledger.put(entry)
    kept = {key: r for key, r in changes_between(Ledger(), ledger).items() if r is not None}
    section = CapacitySpec(CommandSpec(("rack",)), budget=10_000.0)
    return replace(state, capacity=kept, spec=replace(state.spec, capacity=section))


def with_units(state: ServiceState, count: int) -> ServiceState:
    """Return the state with so many units of work, half of which are done."""
    work = BatchSpec("/out/part-{index:05}", per_shard=1, end=count)
    spec = replace(state.spec, units=UnitsSpec(UnitKind.SHARD), workload=work)
    given = producer_of(work).next(0, count).units
    table = state.units.given((unit.payload for unit in given), last=True)
    for unit in tuple(table)[: count // 2]:
        done = replace(unit, state=UnitState.SUCCEEDED, tries=1, begun_at=NOW, ended_at=NOW + 60)
        table = table.put(replace(done, result={"metrics": {"loss": 0.25}}))
    return replace(state, spec=spec, units=table)


if __name__ == "__main__":
    main()
