"""``run train.py``: the options that a script and a few flags stand for, and what is refused."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.cli.main import run_command_line
from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.deploy.job.script_job import (
    ScriptFlags,
    given_options,
    only_script,
    options_of,
    read_script,
    service_name,
)
from dcos_tensorflow.options import service_spec

PLAIN = "print('trains')\n"
MULTI_WORKER = "import tensorflow as tf\nstrategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
SERVERS = "import tensorflow as tf\nstrategy = tf.distribute.ParameterServerStrategy(None)\n"
BOTH = SERVERS + MULTI_WORKER


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "mnist" / "train.py"
    path.parent.mkdir()
    path.write_text(PLAIN)
    return path


def source_of(path: Path, **flags: Any) -> dict[str, Any]:
    source = given_options(path, ScriptFlags(**flags)).source
    assert isinstance(source, dict)
    return source


def tasks_of(path: Path, code: str, **flags: Any) -> tuple[str, ...]:
    path.write_text(code)
    return service_spec(given_options(path, ScriptFlags(**flags)).load()).task_names()


def refusal(path: Path, **flags: Any) -> str:
    with pytest.raises(UsageError) as refused:
        given_options(path, ScriptFlags(**flags))
    return str(refused.value)


def test_a_script_is_run_from_its_folder_under_its_own_name(script: Path) -> None:
    assert source_of(script) == {
        "service": {"name": "train", "job_url": str(script.parent), "job_name": "train"},
        "worker": {"count": 1},
    }


def test_a_script_below_the_folder_of_its_code_is_a_module_of_that(script: Path) -> None:
    options, _ = options_of(read_script(script, script.parent.parent), ScriptFlags())
    assert options["service"]["job_url"] == str(script.parent.parent)
    assert options["service"]["job_name"] == "mnist.train"
    with pytest.raises(UsageError, match="does not lie in /usr"):
        read_script(script, Path("/usr"))


def test_a_script_finds_its_arguments_as_they_were_typed(script: Path) -> None:
    words = ("--epochs", "3", "two words", "a'b\"c", "")
    options = given_options(script, ScriptFlags(arguments=words)).load()
    assert service_spec(options).job.arguments == words


def test_flags_beside_a_script_say_what_options_would(script: Path) -> None:
    found = source_of(script, name="mnist", tensorflow="2.15.1", workers=2, ps=1)
    assert found["service"]["name"] == "mnist"
    assert found["service"]["tensorflow_version"] == "2.15.1"
    assert (found["worker"], found["parameter_server"]) == ({"count": 2}, {"count": 1})


def test_single_options_win_over_the_flags(script: Path) -> None:
    given = given_options(script, ScriptFlags(workers=2), ("worker.count=4",))
    assert given.load().worker.count == 4


@pytest.mark.parametrize(
    ("code", "flags", "tasks"),
    [
        (PLAIN, {}, ("worker-0",)),
        (PLAIN, {"gpus": 2}, ("gpu-worker-0",)),
        (MULTI_WORKER, {"workers": 2}, ("worker-0", "worker-1")),
        (SERVERS, {"ps": 1}, ("ps-0", "chief-0", "worker-0")),
        (SERVERS, {"ps": 1, "gpus": 1}, ("ps-0", "chief-0", "gpu-worker-0")),
        (BOTH, {}, ("worker-0",)),
        (BOTH, {"ps": 1, "workers": 2}, ("ps-0", "chief-0", "worker-0", "worker-1")),
    ],
)
def test_tasks_are_those_that_were_asked_for_and_a_chief_where_the_strategy_needs_one(
    script: Path, code: str, flags: dict[str, Any], tasks: tuple[str, ...]
) -> None:
    assert tasks_of(script, code, **flags) == tasks


def test_a_chief_that_comes_is_told_with_the_reason(script: Path) -> None:
    script.write_text(SERVERS)
    (note,) = given_options(script, ScriptFlags(ps=1)).notes
    assert note == "train.py:2 names ParameterServerStrategy, which needs a chief: one comes."


def test_a_strategy_without_its_servers_is_refused_with_what_to_say(script: Path) -> None:
    script.write_text(SERVERS)
    told = refusal(script)
    assert told == (
        "train.py:2 names ParameterServerStrategy, which needs parameter servers: add --ps 1."
    )


def test_a_script_under_the_strategy_of_parameter_servers_gets_a_chief(script: Path) -> None:
    flags = {"ps": 1, "strategy": "parameter_server"}
    assert tasks_of(script, PLAIN, **flags) == ("ps-0", "chief-0", "worker-0")


@pytest.mark.parametrize(
    "flags", [{"ps": 1, "strategy": "mirrored"}, {"strategy": "parameter_server"}]
)
def test_a_strategy_to_put_a_script_under_is_refused_without_what_it_needs(
    script: Path, flags: dict[str, Any]
) -> None:
    script.write_text(PLAIN)
    assert f"--strategy {flags['strategy']} needs" in refusal(script, **flags)


def test_of_a_home_folder_the_script_alone_is_brought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    script = tmp_path / "train.py"
    script.write_text(PLAIN)
    given = given_options(script, ScriptFlags())
    assert given.load().service.job_url == str(script)
    assert "only train.py is brought" in given.notes[0]
    (tmp_path / "layers.py").write_text("import json\n")
    script.write_text("from layers import Dense\n")
    assert "train.py imports layers.py" in refusal(script)


@pytest.mark.parametrize(
    ("name", "service"), [("My_Train.py", "my-train"), ("x" * 70 + ".py", "x" * 63)]
)
def test_a_service_is_called_as_dns_can_carry(name: str, service: str) -> None:
    assert service_name(Path(name)) == service


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nb.ipynb", "nb.ipynb is a notebook, and tasks run scripts."),
        ("tfjob.yaml", "tfjob.yaml is YAML, and options are JSON. docs/migration.md shows"),
        ("run.sh", '{"service": {"job_url": ".", "job_cmd": "sh run.sh"}}'),
        ("trian.py", "There is no file {0}/trian.py; did you mean {0}/train.py?"),
        ("train", "There is no file {0}/train; a module is named by its file: {0}/train.py"),
        ("nowhere/train.py", "There is no file {0}/nowhere/train.py, nor a folder {0}/nowhere."),
        ("", "{0} is a folder. Name the file: dcos-tensorflow run {0}/train.py"),
        ("my train.py", "'my train' is no module's name"),
    ],
)
def test_what_is_no_script_is_refused_with_what_to_type(script: Path, name: str, told: str) -> None:
    path = script.parent / name
    if name in ("nb.ipynb", "tfjob.yaml", "run.sh", "my train.py"):
        path.write_text("{}")
    assert told.replace("{0}", str(script.parent)) in refusal(path)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"workers": 2}, "--workers is for a script; with {} say --set worker.count=..."),
        ({"strategy": "mirrored"}, "with {} say --set service.under_strategy=..."),
        ({"sweep": {}}, "--sweep is for a script; with {} say --set sweep.parameters=..."),
        ({"arguments": ("x",)}, "Arguments after -- are for a script; {} has service.job_args"),
    ],
)
def test_what_is_for_a_script_is_not_taken_beside_options(
    tmp_path: Path, flags: dict[str, Any], told: str
) -> None:
    path = tmp_path / "options.json"
    path.write_text("{}")
    assert told.format(path) in refusal(path, **flags)


def test_a_name_may_be_said_beside_options_too(tmp_path: Path) -> None:
    path = tmp_path / "options.json"
    path.write_text('{"service": {"job_name": "train"}}')
    assert given_options(path, ScriptFlags(name="mnist")).load().service.name == "mnist"


def test_the_script_that_is_meant_is_found_where_there_is_but_one(script: Path) -> None:
    folder = script.parent
    (folder / "helper.py").touch()
    assert only_script(folder) == script
    script.rename(folder / "other.py")
    with pytest.raises(UsageError, match=r"There are .*helper\.py, .*other\.py"):
        only_script(folder)


def test_arguments_in_the_wrong_place_are_told_where_they_belong(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["validate", str(script), "--epochs", "3"]) == 2
    assert f"validate {script} -- --epochs ..." in capsys.readouterr().err


def test_what_stands_behind_two_dashes_is_the_scripts_whatever_it_is_called(
    script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python = f"service.python={sys.executable}"
    flags = ["--json", "--set", python, "--work-dir", str(tmp_path / "home")]
    words = ["--workers", "7", "--help"]
    assert run_command_line(["validate", str(script), *flags, "--", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["job"]["arguments"] == words
    assert found["tasks"] == ["worker-0"]
