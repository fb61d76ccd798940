"""What a job with a deadline costs on recorded spot markets, by the policy that buys its machines.

    python benchmarks/spot_market.py [--traces DIR] [--machines N] [--json FILE] [--write]

Read the table so: *cost* is the mean over all jobs, as a share of what on-demand machines alone
cost; *worst fifth* the mean of the dearest fifth of the policy's jobs; *missed* how many deadlines
were missed that on-demand machines would have kept; *closed* how much of the way from greedy to the
optimum. The policies are

* ``on_demand``; ``spot_only``, which waits for them, whatever the deadline;
* ``greedy`` (spot machines, else wait, on-demand ones when it must be);
* ``uniform_progress`` as published (NSDI 2024), and ``deadline_aware``, the rule of the product
  (docs/capacity.md);
* ``optimum``: a bound below what anybody could have paid who knows the future.

Each trace is played with jobs that begin at ``--starts`` moments, spread evenly, with deadlines of
``DEADLINES`` times a job's length, and gangs of as many machines as the trace counts. With
``--machines`` traces of one machine stand for a gang of so many: the machines come and go
together, or, with ``--apart``, one by one. Traces of several zones of one market are played once
more, as ``zones``, with a gang that may move between them: all of its machines, for a restart.
Without ``--traces`` the markets are made up from a seed. Nothing is measured in seconds of this
machine: the figures are the same everywhere.

``--write`` writes table and picture into docs/capacity.md, for gangs of 1, 4 and 16.
"""

from __future__ import annotations

import sys
from pathlib import Path

if not __package__:
    # As a script: its own folder would hide the standard library's queue.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import argparse
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import mean
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.machines import spot_simulation, spot_traces
from benchmarks.machines.spot_simulation import (
    DeadlineAware,
    Greedy,
    Market,
    Policy,
    Run,
    UniformProgress,
)
from benchmarks.machines.spot_traces import Trace
from dcos_tensorflow.capacity.deadline import DeadlineJob, RestartCost

DEADLINES = (1.1, 1.25, 1.5, 2.0)
JOB_HOURS = 24.0
#: No job's longest deadline is more than this part of its trace.
LONGEST = 1 / 2
POLICIES: Mapping[str, Callable[[], Policy]] = {
    "on_demand": lambda: spot_simulation.on_demand,
    "spot_only": lambda: spot_simulation.spot_or_nothing,
    "greedy": Greedy,
    "uniform_progress": UniformProgress,
    "deadline_aware": DeadlineAware,
}
OPTIMUM = "optimum"
#: How the picture calls the policies that it shows: names of rows have little room.
IN_PICTURE = {"greedy": "greedy", "deadline_aware": "rule", OPTIMUM: "least"}
#: A restart as measured (docs/recovery.md: a member's machine lost, 8 to 16 s); checkpoints every
#: two minutes, half of that lost. What a machine takes until its agent is there is assumed.
COST = RestartCost(boot=120.0, restart=15.0, lost=60.0)
GANGS = ((1, False), (4, False), (4, True), (16, False), (16, True))
#: How long a machine may take until its agent is there, for a table of its own; seconds.
BOOTS = (30.0, 120.0, 300.0, 600.0)
#: What EC2 gives: two minutes.
NOTICE = 120.0


@dataclass(frozen=True)
class Played:
    """A job that one policy has played."""

    market: str
    deadline: float
    policy: str
    #: As a share of what on-demand machines alone cost: in all, and for spot machines.
    cost: float
    spot: float
    missed: bool
    hours: float
    losses: int
    repeated: float


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--traces", type=Path, help="a folder of them")
    parser.add_argument("--machines", type=int, help="let traces of one machine stand for a gang")
    parser.add_argument("--apart", action="store_true", help="its machines come and go one by one")
    parser.add_argument("--starts", type=int, default=8, help="jobs on each trace, per deadline")
    parser.add_argument("--job-hours", type=float, default=JOB_HOURS)
    parser.add_argument("--boot-seconds", type=float, default=COST.boot)
    parser.add_argument("--restart-seconds", type=float, default=COST.restart)
    parser.add_argument("--lost-seconds", type=float, default=COST.lost)
    parser.add_argument("--notice-seconds", type=float, default=COST.notice)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument("--write", action="store_true", help="write docs/capacity.md")
    told = parser.parse_args()
    cost = RestartCost(
        told.boot_seconds, told.restart_seconds, told.lost_seconds, told.notice_seconds
    )
    try:
        traces = spot_traces.read(told.traces) if told.traces else spot_traces.made_up()
    except spot_traces.TraceError as error:
        parser.error(str(error))
    short = {each.name for each in traces if not holds_a_job(each, cost)}
    for name in sorted(short):
        print(f"{name} is left out: it is not as long as a job needs to start", file=sys.stderr)
    traces = [each for each in traces if each.name not in short]
    if not traces:
        parser.error(f"no trace in {told.traces} is long enough")
    if told.write:
        write(traces, told.starts, told.job_hours, cost)
        return
    if told.machines:
        traces = [
            spot_traces.gang_of(each, told.machines, apart=told.apart)
            for each in traces
            if each.machines == 1
        ]
        if not traces:
            parser.error(f"--machines: no trace in {told.traces} is of one machine")
    alone = [job for each in traces for job in jobs([each], told.starts, told.job_hours, cost)]
    groups = spot_traces.by_market(traces)
    moving = [job for each in groups for job in jobs(each, told.starts, told.job_hours, cost)]
    found: dict[str, Any] = dict(figures(alone))
    found["zones"] = figures(moving)
    greedy, rule = (found["summary"][policy] for policy in ("greedy", "deadline_aware"))
    # For bench.py, which keeps numbers alone.
    found["spot_market_cost_over_greedy"] = rule["cost"] / greedy["cost"]
    found["spot_market_missed"] = rule["missed"]
    found["settings"] = {**asdict(cost), "job_hours": told.job_hours, "starts": told.starts}
    if told.json:
        told.json.parent.mkdir(parents=True, exist_ok=True)
        told.json.write_text(json.dumps(found, indent=2) + "\n")
    print("\n".join(table(found["summary"])))
    if moving:
        print("\nfree to move between the zones of a market\n")
        print("\n".join(table(found["zones"]["summary"])))


