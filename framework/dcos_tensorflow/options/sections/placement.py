"""Placement text to PlacementConstraints, in the three syntaxes that SDK services accept.

``["hostname", "UNIQUE"]``, ``[["hostname", "UNIQUE"], ["rack", "LIKE", "r[12]"]]``, and
``hostname:UNIQUE,rack:LIKE:r[12]`` in which ``\\:`` and ``\\,`` are plain characters. Called when
options are validated and when they become a ServiceSpec. It never looks at an agent:
``core.placement.constraints`` has the meaning of the operators.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from difflib import get_close_matches

from dcos_tensorflow.core.spec.service_spec import (
    OF_SERVICE,
    ConstraintOperator,
    PlacementConstraint,
)

OPERATOR_NAMES = ", ".join(ConstraintOperator)
EXAMPLE = '[["hostname", "UNIQUE"]] or hostname:UNIQUE,rack:LIKE:r[12]'


class PlacementError(ValueError):
    """A placement text that means nothing. ``suggestion`` is an operator name, or empty."""

    def __init__(self, message: str, suggestion: str = "") -> None:
        super().__init__(message)
        self.suggestion = suggestion


def parse_placement(text: str) -> tuple[PlacementConstraint, ...]:
    """Return the constraints of ``text``, all of which must hold; none for empty text or ``[]``.

    Raises PlacementError.
    """
    stripped = text.strip()
    if not stripped:
        return ()
    if stripped.startswith("["):
        rows = _json_rows(stripped)
    else:
        rows = [_split(row, ":") for row in _split(stripped, ",")]
    return tuple(_constraint(row) for row in rows)


def _json_rows(text: str) -> list[list[str]]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise PlacementError(f"not a JSON list: {error}") from None
    except RecursionError:
        raise PlacementError("not a list of rules: nested too deeply") from None
    if not value:
        return []
    # A flat list is one rule: lenient, as the SDK is.
    rows = value if all(isinstance(row, list) for row in value) else [value]
    return [[_part(part) for part in row] for row in rows]


def _part(part: object) -> str:
    if isinstance(part, str):
        return part.strip()
    if isinstance(part, int) and not isinstance(part, bool):
        return str(part)
    raise PlacementError(f"each part of a rule must be text, not {json.dumps(part)}")


def _split(text: str, separator: str) -> list[str]:
    """Split at ``separator`` where no backslash stands before it; other backslashes stay."""
    parts = re.findall(rf"(?:^|{separator})((?:\\.|[^\\{separator}]|\\$)*)", text, re.DOTALL)
    return [part.replace("\\" + separator, separator).strip() for part in parts]


def _constraint(row: Sequence[str]) -> PlacementConstraint:
    shown = ":".join(row)
    if len(row) not in (2, 3) and not (len(row) == 4 and row[3] == OF_SERVICE):
        raise PlacementError(
            f"rule {shown!r} has {len(row)} parts; a rule is field:OPERATOR or"
            f" field:OPERATOR:value; :{OF_SERVICE} may follow the value, which may be empty"
        )
    field, operator_name = row[0], row[1].upper()
    value = row[2] if len(row) > 2 else ""
    try:
        operator = ConstraintOperator(operator_name)
    except ValueError:
        near = get_close_matches(operator_name, list(ConstraintOperator), n=1)
        raise PlacementError(
            f"{shown}: unknown operator {row[1]!r}; operators are {OPERATOR_NAMES}",
            near[0] if near else "",
        ) from None
    constraint = PlacementConstraint(field, operator, value, of_service=len(row) == 4)
    wrong = _problem(constraint)
    if wrong is not None:
        raise PlacementError(wrong)
    return constraint


def _problem(constraint: PlacementConstraint) -> str | None:
    from dcos_tensorflow.core.placement.constraints import describe, pattern_problem, problem_with

    try:
        return problem_with(constraint) or pattern_problem(constraint)
    except (RecursionError, OverflowError, ValueError) as error:
        # A regular expression or a number of absurd size.
        return f"{describe(constraint)}: cannot be evaluated: {error}"
