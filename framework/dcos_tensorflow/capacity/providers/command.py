"""Machines by an operator's own command: racks with IPMI or Wake-on-LAN, or any other cloud.

The command is called with a verb (``list``, ``up``, ``down``), gets JSON on standard input and
answers with JSON on standard output; ``docs/machines.md`` has the contract and an example. Nothing
is remembered between two calls, and each call may block for the timeout.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from tempfile import TemporaryFile
from typing import IO, TypeVar

from pydantic import TypeAdapter, ValidationError

from dcos_tensorflow.capacity.market import Pool
from dcos_tensorflow.capacity.provider import (
    Bought,
    Denied,
    Machine,
    ProviderError,
    PurchaseOrder,
    Throttled,
    is_of,
)
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.records import dataclass
from untrusted_input.json_text import read_json

#: How a command says more than that it failed: the numbers of ``sysexits.h``.
EX_TEMPFAIL = 75
EX_NOPERM = 77
_MEANINGS: Mapping[int, type[ProviderError]] = {EX_TEMPFAIL: Throttled, EX_NOPERM: Denied}
#: No answer is longer; a machine takes some 300 bytes.
MOST_BYTES = 16 << 20
#: So much of what a command has said of its failure is passed on.
_TOLD_BYTES = 500

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class _Listed:
    """The answer to ``list``."""

    #: All that may still cost something, or ended lately.
    machines: tuple[Machine, ...] = ()
    #: What can be bought from now.
    pools: tuple[Pool, ...] = ()


_LISTED = TypeAdapter(_Listed)
_BOUGHT = TypeAdapter(Bought)


class CommandProvider:
    """A ``Provider`` that asks ``command``, for machines that belong to ``owner``.

    A call that takes longer than ``timeout_seconds`` is ended, with all that it has started.
    """

    def __init__(
        self, command: Sequence[str], owner: str, *, timeout_seconds: float = 300.0
    ) -> None:
        self._command = tuple(command)
        self._owner = owner
        self._timeout_seconds = timeout_seconds

    def pools(self) -> Sequence[Pool]:
        """Return what can be bought from."""
        pools = self._listed().pools
        for pool in pools:
            if not 0 <= pool.price < math.inf:
                what = f"{pool.instance_type} in {pool.zone} costs {pool.price}"
                raise self._wrong("list", what)
        return pools

    def machines(self) -> Sequence[Machine]:
        """Return the owner's machines; those of others are no business of ours."""
        return [m for m in self._listed().machines if is_of(m.owner, self._owner)]

    def buy(self, order: PurchaseOrder) -> Bought:
        """Start machines, unless some of this purchase are there already: then these are it."""
        there = tuple(m for m in self.machines() if m.purchase_id == order.purchase_id)
        if there:
            return Bought(there, _missing(order, len(there)))
        bought = self._ask("up", asdict(order), _BOUGHT)
        self._hold_against_clocks("up", bought.machines)
        for machine in bought.machines:
            if (machine.purchase_id, machine.owner) != (order.purchase_id, order.owner):
                raise self._wrong(
                    "up",
                    f"machine {machine.machine_id} is of purchase {machine.purchase_id!r} for "
                    f"{machine.owner!r}, asked was {order.purchase_id!r} for {order.owner!r}",
                )
        if bought.missing:
            return bought
        return Bought(bought.machines, _missing(order, len(bought.machines)))

    def give_back(self, machine_ids: Collection[str]) -> None:
        """End these machines."""
        if machine_ids:
            self._run("down", {"owner": self._owner, "machine_ids": sorted(machine_ids)})

    def _listed(self) -> _Listed:
        listed = self._ask("list", {"owner": self._owner}, _LISTED)
        self._hold_against_clocks("list", listed.machines)
        return listed

    def _hold_against_clocks(self, verb: str, machines: Sequence[Machine]) -> None:
        for m in machines:
            if not all(0 <= at < math.inf for at in (m.started_at, m.ended_at, m.told_at)):
                raise self._wrong(verb, f"machine {m.machine_id} has times that no clock shows")

    def _ask(self, verb: str, request: Mapping[str, object], answer: TypeAdapter[Answer]) -> Answer:
        """Call the command once and read its answer. Raises ProviderError."""
        said = self._run(verb, request)
        if len(said) > MOST_BYTES:
            raise self._wrong(verb, f"it is longer than {MOST_BYTES >> 20} MiB")
        try:
            return answer.validate_python(read_json(said))
        except ValidationError as error:
            raise self._wrong(verb, _first(error)) from None
        except ValueError as error:
            raise self._wrong(verb, f"it is no JSON: {error}") from None

    def _run(self, verb: str, request: Mapping[str, object]) -> bytes:
        """Return what the command prints. Raises ProviderError where it fails."""
        name = f"{self._command[0]} {verb}"
        # Files, no pipes: what it leaves running may hold on to them as long as it likes.
        with TemporaryFile() as asked, TemporaryFile() as said, TemporaryFile() as told:
            asked.write(json.dumps(request).encode() + b"\n")
            asked.seek(0)
            try:
                process = subprocess.Popen(
                    [*self._command, verb],
                    stdin=asked,
                    stdout=said,
                    stderr=told,
                    start_new_session=True,
                )
            except OSError as error:
                # A person has to mend that; whatever else there is may be over soon.
                final = isinstance(error, FileNotFoundError | PermissionError)
                kind = Denied if final else ProviderError
                raise kind(f"{name} cannot be run: {error.strerror or error}") from None
            try:
                code = process.wait(self._timeout_seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise ProviderError(
                    f"{name} did not end within {self._timeout_seconds:g} s and was killed"
                ) from None
            if code:
                kind = _MEANINGS.get(code, ProviderError)
                raise kind(f"{name} {_ended(code)}: {_last_words(told)}")
            said.seek(0)
            return said.read(MOST_BYTES + 1)

    def _wrong(self, verb: str, why: str) -> ProviderError:
        return ProviderError(f"the answer of {self._command[0]} {verb} cannot be used: {why}")


def _missing(order: PurchaseOrder, count: int) -> str:
    if count >= order.count:
        return ""
    return f"{count} of {counted(order.count, 'machine')} could be had"


def _ended(code: int) -> str:
    return f"ended with {code}" if code > 0 else f"was ended by signal {-code}"


def _last_words(told: IO[bytes]) -> str:
    """Return the end of what a command has said on standard error, on one line."""
    told.seek(max(0, told.seek(0, os.SEEK_END) - _TOLD_BYTES))
    lines = told.read().decode(errors="replace").splitlines()
    text = " / ".join(filter(None, map(str.strip, lines)))
    return text or "it says nothing on standard error"


def _first(error: ValidationError) -> str:
    """Return the first thing that is wrong with an answer."""
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else "it is no JSON object"
