"""What is refused is told in a sentence, never as the JSON that came back."""

import argparse
import json
from typing import Any

import pytest

from dcos_tensorflow.plugin import commands
from dcos_tensorflow.plugin.client import CommandError, DcosCluster, HttpAnswer
from dcos_tensorflow.plugin.sdk_verbs import VERBS


class Refusing(DcosCluster):
    """A cluster that answers everything the same."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__("tf", {"DCOS_URL": "http://127.0.0.1:1"})
        raw = body if isinstance(body, str) else json.dumps(body)
        self.answer = HttpAnswer(status, "Reason", raw.encode())

    def _ask(self, method: str, path: str, body: Any, headers: Any) -> HttpAnswer:
        return self.answer


def told(cluster: DcosCluster, **given: Any) -> str:
    (pause,) = (verb for verb in VERBS if verb.words == ["plan", "pause"])
    given = {"plan": "deploy", "verb": pause, "json": False, "phase": None, **given}
    with pytest.raises(CommandError) as refused:
        commands.sdk_verb(cluster, argparse.Namespace(**given))
    return str(refused.value)


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (409, {"message": "an uninstall cannot be paused"}, "an uninstall cannot be paused."),
        (400, {"message": "a step needs its phase."}, "a step needs its phase."),
        (404, {"message": "worker-0 has no task x", "tasks": []}, "worker-0 has no task x."),
        (404, "Element not found", "Plan, phase, and/or step does not exist."),
        (
            503,
            {"message": "this scheduler is a standby: the service is led by h2"},
            "The scheduler of tf cannot answer: this scheduler is a standby: the service is led"
            " by h2.",
        ),
        (418, "[1, 2]", "The scheduler answers 418 Reason: [1, 2]"),
    ],
)
def test_a_refusal_is_a_sentence(status: int, body: Any, sentence: str) -> None:
    assert told(Refusing(status, body)) == sentence


def test_a_service_that_is_not_there_is_told_apart_from_a_task_that_is_not() -> None:
    assert "There is no service tf" in told(Refusing(404, "404 Not Found: service not found"))
