"""Of a line that was written over and over, the last state of each bar is shown, and all else."""

import pytest

from dcos_tensorflow.plugin.log_lines import LineFormat, final_states


def keras(*states: str) -> str:
    """Return what the progress bar of Keras prints (``Progbar.update``)."""
    line, width = "", 0
    for state in states:
        line += "\b" * width + "\r" + f"\x1b[1m{state}\x1b[0m" + " " * max(0, width - len(state))
        width = len(state)
    return line


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("step 1, loss 0.5", ["step 1, loss 0.5"]),
        ("a line of Windows\r", ["a line of Windows"]),
        (keras(" 1/45 - loss: 2.3", "45/45 - 1s - loss: 0.5"), ["45/45 - 1s - loss: 0.5"]),
        (keras("      1/Unknown 2s", "      9/Unknown 2s"), ["      9/Unknown 2s"]),
        ("\r  5%|#    | 1/20 [00:01]\r100%|####| 20/20 [00:09]", ["100%|####| 20/20 [00:09]"]),
        ("\x1b[2K\rReading 10%\x1b[2K\rReading 90%", ["Reading 90%"]),
        ("step 1 loss 0.5\rstep 2 loss 0.4", ["step 2 loss 0.4"]),
        ("Working |\b/\b-", ["Working -"]),
        ("\r\b\r", [""]),
    ],
)
def test_the_last_state_of_a_bar_is_its_line(line: str, shown: list[str]) -> None:
    assert final_states(line) == shown


def test_two_bars_in_one_line_are_two_lines() -> None:
    line = keras(" 1/45 - loss: 2", "45/45 - loss: 1") + keras("1/9 - val: 2", "9/9 - val: 1")
    assert final_states(line) == ["45/45 - loss: 1", "9/9 - val: 1"]


def test_what_is_no_later_state_of_the_same_is_not_lost() -> None:
    assert final_states("loading the data\r 1/9 a\r 9/9 a\rsaved to /tmp/x") == [
        "loading the data",
        " 9/9 a",
        "saved to /tmp/x",
    ]
    assert final_states("WARNING: no GPU\rthe model has 5 layers") == [
        "WARNING: no GPU",
        "the model has 5 layers",
    ]


def test_no_control_is_left_to_be_shown() -> None:
    bar = keras(" 1/45 \x1b[32m\u2501\x1b[0m", "45/45 \x1b[32m\u2501\u2501\x1b[0m")
    assert [LineFormat(["a"]).line("a", line) for line in final_states(bar)] == [
        "45/45 \u2501\u2501"
    ]
