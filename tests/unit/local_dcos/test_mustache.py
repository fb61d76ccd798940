"""Templates render as DC/OS' package manager renders them, or are refused by name."""

import json
from typing import Any

import pytest

from local_dcos.cosmos.mustache import TemplateError, render


@pytest.mark.parametrize(
    ("template", "values", "text"),
    [
        ("{{a}}", {"a": "x"}, "x"),
        ("{{a}}", {"a": 'say "hi"\n\\o/'}, 'say \\"hi\\"\\n\\\\o/'),
        ("{{{a}}}", {"a": "<&>"}, "<&>"),
        ("{{&a}}", {"a": "<&>"}, "<&>"),
        ("{{ a.b.c }}", {"a": {"b": {"c": "deep"}}}, "deep"),
        ("{{a}}", {"a": 2.0}, "2"),
        ("{{a}}", {"a": 0.5}, "0.5"),
        ("{{a}}", {"a": True}, "true"),
        ("{{a}}", {"a": "{{b}}", "b": "no"}, "{{b}}"),
        ("a{{! a comment }}b", {}, "ab"),
        ("{{#a}}yes{{/a}}{{^a}}no{{/a}}", {"a": "x"}, "yes"),
        ("{{#a}}yes{{/a}}{{^a}}no{{/a}}", {"a": True}, "yes"),
        ("{{#a}}yes{{/a}}{{^a}}no{{/a}}", {"a": 0}, "yes"),
        ("{{#a}}yes{{/a}}{{^a}}no{{/a}}", {"a": False}, "no"),
        ("{{#a}}yes{{/a}}{{^a}}no{{/a}}", {"a": ""}, "no"),
        ("{{#a}}yes{{/a}}{{^a}}no{{/a}}", {}, "no"),
        ("{{#a}}{{#b}}both{{/b}}{{/a}}", {"a": True, "b": True}, "both"),
        ("{{#a.b}}{{a.b}}{{/a.b}}", {"a": {"b": 7}}, "7"),
        ("no tags", {}, "no tags"),
        ("{{x}}", {"x": False}, "false"),
        ("{{a.b-c}}", {"a": {"b-c": 1}}, "1"),
        ("{{#a}}{{b}}{{c}}{{/a}}", {"a": {"b": 1}, "b": 2, "c": 3}, "13"),
        ("{{#a}}{{.}};{{/a}}", {"a": ["x", 2]}, "x;2;"),
        ("{{#a}}{{b}}{{/a}}", {"a": [{"b": 1}, {"b": 2}]}, "12"),
        ("{{#a}}yes{{/a}}{{^a}}no{{/a}}", {"a": []}, "no"),
        ("{{#asJson}}x{{/asJson}}", {"x": 'a"'}, '"a\\""'),
        ("{{#asJson}}x{{/asJson}}", {"x": {"y": 1}}, "null"),
        ("{{#asJson}}x{{/asJson}}", {}, "null"),
    ],
)
def test_a_template_renders(template: str, values: dict[str, Any], text: str) -> None:
    assert render(template, values) == text


@pytest.mark.parametrize(
    ("template", "values", "message"),
    [
        ("x\n{{a}}", {}, "line 2: a has no value"),
        ("{{a}}", {"a": {"b": 1}}, "a is a structure"),
        ("{{a}}", {"a": [1]}, "a is a structure"),
        ("{{a}}", {"a": None}, "a has no value"),
        ("{{#a}}{{b.c}}{{/a}}", {"a": {"b": {}}, "b": {"c": 1}}, "b.c has no value"),
        ("{{#a}}x", {"a": True}, "line 1: the section a is never closed"),
        ("{{#a}}{{/b}}", {"a": True}, "not open"),
        ("{{/b}}", {}, "not open"),
        ("{{>other}}", {}, "partials are not supported"),
        ("{{=<% %>=}}", {}, "other delimiters are not supported"),
        ("{{a", {"a": "x"}, "not closed"),
        ("{{}}", {}, "is no tag"),
    ],
)
def test_a_template_that_means_nothing_certain_is_refused(
    template: str, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(TemplateError, match=message):
        render(template, values)


def test_text_of_json_stays_json_inside_a_text() -> None:
    text = render('{"E": "{{x}}"}', {"x": '[["hostname", "UNIQUE"]]'})
    assert json.loads(json.loads(text)["E"]) == [["hostname", "UNIQUE"]]
