"""A file that the code names and its tasks would not find is told before the start."""

import sys

import pytest

from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.deploy.job.preparation import prepare
from dcos_tensorflow.options import load


@pytest.fixture
def notes(tmp_path):
    """Return a function that gives the notes of a job with some code, in the folder mnist/job."""
    base = tmp_path / "mnist"
    for folder in ("job/lib", "job/inside", "beside", "beside/deep"):
        (base / folder).mkdir(parents=True)
    for file in ("job/inside/x.csv", "job/lib/y.csv", "beside/z.csv", "job/w.csv"):
        (base / file).write_text("1")
    directory = WorkDirectory(tmp_path / "work").service("job")

    def told(code, *, local=True, data=(), file="train.py"):
        (base / "job" / file).write_text(code)
        job = {"job_url": "job", "job_name": file[:-3].replace("/", "."), "python": sys.executable}
        service = {"name": "job", **job}
        options = load({"service": service, "parameter_server": {"count": 0}, "data": list(data)})
        options._base_directory = base
        return [
            note for note in prepare(options, directory, {}, local=local).notes if " names " in note
        ]

    return told


@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize(
    "code",
    [
        "open('w.csv')",
        "open('inside/x.csv')",
        "open('./inside/x.csv')",
        "glob('inside/*.csv')",
        "open('nowhere/else.csv'); open('/nowhere/at/all')",
        "open('/usr/bin/env'); open('/tmp'); open('/')",
        "print('a text / about nothing.'); print('step 1/2')",
        "'''beside/z.csv'''",
    ],
)
def test_paths_that_tasks_find_or_that_do_not_exist_are_not_told(notes, code, local):
    assert notes(code, local=local) == []


def test_what_lies_beside_the_jobs_folder_is_told_with_the_option_that_brings_it(notes):
    (note,) = notes("import csv\nopen('../beside/z.csv')")
    assert note.startswith("train.py:2 names ../beside/z.csv, which no task finds")
    assert '"data": [{"uri": "beside", "path": "beside"}] brings it' in note


@pytest.mark.parametrize(
    "code", ["open('beside/z.csv')", "glob('../beside/*.csv')", "f'beside/deep/{number}.csv'"]
)
def test_so_it_is_however_it_is_named(notes, code):
    assert len(notes(code)) == 1


def test_what_data_brings_is_not_told(notes):
    assert notes("open('beside/z.csv')", data=[{"uri": "beside", "path": "beside"}]) == []


def test_what_lies_beside_a_script_in_a_folder_of_the_job_is_told_where_it_is(notes):
    (note,) = notes("open('y.csv')", file="lib/train.py")
    assert "lib/train.py:1 names y.csv" in note
    assert note.endswith("where it is lib/y.csv.")


def test_a_path_of_this_machine_alone_is_told_where_tasks_run_elsewhere(
    notes, tmp_path, monkeypatch
):
    monkeypatch.setattr("dcos_tensorflow.deploy.job.unseen_paths._SYSTEM", ())
    path = tmp_path / "mnist" / "beside"
    code = f"open('{path}/z.csv')"
    assert notes(code) == []
    (note,) = notes(code, local=False)
    assert "is on this machine: where a task runs it may not be" in note
    shared = [{"uri": str(path), "path": "beside"}]
    assert notes(code, local=False, data=shared) == []
