"""``init``: what it writes is plain JSON that validates, here and in the package."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dcos_tensorflow.cli.main import run_command_line
from dcos_tensorflow.options import load, service_spec
from dcos_tensorflow.options.schema import json_schema, universe_config
from dcos_tensorflow.plugin.update_check import defaults, merge
from local_dcos import violations

KERAS = """
import tensorflow as tf

with tf.distribute.MultiWorkerMirroredStrategy().scope():
    model = tf.keras.Sequential()
model.fit(epochs=3)
"""
SERVERS = "import tensorflow as tf\ntf.distribute.ParameterServerStrategy(None)\n"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(KERAS)
    return tmp_path / "train.py"


def written(*words: str, file: str = "options.json") -> dict[str, Any]:
    assert run_command_line(["init", *words]) == 0
    found: dict[str, Any] = json.loads(Path(file).read_text())
    return found


@pytest.mark.usefixtures("script")
def test_it_says_what_the_code_names_and_where() -> None:
    found = written()
    assert "train.py:4 names MultiWorkerMirroredStrategy, train.py:6 calls fit" in found["//"]
    assert found["service"]["legacy_keras"] is False
    assert "TensorFlow 2.16" in found["service"]["// legacy_keras"]
    assert service_spec(load(Path("options.json"))).task_names() == ("worker-0",)


@pytest.mark.usefixtures("script")
def test_what_is_written_keeps_the_schemas_of_options_and_package() -> None:
    found = written("train.py", "--workers", "2", "--tensorflow", "2.21.0")
    jsonschema.Draft202012Validator(json_schema()).validate(found)
    package = universe_config()
    assert violations(package, merge(defaults(package), found)) == ()
    assert found["service"]["legacy_keras"] is True
    assert found["worker"]["count"] == 2


def test_a_parameter_server_strategy_gets_servers_and_a_chief(script: Path) -> None:
    script.write_text(SERVERS)
    written()
    spec = service_spec(load(Path("options.json")))
    assert spec.task_names() == ("ps-0", "chief-0", "worker-0")


def test_what_the_code_needs_beside_itself_is_told(script: Path) -> None:
    images = script.parent.parent / f"{script.parent.name}-images"
    images.mkdir()
    (images / "one.png").touch()
    script.write_text(f'open("../{images.name}/one.png")\n')
    (script.parent / "requirements.txt").write_text("tqdm\n")
    found = written()
    assert found["service"]["requirements"] == "requirements.txt"
    (told,) = found["// data"]
    assert f'"data": [{{"uri": "../{images.name}"' in told


def test_the_code_is_named_from_where_the_file_lies(script: Path) -> None:
    (script.parent / "jobs").mkdir()
    found = written("train.py", "-o", "jobs/a.json", file="jobs/a.json")
    assert found["service"]["job_url"] == ".."


@pytest.mark.usefixtures("script")
def test_a_file_is_overwritten_only_when_that_was_said(capsys: pytest.CaptureFixture[str]) -> None:
    Path("options.json").write_text("mine")
    assert run_command_line(["init"]) == 2
    assert "--force overwrites it" in capsys.readouterr().err
    assert Path("options.json").read_text() == "mine"
    written("--force")


@pytest.mark.usefixtures("script")
def test_a_dash_is_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["init", "-o", "-"]) == 0
    assert "service" in json.loads(capsys.readouterr().out)
    assert not Path("-").exists()
    assert not Path("options.json").exists()


@pytest.mark.usefixtures("script")
def test_nothing_is_written_for_flags_that_are_wrong() -> None:
    assert run_command_line(["init", "--tensorflow", "2.21"]) == 2
    assert not Path("options.json").exists()
