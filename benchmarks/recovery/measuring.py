"""Plays the faults of one training one after the other, by hand and as a service, and measures."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.recovery import evidence, network, processes
from benchmarks.recovery.by_hand import ByHand
from benchmarks.recovery.cases import Case, Training, Way
from benchmarks.recovery.evidence import Entry, Figures
from benchmarks.recovery.processes import TaskProcess
from benchmarks.recovery.service import TIMING, Fault, Service

#: Seconds until a fault that is not healed is given up.
HEAL_SECONDS = 60.0
#: A training that is whole has to stay so for this long.
STAY_SECONDS = 1.0
#: Steps to go beyond the last fault before the next one: more than its runner may be late to tell.
ADVANCE_STEPS = 30
#: What ends within so many seconds of an incident may be counted as its effect.
COLLATERAL_SECONDS = 16.0
#: Ways whose incident tells nothing that matters here: it may be counted as another's effect.
_NOTED_SOON = (Way.PROCESS, Way.CONTAINER, Way.SCHEDULER)
#: Seconds for an old process to be ended after its machine came back.
FENCE_SECONDS = 30.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class Result:
    """What became of one fault.

    ``restarted`` are the tasks whose process is a new one, ``moved`` those of them with a new
    container. ``noticed_seconds`` is when the service noted an incident, ``started_seconds`` when
    it had started the last of the new processes, both from the fault. ``load`` is how many
    processes of the machine wanted to run then, on average over a minute. ``charged`` is how many
    retries it cost. ``why`` says what a job that is not healed waits for.
    """

    tensorflow: str
    case: Case
    healed: bool
    figures: Figures | None
    by_hand: Figures | None
    noticed_seconds: float | None = None
    started_seconds: float | None = None
    load: float = 0.0
    restarted: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    charged: int = 0
    incidents: tuple[dict[str, Any], ...] = ()
    why: str = ""
    note: str = ""

    @property
    def as_it_should_be(self) -> bool:
        """Say whether it was healed, lost nothing that was saved, and cost what it may cost."""
        if self.figures is None:
            return self.healed
        return self.healed and not self.figures.lost_steps and self.charged == self.case.retries


Baseline = dict[tuple[str, ...], Figures | None]


@dataclass(frozen=True)
class Measurement:
    """One strategy with one TensorFlow: the cases to play, where, and whom to tell."""

    training: Training
    cases: tuple[Case, ...]
    tensorflow: str
    python: Path
    folder: Path
    say: Say
    #: How often each process death is played: its times are short, so chance weighs most there.
    repeat: int = 1

    def run(self) -> Iterator[Result]:
        """Measure by hand first, then the service."""
        yield from self._as_service(self._by_hand())

    def _by_hand(self) -> Baseline:
        """Return what each set of tasks costs that is killed and started again by hand."""
        waiting = list(dict.fromkeys(case.restarts for case in self.cases if case.restarts))
        dying = {case.restarts for case in self.cases if case.way is Way.PROCESS}
        waiting += [tasks for tasks in waiting if tasks in dying] * (self.repeat - 1)
        found: dict[tuple[str, ...], list[Figures | None]] = {}
        attempts = itertools.count(1)
        while waiting:
            with ByHand(self.training, self.python, self.folder / f"by-hand-{next(attempts)}") as t:
                while waiting:
                    chosen = waiting.pop(0)
                    figures = t.restart(chosen)
                    self.say(f"by hand, {' '.join(chosen)}: {_seconds(figures)}")
                    if figures is None and chosen not in found:
                        # Once more, with everything started anew: it may have been bad luck.
                        waiting.insert(0, chosen)
                    found.setdefault(chosen, []).append(figures)
                    if figures is None:
                        break
        return {tasks: median(several) for tasks, several in found.items()}

    def _as_service(self, baseline: Baseline) -> Iterator[Result]:
        """Play the faults on one service; start another one after a fault that was not healed."""
        dying = [case for case in self.cases if case.way is Way.PROCESS]
        others = [case for case in self.cases if case.way is not Way.PROCESS]
        waiting = dying * self.repeat + others
        attempts = itertools.count(1)
        while waiting:
            place = self.folder / f"service-{next(attempts)}"
            with Service(self.training, self.python, place) as service:
                while waiting:
                    case = waiting.pop(0)
                    result = play(service, case, self.tensorflow, baseline.get(case.restarts))
                    self.say(f"{case.victim}, {case.way}: {_told(result)}")
                    yield result
                    if not result.healed:
                        break


def median(several: Sequence[Figures | None]) -> Figures | None:
    """Return the middle one by the time until all was whole; None when it never was."""
    timed = sorted(
        (figures for figures in several if figures is not None),
        key=lambda figures: figures.whole_seconds or 0.0,
    )
    return timed[len(timed) // 2] if timed else None


def play(service: Service, case: Case, version: str, baseline: Figures | None) -> Result:
    """Play one fault on a service that runs, and wait until it is whole again."""
    if case.way is Way.SILENT and not network.available():
        return Result(
            version, case, True, None, baseline, note="not measured: it takes root's rights"
        )
    # Each fault is the first one again: the training is beyond where any other has met it.
    beyond = service.highest_step + ADVANCE_STEPS
    service.watch.wait_until(lambda: service.watch.step >= beyond, HEAL_SECONDS)
    clock = time.time() - time.monotonic()
    _wait_for_an_incident_of_its_own(service, case, clock)
    before = service.processes()
    service.highest_step = service.watch.step
    fault = service.fault(case.way, case.victims)
    if case.way is Way.SILENT:
        service.disregard(before[task] for task in case.victims)
    entries = _healed(service, case, fault, before)
    after = service.processes()
    job = service.ask("/v1/job") or {}
    incidents = [i for i in job.get("incidents", []) if i["at"] - clock > fault.at]
    training = service.training
    figures = entries and evidence.figures(
        entries, fault.at, training.participants, training.trainers
    )
    new = tuple(task for task in training.tasks if before[task] != after.get(task))
    note = ""
    why = ""
    if entries is None:
        why = service.why()
    else:
        service.mend(case.way, fault)
        note = _fenced(service, fault, before)
    return Result(
        tensorflow=version,
        case=case,
        healed=entries is not None,
        figures=figures or None,
        by_hand=baseline,
        noticed_seconds=min((i["at"] - clock - fault.at for i in incidents), default=None),
        started_seconds=max(
            (after[t].started_at - fault.at for t in new if t in after), default=None
        ),
        load=os.getloadavg()[0],
        restarted=new,
        moved=tuple(
            task
            for task in training.tasks
            if task not in after or before[task].task_id != after[task].task_id
        ),
        charged=sum(bool(incident["charged"]) for incident in incidents),
        incidents=tuple(incidents),
        why=why,
        note=note,
    )


def _wait_for_an_incident_of_its_own(service: Service, case: Case, clock: float) -> None:
    """Wait until what fails now is not taken for an effect of what failed before."""
    incidents = (service.ask("/v1/job") or {}).get("incidents", [])
    if case.way in _NOTED_SOON or not incidents:
        return
    later = TIMING.agent_timeout if case.way in (Way.AGENT, Way.SILENT) else 0.0
    apart = incidents[-1]["at"] - clock + COLLATERAL_SECONDS - later
    service.watch.wait_until(lambda: time.monotonic() > apart, COLLATERAL_SECONDS)


def _healed(
    service: Service, case: Case, fault: Fault, before: dict[str, TaskProcess]
) -> list[Entry] | None:
    """Wait until everybody takes part again and stays; None when that was not in time."""
    deadline = time.monotonic() + HEAL_SECONDS

    def whole() -> bool:
        if time.monotonic() < fault.at + evidence.PAUSE_SECONDS + STAY_SECONDS:
            return False
        if not service.watch.whole(fault.at, case.victims) or not service.running():
            return False
        present = service.processes()
        return all(
            task in present and (task not in case.victims or present[task] != before[task])
            for task in service.training.tasks
        )

    while (left := deadline - time.monotonic()) > 0:
        if not service.watch.wait_until(whole, left):
            return None
        present = service.processes()
        service.watch.wait_until(lambda: False, STAY_SECONDS)
        if whole() and service.processes() == present:
            return service.watch.entries()
    return None


def _fenced(service: Service, fault: Fault, before: dict[str, TaskProcess]) -> str:
    """Wait until no process of before is left beside its successor; say what was wrong."""
    if not fault.agents:
        return ""
    deadline = time.monotonic() + FENCE_SECONDS
    while time.monotonic() < deadline:
        present = set(service.task_ids().values())
        found = processes.user_processes(service.folder)
        if all(task_id in present for task_id in found):
            return ""
        time.sleep(0.2)
    return "the old process was not ended when its machine was back"


def _seconds(figures: Figures | None) -> str:
    if figures is None:
        return "not whole again"
    return f"whole after {figures.whole_seconds:.1f} s"


def _told(result: Result) -> str:
    if result.note and result.figures is None:
        return result.note
    if not result.healed:
        return f"NOT HEALED: {result.why}"
    noticed, started = result.noticed_seconds or 0.0, result.started_seconds or 0.0
    parts = [
        _seconds(result.figures),
        f"noticed {noticed:.1f} s",
        f"started {started:.1f} s",
        f"restarted {' '.join(result.restarted) or 'none'}",
        f"moved {' '.join(result.moved) or 'none'}",
        f"{result.charged} retries",
        f"load {result.load:.1f}",
        result.note,
    ]
    if result.by_hand is not None:
        parts.insert(1, f"by hand {result.by_hand.whole_seconds:.1f} s")
    return ", ".join(filter(None, parts))
