from collections.abc import Callable
from typing import Any

import pytest

from dcos_tensorflow.options import Options, load

FILE = {"service": {"job_name": "train"}, "worker": {"count": 3, "cpus": 2}}


def overridden(*overrides: str, file: dict[str, Any] = FILE) -> Options:
    return load(file, overrides=overrides)


def test_an_override_wins_over_the_file_and_leaves_the_rest() -> None:
    options = overridden("worker.count=1")
    assert (options.worker.count, options.worker.cpus) == (1, 2)


def test_the_last_override_wins() -> None:
    assert overridden("worker.count=1", "worker.count=2").worker.count == 2


def test_an_override_makes_the_groups_on_its_way() -> None:
    assert overridden("service.security.kerberos.debug=true").service.security.kerberos.debug


def test_what_was_given_is_not_changed() -> None:
    file = {"service": {"job_name": "train"}, "worker": {"count": 3}}
    overridden("worker.count=1", file=file)
    assert file["worker"] == {"count": 3}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", "7"),
        ("true", "true"),
        ('{"a": 1}', '{"a": 1}'),
        ('"7"', "7"),
        ("", ""),
        ("a=b", "a=b"),
    ],
)
def test_the_value_of_a_text_option_is_taken_as_it_is(text: str, value: str) -> None:
    assert overridden(f"service.user={text}").service.user == value


def test_a_context_needs_no_quoting() -> None:
    assert overridden('service.job_context={"steps": 3}').service.job_context == '{"steps": 3}'


def test_placement_needs_no_quoting() -> None:
    options = overridden('worker.placement_constraint=[["hostname", "UNIQUE"]]')
    assert options.worker.placement_constraint == '[["hostname", "UNIQUE"]]'


def test_one_variable_of_an_environment_can_be_set() -> None:
    file = {**FILE, "worker": {"env": {"A": "1", "B": "1"}}}
    assert overridden("worker.env.B=2", file=file).worker.env == {"A": "1", "B": "2"}


def test_one_variable_of_an_environment_in_json_text_can_be_set() -> None:
    file = {**FILE, "worker": {"env": '{"A": "1"}'}}
    assert overridden("worker.env.B=2", file=file).worker.env == {"A": "1", "B": "2"}


def test_one_parameter_of_a_sweep_can_be_set() -> None:
    objective = {"metric": "loss", "goal": "minimize"}
    file = {**FILE, "sweep": {"parameters": {"a": [1], "b": [1]}, "objective": objective}}
    told = ("sweep.parameters.b=[1, 2]", "sweep.parameters.c.log_uniform=[0.1, 1]")
    found = overridden(*told, file=file).sweep.parameters
    assert found == {"a": [1], "b": [1, 2], "c": {"log_uniform": [0.1, 1]}}


def test_a_whole_group_can_be_set() -> None:
    assert overridden('worker={"count": 1}').worker.cpus == 1.0


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("worker.cout=1", "worker.cout: unknown option; did you mean worker.count?"),
        ("worker_count=1", "worker_count: unknown option; did you mean worker.count?"),
        (
            "worker.count",
            "an override must be path=value (given: worker.count; allowed: e.g. worker.count=2)",
        ),
        (
            "worker..count=1",
            "an override must be path=value (given: worker..count; allowed: e.g. worker.count=2)",
        ),
        (
            "worker.count=two",
            'worker.count: must be a whole number, not text (given: "two"; allowed: a whole '
            "number from 0 to 100000)",
        ),
        (
            "worker.count.max=2",
            "worker.count.max: worker.count has no parts that can be set",
        ),
    ],
)
def test_a_wrong_override_is_refused(
    override: str, line: str, problems: Callable[..., list[str]]
) -> None:
    assert problems({}, override) == [line]


def test_wrong_overrides_and_wrong_options_are_told_together(
    problems: Callable[..., list[str]],
) -> None:
    assert len(problems({"worker": {"cout": 1}}, "worker.mem=1", "nothing")) == 3
