"""The units of a service: the trials of a sweep, or the shards of a batch.

Made by ``options.sections.workloads``, read by the producers of ``workloads``. The core keeps it
with the other options and never looks into it: to it a unit is a number and an outcome.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum

from dcos_tensorflow.records import dataclass

#: Bytes of a unit's payload as JSON: pages of units must stay small values of the store.
MAX_PAYLOAD = 4096
#: So many shards, or trials, are the most of one service: each is kept, and shown.
MOST_UNITS = 100_000
#: What stands for a shard's index in ``BatchSpec.output``, with the digits it has at least.
OUTPUT_INDEX = re.compile(r"\{index(?::0?([1-9]))?\}")

PlainValue = bool | int | float | str | None
#: One value that a parameter may have, as JSON has it: a list is a tuple here.
ParameterValue = PlainValue | tuple[PlainValue, ...]


class ParameterKind(StrEnum):
    """What the values of a parameter are."""

    FLOAT = "float"
    INT = "int"
    CHOICE = "choice"


@dataclass(frozen=True)
class Parameter:
    """One parameter of a sweep, and what it may be.

    ``low`` and ``high`` are the bounds of a number, both within; ``log`` says that its logarithm is
    what is spread evenly, ``step`` that it is ``low`` and whole steps from there (0: any value).
    ``choices`` are the values of a choice, in the order in which they were given.
    """

    name: str
    kind: ParameterKind
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    step: float = 0.0
    choices: tuple[ParameterValue, ...] = ()

    def values(self) -> tuple[ParameterValue, ...] | None:
        """Return all values that it may have; None where there is no end of them.

        There may be more of them than there is memory for: see ``count``.
        """
        if self.kind is ParameterKind.CHOICE:
            return self.choices
        if self.kind is ParameterKind.INT:
            return tuple(range(int(self.low), int(self.high) + 1, int(self.step) or 1))
        count = self.count()
        if count is None:
            return None
        # 0.1 is no number of binary digits: what is meant by 0.3 is 0.3, and not 3 times 0.1.
        return tuple(float(f"{self.low + index * self.step:.12g}") for index in range(count))

    def count(self) -> int | None:
        """Return how many values it may have; None where there is no end of them."""
        if self.kind is ParameterKind.CHOICE:
            return len(self.choices)
        if self.kind is ParameterKind.INT:
            return (int(self.high) - int(self.low)) // (int(self.step) or 1) + 1
        return int((self.high - self.low) / self.step + 1e-9) + 1 if self.step else None


class SearchMethod(StrEnum):
    """How the parameters of the next trial are found."""

    #: Every combination once.
    GRID = "grid"
    #: Any, each as likely as the next.
    RANDOM = "random"
    #: A tree of Parzen estimators: near what was good, away from what was not.
    TPE = "tpe"


class EarlyStopping(StrEnum):
    """Which trials are stopped before their end."""

    NONE = "none"
    #: Those that are worse than the median of the others at the same point.
    MEDIAN = "median"
    #: All but the best third at each point (asynchronous successive halving).
    ASHA = "asha"


class Goal(StrEnum):
    """Which of two values of the objective is the better one."""

    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"


@dataclass(frozen=True)
class SweepSpec:
    """A search for the best parameters.

    A trial is suggested and judged by what the trials have shown that are ``lag`` or more before
    it; it is not stopped early before its step ``min_steps``.
    """

    parameters: tuple[Parameter, ...]
    metric: str
    goal: Goal
    trials: int
    method: SearchMethod = SearchMethod.TPE
    early_stopping: EarlyStopping = EarlyStopping.NONE
    min_steps: int = 1
    seed: int = 0
    lag: int = 16

    @property
    def learns(self) -> bool:
        """Say whether a trial depends on what others have shown."""
        return self.method is SearchMethod.TPE or self.early_stopping is not EarlyStopping.NONE


@dataclass(frozen=True)
class BatchSpec:
    """Many pieces of input, each worked on once.

    The input is ``begin`` to ``end`` (``end`` not within) where ``listing`` is empty, else what is
    listed there: an S3 prefix that ends in ``/``, or a manifest, which is a file of one input a
    line. A shard is ``per_shard`` of them, the last one what is left. ``output`` is where shard
    ``{index}`` is written. With ``resume`` inputs of which output is there are not worked on again.
    """

    output: str
    per_shard: int
    begin: int = 0
    end: int = 0
    listing: str = ""
    resume: bool = False


def output_of(spec: BatchSpec, index: int) -> str:
    """Return where the output of a shard is written."""
    return OUTPUT_INDEX.sub(lambda found: f"{index:0{found[1] or 1}d}", spec.output)


def index_of(spec: BatchSpec) -> Callable[[str], int | None]:
    """Return what says of which shard a name is the output; None for another name."""
    fixed = OUTPUT_INDEX.split(spec.output)[::2]
    pattern = re.compile("([0-9]+)".join(map(re.escape, fixed)))

    def index(name: str) -> int | None:
        found = pattern.fullmatch(name)
        number = int(found[1]) if found else None
        return number if number is not None and output_of(spec, number) == name else None

    return index


def writes_below(output: str, prefix: str) -> bool:
    """Say whether an output may lie below ``prefix``, which ends in ``/``: it would be an input."""
    above = prefix.rstrip("/").split("/")
    parts = output.split("/")
    if len(parts) <= len(above):
        return False
    patterns = (
        "[0-9]+".join(map(re.escape, OUTPUT_INDEX.split(part)[::2])) for part in parts[: len(above)]
    )
    return all(re.fullmatch(pattern, part) for pattern, part in zip(patterns, above, strict=True))


WorkloadSpec = SweepSpec | BatchSpec
