"""What one step of the core costs a service of many gangs: one task each, all of them running.

Read it as ``step.py``: ``ms`` is the CPU of one call of ``step``, ``growth`` the exponent from the
row of fewer gangs to this one. A gang that nothing has happened to is not looked at.

    python benchmarks/gangs.py [--gangs 10 100 1000] [--json FILE]
"""

from __future__ import annotations

import argparse
import math
from dataclasses import replace

import figures
from large_service import report
from step import measured

from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.model.events import Event, RunnerReported, TaskUpdate, Tick
from dcos_tensorflow.core.model.gang import MAIN, Gang
from dcos_tensorflow.core.model.job import JobPhase, JobState
from dcos_tensorflow.core.model.roster import Roster
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.model.task_table import TaskTable
from dcos_tensorflow.core.spec.service_spec import TaskRole, UnitKind, UnitsSpec, slot_name
from dcos_tensorflow.core.step import step
from sample_states import NOW, a_record, a_role, a_spec, a_state


def many_gangs(count: int) -> ServiceState:
    """Return a service of so many slots, each of one task that runs."""
    units = UnitsSpec(UnitKind.SHARD)
    spec = a_spec(roles=(a_role(TaskRole.WORKER, 1),), units=units)
    gangs = {MAIN: ServiceState.of_one_gang(spec, "instance").only_gang}
    told = {}
    for number in range(count):
        name = slot_name(number)
        record = a_record(f"{name}-worker-0", agent_id=f"a{number}", hostname=f"node{number}")
        told[record.task_id] = report(record, 1)
        epoch = ClusterSpec(1, {record.name: f"10.0.0.1:{record.ports[0]}"})
        table = TaskTable(Roster.of(spec, gang=name), [record])
        gangs[name] = Gang(name, table, epoch, JobState(JobPhase.RUNNING, deployed=True))
    state = replace(a_state(JobPhase.RUNNING, spec=spec, reports=told), gangs=gangs)
    for second in range(3):
        state = step(state, (), NOW + second).state
    return state


def rows(state: ServiceState) -> dict[str, list[Event]]:
    """Return what is measured: events by a name."""
    record = state.gangs[slot_name(3)].tasks[f"{slot_name(3)}-worker-0"]
    agent = record.agent_id
    return {
        "tick": [Tick()],
        "report": [RunnerReported(record.task_id, report(record, 2))],
        "update": [TaskUpdate(record.task_id, TaskState.FAILED, agent, uuid="u", message="x")],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure a step of a service of many gangs.")
    parser.add_argument("--gangs", type=int, nargs="+", default=[10, 100, 1_000])
    figures.add_option(parser)
    arguments = parser.parse_args()
    found: dict[str, float] = {}
    before: dict[str, tuple[int, float]] = {}
    print(f"{'gangs':>7}  {'events':<14} {'ms':>10} {'growth':>7}")
    for count in arguments.gangs:
        state = many_gangs(count)
        for name, events in rows(state).items():
            cost, known = measured(state, events), before.get(name)
            growth = math.log(cost / known[1], count / known[0]) if known else math.nan
            print(f"{count:>7,}  {name:<14} {cost:>10.3f} {growth:>7.2f}", flush=True)
            before[name] = (count, cost)
            found[f"gangs_{count}_{name}_ms"] = cost
    figures.write(arguments.json, found)


if __name__ == "__main__":
    main()
