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


def values(operator: Op, value: str, column: tuple[str, ...]) -> list[str]:
    rule = PlacementConstraint("size", operator, value)
    codes = np.arange(len(column))
    nothing = np.zeros(len(column), dtype=np.int64)
    passes = allowed_agents(rule, Column(Values(column), codes), nothing)
    return [name for name, passed in zip(column, passes, strict=True) if passed]


class TestUnique:
    def test_allows_every_value_at_first(self) -> None:
        assert allowed(Op.UNIQUE) == ["r1", "r2", "r3"]

    def test_refuses_a_value_with_a_task(self) -> None:
        assert allowed(Op.UNIQUE, counts=(0, 1, 0)) == ["r1", "r3"]


class TestMaxPer:
    def test_allows_up_to_the_number(self) -> None:
        assert allowed(Op.MAX_PER, "2", counts=(1, 2, 3)) == ["r1"]


class TestCluster:
    def test_with_a_value_allows_that_value(self) -> None:
        assert allowed(Op.CLUSTER, "r2") == ["r2"]

    def test_without_a_value_allows_any_at_first(self) -> None:
        assert allowed(Op.CLUSTER) == ["r1", "r2", "r3"]

    def test_without_a_value_follows_the_first_task(self) -> None:
        assert allowed(Op.CLUSTER, counts=(0, 0, 4)) == ["r3"]


class TestGroupBy:
    def test_allows_any_value_at_first(self) -> None:
        assert allowed(Op.GROUP_BY) == ["r1", "r2", "r3"]

    def test_allows_unused_values_and_the_least_used(self) -> None:
        assert allowed(Op.GROUP_BY, counts=(2, 1, 0)) == ["r2", "r3"]

    def test_allows_all_when_all_are_even(self) -> None:
        assert allowed(Op.GROUP_BY, counts=(2, 2, 2)) == ["r1", "r2", "r3"]

    def test_with_a_number_allows_only_new_values_until_so_many_are_used(self) -> None:
        assert allowed(Op.GROUP_BY, "3", counts=(1, 1, 0)) == ["r3"]

    def test_with_a_number_goes_on_evenly_once_so_many_are_used(self) -> None:
        assert allowed(Op.GROUP_BY, "2", counts=(1, 2, 0)) == ["r1", "r3"]


class TestLike:
    def test_matches_the_whole_value(self) -> None:
        assert allowed(Op.LIKE, "r[12]") == ["r1", "r2"]

    def test_does_not_match_a_part(self) -> None:
        assert allowed(Op.LIKE, "r") == []


class TestUnlike:
    def test_allows_what_does_not_match_and_agents_without_the_field(self) -> None:
        assert allowed(Op.UNLIKE, "r[12]") == ["r3", "none"]


class TestIs:
    def test_allows_the_value(self) -> None:
        assert allowed(Op.IS, "r2") == ["r2"]

    def test_takes_the_value_literally(self) -> None:
        assert allowed(Op.IS, "r.") == []

    def test_compares_numbers_as_numbers(self) -> None:
        assert values(Op.IS, "4.0", ("4", "40", "4.001")) == ["4"]


class TestIsNot:
    def test_allows_other_values_and_agents_without_the_field(self) -> None:
        assert allowed(Op.IS_NOT, "r2") == ["r1", "r3", "none"]


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