def holds_a_job(trace: Trace, cost: RestartCost) -> bool:
    """Say whether a trace has room for a job that machines have to start for."""
    seconds = len(trace.available) * trace.gap_seconds
    return seconds >= seconds * LONGEST / DEADLINES[-1] + cost.cold


def jobs(
    zones: Sequence[Trace],
    starts: int,
    hours: float,
    cost: RestartCost,
    policies: Sequence[str] = (*POLICIES, OPTIMUM),
) -> Iterator[Played]:
    """Play jobs on one market, by these policies."""
    gap, machines = zones[0].gap_seconds, max(zone.machines for zone in zones)
    points = min(len(zone.available) for zone in zones)
    work = min(hours * 3600, points * gap * LONGEST / DEADLINES[-1])
    for factor in DEADLINES:
        # What on-demand machines alone could not keep is no miss of a policy.
        deadline = max(factor * work, work + cost.cold)
        job = DeadlineJob(machines, work, 0.0, deadline, cost)
        long = math.ceil(deadline / gap)
        for begin in np.linspace(0, points - long, starts, dtype=int):
            part = slice(begin, begin + long)
            market = Market(
                tuple(zone.name for zone in zones),
                gap,
                np.stack([zone.available[part] for zone in zones]),
                np.stack([zone.prices[part] for zone in zones]),
            )
            name = zones[0].name if len(zones) == 1 else zones[0].market
            whole = spot_simulation.on_demand_cost(job)
            for policy in policies:
                if policy == OPTIMUM:
                    run = Run(spot=spot_simulation.least(job, market))
                else:
                    run = spot_simulation.simulate(job, market, POLICIES[policy]())
                yield played(name, factor, policy, run, whole)


def played(market: str, deadline: float, policy: str, run: Run, whole: float) -> Played:
    """Return what is told of a run."""
    return Played(
        *(market, deadline, policy, run.cost / whole, run.spot / whole, run.missed),
        *(run.ended / 3600, run.losses, run.repeated),
    )


