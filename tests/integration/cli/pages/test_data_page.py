"""What docs/data.md tells its reader to write works as it stands there."""

import json
import sys
from pathlib import Path

from document_commands import blocks

PAGE = Path(__file__).parents[4] / "docs" / "data.md"
RECIPE = "A folder beside your code"
NOTES = "Paths in the code that tasks do not find"


def written(folder: Path) -> Path:
    """Write the files of the recipe and return that of the options."""
    for name in ("code/train.py", "pictures/daisy/1.txt", "pictures/rose/1.txt", "labels.csv"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("daisy\nrose\n")
    (folder / "code" / "train.py").write_text(blocks(PAGE, "python")[RECIPE])
    (folder / "options.json").write_text(blocks(PAGE, "json")[RECIPE])
    return folder / "options.json"


def small(*settings: str) -> list[str]:
    """Return what lets a job of no TensorFlow run on any machine."""
    sizes = ("worker.cpus=0.1", "worker.mem=64", "worker.disk=10")
    every = (*sizes, f"service.python={sys.executable}", "service.strategy=independent", *settings)
    return [word for setting in every for word in ("--set", setting)]


def test_the_recipe_finds_its_pictures_and_its_table(command_line, tmp_path):
    options = written(tmp_path)
    ended = command_line.ask("run", options, *small(), "--yes", "--json")
    assert ended.code == 0, ended.out
    document = json.loads(ended.out[ended.out.index("{\n") :])
    assert document["result"] == {"files": 2, "mine": 1, "labels": ["daisy", "rose"]}


def test_the_note_is_what_a_person_reads(command_line, tmp_path):
    options = written(tmp_path)
    (tmp_path / "code" / "train.py").write_text("\n\nopen('../pictures/daisy')\n")
    ended = command_line.ask("validate", options, *small("data=[]"))
    told = " ".join(blocks(PAGE, "")[NOTES].split())
    assert told in ended.out
