"""Whatever the options, they are accepted or refused with the path of what is wrong."""

import json
from typing import Any

import jsonschema
from hypothesis import assume, given
from hypothesis import strategies as st

from dcos_tensorflow.options import (
    Options,
    OptionsError,
    effective,
    json_schema,
    load,
    service_spec,
)
from dcos_tensorflow.options.catalogue import Option, options

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=8), below),
    max_leaves=6,
)
ANY_OPTION = st.sampled_from(list(options().values()))
OPTION_VALIDATORS = {
    path: jsonschema.Draft202012Validator(option.schema) for path, option in options().items()
}
VALIDATOR = jsonschema.Draft202012Validator(json_schema())


def with_value(option: Option, value: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {"service": {"job_name": "train"}}
    into = whole
    for name in option.path[:-1]:
        into = into.setdefault(name, {})
    into[option.path[-1]] = value
    return whole


def attempt(source: Any, *overrides: str) -> Options | OptionsError:
    try:
        return load(source, overrides=overrides)
    except OptionsError as refused:
        return refused


@given(ANY_OPTION, JSON_VALUES)
def test_a_value_of_the_wrong_type_is_refused_with_its_path(option: Option, value: Any) -> None:
    assume(not OPTION_VALIDATORS[option.path].is_valid(value))
    outcome = attempt(json.dumps(with_value(option, value)))
    assert isinstance(outcome, OptionsError)
    paths = [problem.path for problem in outcome.problems]
    assert any(path == option.name or path.startswith(option.name + ".") for path in paths)


@given(ANY_OPTION, JSON_VALUES)
def test_what_is_accepted_fits_the_schema_and_makes_a_service(option: Option, value: Any) -> None:
    given_options = with_value(option, value)
    outcome = attempt(json.dumps(given_options))
    if isinstance(outcome, Options):
        assert VALIDATOR.is_valid(given_options)
        assert VALIDATOR.is_valid(effective(outcome))
        assert service_spec(outcome).roles


@given(JSON_VALUES)
def test_any_json_is_accepted_or_refused(value: Any) -> None:
    assert str(attempt(json.dumps(value)))


@given(st.text())
def test_any_text_is_accepted_or_refused(text: str) -> None:
    assert str(attempt(text))


@given(ANY_OPTION, st.text(max_size=12))
def test_any_override_is_accepted_or_refused(option: Option, text: str) -> None:
    assert str(attempt({"service": {"job_name": "train"}}, f"{option.name}={text}"))
