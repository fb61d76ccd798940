"""What a runner's report says of idle processes, whatever the report holds."""

import pytest

from dcos_tensorflow.core.model.report import idle_since, usage_of, waited_for

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


USED = {"cpu_percent": 7.5, "mem_bytes": 3, "gpus": [], "steps_per_second": None}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (USED, USED),
        (
            {**USED, "gpus": [{"utilisation": 7, "mem_bytes": 1}, {"utilisation": 1}, "x"]},
            {**USED, "gpus": [{"utilisation": 1.0, "mem_bytes": 1}]},
        ),
        ({**USED, "gpus": "x", "steps_per_second": True, "other": 1}, USED),
        ({**USED, "cpu_percent": float("nan")}, None),
        ({**USED, "mem_bytes": 10**400}, None),
        ({**USED, "mem_bytes": -1}, None),
        (None, None),
        ([], None),
    ],
)
def test_of_what_a_task_uses_that_is_taken_which_makes_sense(told, expected):
    assert usage_of(told) == expected
