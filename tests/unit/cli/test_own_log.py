"""The scheduler's log: one line for each message, whatever a task has put into it."""

from __future__ import annotations

import logging
from pathlib import Path

from dcos_tensorflow.cli.serving.own_log import log_to_file

SAID = "\x1b[2J\r\n2026-11-22T00:00:00Z ERROR forged"


def test_what_a_task_says_stays_in_its_line_and_orders_no_terminal(tmp_path: Path) -> None:
    file = tmp_path / "log"
    with log_to_file(file, "INFO"):
        logging.getLogger("dcos_tensorflow.x").info("worker-0 is failed: %s", SAID)
    (line,) = file.read_text().splitlines()
    assert line.endswith(r"worker-0 is failed: \x1b[2J\r\n2026-11-22T00:00:00Z ERROR forged")


def test_a_traceback_keeps_its_lines(tmp_path: Path) -> None:
    file = tmp_path / "log"
    with log_to_file(file, "INFO"):
        try:
            raise ValueError(SAID)
        except ValueError:
            logging.getLogger("dcos_tensorflow.x").exception("it broke")
    text = file.read_text()
    assert "it broke\nTraceback (most recent call last):\n" in text
    assert "\x1b" not in text
