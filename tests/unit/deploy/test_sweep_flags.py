"""``--sweep``, ``--trials`` and ``--metric``: the search that they ask for, and what is refused."""

import sys
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.cli.main import run_command_line
from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.deploy.job.sweep_flags import goal_of, sweep_of


@pytest.mark.parametrize(
    ("text", "parameter"),
    [
        ("lr=log:1e-4:1e-1", {"log_uniform": [1e-4, 1e-1]}),
        ("units=int:16:256", {"int": [16, 256]}),
        ("units=log_int:8:512", {"log_int": [8, 512]}),
        ("rate=uniform:-.5:0.5", {"uniform": [-0.5, 0.5]}),
        ("rate=quantised:0.1:0.5:0.1", {"quantised": [0.1, 0.5, 0.1]}),
        ("optimizer=adam,sgd", ["adam", "sgd"]),
        ("layers=1,2,1e-3,true,null,many", [1, 2, 0.001, True, None, "many"]),
        ("layers=[[64, 32], [128]]", [[64, 32], [128]]),
        ('lr={"log_uniform": [0.1, 1]}', {"log_uniform": [0.1, 1]}),
        ("data=s3://a,s3://b", ["s3://a", "s3://b"]),
        ("worker.count=1,2", [1, 2]),
    ],
)
def test_a_flag_says_what_an_options_file_would(text: str, parameter: Any) -> None:
    section = sweep_of([text], 20, "acc")
    assert section == {
        "parameters": {text.partition("=")[0]: parameter},
        "objective": {"metric": "acc", "goal": "maximize"},
        "max_trials": 20,
    }


@pytest.mark.parametrize(
    ("texts", "metric", "told"),
    [
        (["lr"], "acc", "--sweep lr is none: it is NAME=VALUE,VALUE,..."),
        (["lr=1,2", "lr=3"], "acc", "--sweep lr=... is given more than once"),
        (["lr=0.1:0.5"], "acc", "--sweep lr=0.1:0.5 needs a kind in front: uniform:0.1:0.5"),
        (["lr=[1, 2"], "acc", "begins as JSON, and is none"),
        (["lr=1,2"], None, "--sweep needs --metric NAME"),
        ([], "acc", "--metric is for a search"),
    ],
)
def test_what_is_no_search_is_refused_with_what_to_type(
    texts: list[str], metric: str | None, told: str
) -> None:
    with pytest.raises(UsageError) as refused:
        sweep_of(texts, None, metric)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    "metric", ["loss", "val_loss", "epoch_logloss", "mean_squared_error", "val_MAE", "rmse", "WER"]
)
def test_of_losses_and_errors_the_least_is_the_best(metric: str) -> None:
    assert goal_of(metric) == "minimize"


@pytest.mark.parametrize("metric", ["accuracy", "val_auc", "f1", "errand", "score", "mean_iou"])
def test_of_all_else_the_most(metric: str) -> None:
    assert goal_of(metric) == "maximize"


@pytest.fixture
def validate(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    def call(code: str, *words: str) -> tuple[int, str]:
        script = tmp_path / "job" / "train.py"
        script.parent.mkdir(exist_ok=True)
        script.write_text(code)
        python = f"service.python={sys.executable}"
        flags = ("--set", python, "--work-dir", str(tmp_path / "home"))
        ended = run_command_line(["validate", str(script), *flags, *words])
        captured = capsys.readouterr()
        return ended, captured.out + captured.err

    return call


SEARCH = ("--sweep", "lr=log:1e-4:1e-1", "--metric", "val_loss")


def test_the_direction_that_a_metrics_name_means_is_told(validate) -> None:
    code, told = validate("import os\nprint(os.environ['PARAM_LR'])\n", *SEARCH)
    assert code == 0, told
    assert "The least val_loss is the best: --set sweep.objective.goal=maximize" in told


@pytest.mark.parametrize(
    "source",
    [
        "import argparse\nargparse.ArgumentParser().add_argument('--lr')\n",
        "from absl import flags\nflags.DEFINE_float('lr', 0.1, '')\n",
        "import click\n@click.command()\n@click.option('--lr')\ndef main(lr): ...\n",
        "import typer\ndef main(lr: float = 0.1): ...\ntyper.run(main)\n",
        "import fire\ndef main(lr): ...\nfire.Fire(main)\n",
    ],
)
def test_parameters_are_arguments_of_a_script_that_parses_them(validate, source: str) -> None:
    code, told = validate(source, *SEARCH)
    assert code == 0, told
    assert "lr goes to train.py as --lr" in told


def test_a_script_that_reads_a_parameter_in_no_way_is_refused_with_the_ways(validate) -> None:
    code, told = validate("print('val_loss 0.5')\n", *SEARCH)
    assert code == 2
    assert "train.py does not read lr of the sweep: neither JOB_CONTEXT nor PARAM_LR" in told
    assert '"{lr}" in service.job_args or behind -- of a script; or parse --lr in the code' in told


def test_a_parameter_that_an_argument_names_is_read(validate) -> None:
    code, told = validate("print('val_loss 0.5')\n", *SEARCH, "--", "--rate", "{lr}")
    assert code == 0, told


def test_of_code_that_cannot_be_read_it_is_told_and_not_refused(validate) -> None:
    code, told = validate("import something\nsomething.train()\n", *SEARCH)
    assert code == 0, told
    assert "train.py is not seen to read lr" in told
    assert "Not all of it can be read: train.py:1 imports something" in told


def test_init_writes_the_search_into_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("import argparse\nargparse.ArgumentParser().add_argument('--lr')\n")
    assert run_command_line(["init", "-o", "-", *SEARCH]) == 0
    assert '"log_uniform"' in capsys.readouterr().out
