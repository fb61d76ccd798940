"""``dcos_tensorflow.report`` as a job's own code has it."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import dcos_tensorflow
from dcos_tensorflow import report
from dcos_tensorflow.core import contract
from dcos_tensorflow.task.output import reporting
from dcos_tensorflow.task.output.progress import Progress, read_record
from dcos_tensorflow.task.pack import build_zipapp
from dcos_tensorflow.task.python import reach

ROOT = Path(dcos_tensorflow.__file__).parents[1]


class Tensor:
    def __init__(self, value: float) -> None:
        self.value = value

    def __float__(self) -> float:
        return self.value

    def __int__(self) -> int:
        return int(self.value)


@pytest.fixture
def told(tmp_path, monkeypatch):
    file = tmp_path / "progress.jsonl"
    monkeypatch.setenv(reporting.VARIABLE, str(file))
    return lambda: [json.loads(line) for line in file.read_text().splitlines()]


def test_the_package_knows_its_names_before_they_are_asked_for():
    assert set(dcos_tensorflow.__all__) < set(dir(dcos_tensorflow))
    with pytest.raises(AttributeError, match="has no attribute 'Estimator'"):
        _ = dcos_tensorflow.Estimator


def test_its_variable_is_that_of_the_contract():
    assert reporting.VARIABLE == contract.PROGRESS_FILE


def test_each_call_is_a_record(told):
    report(1, loss=0.5)
    report(step=2, loss=Tensor(0.25), epoch=1, best=True)
    report(Tensor(3.0))
    assert told() == [
        {"step": 1, "loss": 0.5},
        {"step": 2, "loss": 0.25, "epoch": 1, "best": 1.0},
        {"step": 3},
    ]


def test_the_runner_reads_what_is_told(told):
    report(7, loss=0.5, val_auc=0.75, broken=float("inf"))
    progress = read_record(Progress(), json.dumps(told()[0]), 1.0)
    assert (progress.step, progress.loss, progress.metrics) == (
        7,
        0.5,
        {"val_auc": 0.75, "broken": float("inf")},
    )


@pytest.mark.parametrize("value", ["0.5", None, [1], {}])
def test_what_is_no_number_is_refused_by_its_name(told, value):
    with pytest.raises(TypeError, match="report: loss must be a number"):
        report(1, loss=value)


def test_outside_of_a_task_it_prints_a_line(monkeypatch, capsys):
    monkeypatch.delenv(reporting.VARIABLE, raising=False)
    report(300, loss=0.21, val_auc=Tensor(0.5))
    assert capsys.readouterr().out == "step 300, loss 0.21, val_auc 0.5\n"


def test_a_file_that_cannot_be_written_ends_no_training(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(reporting.VARIABLE, str(tmp_path / "no" / "file"))
    report(1, loss=0.5)
    assert "cannot be written" in capsys.readouterr().err


def python_in(sandbox: Path, code: str, *before: str, python: str = sys.executable) -> str:
    """Return what a Python of a task prints."""
    path = os.pathsep.join([*before, reach.folder(str(sandbox))])
    ended = subprocess.run(
        [python, "-c", code],
        env={"PATH": os.defpath, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory):
    """A Python without this project, as that of a TensorFlow is."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    return str(folder / "bin" / "python")


def test_any_python_of_a_task_finds_report_and_nothing_else(tmp_path, bare_python):
    reach.put(str(tmp_path))
    code = (
        "import dcos_tensorflow as d; d.report(1); print(d.__file__);"
        "print(hasattr(d, 'TensorFlow'), hasattr(d, 'cli'))"
    )
    found = python_in(tmp_path, code, python=bare_python).splitlines()
    assert found == [
        "step 1",
        f"{reach.folder(str(tmp_path))}/dcos_tensorflow/__init__.py",
        "False False",
    ]


def test_the_whole_package_is_taken_where_it_is_installed(tmp_path, bare_python):
    reach.put(str(tmp_path))
    # What is installed is found behind PYTHONPATH.
    code = (
        f"import sys; sys.path.append({str(ROOT)!r});"
        "from dcos_tensorflow import CliError, __version__, report; report(1); print(__version__)"
    )
    found = python_in(tmp_path, code, python=bare_python)
    assert found == f"step 1\n{dcos_tensorflow.__version__}"


def test_what_the_job_brings_under_the_name_goes_first(tmp_path, bare_python):
    reach.put(str(tmp_path))
    job = tmp_path / "job" / "dcos_tensorflow"
    job.mkdir(parents=True)
    (job / "__init__.py").write_text("mine = 1\n")
    code = "import dcos_tensorflow; print(dcos_tensorflow.mine)"
    assert python_in(tmp_path, code, str(job.parent), python=bare_python) == "1"


def test_code_that_our_wrapper_runs_finds_it_in_the_runner(tmp_path, bare_python):
    runner = build_zipapp(tmp_path / "runner.pyz")
    code = "from dcos_tensorflow import report; report(2)"
    assert python_in(tmp_path, code, str(runner), python=bare_python) == "step 2"
