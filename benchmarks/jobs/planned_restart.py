"""How long a training stands still for what an operator asks of it, beside a restart by hand.

Read it so: ``pause`` is the longest time without a step of the deciding task after the request, in
seconds; ``by hand`` is the same where a person starts processes again at their old addresses
(``benchmarks/recovery/by_hand.py``): the chief's of a ParameterServerStrategy, which is asked to
end and saves; everybody's of a MultiWorkerMirroredStrategy, killed, because TensorFlow swallows
SIGTERM there. ``ratio`` is the one over the other, ``wait`` the time from the request to that
pause's begin (the training goes on meanwhile), ``repeated`` the steps that had to be done again.
Each row is the median of all rounds. ``planned_restart_ratio`` is the worst of the rows in which
no task that trains is given another container.

    python -m benchmarks.jobs.planned_restart [--rounds 3] [--strategy parameter_server ...]
        [--only CHANGE ...] [--tensorflow 2.21.0] [--json FILE] [--keep]
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import figures
from benchmarks.recovery import cases, processes
from benchmarks.recovery.by_hand import ByHand
from benchmarks.recovery.cases import Training
from benchmarks.recovery.evidence import Entry
from benchmarks.recovery.service import Service

ROOT = Path(__file__).resolve().parents[2]
#: Steps to go beyond the last change before the next one: a checkpoint is among them.
ADVANCE_STEPS = 30
#: Seconds until a change that has not led to a running gang of that size is given up.
PATIENCE_SECONDS = 300.0
#: A training that goes on has to do so for this long.
STAY_SECONDS = 2.0


@dataclass(frozen=True)
class Change:
    """What is asked of a service: a path of its API, with a body."""

    name: str
    path: str
    body: Mapping[str, Any] | None = field(default=None, hash=False)
    #: How many members come (or go, below 0).
    members: int = 0
    #: Whether a task that trains gets another container.
    moves: bool = False
    #: The change that has to come before it: a task cannot leave that has not come.
    after: str = ""


def _update(
    name: str, body: dict[str, Any], members: int = 0, *, moves: bool = False, after: str = ""
) -> Change:
    return Change(name, "/v1/job/update?merge=true", body, members, moves, after)


#: What is asked, in turn: each finds what the one before it has left.
CHANGES: tuple[Change, ...] = (
    Change("restart", "/v1/pod/chief-0/restart"),
    _update("grow", {"worker": {"count": 3}}, +1),
    _update("shrink", {"worker": {"count": 2}}, -1, after="grow"),
    Change("replace_worker", "/v1/pod/worker-1/replace", moves=True),
    _update("options", {"service": {"env": {"ROUND": "{round}"}}}, moves=True),
    _update("options_of_workers", {"worker": {"env": {"WORKERS_ROUND": "{round}"}}}, moves=True),
)

#: Two workers of each: what a machine with two cores can carry.
TRAININGS: dict[str, Training] = {
    "parameter_server": replace(
        cases.PARAMETER_SERVER, tasks=("ps-0", "chief-0", "worker-0", "worker-1"), touching=()
    ),
    "multi_worker": replace(
        cases.MULTI_WORKER,
        tasks=("chief-0", "worker-0", "worker-1"),
        trainers=("chief-0",),
    ),
}
#: Whose processes a person starts again where we have to start some again.
BY_HAND = {"parameter_server": ("chief-0",), "multi_worker": ("chief-0", "worker-0", "worker-1")}


@dataclass(frozen=True)
class Pause:
    """The longest time without a step after a request. Seconds."""

    length: float
    #: From the request to its begin.
    begins: float
    #: Steps that were done before it and again after it.
    repeated: int


def longest_pause(entries: Sequence[Entry], decider: str, asked_at: float) -> Pause:
    """Return the longest pause between two steps of the decider, of which the later is after."""
    steps = [e for e in entries if e.event == "step" and e.task == decider]
    before, after = max(
        ((a, b) for a, b in pairwise(steps) if b.at > asked_at),
        key=lambda pair: pair[1].at - max(pair[0].at, asked_at),
    )
    began = max(before.at, asked_at)
    repeated = max(0, (before.step or 0) - (after.step or 0) + 1)
    return Pause(after.at - began, began - asked_at, repeated)


def main() -> int:
    """Measure, print, write; leave where a change did not lead to what was asked for."""
    options = _options()
    processes.end_in_order()
    folder = Path(tempfile.mkdtemp(prefix="planned-", dir=options.work_dir))
    python = options.environments / f"tensorflow-{options.tensorflow}" / "bin" / "python"
    changes = _chosen(options.only)
    found: dict[str, float] = {}
    print(f"{'strategy':<18} {'change':<20} {'pause':>8} {'by hand':>8} ratio     wait repeated")
    for strategy in options.strategy:
        training, place = TRAININGS[strategy], folder / strategy
        by_hand = _by_hand(training, python, place, options.rounds)
        pauses: dict[Change, list[Pause]] = {change: [] for change in changes}
        for change, pause in _asked(training, python, place, changes, options.rounds):
            pauses[change].append(pause)
        for change, several in pauses.items():
            found |= _told(strategy, change, several, by_hand)
    unmoved = [f"{s}_{c.name}" for s in options.strategy for c in changes if not c.moves]
    if unmoved:
        worst = max(found[f"planned_restart_ratio_{name}"] for name in unmoved)
        found["planned_restart_ratio"] = worst
    figures.write(options.json, found)
    if options.keep:
        print(f"what tasks and schedulers wrote is in {folder}")
    else:
        shutil.rmtree(folder)
    return 0


def _chosen(names: Sequence[str] | None) -> list[Change]:
    """Return the changes of these names, in order, and those that have to come before them."""
    if not names:
        return list(CHANGES)
    wanted = {*names, *(change.after for change in CHANGES if change.name in names)}
    return [change for change in CHANGES if change.name in wanted]


def _told(
    strategy: str, change: Change, several: Sequence[Pause], by_hand: float
) -> dict[str, float]:
    """Print one row, and return its figures."""
    length = statistics.median(p.length for p in several)
    begins = statistics.median(p.begins for p in several)
    repeated = statistics.median(p.repeated for p in several)
    print(
        f"{strategy:<18} {change.name:<20} {length:>6.1f} s {by_hand:>6.1f} s "
        f"{length / by_hand:>5.2f} {begins:>6.1f} s {repeated:>8.0f}",
        flush=True,
    )
    name = f"{strategy}_{change.name}"
    return {
        f"planned_restart_ratio_{name}": length / by_hand,
        f"planned_restart_seconds_{name}": length,
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--strategy", nargs="+", choices=TRAININGS, default=list(TRAININGS))
    parser.add_argument("--only", nargs="+", choices=[c.name for c in CHANGES], metavar="CHANGE")
    parser.add_argument("--tensorflow", default="2.21.0", metavar="VERSION")
    parser.add_argument("--environments", type=Path, default=ROOT / ".venvs")
    parser.add_argument("--work-dir", type=Path, help="where sandboxes and logs are made")
    parser.add_argument("--keep", action="store_true", help="leave sandboxes and logs")
    figures.add_option(parser)
    return parser.parse_args()


def _by_hand(training: Training, python: Path, folder: Path, rounds: int) -> float:
    """Return the median pause of a restart by hand, in seconds."""
    lengths = []
    gently = training.strategy == "parameter_server"
    with ByHand(training, python, folder / "by-hand", saves_when_asked=True) as by_hand:
        for _ in range(rounds):
            asked_at = time.monotonic()
            if by_hand.restart(BY_HAND[training.strategy], gently=gently) is None:
                raise SystemExit(f"{training.strategy} did not go on by hand: see {folder}")
            pause = longest_pause(by_hand.entries(), training.trainers[0], asked_at)
            lengths.append(pause.length)
    return statistics.median(lengths)


def _asked(
    training: Training, python: Path, folder: Path, changes: Sequence[Change], rounds: int
) -> Iterator[tuple[Change, Pause]]:
    """Ask for each change in turn, so many times."""
    with Service(training, python, folder / "service", saves_when_asked=True) as service:
        for number in range(rounds):
            for change in changes:
                yield change, _ask(service, change, number)


def _ask(service: Service, change: Change, number: int) -> Pause:
    watch, decider = service.watch, service.training.trainers[0]
    beyond = max(service.highest_step, watch.step) + ADVANCE_STEPS
    watch.wait_until(lambda: watch.step >= beyond, PATIENCE_SECONDS)
    before, members = service.task_ids(), len(service.task_ids()) + change.members
    service.highest_step = watch.step
    trained = {e.pid for e in watch.entries() if e.task == decider}
    asked_at = time.monotonic()
    _post(service, change, number)

    def done() -> bool:
        job = service.ask("/v1/job") or {}
        plan = service.ask("/v1/plans/deploy") or {}
        steps = [e for e in watch.entries() if e.event == "step" and e.task == decider]
        again = any(e.pid not in trained for e in steps)
        # The decider's process may train on where a task moves, joins or leaves.
        other = change.moves or change.members
        changed = before != service.task_ids() if other else again
        return (
            changed
            and job.get("phase") == "running"
            and plan.get("status") == "COMPLETE"
            and len(service.task_ids()) == members
        )

    if not watch.wait_until(done, PATIENCE_SECONDS):
        raise SystemExit(
            f"{change.name} did not come to its end: {service.why()}; {service.folder}"
        )
    done_at = time.monotonic()

    def stays() -> bool:
        # Steps of before are no steps of the process that has only just begun.
        since = max(done_at, time.monotonic() - STAY_SECONDS)
        steps = [e for e in watch.entries() if e.event == "step" and e.task == decider]
        recent = [e for e in steps if e.at > since]
        enough = time.monotonic() - done_at > STAY_SECONDS and len(recent) > STAY_SECONDS
        return enough and done() and len({e.pid for e in recent}) == 1

    if not watch.wait_until(stays, PATIENCE_SECONDS):
        raise SystemExit(f"{change.name}: it does not go on: {service.why()}; {service.folder}")
    return longest_pause(watch.entries(), decider, asked_at)


def _post(service: Service, change: Change, number: int) -> None:
    body = json.dumps(change.body).replace("{round}", str(number)) if change.body else ""
    request = urllib.request.Request(
        service.url(change.path), body.encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        json.load(answer)


if __name__ == "__main__":
    sys.exit(main())
