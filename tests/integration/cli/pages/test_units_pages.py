"""What docs/sweeps.md and docs/batch.md tell their reader to type works as it stands there.

The examples that the pages name train with TensorFlow (tests/end_to_end); here small programs take
their places.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from command_line import ROOT, CommandLine, write_options
from document_commands import commands

pytestmark = pytest.mark.timeout(600)

TRIAL = """
import os
rate, layers = float(os.environ["PARAM_LEARNING_RATE"]), int(os.environ["PARAM_LAYERS"])
assert os.environ["PARAM_UNITS"]
for step in range(1, 5):
    print(f"step {step} val_accuracy {1 - rate - 0.1 / layers / step}")
"""
#: A script that knows of no sweep.
SCRIPT = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--units", type=int)
parser.add_argument("--optimizer")
given = parser.parse_args()
print(f"step 1 val_accuracy {1 - given.lr - given.units / 1000}")
"""
SHARD = """
import os
with open(os.environ["SHARD_OUTPUT"], "w") as output:
    output.write(os.environ["SHARD_BEGIN"])
"""


class Page:
    """A page of the documentation, and a folder to type its commands in."""

    def __init__(self, name: str, folder: Path) -> None:
        self._text = (ROOT / "docs" / f"{name}.md").read_text()
        self._folder = folder
        self._environment = CommandLine(folder / "home").environment

    @property
    def section(self) -> dict[str, dict[str, object]]:
        """Return the section of options that the page shows."""
        (found,) = re.findall(r"^```json\n(.*?)^```$", self._text, re.MULTILINE | re.DOTALL)
        return dict(json.loads(f"{{{found}}}"))

    def write(self, name: str, code: str, **sections: object) -> None:
        """Write an options file, the program beside it, and data that may be named."""
        job = self._folder / name
        job.mkdir()
        (job / "program.py").write_text(code)
        service = {"name": name, "job_url": ".", "job_name": "program"}
        write_options(job, service=service, **sections)

    def typed(self, places: dict[str, str]) -> dict[str, str]:
        """Type all commands of the page; return what each has printed.

        ``places`` are what stands in the page, and what of this test is meant by it.
        """
        said = {}
        blocks = re.findall(r"^```sh\n(.*?)^```$", self._text, re.MULTILINE | re.DOTALL)
        program = f"{shlex.quote(sys.executable)} -m dcos_tensorflow"
        for command in (each for block in blocks for each in commands(block)):
            line = re.sub(r"^dcos-tensorflow\b", program, command)
            for there, here in places.items():
                line = line.replace(there, here)
            ended = subprocess.run(
                ["bash", "-c", line],
                cwd=self._folder,
                env=self._environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert ended.returncode == 0, (line, ended.stdout, ended.stderr)
            said[" ".join(command.split("#")[0].split())] = ended.stdout
        return said


def test_what_the_page_of_sweeps_says_can_be_typed(tmp_path: Path) -> None:
    page = Page("sweeps", tmp_path)
    section = page.section["sweep"] | {"max_trials": 5}
    page.write("digits-sweep", TRIAL, sweep=section)
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "train.py").write_text(SCRIPT)
    small = f"--trials 3 --set service.python={sys.executable} --set worker.disk=10"
    places = {
        **{"examples/sweep": "digits-sweep", "NAME": "digits-sweep", "trials=100": "trials=7"},
        **{"run train.py": "run search/train.py", "--trials 20": small},
    }
    said = page.typed(places)
    (searched,) = [text for command, text in said.items() if "--sweep" in command]
    assert "3 of 3 trials have succeeded" in searched
    assert "best " in searched
    assert said["dcos-tensorflow sweep digits-sweep"].startswith("5 trials: ")
    named = said["dcos-tensorflow sweep best NAME"].split()[::2]
    assert sorted(named) == ["layers", "learning_rate", "units"]
    assert "digits-sweep-best has succeeded" in said["dcos-tensorflow sweep best NAME --run"]
    more = "dcos-tensorflow run examples/sweep/options.json --resume --set sweep.max_trials=100"
    assert "7 of 7 trials have succeeded" in said[more]
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 1 + 5
    assert ElementTree.parse(tmp_path / "sweep.svg").getroot().tag.endswith("svg")
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")


def test_what_the_page_of_batches_says_can_be_typed(tmp_path: Path) -> None:
    page = Page("batch", tmp_path)
    output = tmp_path / "out" / os.path.basename(str(page.section["batch"]["output"]))
    inputs = {"range": [0, 30, 10]}
    section = page.section["batch"] | {"inputs": inputs, "output": str(output), "resume": True}
    page.write("mnist-batch", SHARD, batch=section)
    page.write("mnist-model", "")
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "images").touch()
    said = page.typed(
        {
            "examples/batch/learn.json": "mnist-model/options.json",
            "examples/batch/options.json": "mnist-batch/options.json",
            "run options.json": "run mnist-batch/options.json",
            "/data/mnist": str(tmp_path / "mnist"),
            "NAME": "mnist-batch",
        }
    )
    assert said["dcos-tensorflow batch NAME"].startswith("3 shards: 3 done (100 %)")
    assert [file.name for file in sorted(output.parent.glob("[!.]*"))] == [
        output.name.format(index=index) for index in range(3)
    ]
