"""What a runner's report says of idle processes, whatever the report holds."""

import pytest

from dcos_tensorflow.core.model.report import idle_since, waited_for

ADDRESS = "10.0.0.1:31000"


def test_a_process_that_runs_may_be_idle_since_a_time():
    assert idle_since({"state": "running", "idle_since": 1_800_000_000}) == 1_800_000_000.0


@pytest.mark.parametrize("state", ["held", "waiting", "failed", None])
def test_what_does_not_run_is_not_idle(state):
    assert idle_since({"state": state, "idle_since": 5.0}) is None


@pytest.mark.parametrize("since", [None, "5", [], -1, 10**400, float("nan"), float("inf")])
def test_what_is_no_time_is_none(since):
    assert idle_since({"state": "running", "idle_since": since}) is None


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        ({"state": "waiting", "waiting_for": [ADDRESS]}, (ADDRESS,)),
        ({"state": "running", "waiting_for": [ADDRESS]}, ()),
        ({"state": "waiting", "waiting_for": "x"}, ()),
        ({"state": "waiting"}, ()),
    ],
)
def test_who_waits_says_for_whom(report, expected):
    assert waited_for(report) == expected
