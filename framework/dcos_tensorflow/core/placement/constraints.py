"""Placement constraints: the agents that a rule allows beside the tasks that run.

``core.placement.columns`` applies them to many agents at once; ``options`` calls
:func:`problem_with` to refuse a rule before anything runs. The operators
are Marathon's and the DC/OS SDK's (Marathon docs, "Constraints"; SDK docs, "Placement"). Nothing
here counts or places a task.

The meaning of the operators, where the sources leave room:

* A rule counts only tasks of the same role, as in the SDK; and where a service has several gangs,
  those of the same gang, unless it ends in ``:service``.
* ``UNIQUE``: no two tasks on the same value. ``MAX_PER:n``: at most n.
* ``CLUSTER:v``: only value v. ``CLUSTER``: all on one value, whichever comes first.
* ``GROUP_BY[:n]``: spread evenly. A value that has no task yet is always allowed; one that has is
  allowed when no other used value has fewer, and at least n values are used (Marathon's rule).
  Values are "seen" when a task is on them; of the allowed ones placement takes the least used.
* ``LIKE`` and ``UNLIKE``: the regular expression matches the whole value, or does not. It is RE2's,
  as in Mesos' own offer constraints: whatever it says, it is matched in linear time.
* ``IS`` and ``IS_NOT``: the value itself. Numbers are compared as numbers: ``4`` is ``4.0``.
* An agent that lacks the field is allowed by ``UNLIKE`` and ``IS_NOT`` only.
"""

from __future__ import annotations

from collections.abc import Mapping

from dcos_tensorflow.core.model.offer import AttributeValue
from dcos_tensorflow.core.spec.service_spec import (
    OF_SERVICE,
    REGION_FIELD,
    ConstraintOperator,
    PlacementConstraint,
)
from untrusted_input.linear_pattern import compiled

HOSTNAME_FIELDS = ("hostname", "@hostname")
ZONE_FIELD = "@zone"

#: Operators that an agent without the field passes.
NEGATIVE = (ConstraintOperator.UNLIKE, ConstraintOperator.IS_NOT)
PATTERNS = (ConstraintOperator.LIKE, ConstraintOperator.UNLIKE)
_NEED_A_VALUE = (
    *PATTERNS,
    ConstraintOperator.IS,
    ConstraintOperator.IS_NOT,
    ConstraintOperator.MAX_PER,
)


def describe(constraint: PlacementConstraint) -> str:
    """Return the rule as users write it: ``rack:LIKE:r[12]``."""
    parts = (constraint.field, str(constraint.operator), constraint.value)
    if constraint.of_service:
        return ":".join((*parts, OF_SERVICE))
    return ":".join(part for part in parts if part)


def problem_with(constraint: PlacementConstraint) -> str | None:
    """Return what is wrong with the rule itself, in one sentence; None when nothing is."""
    operator, value = constraint.operator, constraint.value
    if not constraint.field:
        return f"{describe(constraint)}: the field is empty"
    if operator in _NEED_A_VALUE and not value:
        return f"{describe(constraint)}: {operator} needs a value"
    if operator is ConstraintOperator.UNIQUE and value:
        return f"{describe(constraint)}: UNIQUE takes no value"
    counted = operator is ConstraintOperator.MAX_PER or (
        operator is ConstraintOperator.GROUP_BY and value
    )
    if counted and not (value.isascii() and value.isdigit() and int(value) > 0):
        return f"{describe(constraint)}: {operator} needs a whole number above 0, not {value!r}"
    return None


def pattern_problem(constraint: PlacementConstraint) -> str | None:
    """Return what is wrong with the rule's regular expression, in one sentence; None for nothing.

    Apart from :func:`problem_with`: kept options of an earlier release may hold one that RE2 does
    not take. It matches nothing then.
    """
    if constraint.operator in PATTERNS:
        try:
            compiled(constraint.value)
        except ValueError as error:
            return f"{describe(constraint)}: {error}"
    return None


def refuse_broken(constraint: PlacementConstraint) -> None:
    """Raise ValueError for a rule that :func:`problem_with` refuses."""
    problem = problem_with(constraint)
    if problem is not None:
        raise ValueError(problem)


def field_value(
    field: str,
    hostname: str,
    attributes: Mapping[str, AttributeValue],
    zone: str | None,
    region: str | None,
) -> str | None:
    """Return an agent's value of a constraint's field as text; None when it has none."""
    if field in HOSTNAME_FIELDS:
        return hostname or None
    if field == ZONE_FIELD:
        return zone or None
    if field == REGION_FIELD:
        return region or None
    value = attributes.get(field)
    return _scalar_text(value) if isinstance(value, float | int) else value


def depends_on_counts(constraint: PlacementConstraint) -> bool:
    """Say whether the rule's answer changes while tasks are placed."""
    operator = constraint.operator
    if operator is ConstraintOperator.CLUSTER:
        return not constraint.value
    return operator in (
        ConstraintOperator.UNIQUE,
        ConstraintOperator.MAX_PER,
        ConstraintOperator.GROUP_BY,
    )


def looks_at_one_value(constraint: PlacementConstraint) -> bool:
    """Say whether a counted rule's answer for a value depends on the tasks on that value only."""
    return constraint.operator in (ConstraintOperator.UNIQUE, ConstraintOperator.MAX_PER)


def number_of(text: str) -> str | None:
    """Return a number in its one spelling; None for other text."""
    try:
        return _scalar_text(float(text))
    except ValueError:
        return None


def _scalar_text(value: float) -> str:
    """Write a scalar as Mesos does: at most three decimals, none when it is whole."""
    return f"{value:.3f}".rstrip("0").rstrip(".")
