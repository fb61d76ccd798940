import contextlib
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcos_tensorflow.core.placement.constraints import describe
from dcos_tensorflow.core.spec.service_spec import ConstraintOperator, PlacementConstraint
from dcos_tensorflow.options.sections.placement import PlacementError, parse_placement

UNIQUE_HOST = PlacementConstraint("hostname", ConstraintOperator.UNIQUE)
RACKS = PlacementConstraint("rack", ConstraintOperator.LIKE, "r[12]")


@pytest.mark.parametrize("text", ["", "  ", "[]", " [ ] "])
def test_no_text_is_no_constraint(text: str) -> None:
    assert parse_placement(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        '[["hostname", "UNIQUE"], ["rack", "LIKE", "r[12]"]]',
        "hostname:UNIQUE,rack:LIKE:r[12]",
        " hostname : UNIQUE , rack : LIKE : r[12] ",
        "hostname:unique,rack:like:r[12]",
        '[["hostname", "Unique", ""], ["rack", "Like", "r[12]"]]',
    ],
)
def test_all_spellings_of_two_rules_mean_the_same(text: str) -> None:
    assert parse_placement(text) == (UNIQUE_HOST, RACKS)


@pytest.mark.parametrize("text", [
    '[["hostname", "UNIQUE", "", "service"], ["rack", "MAX_PER", "2", "service"]]',
    "hostname:UNIQUE::service,rack:MAX_PER:2:service",
])  # fmt: skip
def test_a_rule_may_be_one_of_the_whole_service(text: str) -> None:
    per_rack = PlacementConstraint("rack", ConstraintOperator.MAX_PER, "2", of_service=True)
    assert parse_placement(text) == (replace(UNIQUE_HOST, of_service=True), per_rack)
    assert ",".join(map(describe, parse_placement(text))) == (
        "hostname:UNIQUE::service,rack:MAX_PER:2:service"
    )


@pytest.mark.parametrize("text", ['["rack", "LIKE", "r[12]"]', "rack:LIKE:r[12]"])
def test_one_rule_needs_no_outer_list(text: str) -> None:
    assert parse_placement(text) == (RACKS,)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"rack:LIKE:a\,b", "a,b"),
        (r"rack:LIKE:a\:b", "a:b"),
        (r"rack:LIKE:a\d+", r"a\d+"),
        (r"rack:LIKE:a\\d", r"a\\d"),
        (r"rack:IS:a\\", r"a\\"),
        ("rack:IS:a\\", "a\\"),
    ],
)
def test_a_backslash_takes_its_meaning_from_separators_only(text: str, value: str) -> None:
    (constraint,) = parse_placement(text)
    assert constraint.value == value


@pytest.mark.parametrize(
    ("operator", "value"),
    [
        ("UNIQUE", ""),
        ("CLUSTER", ""),
        ("CLUSTER", "rack-1"),
        ("GROUP_BY", ""),
        ("GROUP_BY", "3"),
        ("LIKE", "a.*"),
        ("UNLIKE", "a.*"),
        ("MAX_PER", "2"),
        ("IS", "x"),
        ("IS_NOT", "x"),
    ],
)
def test_each_operator_of_marathon_is_known(operator: str, value: str) -> None:
    text = f"@zone:{operator}:{value}" if value else f"@zone:{operator}"
    assert parse_placement(text) == (
        PlacementConstraint("@zone", ConstraintOperator(operator), value),
    )


def test_a_number_in_a_list_is_taken_as_its_text() -> None:
    (constraint,) = parse_placement('[["rack", "MAX_PER", 2]]')
    assert constraint.value == "2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hostname", "rule 'hostname' has 1 parts"),
        ("a:LIKE:b:c", "rule 'a:LIKE:b:c' has 4 parts"),
        ("hostname:UNIQUE,", "rule '' has 1 parts"),
        ("[[]]", "rule '' has 0 parts"),
        (":UNIQUE", "UNIQUE: the field is empty"),
        ("a:NEAR:b", "a:NEAR:b: unknown operator 'NEAR'"),
        ("a:UNIQUE:b", "a:UNIQUE:b: UNIQUE takes no value"),
        ("a:IS", "a:IS: IS needs a value"),
        ("a:LIKE", "a:LIKE: LIKE needs a value"),
        ("a:UNLIKE:*", "a:UNLIKE:*: not a regular expression of RE2: no argument"),
        ("a:LIKE:b{1001}", "not a regular expression of RE2: invalid repetition size"),
        ("a:LIKE:(?=b)b", "not a regular expression of RE2: invalid perl operator"),
        ("a:MAX_PER", "MAX_PER needs a value"),
        ("a:MAX_PER:0", "MAX_PER needs a whole number above 0, not '0'"),
        ("a:MAX_PER:two", "MAX_PER needs a whole number above 0, not 'two'"),
        ("a:GROUP_BY:-1", "GROUP_BY needs a whole number above 0, not '-1'"),
        ('[["a", "UNIQUE"', "not a JSON list"),
        ('[["a", "UNIQUE"], "b"]', "each part of a rule must be text"),
        ('[["a", "MAX_PER", true]]', "each part of a rule must be text, not true"),
        ("[" * 100_000, "not a list of rules: nested too deeply"),
    ],
)
def test_text_that_means_nothing_is_refused(text: str, message: str) -> None:
    with pytest.raises(PlacementError) as refused:
        parse_placement(text)
    assert message in str(refused.value)


PARTS = st.text(st.characters(exclude_characters="\\", exclude_categories=["Cs"]), min_size=1).map(
    str.strip
)
CONSTRAINTS = st.builds(
    PlacementConstraint,
    PARTS.filter(bool),
    st.sampled_from([ConstraintOperator.IS, ConstraintOperator.IS_NOT, ConstraintOperator.CLUSTER]),
    PARTS.filter(bool),
)


@given(st.lists(CONSTRAINTS, min_size=1, max_size=4))
def test_rules_written_as_a_list_are_read_back(constraints: list[PlacementConstraint]) -> None:
    text = json.dumps([[rule.field, rule.operator, rule.value] for rule in constraints])
    assert parse_placement(text) == tuple(constraints)


@given(st.lists(CONSTRAINTS.filter(lambda rule: rule.field[0] != "["), min_size=1, max_size=4))
def test_rules_written_with_colons_are_read_back(constraints: list[PlacementConstraint]) -> None:
    def escaped(text: str) -> str:
        return text.replace(":", "\\:").replace(",", "\\,")

    text = ",".join(
        ":".join(map(escaped, (rule.field, rule.operator, rule.value))) for rule in constraints
    )
    assert parse_placement(text) == tuple(constraints)


@given(st.text())
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with contextlib.suppress(PlacementError):
        parse_placement(text)
