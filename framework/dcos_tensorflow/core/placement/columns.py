"""Fields of many agents as columns of numbers, and which of them a placement rule allows.

``core.placement.agent_table`` makes the columns, ``core.placement.packing`` and ``by_columns`` ask
with one of them and the number of tasks per value. ``core.placement.constraints``
has the meaning of the rules. Nothing here counts or places a task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from dcos_tensorflow.core.placement.constraints import (
    NEGATIVE,
    PATTERNS,
    depends_on_counts,
    number_of,
    refuse_broken,
)
from dcos_tensorflow.core.spec.service_spec import ConstraintOperator, PlacementConstraint
from dcos_tensorflow.records import dataclass
from untrusted_input.linear_pattern import compiled

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class Values:
    """The texts that one field has on any agent, numbered from 0 in the order they came.

    A text keeps its number, and new ones are added: so the tables that follow each other share
    one, and a rule looks at each text once. The number says nothing but which text it is.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts: list[str] = []
        self._codes: dict[str | None, int] = {None: -1}
        self._patterns: dict[str, list[bool]] = {}
        for text in texts:
            self.code(text)

    def __len__(self) -> int:
        return len(self.texts)

    def code(self, text: str | None) -> int:
        """Return the number of ``text``, a new one if need be; -1 for None."""
        code = self._codes.get(text)
        if code is None and text is not None:
            code = self._codes[text] = len(self.texts)
            self.texts.append(text)
        return -1 if code is None else code

    def same_as(self, wanted: str) -> BoolArray:
        """Say of every text whether it is ``wanted``; numbers are compared as numbers."""
        found = np.zeros(len(self), dtype=np.bool_)
        number = number_of(wanted)
        if number is not None:
            found[:] = [number_of(text) == number for text in self.texts]
        elif wanted in self._codes:
            found[self._codes[wanted]] = True
        return found

    def like(self, pattern: str) -> BoolArray:
        """Say of every text whether the regular expression matches the whole of it."""
        answers = self._patterns.setdefault(pattern, [])
        matches = _matcher(pattern)
        answers.extend(matches(text) is not None for text in self.texts[len(answers) :])
        return np.array(answers, dtype=np.bool_)


@dataclass(frozen=True)
class Column:
    """One field of every agent: a number into ``values`` per agent, -1 where it is missing."""

    values: Values
    codes: IntArray


def allowed_agents(constraint: PlacementConstraint, column: Column, counts: IntArray) -> BoolArray:
    """Say for every agent whether the rule lets one more task onto it.

    ``counts`` is the number of tasks of the role per entry of ``column.values``. Raises ValueError
    for a rule that ``constraints.problem_with`` refuses.
    """
    refuse_broken(constraint)
    if depends_on_counts(constraint):
        allowed = allowed_by_counts(constraint, counts)
    else:
        allowed = _matching(constraint, column.values)
    # A code of -1 picks the entry appended last.
    return np.append(allowed, constraint.operator in NEGATIVE)[column.codes]


def allowed_by_counts(constraint: PlacementConstraint, counts: IntArray) -> BoolArray:
    """Say for every value whether one more task may go to it, by the number of tasks on each.

    For rules that ``depends_on_counts`` and that have nothing wrong with them.
    """
    operator, used = constraint.operator, counts > 0
    allowed: BoolArray = ~used
    if operator is ConstraintOperator.MAX_PER:
        allowed = counts < int(constraint.value)
    elif operator is ConstraintOperator.GROUP_BY:
        if used.any() and int(used.sum()) >= int(constraint.value or 0):
            allowed |= counts == counts[used].min()
    elif operator is ConstraintOperator.CLUSTER and used.any():
        allowed = used
    return allowed


def _matcher(pattern: str) -> Callable[[str], object]:
    try:
        matches: Callable[[str], object] = compiled(pattern).fullmatch
    except ValueError:
        return lambda text: None
    return matches


def _matching(constraint: PlacementConstraint, values: Values) -> BoolArray:
    """Answer for the operators that look at nothing but the value."""
    operator, wanted = constraint.operator, constraint.value
    found = values.like(wanted) if operator in PATTERNS else values.same_as(wanted)
    return ~found if operator in NEGATIVE else found
