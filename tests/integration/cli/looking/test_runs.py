"""What a person says of a run from the command line: kept beside it, and shown with it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.api.app import create_app
from dcos_tensorflow.api.server import ApiServer
from dcos_tensorflow.cli.main import run_command_line
from dcos_tensorflow.client.registry import Registration, register
from dcos_tensorflow.client.work_directory import ServiceDirectory, WorkDirectory
from dcos_tensorflow.history import keeper
from dcos_tensorflow.history.curves import Curves
from dcos_tensorflow.history.folder import RunFolder
from dcos_tensorflow.history.keeper import Keeper, Sources
from dcos_tensorflow.history.record import record_of
from samples.state_source import Source
from samples.states import running


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServiceDirectory:
    """A service with a run that was noted before, and that no scheduler serves."""
    monkeypatch.setenv("DCOS_TENSORFLOW_HOME", str(tmp_path))
    directory = WorkDirectory(tmp_path).service("digits")
    directory.prepare()
    run = RunFolder(directory.history / "1-abc")
    run.keep_record({**record_of(running(), {}, {}), "id": "1-abc", "service": "digits"})
    run.keep_notes({"tags": ["first", "paper"], "note": "of before"})
    return directory


@pytest.fixture
def served(service: ServiceDirectory, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The same, served; returns where."""
    sources = Sources(lambda: None, dict, lambda state, told: told, lambda state: None)
    history = Keeper(service.history, Curves(), sources)
    # Nothing of before is awaited.
    monkeypatch.setattr(keeper, "_EARLIER_SECONDS", 0.0)
    server = ApiServer(create_app(Source(state=running()), history=history))
    api = server.start()
    register(service, Registration("digits", os.getpid(), api))
    yield f"http://{api}"
    server.stop()


def note(capsys: Any, *arguments: str) -> dict[str, Any]:
    assert run_command_line(["runs", "note", *arguments, "--json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


CHANGES = ("--tag", "last", "--tag", "paper", "--untag", "first")
CHANGED = {"tags": ["paper", "last"], "note": "the best"}


def test_notes_are_changed_where_no_scheduler_serves_it(
    service: ServiceDirectory, capsys: Any
) -> None:
    assert note(capsys, "digits", "the best", *CHANGES) == {"run": "digits@1", **CHANGED}
    assert note(capsys, "digits") == {"run": "digits@1", **CHANGED}
    assert note(capsys, "digits@1", "")["note"] == ""


@pytest.mark.parametrize("named", [False, True], ids=["of this machine", "by its address"])
def test_notes_are_changed_by_the_scheduler(
    service: ServiceDirectory, served: str, capsys: Any, named: bool
) -> None:
    where = ("--api", served, "@1") if named else ("digits@1",)
    assert note(capsys, *where, "the best", *CHANGES)["tags"] == CHANGED["tags"]
    record = RunFolder(service.history / "1-abc").record()
    assert {name: record[name] for name in CHANGED} == CHANGED


@pytest.mark.parametrize(
    "arguments",
    [("--tag", "a,b"), ("--tag", "x" * 51), ("n" * 2001,)],
    ids=["comma", "tag", "note"],
)
def test_what_is_too_much_changes_nothing(
    service: ServiceDirectory, capsys: Any, arguments: tuple[str, ...]
) -> None:
    assert run_command_line(["runs", "note", "digits", *arguments]) == 2
    assert "at most 20 tags" in capsys.readouterr().err
    assert note(capsys, "digits")["note"] == "of before"
