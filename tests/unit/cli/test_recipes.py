"""What the recipes among the documents tell to type and to write is valid, and means what they say.

That it trains, ``make soak`` shows (``test_newcomer``).
"""

import json
import shlex
from pathlib import Path

import pytest

from dcos_tensorflow.cli.main import run_command_line
from document_commands import blocks, commands

ROOT = Path(__file__).resolve().parents[3]
PAGES = ("tutorial", "keras", "strategies", "gpus")
#: A flag of ``run`` that says how it is run, and not what.
HOW = " --detach"


def texts(language: str) -> list[tuple[str, str]]:
    return [
        (f"{page}: {title}", text)
        for page in PAGES
        for title, text in blocks(ROOT / "docs" / f"{page}.md", language).items()
    ]


def runs() -> list[object]:
    found = [
        (title, command.replace("\\\n", " "))
        for title, block in texts("sh")
        for command in commands(block)
        if command.startswith("dcos-tensorflow run ")
    ]
    return [pytest.param(command, id=f"{title}-{n}") for n, (title, command) in enumerate(found)]


def test_there_are_recipes() -> None:
    assert len(runs()) >= 6
    assert len(texts("json")) >= 3


@pytest.mark.parametrize("command", runs())
def test_a_run_of_a_recipe_is_valid(command, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    _, _, *words = shlex.split(command.replace(HOW, ""))
    code = run_command_line(["validate", *words])
    assert code == 0, capsys.readouterr().out


@pytest.mark.parametrize("text", [pytest.param(text, id=title) for title, text in texts("json")])
def test_the_options_of_a_recipe_are_valid(text, tmp_path, monkeypatch, capsys):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "train.py").write_text((ROOT / "examples" / "keras" / "train.py").read_text())
    file = tmp_path / "options.json"
    file.write_text(json.dumps(json.loads(text)))
    code = run_command_line(["validate", str(file)])
    assert code == 0, capsys.readouterr().out
