"""What docs/python.md tells its reader to write works as it stands there, section by section."""

import subprocess
import sys
from pathlib import Path

import pytest

from command_line import CommandLine
from document_commands import blocks

PAGE = Path(__file__).parents[3] / "docs" / "python.md"
CODE = "What the code finds"
BATCH = "A batch"


#: Of the batch when it has ended.
PROGRESS = {
    **{"total": 10, "waiting": 0, "running": 0, "succeeded": 10, "failed": 0},
    "seconds_left": None,
}


@pytest.mark.timeout(600)
def test_the_page_can_be_typed(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "1.png").touch()
    # That of the tasks, to be found as a TensorFlow is.
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    packages = tmp_path / ".venv" / "lib" / "python3.11" / "site-packages" / "tensorflow"
    packages.mkdir(parents=True)
    (packages / "__init__.py").touch()
    sections = blocks(PAGE, "python")
    (tmp_path / "train.py").write_text(sections.pop(CODE))
    (tmp_path / "classify.py").write_text(blocks(PAGE, "py")[BATCH])
    command_line = CommandLine(tmp_path / "home")

    def typed(title: str) -> str:
        (tmp_path / "typed.py").write_text(sections.pop(title))
        ended = subprocess.run(
            [sys.executable, "typed.py"],
            cwd=tmp_path,
            env=command_line.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    try:
        first = typed("A first training")
        output = tmp_path / "home" / "services" / "train" / "output" / "1" / "worker-0"
        assert f"succeeded {{'images': 1}} {output}" in first
        assert "val_accuracy" in first
        assert (output / "model.txt").read_text() == "0.1"
        assert f"<job train: succeeded> {output}" in typed("The job")
        assert typed(BATCH).endswith(f"{PROGRESS} []\n100\n")
        searched = typed("A sweep")
        assert "6 of 6 trials have succeeded" in searched
        assert "{'images': 0}" in searched
        wrong = typed("Errors")
        assert "failed worker-0 failed" in wrong
        assert "did you mean worker.cpus?" in wrong
        assert not sections
    finally:
        assert command_line.ask("local", "down").code == 0
