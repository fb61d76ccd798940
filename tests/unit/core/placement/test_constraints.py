"""What each placement operator allows, given what already runs."""

import numpy as np
import pytest

from dcos_tensorflow.core.placement.columns import Column, Values, allowed_agents
from dcos_tensorflow.core.placement.constraints import (
    depends_on_counts,
    describe,
    field_value,
    pattern_problem,
    problem_with,
)
from dcos_tensorflow.core.spec.service_spec import ConstraintOperator as Op
from dcos_tensorflow.core.spec.service_spec import PlacementConstraint

RACKS = ("r1", "r2", "r3")
#: One agent per rack, and a last one that has no rack.
COLUMN = Column(Values(RACKS), np.array([0, 1, 2, -1]))


def allowed(operator: Op, value: str = "", counts: tuple[int, ...] = (0, 0, 0)) -> list[str]:
    """Return the racks of the agents that are allowed; ``none`` is the agent without one."""
    rule = PlacementConstraint("rack", operator, value)
    passes = allowed_agents(rule, COLUMN, np.array(counts))
    return [name for name, passed in zip((*RACKS, "none"), passes, strict=True) if passed]


@pytest.mark.parametrize(
    ("operator", "value", "counts", "racks"),
    [
        pytest.param(Op.UNIQUE, "", (0, 0, 0), "r1 r2 r3", id="unique: every value at first"),
        pytest.param(Op.UNIQUE, "", (0, 1, 0), "r1 r3", id="unique: no value with a task"),
        pytest.param(Op.MAX_PER, "2", (1, 2, 3), "r1", id="max per: up to the number"),
        pytest.param(Op.CLUSTER, "r2", (0, 0, 0), "r2", id="cluster: its value"),
        pytest.param(Op.CLUSTER, "", (0, 0, 0), "r1 r2 r3", id="cluster without one: any at first"),
        pytest.param(Op.CLUSTER, "", (0, 0, 4), "r3", id="cluster without one: the first task's"),
        pytest.param(Op.GROUP_BY, "", (0, 0, 0), "r1 r2 r3", id="group by: any value at first"),
        pytest.param(Op.GROUP_BY, "", (2, 1, 0), "r2 r3", id="group by: unused and least used"),
        pytest.param(Op.GROUP_BY, "", (2, 2, 2), "r1 r2 r3", id="group by: all when all are even"),
        pytest.param(Op.GROUP_BY, "3", (1, 1, 0), "r3", id="group by 3: new ones until 3 are used"),
        pytest.param(Op.GROUP_BY, "2", (1, 2, 0), "r1 r3", id="group by 2: evenly once 2 are used"),
        pytest.param(Op.LIKE, "r[12]", (0, 0, 0), "r1 r2", id="like: what matches as a whole"),
        pytest.param(Op.LIKE, "r", (0, 0, 0), "", id="like: nothing that matches in part"),
        pytest.param(Op.UNLIKE, "r[12]", (0, 0, 0), "r3 none", id="unlike: others, and none"),
        pytest.param(Op.IS, "r2", (0, 0, 0), "r2", id="is: the value"),
        pytest.param(Op.IS, "r.", (0, 0, 0), "", id="is: the value literally"),
        pytest.param(Op.IS_NOT, "r2", (0, 0, 0), "r1 r3 none", id="is not: others, and none"),
    ],
)
def test_an_operator_allows_these_racks(
    operator: Op, value: str, counts: tuple[int, ...], racks: str
) -> None:
    assert allowed(operator, value, counts) == racks.split()


def test_is_compares_numbers_as_numbers() -> None:
    rule, column = PlacementConstraint("size", Op.IS, "4.0"), ("4", "40", "4.001")
    passes = allowed_agents(rule, Column(Values(column), np.arange(3)), np.zeros(3, dtype=np.int64))
    assert list(passes) == [True, False, False]


class TestFieldValue:
    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("hostname", "h1"),
            ("@hostname", "h1"),
            ("@zone", "z1"),
            ("@region", "eu"),
            ("rack", "r1"),
            ("slots", "4"),
            ("load", "0.125"),
            ("absent", None),
        ],
    )
    def test_reads_names_domain_and_attributes(self, field: str, value: str | None) -> None:
        attributes = {"rack": "r1", "slots": 4.0, "load": 0.125}
        assert field_value(field, "h1", attributes, "z1", "eu") == value

    @pytest.mark.parametrize("field", ["@zone", "@region"])
    def test_is_absent_without_a_fault_domain(self, field: str) -> None:
        assert field_value(field, "h1", {}, None, None) is None


class TestProblemWith:
    @pytest.mark.parametrize("operator", [Op.GROUP_BY, Op.CLUSTER, Op.UNIQUE])
    def test_is_silent_about_rules_without_a_value(self, operator: Op) -> None:
        assert problem_with(PlacementConstraint("rack", operator)) is None

    def test_is_what_placing_raises(self) -> None:
        with pytest.raises(ValueError, match="MAX_PER needs a whole number"):
            allowed(Op.MAX_PER, "many")


class TestPatterns:
    def test_are_matched_in_time_whatever_they_say(self) -> None:
        text = "a" * 10_000 + "b"
        assert list(Values([text, "aa"]).like("(a+)+$")) == [False, True]

    @pytest.mark.parametrize("pattern", ["(?=a)a", r"(a)\1", "a("])
    def test_that_are_none_of_re2_are_refused_and_match_nothing(self, pattern: str) -> None:
        assert pattern_problem(PlacementConstraint("rack", Op.LIKE, pattern)) is not None
        assert not any(Values(["a", "aa"]).like(pattern))


def test_a_rule_is_described_as_users_write_it() -> None:
    assert describe(PlacementConstraint("rack", Op.LIKE, "r[12]")) == "rack:LIKE:r[12]"
    assert describe(PlacementConstraint("hostname", Op.UNIQUE)) == "hostname:UNIQUE"


@pytest.mark.parametrize(
    ("operator", "value", "counts"),
    [
        (Op.UNIQUE, "", True),
        (Op.MAX_PER, "2", True),
        (Op.GROUP_BY, "", True),
        (Op.CLUSTER, "", True),
        (Op.CLUSTER, "r1", False),
        (Op.LIKE, "r", False),
        (Op.IS_NOT, "r", False),
    ],
)
def test_only_rules_that_count_tasks_change_while_placing(
    operator: Op, value: str, counts: bool
) -> None:
    assert depends_on_counts(PlacementConstraint("rack", operator, value)) is counts
