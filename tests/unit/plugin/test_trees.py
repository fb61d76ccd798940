"""Plans and pods are drawn as the DC/OS SDK's command line draws them."""

import json
from typing import Any

import pytest

from data_files import DCOS_CLI_RECORDINGS
from dcos_tensorflow.plugin.sdk_verbs import plan_lines, pod_lines, pods_lines, tree_lines

PLAN = {
    "strategy": "serial",
    "status": "IN_PROGRESS",
    "phases": [
        {
            "name": "worker",
            "strategy": "parallel",
            "status": "IN_PROGRESS",
            "steps": [
                {"name": "worker-0:[node]", "status": "COMPLETE", "message": "runs"},
                {"name": "worker-1:[node]", "status": "PENDING", "message": "needs 2 gpus"},
            ],
        }
    ],
    "errors": [],
}


def test_branches_go_on_until_their_last_child() -> None:
    tree = ("a", [("b", [("c", [])]), ("d", [("e", [])])])
    assert tree_lines(tree) == ["a", "├─ b", "│  └─ c", "└─ d", "   └─ e"]


def test_a_plan_shows_its_strategies_and_statuses() -> None:
    assert plan_lines("deploy", PLAN, reasons=False) == [
        "deploy (serial strategy) (IN_PROGRESS)",
        "└─ worker (parallel strategy) (IN_PROGRESS)",
        "   ├─ worker-0:[node] (COMPLETE)",
        "   └─ worker-1:[node] (PENDING)",
    ]


def test_with_reasons_what_is_not_complete_says_why() -> None:
    assert plan_lines("deploy", PLAN, reasons=True)[2:] == [
        "   ├─ worker-0:[node] (COMPLETE)",
        "   └─ worker-1:[node] (PENDING): needs 2 gpus",
    ]


def test_errors_are_listed_below() -> None:
    plan = {"strategy": "serial", "status": "ERROR", "errors": ["worker-1 failed"]}
    assert plan_lines("deploy", plan, reasons=False) == [
        "deploy (serial strategy) (ERROR)",
        "",
        "Errors:",
        "- worker-1 failed",
    ]


def test_what_is_missing_is_said_to_be_unknown() -> None:
    assert plan_lines("deploy", {}, reasons=False) == ["deploy (<UNKNOWN> strategy) (<UNKNOWN>)"]


def recorded(name: str) -> tuple[Any, str]:
    """Return what a scheduler answered last in a recording, and what was printed then."""
    exchanges = [json.loads(text) for text in (DCOS_CLI_RECORDINGS / name).read_text().splitlines()]
    bodies = [e["response"]["body"] for e in exchanges if "/v1/" in str(e.get("request"))]
    return bodies[-1], exchanges[-1]["stdout"]


class TestRecordedOutput:
    @pytest.mark.parametrize("which", ["deploy", "in-progress", "while-uninstalling"])
    def test_a_plan_is_printed_alike(self, which: str) -> None:
        body, printed = recorded(f"tensorflow-plan-status-{which}.jsonl")
        assert plan_lines("deploy", body, reasons=False) == printed.splitlines()

    def test_all_pods_are_printed_alike(self) -> None:
        body, printed = recorded("tensorflow-pod-status.jsonl")
        assert pods_lines(body) == printed.splitlines()

    def test_one_pod_is_printed_alike(self) -> None:
        body, printed = recorded("tensorflow-pod-status-one.jsonl")
        assert pod_lines(body) == printed.splitlines()
