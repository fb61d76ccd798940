"""The machines of an operator's whole cluster, as the command ``capacity`` buys and ends them.

No scheduler serves them: a command leads their store while it runs. The loop is in
``scheduler.machines.standing_machines``.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Any

from dcos_tensorflow.capacity import status
from dcos_tensorflow.capacity.reconcile import Round
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.kept import stored
from dcos_tensorflow.client.wording import sentence
from dcos_tensorflow.client.work_directory import WorkDirectory, make_folder
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.kept.codec import RecordError
from dcos_tensorflow.core.model.known_agents import KnownAgent
from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec
from dcos_tensorflow.deploy.master_access import master_of
from dcos_tensorflow.deploy.settings import Settings, collect_for_run
from dcos_tensorflow.mesos.agent_files import AgentFilesError
from dcos_tensorflow.options import load, service_spec
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.scheduler.machines import standing_machines
from dcos_tensorflow.scheduler.machines.standing_machines import StandingMachines
from dcos_tensorflow.scheduler.master_watch import AGENTS, agents_in

LOOK_SECONDS = 5.0


@dataclass(frozen=True)
class MachineGroup:
    """An operator's cluster: its machines are bought by an options file."""

    #: As the options file calls it.
    name: str
    spec: CapacitySpec
    settings: Settings
    work: WorkDirectory

    @staticmethod
    def of(options: Path, flags: Mapping[str, Any], work: WorkDirectory) -> MachineGroup:
        """Return what an options file and flags say. Raises CliError."""
        name, spec = read(options)
        if spec.deadline_at or spec.deadline_seconds:
            raise UsageError("capacity.deadline is for a job: a cluster has no work that ends.")
        return MachineGroup(name, spec, collect_for_run(os.environ, flags), work)

    @property
    def service(self) -> str:
        """Return how the state store calls it."""
        return f"{self.name.strip('/')}/machines"

    @property
    def state(self) -> str:
        """Return where their ledger is."""
        if given := self.settings["state"]:
            return str(given)
        make_folder(self.work.path)
        return f"sqlite:///{self.work.path / 'machines.db'}"


def read(options: Path) -> tuple[str, CapacitySpec]:
    """Return name and section of an options file; no job needs to be in it. Raises CliError."""
    try:
        document = json.loads(options.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{options}: {error}.") from error
    if isinstance(document, dict) and isinstance(document.get("service", {}), dict):
        service = document.setdefault("service", {})
        if not {"job_cmd", "job_name"} & service.keys():
            service["job_cmd"] = "true"
    spec = service_spec(load(document, folder=options.parent))
    if spec.capacity is None:
        raise UsageError(f"{options} has no section capacity: no machines are bought by it.")
    return spec.name, spec.capacity


def up(
    group: MachineGroup, machines: int, *, wait: float, stay: bool, say: Callable[[str], None]
) -> dict[str, Any]:
    """Buy machines until so many are agents, and return how they stand.

    ``stay`` goes on: what is taken back is replaced, until the budget is spent. Raises CliError.
    """
    with _led(group) as found:
        began, told = time.monotonic(), ""
        # An earlier command ended some, and was cut short.
        found.offer_agents(True)
        while True:
            waited = time.monotonic() - began
            done = found.run_round(machines, waited)
            _tell(done, say)
            why = "; ".join(why for _, why in done.waits)
            if why and why != told:
                say(why)
            told = why
            if done.stop:
                return _ended(found, say, f"{done.stop}, all go")
            if not stay and found.there >= machines:
                break
            if not stay and waited >= wait:
                there = f"{found.there} of {counted(machines, 'machine')} are there"
                raise CliError(f"After {wait:.0f} s {there}{': ' if why else ''}{why}.")
            sleep(0.0 if done.orders else LOOK_SECONDS)
        return status.document(found.ledger, {}, group.spec, time.time())


def down(
    group: MachineGroup, *, wait: float, force: bool, say: Callable[[str], None]
) -> dict[str, Any]:
    """End all machines, each when no task runs there any more, and return how they stand.

    Their agents are offered to no framework meanwhile. ``force``: whatever runs. Raises CliError.
    """
    with _led(group) as found:
        began = time.monotonic()
        refused = ""
        while found.ledger.left:
            refused = refused or found.offer_agents(False)
            # A machine that is no agent yet goes when nothing runs on the others.
            done = found.run_round(release=True, end=force or not found.busy)
            _tell(done, say)
            if found.ledger.left and time.monotonic() - began >= wait:
                left = counted(found.ledger.left, "machine")
                busy = f", tasks run on {found.busy} of them" if found.busy else ""
                more = f" ({refused})" if refused else ""
                raise CliError(f"After {wait:.0f} s {left} are left{busy}{more}.")
            sleep(LOOK_SECONDS if found.ledger.left else 0.0)
        return status.document(found.ledger, {}, group.spec, time.time())


def released(group: MachineGroup, say: Callable[[str], None]) -> dict[str, Any]:
    """Give back the machines on which nothing runs now. Raises CliError."""
    with _led(group) as found:
        _tell(found.run_round(release=True), say)
        # What leaves is written first, and ended in the next round.
        _tell(found.run_round(release=True), say)
        return status.document(found.ledger, {}, group.spec, time.time())


def standing(group: MachineGroup) -> dict[str, Any]:
    """Return how they stand, as the last command has left it. Raises CliError."""
    with stored.opened(group.state, group.service) as store:
        try:
            ledger = standing_machines.kept_ledger(store.load())
        except RecordError as error:
            raise CliError(f"The ledger cannot be read: {sentence(str(error))}") from error
    return status.document(ledger, {}, group.spec, time.time())


def _ended(found: StandingMachines, say: Callable[[str], None], why: str) -> dict[str, Any]:
    say(why)
    while found.ledger.left:
        _tell(found.run_round(end=True), say)
        sleep(LOOK_SECONDS)
    raise CliError(f"{sentence(why)}")


def _tell(done: Round, say: Callable[[str], None]) -> None:
    for each in done.why:
        say(each)


@contextmanager
def _led(group: MachineGroup) -> Iterator[StandingMachines]:
    """Open the store and lead it: no other command buys or ends these machines meanwhile."""
    agents, offer = _master(group)
    with stored.led(group.state, group.service, "capacity") as store:
        try:
            yield StandingMachines(store, group.name, group.spec, agents, offer)
        except RecordError as error:
            raise CliError(f"The ledger cannot be read: {sentence(str(error))}") from error


def _master(
    group: MachineGroup,
) -> tuple[Callable[[], Sequence[KnownAgent] | None], Callable[[str, bool], None]]:
    """Return how the master is asked for its agents, and told to offer one to no framework."""
    master = master_of(group.settings, group.work, local=bool(group.settings["local"]))

    def agents() -> Sequence[KnownAgent] | None:
        try:
            return tuple(agents_in(master.get(AGENTS.path)))
        except (AgentFilesError, KeyError, TypeError, ValueError, AttributeError):
            return None

    def offer(agent_id: str, is_offered: bool) -> None:
        kind = "REACTIVATE_AGENT" if is_offered else "DEACTIVATE_AGENT"
        call = {"type": kind, kind.lower(): {"agent_id": {"value": agent_id}}}
        master.post("/api/v1", call)

    return agents, offer