def figures(found: Sequence[Played]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the figures of jobs: of all, by deadline, and by market."""
    if not found:
        return {"summary": {}}
    return {
        "summary": summary(found),
        **{
            f"deadline_{factor}": summary([each for each in found if each.deadline == factor])
            for factor in DEADLINES
        },
        **{
            market: summary([each for each in found if each.market == market])
            for market in dict.fromkeys(each.market for each in found)
        },
    }


def summary(found: Sequence[Played]) -> dict[str, dict[str, float]]:
    """Return the figures of each policy."""
    answer = {}
    for policy in dict.fromkeys(each.policy for each in found):
        mine = [each for each in found if each.policy == policy]
        dearest = sorted((each.cost for each in mine), reverse=True)
        answer[policy] = {
            "cost": mean(dearest),
            "worst_fifth": mean(dearest[: max(1, len(dearest) // 5)]),
            "missed": sum(each.missed for each in mine),
            "jobs": len(mine),
            "spot": mean(each.spot for each in mine),
            "hours": mean(each.hours for each in mine),
            "losses": mean(each.losses for each in mine),
            "repeated_seconds": mean(each.repeated for each in mine),
        }
    if OPTIMUM in answer:
        span = answer["greedy"]["cost"] - answer[OPTIMUM]["cost"]
        for each in answer.values():
            each["closed"] = (answer["greedy"]["cost"] - each["cost"]) / span if span else 0.0
    return answer


def table(found: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Yield a line for each policy."""
    yield "| policy | cost | worst fifth | missed | closed | losses | work repeated | hours |"
    yield "|---|---|---|---|---|---|---|---|"
    for policy, each in found.items():
        row = [f"`{policy}`", f"{each['cost']:.3f}", f"{each['worst_fifth']:.3f}"]
        if policy == OPTIMUM:
            row += ["", f"{each['closed']:.2f}", "", "", ""]
        else:
            # A job that was not done has cost less than what it would have.
            closed = "" if each["missed"] else f"{each['closed']:.2f}"
            row += [f"{each['missed']:.0f} of {each['jobs']:.0f}", closed]
            row += [f"{each['losses']:.1f}", f"{each['repeated_seconds'] / 60:.0f} min"]
            row += [f"{each['hours']:.1f}"]
        yield f"| {' | '.join(row)} |"


def write(traces: Sequence[Trace], starts: int, hours: float, cost: RestartCost) -> None:
    """Write the tables and the picture of docs/capacity.md."""
    lines, bars = [], {}
    singles = [each for each in traces if each.machines == 1]
    for machines, apart in GANGS:
        gang = [spot_traces.gang_of(each, machines, apart=apart) for each in singles]
        found = [job for each in gang for job in jobs([each], starts, hours, cost)]
        title = titled(machines, apart)
        short_title = f"{machines} {'apart' if apart else 'as one'}" if machines > 1 else "1"
        whole = summary(found)
        lines += [f"**Machines: {title}**", "", *table(whole), "", *by_deadline(found), ""]
        print("\n".join(lines[-20:]), flush=True)
        for policy, short in IN_PICTURE.items():
            spot, all_of_it = 100 * whole[policy]["spot"], 100 * whole[policy]["cost"]
            parts = {"spot": spot, "on-demand": all_of_it - spot}
            bars[f"{short_title}: {short}"] = (
                {"at the least": all_of_it} if policy == OPTIMUM else parts
            )
    zones = [
        job for each in spot_traces.by_market(singles) for job in jobs(each, starts, hours, cost)
    ]
    if zones:
        lines += ["**One machine, free to move between the zones**", "", *table(summary(zones)), ""]
    picture = report.bars("What a job costs", "% of what on-demand machines cost", bars)
    (report.DOCS / "pictures" / "spot_market.svg").write_text(picture)
    insert("spot_market", lines)
    insert("spot_boots", list(by_boot(singles, starts, hours, cost)))


def insert(name: str, lines: Sequence[str]) -> None:
    """Write lines into docs/capacity.md where it has place for figures of this name."""
    page = report.DOCS / "capacity.md"
    before, begin, rest = page.read_text().partition(f"<!-- figures: {name} -->\n")
    _, end, after = rest.partition("<!-- end -->")
    page.write_text("".join((before, begin, *(f"{line}\n" for line in lines), end, after)))


def titled(machines: int, apart: bool) -> str:
    """Return the name of a gang in a table."""
    return f"{machines}, {'one by one' if apart else 'together'}" if machines > 1 else "1"


def by_boot(
    singles: Sequence[Trace], starts: int, hours: float, cost: RestartCost
) -> Iterator[str]:
    """Yield cost and worst fifth by how long a machine boots, for greedy and for the rule."""
    yield f"| machines | policy | {' | '.join(f'{boot:g} s' for boot in BOOTS)} | missed |"
    yield f"|---|---|{'---|' * (len(BOOTS) + 1)}"
    ways = {
        "`greedy`": ("greedy", 0.0),
        "`deadline_aware`": ("deadline_aware", 0.0),
        "with a notice": ("deadline_aware", NOTICE),
    }
    for machines, apart in GANGS:
        gang = [spot_traces.gang_of(each, machines, apart=apart) for each in singles]
        for name, (policy, notice) in ways.items():
            found = []
            for boot in BOOTS:
                like = replace(cost, boot=boot, notice=notice)
                all_jobs = [j for each in gang for j in jobs([each], starts, hours, like, [policy])]
                found.append(summary(all_jobs)[policy])
            cells = [f"{each['cost']:.3f}, {each['worst_fifth']:.3f}" for each in found]
            missed = sum(each["missed"] for each in found)
            yield f"| {titled(machines, apart)} | {name} | {' | '.join(cells)} | {missed:.0f} |"


def by_deadline(found: Sequence[Played]) -> Iterator[str]:
    """Yield the cost of each policy by how much time there is."""
    yield f"| cost by deadline | {' | '.join(f'{factor:g} times' for factor in DEADLINES)} |"
    yield f"|{'---|' * (len(DEADLINES) + 1)}"
    by = [summary([each for each in found if each.deadline == factor]) for factor in DEADLINES]
    for policy in (*POLICIES, OPTIMUM):
        cells = (f"{each[policy]['cost']:.3f}" for each in by)
        yield f"| `{policy}` | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
