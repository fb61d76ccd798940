"""The runner as one file, for any Python from 3.8 on."""

import ast
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from zipimport import zipimporter

import pytest

from dcos_tensorflow import job_code, records, task
from dcos_tensorflow.core import contract
from dcos_tensorflow.task import packed_main
from dcos_tensorflow.task.pack import build_zipapp
from dcos_tensorflow.task.python import reach

SOURCES = [
    *(
        path
        for room in (task, job_code)
        for path in sorted(Path(room.__file__).parent.glob("*.py"))
    ),
    Path(contract.__file__),
    Path(records.__file__),
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
        "__main__.pyc",
        "compiled.marshal",
        "dcos_tensorflow/__init__.py",
        "dcos_tensorflow/core/__init__.py",
        "dcos_tensorflow/core/contract.py",
        "dcos_tensorflow/records.py",
        "untrusted_input/__init__.py",
        "untrusted_input/archives.py",
        "untrusted_input/process_table.py",
        "untrusted_input/shield.py",
        "untrusted_input/trees.py",
    }


def test_what_packs_is_not_packed(tmp_path):
    with zipfile.ZipFile(build_zipapp(tmp_path / "runner.pyz")) as archive:
        assert not [name for name in archive.namelist() if re.search(r"/pack[._]", name)]


def test_the_guard_of_a_task_holds_nothing_of_its_runner(tmp_path):
    runner = build_zipapp(tmp_path / "runner.pyz")
    # All that is there when it is forked.
    code = (
        "from dcos_tensorflow.task import program\n"
        "from dcos_tensorflow.task.supervise import guard\n"
        "import sys; print(*sys.modules)"
    )
    ended = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(runner)},
        capture_output=True,
        text=True,
        check=True,
    )
    there = set(ended.stdout.split())
    ours = {name for name in there if re.match(r"(dcos_tensorflow\.task|untrusted_input)\.", name)}
    assert ours == {
        *(f"dcos_tensorflow.task.{name}" for name in ("program", "wrapper_protocol")),
        *(f"dcos_tensorflow.task.{name}" for name in ("supervise", "supervise.guard")),
        *(f"untrusted_input.{name}" for name in ("shield", "process_table")),
    }
    # The largest of the standard library's that the runner needs.
    assert not there & {"dataclasses", "subprocess", "json", "shutil", "http"}


def test_this_python_compiles_nothing_of_it_and_another_one_all(tmp_path):
    runner = build_zipapp(tmp_path / "runner.pyz")
    of_another = tmp_path / "other.pyz"
    with zipfile.ZipFile(runner) as ours, zipfile.ZipFile(of_another, "w") as theirs:
        for name in ours.namelist():
            content = ours.read(name)
            is_compiled = name.endswith((".marshal", ".pyc"))
            theirs.writestr(name, b"????" + content[4:] if is_compiled else content)
    for archive, compiles in ((runner, False), (of_another, True)):
        told = subprocess.run(
            [sys.executable, "-S", "-c", _COMPILED],
            env={"PYTHONPATH": str(archive)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert ("main.py" in told.stdout) is compiles


#: Names what is compiled while the runner is imported, as the archive's own program does it.
_COMPILED = """
import os, runpy, sys, zipimport
sys.addaudithook(lambda event, arguments: event == "compile" and print(arguments[1]))
archive = os.environ["PYTHONPATH"]
program = runpy.run_path(archive, run_name="packed")
program["take_what_is_compiled"](zipimport.zipimporter(archive))
from dcos_tensorflow.task import main
from dcos_tensorflow.task.report import server
"""


def test_it_runs_by_what_is_compiled_and_by_its_sources(tmp_path):
    runner = build_zipapp(tmp_path / "runner.pyz")
    sources = tmp_path / "sources.pyz"
    with zipfile.ZipFile(runner) as ours, zipfile.ZipFile(sources, "w") as theirs:
        for name in ours.namelist():
            theirs.writestr(name, b"????" if name == "compiled.marshal" else ours.read(name))
    for archive in (runner, sources):
        ended = subprocess.run(
            [sys.executable, archive, "x"], capture_output=True, text=True, check=False
        )
        assert ended.stderr == "task-runner takes no arguments: it reads its environment\n"


def test_who_asks_finds_the_source_of_what_is_compiled(tmp_path):
    path = str(build_zipapp(tmp_path / "runner.pyz"))
    archive = zipimporter(path)
    there = packed_main.Compiled(archive, {"dcos_tensorflow.task.python.reach": (False, b"")})
    assert there.get_source("dcos_tensorflow.task.python.reach") == Path(reach.__file__).read_text()


def test_what_it_is_compiled_to_does_not_tell_where_it_was_packed(tmp_path):
    content = build_zipapp(tmp_path / "runner.pyz")
    with zipfile.ZipFile(content) as archive:
        compiled = [archive.read(name) for name in ("compiled.marshal", "__main__.pyc")]
    home = str(Path(task.__file__).parents[2]).encode()
    assert not [one for one in compiled if home in one]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_every_source_is_python_3_8(source):
    ast.parse(source.read_text(), feature_version=(3, 8))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_annotations_are_never_evaluated_where_an_older_python_would_fail(source):
    if source.name in ("__init__.py", "__main__.py", "contract.py"):
        return
    assert "from __future__ import annotations" in source.read_text()
