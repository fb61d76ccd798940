"""JSON that nests without end, at each place where JSON from outside is read: an answer, no crash.

500 levels are what Python's parser gets through and what walks over the value would not.
"""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.api import verbs
from dcos_tensorflow.api.errors import BadRequest
from dcos_tensorflow.api.redaction import redact
from dcos_tensorflow.client import ending, registry
from dcos_tensorflow.client.api_client import SchedulerAnswer
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.secret_file import secret_in
from dcos_tensorflow.client.work_directory import ServiceDirectory
from dcos_tensorflow.deploy.settings import collect
from dcos_tensorflow.job_code.modules import JobUnusable
from dcos_tensorflow.mesos import service_account
from dcos_tensorflow.mesos.detector import master_address
from dcos_tensorflow.options import OptionsError, load
from dcos_tensorflow.plugin.main import run
from dcos_tensorflow.scheduler.gate import GateError
from dcos_tensorflow.scheduler.runners import evidence_reading as evidence
from dcos_tensorflow.scheduler.runners import runner_request
from dcos_tensorflow.scheduler.secrets.s3_credentials import _from_json
from dcos_tensorflow.state.leadership import UNKNOWN_HOLDER, Holder
from dcos_tensorflow.task.python.contracts import parse_context
from dcos_tensorflow.task.report.server import RequestError, _grace_seconds
from dcos_tensorflow.task.spec_fields import SpecError, json_object
from dcos_tensorflow.task.storage.manifest import DocumentError, _decode
from embedded_mesos.master.calls.replies import parse_json
from embedded_mesos.master.calls.schema import ConversionError

DEEPEST = 100_000
LEVELS = (500, DEEPEST)


def deep(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def settings_file(text: str, folder: Path) -> Any:
    file = folder / "settings.json"
    file.write_text(text)
    return collect(file, {}, {})


def options_file(text: str, folder: Path) -> Any:
    file = folder / "options.json"
    file.write_text(text)
    return load(file)


REFUSED: dict[str, tuple[Callable[[str, Path], Any], type[Exception]]] = {
    "options file": (options_file, OptionsError),
    "options in a variable": (lambda text, _: load(text), OptionsError),
    "--set": (lambda text, _: load("{}", overrides=[f"service.env={text}"]), OptionsError),
    "settings file": (settings_file, UsageError),
    "body of a request": (lambda text, _: verbs.options_in(text.encode()), BadRequest),
    "answer of a scheduler": (lambda text, _: SchedulerAnswer("x", 200, text).expected(), CliError),
    "answer of a task runner": (
        lambda text, _: runner_request._object(text.encode()),
        runner_request.NotARunner,
    ),
    "service account": (
        lambda text, _: service_account.parse(text),
        service_account.ServiceAccountError,
    ),
    "credentials": (lambda text, _: _from_json(text, Path("x")), GateError),
    "body of a call to the embedded master": (
        lambda text, _: parse_json(text.encode()),
        ConversionError,
    ),
}
#: Read by a process that walks over nothing: only what the parser cannot get through is an error.
REFUSED_WHEN_DEEPEST: dict[str, tuple[Callable[[str], Any], type[Exception]]] = {
    "context of a job": (parse_context, JobUnusable),
    "spec of a task": (lambda text: json_object(text, "it"), SpecError),
    "order to a task runner": (_grace_seconds, RequestError),
    "document of a checkpoint": (lambda text: _decode(text.encode(), "it"), DocumentError),
}


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("place", REFUSED)
def test_it_is_refused(place: str, levels: int, tmp_path: Path) -> None:
    read, error = REFUSED[place]
    with pytest.raises(error):
        read(deep(levels), tmp_path)


@pytest.mark.parametrize("place", REFUSED_WHEN_DEEPEST)
def test_it_is_refused_where_it_cannot_be_parsed(place: str) -> None:
    read, error = REFUSED_WHEN_DEEPEST[place]
    with pytest.raises(error):
        read(deep(DEEPEST))


@pytest.mark.parametrize("levels", LEVELS)
def test_what_is_read_for_what_it_may_tell_tells_nothing(levels: int, tmp_path: Path) -> None:
    text = deep(levels)
    directory = ServiceDirectory(tmp_path)
    for file in (directory.registration, directory.last_end):
        file.write_text(text)
    assert registry.read(directory) is None
    assert ending.last(directory) is None
    assert evidence._report(text) is None
    assert Holder.from_bytes(text.encode()) is UNKNOWN_HOLDER
    assert master_address(text.encode()) is None
    claims = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    assert service_account._expiry(f"a.{claims}.b") is None


@pytest.mark.parametrize("levels", LEVELS)
def test_text_that_nests_is_shown_as_text(levels: int) -> None:
    assert redact({"job_context": deep(levels)}) == {"job_context": deep(levels)}


def test_a_secret_that_looks_like_it_is_a_secret(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(deep(DEEPEST))
    assert secret_in(str(file), "x") == deep(DEEPEST)


@pytest.mark.parametrize("levels", LEVELS)
def test_the_plugin_says_so(levels: int, tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "deep.json"
    file.write_text(deep(levels))
    words = ["tensorflow", "update", "start", f"--options={file}"]
    assert run(words, {"DCOS_URL": "http://127.0.0.1:1"}) == 1
    assert "Traceback" not in capsys.readouterr().err
