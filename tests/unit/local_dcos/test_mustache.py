"""Templates render as with Cosmos, and what it would leave blank is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dcos_tensorflow.local.dcos.mustache import TemplateError, render


@pytest.mark.parametrize(
    ("template", "values", "expected"),
    [
        ('"{{x}}"', {"x": 'a "b" \\ \n'}, '"a \\"b\\" \\\\ \\n"'),
        ('"{{{x}}}"', {"x": '"'}, '"\\""'),
        ("{{x}}", {"x": "<&>"}, "<&>"),
        ("{{x}}", {"x": 3}, "3"),
        ("{{x}}", {"x": 3.0}, "3"),
        ("{{x}}", {"x": 0.5}, "0.5"),
        ("{{x}}", {"x": True}, "true"),
        ("{{x}}", {"x": False}, "false"),
        ("{{a.b-c}}", {"a": {"b-c": 1}}, "1"),
        ("{{#x}}yes{{/x}}", {"x": 0}, "yes"),
        ("{{#x}}yes{{/x}}", {"x": ""}, ""),
        ("{{#x}}yes{{/x}}", {"x": False}, ""),
        ("{{#x}}yes{{/x}}", {}, ""),
        ("{{^x}}no{{/x}}", {}, "no"),
        ("{{^x}}no{{/x}}", {"x": 0}, ""),
        ("{{x}}", {"x": "{{y}}"}, "{{y}}"),
        ("{{#asJson}}x{{/asJson}}", {"x": 'a"'}, '"a\\""'),
        ("{{#asJson}}x{{/asJson}}", {"x": {"y": 1}}, "null"),
    ],
)
def test_a_template_renders_as_with_cosmos(
    template: str, values: dict[str, Any], expected: str
) -> None:
    assert render(template, values) == expected


@pytest.mark.parametrize(
    ("template", "values", "words"),
    [
        ("{{x.y}}", {"x": {}}, "{{x.y}} has no value"),
        ("{{x}}", {"x": None}, "{{x}} has no value"),
        ("{{x}}", {"x": [1]}, "a list stands where text is wanted"),
        ("{{x}}", {"x": {}}, "an object stands where text is wanted"),
        ("{{>x}}", {"x": "y"}, "partials are not possible"),
        ("a{{#x}}b", {"x": "y"}, "{{#x}} is never closed"),
        ("a{{#x}}b{{/y}}", {"x": "y"}, "{{/y}} closes no section"),
    ],
)
def test_what_cosmos_would_leave_blank_is_refused(
    template: str, values: dict[str, Any], words: str
) -> None:
    with pytest.raises(TemplateError, match=words.replace("{", r"\{").replace("}", r"\}")):
        render(template, values)


def test_text_of_json_stays_json_inside_a_text() -> None:
    text = render('{"E": "{{x}}"}', {"x": '[["hostname", "UNIQUE"]]'})
    assert json.loads(json.loads(text)["E"]) == [["hostname", "UNIQUE"]]
