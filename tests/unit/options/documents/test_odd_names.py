"""Names that are no text: found by ``tests.fuzz``, which they crashed."""

import pytest

from dcos_tensorflow.options import OptionsError, load


@pytest.mark.parametrize(
    "text",
    [
        r'{"\ud800": 1}',
        r'{"service": {"job_name": "train", "env": {"\ud800": "1"}}}',
        r'{"service": {"job_name": "train", "\u0000": "1"}}',
        r'{"sweep": {"parameters": {"a": [1], "\ud800": [2]}}}',
    ],
)
def test_a_name_with_half_a_character_is_refused_where_it_stands(text: str) -> None:
    with pytest.raises(OptionsError, match="whose name holds"):
        load(text)


@pytest.mark.parametrize("parameters", [r'{"0.5": "\ud800"}', r'{"a": ["\ud800", 2]}'])
def test_half_a_character_is_refused_below_a_name_with_a_dot_and_in_a_list_too(
    parameters: str,
) -> None:
    text = f'{{"service": {{"job_name": {{}}}}, "sweep": {{"parameters": {parameters}}}}}'
    with pytest.raises(OptionsError, match="half of a surrogate pair"):
        load(text)
