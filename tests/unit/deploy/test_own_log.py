"""The scheduler's log: one line for each message, whatever a task has put into it."""

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dcos_tensorflow.core.model.actions import Revive
from dcos_tensorflow.deploy.own_log import JSON, log_to_file
from dcos_tensorflow.scheduler.loop.turn import TURN_ID, Turn
from samples.states import a_state
from samples.turns import a_turn

DOCUMENT = Path(__file__).parents[3] / "docs" / "logs.md"

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


def test_what_is_said_in_a_turn_carries_its_id(tmp_path: Path, in_turn: str) -> None:
    file = tmp_path / "log"
    with log_to_file(file, "INFO"):
        logging.getLogger("dcos_tensorflow.mesos").warning("ACCEPT failed")
    assert f" WARNING dcos_tensorflow.mesos [{in_turn}]: ACCEPT failed\n" in file.read_text()


def test_a_line_for_programs_is_an_object(tmp_path: Path, in_turn: str) -> None:
    file = tmp_path / "log"
    with log_to_file(file, "INFO", JSON):
        logging.getLogger("dcos_tensorflow.mesos").warning("failed: %s", SAID)
    (line,) = file.read_text().splitlines()
    said = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", said.pop("at"))
    assert said == {
        "level": "WARNING",
        "logger": "dcos_tensorflow.mesos",
        "message": f"failed: {SAID}",
        "turn": in_turn,
    }


def test_what_is_said_outside_of_a_turn_has_no_id(tmp_path: Path) -> None:
    file = tmp_path / "log"
    with log_to_file(file, "INFO", JSON):
        logging.getLogger("dcos_tensorflow.mesos").info("connected")
    assert "turn" not in json.loads(file.read_text())


def test_a_traceback_is_a_field_of_its_line(tmp_path: Path) -> None:
    file = tmp_path / "log"
    with log_to_file(file, "INFO", JSON):
        try:
            raise ValueError(SAID)
        except ValueError:
            logging.getLogger("dcos_tensorflow.x").exception("it broke")
    (line,) = file.read_text().splitlines()
    assert json.loads(line)["exception"].startswith("Traceback (most recent call last):\n")


def test_debugging_shows_what_came_of_a_decision(tmp_path: Path) -> None:
    file = tmp_path / "log"
    with log_to_file(file, "DEBUG"):
        said_of(a_turn(a_state(), Revive(("*",))))
    assert file.read_text().endswith("asking for offers (events: Tick; calls: Revive)\n")


def test_the_document_names_the_fields_of_a_decision(tmp_path: Path) -> None:
    file = tmp_path / "log"
    with log_to_file(file, "INFO", JSON):
        said_of(a_turn(a_state(), Revive(("*",))))
    (example,) = re.findall(r"```json\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    named = [name for name in json.loads(example) if name != "turn"]
    assert [*json.loads(file.read_text())] == named


def said_of(turn: Turn) -> None:
    logging.getLogger("dcos_tensorflow.x").info("asking for offers", extra={"turn": turn})


@pytest.fixture
def in_turn() -> Iterator[str]:
    """Say what is said in the test in a turn."""
    token = TURN_ID.set("5f0c2e-14")
    yield "5f0c2e-14"
    TURN_ID.reset(token)
