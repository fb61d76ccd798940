import json

import pytest

from dcos_tensorflow.options import (
    HIDDEN,
    OptionsError,
    catalogue,
    effective,
    load,
    service_spec,
)

RICH = {
    "service": {
        "name": "team/mnist",
        "job_url": "mnist.zip",
        "job_name": "mnist",
        "job_uris": ["a.txt"],
        "env": {"A": "1"},
        "security": {
            "kerberos": {"enabled": True, "realm": "R", "kdc": {"hostname": "h", "port": 88}}
        },
    },
    "gpu_worker": {"count": 1, "port": 5000, "env": {"B": "2"}},
    "chief": {"count": 1},
    "data": [{"uri": "s3://bucket/a", "path": "a"}],
    "s3": {"credentials": {"env": "AWS_"}},
}


@pytest.mark.parametrize("given", [{"service": {"job_name": "train"}}, RICH])
def test_what_is_shown_can_be_loaded_again(given: dict[str, object]) -> None:
    options = load(given)
    again = load(json.dumps(effective(options)))
    assert effective(again) == effective(options)
    assert service_spec(again) == service_spec(options)


def test_defaults_are_shown() -> None:
    shown = effective(load({"service": {"job_name": "train"}}))
    assert shown["worker"]["count"] == 1
    assert shown["parameter_server"]["count"] == 0
    assert shown["gang"]["hold_seconds"] == 10.0


def test_variables_that_are_named_like_secrets_are_hidden() -> None:
    options = load({"service": {"job_name": "train", "env": {"API_TOKEN": "hush", "A": "b"}}})
    assert effective(options)["service"]["env"] == {"API_TOKEN": HIDDEN, "A": "b"}


def test_a_hidden_value_is_not_taken_for_a_real_one() -> None:
    options = load({"service": {"job_name": "train", "env": {"API_TOKEN": "hush"}}})
    with pytest.raises(OptionsError, match=r"service\.env\.API_TOKEN: is the mask"):
        load(effective(options))


def test_the_text_form_of_options_tells_no_variable() -> None:
    options = load({"service": {"job_name": "train", "env": {"API_TOKEN": "hush"}}})
    assert "hush" not in repr(options)


def test_what_is_hidden_is_what_the_table_of_all_options_calls_so() -> None:
    known = catalogue.options().values()
    assert catalogue.secrets() == tuple(each.path for each in known if each.secret)
    assert catalogue.environments() == tuple(each.path for each in known if each.is_environment)
    assert len(catalogue.environments()) > 1
