"""Lines of many tasks: a name in front of each, a colour of its own, or an object of JSON."""

import json

from dcos_tensorflow.plugin.log_lines import LineFormat


def test_names_stand_in_front_and_lines_below_each_other() -> None:
    lines = LineFormat(["worker-0", "ps-0"])
    assert lines.line("ps-0", "x") == "ps-0     | x"
    assert lines.line("worker-0", "y") == "worker-0 | y"


def test_one_task_alone_is_shown_as_it_is() -> None:
    assert LineFormat(["worker-0"]).line("worker-0", "x") == "x"


def test_with_a_second_task_that_comes_later_names_stand_in_front() -> None:
    lines = LineFormat(["ps-0"])
    assert lines.line("worker-0", "x") == "worker-0 | x"
    assert lines.line("ps-0", "y") == "ps-0     | y"


def test_a_task_keeps_its_colour_and_its_neighbour_has_another() -> None:
    lines = LineFormat(["ps-0", "worker-0"], coloured=True)
    first = lines.line("ps-0", "x")
    assert first == lines.line("ps-0", "x") == "\x1b[36mps-0     | \x1b[0mx"
    assert lines.line("worker-0", "x").startswith("\x1b[33m")


def test_json_has_no_colour_and_tells_more() -> None:
    lines = LineFormat(["ps-0", "worker-0"], as_json=True, coloured=True)
    assert json.loads(lines.line("ps-0", 'say "é"', task_id="t1")) == {
        "task": "ps-0",
        "line": 'say "é"',
        "task_id": "t1",
    }
