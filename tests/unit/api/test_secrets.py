"""No secret is ever shown, from any place."""

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Route

import dcos_tensorflow
from dcos_tensorflow.api.redaction import REDACTED, is_secret_name, redact, redact_text
from dcos_tensorflow.core.cluster.launch import task_token
from dcos_tensorflow.core.spec.service_spec import TaskRole
from dcos_tensorflow.options import effective, load
from samples.states import TOKEN_KEY, a_role, a_spec, a_state
from samples.telltale_state import CONTEXT_SECRET, SECRETS, SIGNATURE, URL_SECRET, telltale

API_TOKEN = "the-token-of-the-api"


@pytest.fixture
def everything(source: Any, client_of: Any) -> dict[str, str]:
    """Return the answer of every GET path, by path, with names filled in."""
    state = telltale()
    source.current = state
    source.options = {"worker": {"env": dict(SECRETS)}, "service": {"job_url": state.spec.job.uri}}
    client = client_of(token=API_TOKEN)
    answers = {}
    for route in client.app.router.routes:
        # The stream has no end; what it tells is held by ``test_dashboard``.
        if not isinstance(route, Route) or "GET" not in (route.methods or ()):
            continue
        if route.path == "/v1/events":
            continue
        for name in ("deploy", "recovery", "worker-1", "worker", "job", "instance"):
            path = route.path
            for parameter in ("{plan}", "{name}", "{id}"):
                path = path.replace(parameter, name)
            answer = client.get(
                path,
                params={"verbose": ""},
                headers={"authorization": f"Bearer {API_TOKEN}"},
                follow_redirects=False,
            )
            assert answer.status_code != 500
            answers[path] = answer.text
    return answers


def test_no_answer_holds_any_secret(everything: dict[str, str]) -> None:
    tokens = [task_token(TOKEN_KEY, record.task_id) for record in telltale().tasks.values()]
    secrets = [
        TOKEN_KEY,
        API_TOKEN,
        URL_SECRET,
        "url-password",
        SIGNATURE,
        CONTEXT_SECRET,
        *SECRETS.values(),
        *tokens,
    ]
    assert [(p, s) for p, text in everything.items() for s in secrets if s in text] == []


def test_what_is_no_secret_stays_readable(everything: dict[str, str]) -> None:
    assert "visible" in everything["/v1/configurations/target"]
    assert "--steps=5" in everything["/v1/configurations/target"]
    assert "files.example.com/job.zip" in everything["/v1/why"]


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "DB_PASSWD",
        "AWS_SECRET_ACCESS_KEY",
        "gcs_key",
        "apiToken",
        "private-key",
        "credentials",
        "token",
        "X-Amz-Signature",
    ],
)
def test_names_of_secrets_are_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["tokenizer", "max_tokens", "key", "keyboard", "job_name", "step"])
def test_other_names_are_not_taken_for_secrets(name: str) -> None:
    assert not is_secret_name(name)


def test_a_pair_of_name_and_value_is_masked() -> None:
    pair = {"name": "DB_PASSWORD", "value": "x"}
    assert redact([pair]) == [{"name": "DB_PASSWORD", "value": REDACTED}]


def test_environments_are_masked_by_the_broader_rule_of_the_options() -> None:
    env = {"HFTOKENS": "abc", "STEPS": "5"}
    assert redact({"env": env}) == {"env": {"HFTOKENS": REDACTED, "STEPS": "5"}}
    assert redact({"model": env}) == {"model": env}


def test_an_empty_secret_is_shown_as_empty() -> None:
    assert redact({"password": "", "use_secret": True}) == {"password": "", "use_secret": True}


def test_json_text_without_secrets_is_left_as_it_was_written() -> None:
    assert redact_text('{"a":  1}') == '{"a":  1}'


def test_text_that_only_looks_like_json_is_redacted_as_text() -> None:
    assert redact_text("{password=abc, x}") == f"{{password={REDACTED}, x}}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("password: hunter2", f"password: {REDACTED}"),
        ("db:\n  password: correct horse\n  user: me", f"db:\n  password: {REDACTED}\n  user: me"),
        ("datasource.password: hunter2", f"datasource.password: {REDACTED}"),
        ('sent {"api_token": "abc def"} to it', f'sent {{"api_token": {REDACTED}}} to it'),
        ("{'password': 'abc'}", f"{{'password': {REDACTED}}}"),
        ("train --token abc --lr 1", f"train --token {REDACTED} --lr 1"),
    ],
)
def test_a_value_behind_the_name_of_a_secret_is_masked_however_it_is_written(
    text: str, shown: str
) -> None:
    assert redact_text(text) == shown


def test_a_name_that_stands_twice_in_json_hides_no_secret() -> None:
    assert "hunter2" not in redact_text('{"password": "hunter2", "password": ""}')


def test_no_default_of_an_option_is_a_secret() -> None:
    plain = {"service": {"name": "mnist", "job_url": "http://host/job.zip", "job_name": "train"}}
    shown = effective(load(plain))
    assert redact(shown) == shown


def test_a_measurement_is_no_secret_whatever_it_is_called() -> None:
    metrics = {"token_accuracy": 0.5, "secret_ratio": 1.0}
    assert redact({"metrics": metrics}) == {"metrics": metrics}
    assert redact({"db_password": 4711}) == {"db_password": REDACTED}


def test_a_bearer_token_in_a_message_is_masked() -> None:
    assert redact_text("sent Authorization: Bearer abc.def") == (
        f"sent Authorization: Bearer {REDACTED}"
    )


@pytest.mark.parametrize("text", ["Bearer <token>real", "password=<token>-4711", "token=<hunter2>"])
def test_what_only_begins_like_a_placeholder_is_masked(text: str) -> None:
    assert redact(text) in ("Bearer <redacted>", "password=<redacted>", "token=<redacted>")


def test_no_sentence_of_ours_is_masked() -> None:
    framework = Path(dcos_tensorflow.__file__).parent
    # But the patterns of masking itself.
    sources = [path for path in framework.rglob("*.py") if path.name != "redaction.py"]
    texts = {
        node.value
        for source in sources
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert len(texts) > 10_000
    assert [text for text in texts if redact(text) != text] == []


def test_a_long_word_takes_no_long_time() -> None:
    text = "a" * 200_000 + "="
    assert redact_text(text) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(float("nan"), "NaN"), (float("inf"), "Infinity"), (float("-inf"), "-Infinity")],
)
def test_numbers_that_json_does_not_know_become_text(number: float, text: str) -> None:
    assert redact({"loss": number}) == {"loss": text}


def test_a_short_value_is_not_masked_all_over(source: Any, client: Any) -> None:
    roles = (a_role(TaskRole.WORKER, 1, env={"PASSWORD": "ps"}), a_role(TaskRole.PS, 1))
    source.current = replace(a_state(), spec=a_spec(roles=roles))
    assert client.get("/v1/pod").json() == ["ps-0", "worker-0"]
