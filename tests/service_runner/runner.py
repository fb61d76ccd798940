"""Plays ticks against a service, one after another, and says which of them was not as expected.

runner = ServiceRunner(package, tmp_path)
first = runner.run(OPTIONS, Send.register(), Send.offers(), Expect.launched("worker-0"))
runner.run(OTHER, Send.register(), Expect.plan("update", "PENDING"), carry_over=first)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dcos_tensorflow.package.definition import Package
from service_runner.package_app import started_by_marathon
from service_runner.service import Service, agents
from service_runner.ticks import Tick, Unmet
from simulated.mesos import Cluster


class TicksFailed(AssertionError):
    """A tick was not as expected. The text lists all ticks, and what the scheduler has said."""


@dataclass(frozen=True)
class Carried:
    """What outlives a scheduler process: the values that it stored, and the cluster."""

    store: dict[str, bytes]
    cluster: Cluster

    def agent_of(self, task: str) -> str:
        """Return the agent that a task's live attempt is on."""
        return self.cluster.tasks[self.cluster.id_of(task)].launch.agent_id


class ServiceRunner:
    """Runs services of one package; each run is one process of a service's scheduler."""

    def __init__(self, package: Package, folder: Path) -> None:
        self._package = package
        self._folder = folder
        self._runs = 0

    def run(
        self,
        options: Mapping[str, Any],
        *ticks: Tick,
        cluster: Cluster | None = None,
        carry_over: Carried | None = None,
        uninstall: bool = False,
        variables: Mapping[str, str] | None = None,
    ) -> Carried:
        """Play ``ticks``, and return what outlives the process. Raises TicksFailed.

        ``options`` are the package's, as a user gives them. Without ``carry_over`` the service is
        new and ``cluster`` (or four large agents) is empty.
        """
        self._runs += 1
        sandbox = self._folder / f"sandbox-{self._runs}"
        sandbox.mkdir()
        start = started_by_marathon(
            self._package, options, sandbox, uninstall=uninstall, variables=variables
        )
        carried = carry_over or Carried({}, cluster or agents())
        service = Service.of(start, carried.cluster, carried.store)
        _play(service, ticks)
        return carried


def _play(service: Service, ticks: Sequence[Tick]) -> None:
    for number, tick in enumerate(ticks):
        try:
            if tick.sends:
                service.begin_tick()
            tick.act(service)
            following = ticks[number + 1] if number + 1 < len(ticks) else None
            if (following is None or following.sends) and service.unexpected():
                raise Unmet(f"it was not expected that it {', '.join(service.unexpected())}")
        except Unmet as unmet:
            raise TicksFailed(_story(service, ticks, number, str(unmet))) from None


def _story(service: Service, ticks: Sequence[Tick], failed: int, why: str) -> str:
    lines = [f"tick {failed + 1} of {len(ticks)}: {why}"]
    for number, tick in enumerate(ticks):
        mark = "done" if number < failed else "FAILED" if number == failed else "-"
        lines.append(f"  {mark:6} {'' if tick.sends else '  '}{tick.text}")
    lines.append("what the scheduler has said:")
    lines += [f"  {line}" for line in service.scheduler.whys().splitlines()[-20:]]
    return "\n".join(lines)
