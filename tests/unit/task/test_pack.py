"""The runner as one file, for any Python from 3.8 on."""

import ast
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dcos_tensorflow import job_code, task
from dcos_tensorflow.core import contract
from dcos_tensorflow.task.pack import build_zipapp

SOURCES = [
    *(
        path
        for room in (task, job_code)
        for path in sorted(Path(room.__file__).parent.glob("*.py"))
    ),
    Path(contract.__file__),
]


def test_the_same_sources_give_the_same_bytes(tmp_path):
    one, two = build_zipapp(tmp_path / "one.pyz"), build_zipapp(tmp_path / "a" / "two.pyz")
    assert one.read_bytes() == two.read_bytes()


def test_it_holds_what_runs_and_reads_the_job_and_the_shared_constants_alone(tmp_path):
    with zipfile.ZipFile(build_zipapp(tmp_path / "runner.pyz")) as archive:
        rooms = ("dcos_tensorflow/task/", "dcos_tensorflow/job_code/")
        names = {name for name in archive.namelist() if not name.startswith(rooms)}
    assert names == {
        "__main__.py",
        "dcos_tensorflow/__init__.py",
        "dcos_tensorflow/core/__init__.py",
        "dcos_tensorflow/core/contract.py",
    }


def test_what_packs_is_not_packed(tmp_path):
    with zipfile.ZipFile(build_zipapp(tmp_path / "runner.pyz")) as archive:
        assert not [name for name in archive.namelist() if re.search(r"/pack[._]", name)]


def test_the_guard_of_a_task_imports_nothing_of_its_runner(tmp_path):
    runner = build_zipapp(tmp_path / "runner.pyz")
    ended = subprocess.run(
        [sys.executable, "-S", "-X", "importtime", runner, "--guard", "NO_SUCH_MARK=1"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    imported = set(re.findall(r"\|\s+(\S+)$", ended.stderr, re.MULTILINE))
    ours = {name for name in imported if name.startswith("dcos_tensorflow.task.")}
    assert ours == {
        f"dcos_tensorflow.task.{name}" for name in ("program", "guard", "process_table")
    }
    # The largest of the standard library's that the runner needs.
    assert not imported & {"dataclasses", "subprocess", "json", "shutil", "http"}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_every_source_is_python_3_8(source):
    ast.parse(source.read_text(), feature_version=(3, 8))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_annotations_are_never_evaluated_where_an_older_python_would_fail(source):
    if source.name in ("__init__.py", "__main__.py", "contract.py"):
        return
    assert "from __future__ import annotations" in source.read_text()
