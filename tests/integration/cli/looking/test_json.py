"""Every command that prints something prints one JSON document with --json."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest

from dcos_tensorflow.api.app import create_app
from dcos_tensorflow.api.server import ApiServer
from dcos_tensorflow.cli.main import cli, run_command_line
from dcos_tensorflow.client.registry import Registration, register
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.kept.recording import RecordedTurn, Recording
from dcos_tensorflow.core.model.controls import Controls
from dcos_tensorflow.core.model.events import Tick
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.history.folder import RunFolder
from dcos_tensorflow.history.points import Point, line_of
from dcos_tensorflow.history.record import record_of, with_points
from samples.state_source import Source
from samples.states import NOW, a_record, a_spec, a_state

SERVICE = "tensorflow"
#: What the run that is kept has told.
POINT = Point(1.0, 1, {"loss": 0.5})
OPTIONS = {"service": {"name": SERVICE, "job_cmd": "true", "python": "/usr/bin/python3"}}

#: Commands that print no answer: the log of a daemon, a script for a shell.
NO_ANSWER = {"scheduler", "completion", "queue serve", "queue attend", "dashboard serve"}
#: Commands that start or end processes; tests/integration/cli and end_to_end read their JSON.
WITH_PROCESSES = {"run", "resume", "exec", "cp", "local up", "local down", "local dashboard"}
#: Commands that print one JSON document a line; test_logs.py beside this file reads them.
WITH_LINES = {"logs"}

#: Commands that look at a kept state; tests/integration/cli/looking/test_state.py reads their JSON.
OF_A_STATE = {"state check", "state export", "state import"}
#: They ask where machines come from; tests/integration/capacity reads their JSON.
OF_MACHINES = {"capacity plan", "capacity up", "capacity down"}
#: They ask a queue, whose answers they show; tests/end_to_end/work/test_queue.py reads their JSON.
OF_A_QUEUE = {"submit", "queue list", "queue teams", "cancel", "hold", "release"}

#: What the API refuses, and how: there is no cache of the state, and the job has no units of work.
REFUSED = {
    "debug state refresh_cache": "there is no cache",
    "batch": "There is no batch",
    "sweep board": "There is no sweep",
    "sweep best": "There is no sweep",
    "capacity status": "no machines are bought",
    "capacity release": "no machines are bought",
}

#: command -> its arguments; OPTIONS is the path of an options file, SCRIPT that of a script.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "validate": ("OPTIONS",),
    "init": ("SCRIPT", "-o", "WRITTEN"),
    "package render": ("--options", "OPTIONS", "--artifact-url", "https://example.org/1"),
    "list": (),
    "local status": (),
    "status": (SERVICE,),
    "top": (SERVICE,),
    "why": (SERVICE,),
    "prune": ("--yes",),
    "cluster": (SERVICE,),
    "endpoints": (),
    "options": (SERVICE,),
    "describe": (SERVICE,),
    "tensorboard": (SERVICE,),
    "dashboard address": (SERVICE,),
    "open": (SERVICE,),
    "debug config list": (),
    "debug config target": (),
    "debug config target_id": (),
    "debug config show": ("CONFIGURATION",),
    "debug state framework_id": (),
    "debug state properties": (),
    "debug state property": ("job",),
    "debug pod pause": ("worker-0",),
    "debug pod resume": ("worker-0",),
    "runs list": (),
    "runs show": (SERVICE,),
    "runs note": (SERVICE, "the best", "--tag", "paper"),
    "plot": (SERVICE, "--out", "PICTURE"),
    "state record": ("--out", "RECORDED"),
    "stop": (SERVICE, "--no-wait"),
    "plan list": (),
    "plan status": ("deploy",),
    "plan start": ("deploy",),
    "plan stop": ("deploy",),
    "plan pause": ("deploy",),
    "plan resume": ("deploy",),
    "plan force-restart": ("deploy",),
    "plan force-complete": ("deploy", "tensorboard", "tensorboard-0:[node]"),
    "pod list": (),
    "pod status": (),
    "pod info": ("worker-0",),
    "pod restart": ("worker-0",),
    "pod replace": ("worker-0",),
    "pod pause": ("worker-0",),
    "pod resume": ("worker-0",),
    "update start": ("--options", "OPTIONS"),
    "update rollback": (),
    "update configurations": (),
    "update status": (),
    "update pause": (),
    "update resume": (),
    "update force-restart": (),
    "update force-complete": ("tensorboard", "tensorboard-0:[node]"),
    "uninstall": (SERVICE, "--yes", "--no-wait"),
}


def leaves(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            if below.name == name:  # Else it is another name of a command.
                yield from leaves(below, (*path, name))
    else:
        yield " ".join(path), command


COMMANDS = dict(leaves(cli))


class Deploying(Source):
    """A service that is being deployed, and takes every order."""

    def __init__(self, command: str) -> None:
        names = ("ps-0", "worker-0", *(("tensorboard-0",) if "board" in command else ()))
        paused = ("deploy",) if command in ("plan resume", "update resume") else ()
        held = ("worker-0",) if command.endswith("pod resume") else ()
        controls = Controls(paused=paused, paused_tasks=held)
        records = [a_record(name) for name in names]
        super().__init__(state=a_state(JobPhase.PLACING, records, controls=controls))
        self.options = OPTIONS
        turn = RecordedTurn("a-1", NOW, (Tick(),), (), (), "")
        self.recorded = Recording(self.current, (turn,)) if self.current is not None else None
        other = a_spec(kill_grace_seconds=77.0)
        self.stored = {configuration_id(other): other}

    def change_configuration(
        self, options: Mapping[str, Any], *, restarted: bool = False
    ) -> ServiceSpec:
        return a_spec(kill_grace_seconds=33.0)


@pytest.fixture
def work(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A work directory with one service, whose API answers."""
    monkeypatch.setenv("DCOS_TENSORFLOW_HOME", str(tmp_path))
    (tmp_path / "OPTIONS").write_text(json.dumps(OPTIONS))
    (tmp_path / "train.py").touch()
    server = ApiServer(create_app(Deploying(command)))
    directory = WorkDirectory(tmp_path).service(SERVICE)
    directory.prepare()
    run = RunFolder(directory.history / "1-abc")
    run.keep_record(with_points(record_of(a_state(JobPhase.RUNNING, []), OPTIONS, {}), [POINT]))
    run.append([line_of("worker-0", POINT, lambda told: told)])
    register(directory, Registration(SERVICE, os.getpid(), server.start()))
    yield tmp_path
    server.stop()
    # The window of ``open`` ends by itself without its file.
    (tmp_path / "window.json").unlink(missing_ok=True)


def test_every_command_has_the_flag() -> None:
    without = {
        name
        for name, command in COMMANDS.items()
        if not any("--json" in parameter.opts for parameter in command.params)
    }
    assert without == NO_ANSWER


def test_every_command_is_tried() -> None:
    read_elsewhere = WITH_PROCESSES | WITH_LINES | OF_A_STATE | OF_MACHINES | OF_A_QUEUE
    assert set(ARGUMENTS) | NO_ANSWER | read_elsewhere | set(REFUSED) == set(COMMANDS)


@pytest.mark.parametrize("command", ARGUMENTS)
def test_standard_output_is_one_json_document(
    command: str, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        {
            "OPTIONS": str(work / "OPTIONS"),
            "SCRIPT": str(work / "train.py"),
            "WRITTEN": str(work / "written.json"),
            "RECORDED": str(work / "turns.json"),
            "PICTURE": str(work / "curve.svg"),
            "CONFIGURATION": configuration_id(a_spec()),
        }.get(word, word)
        for word in ARGUMENTS[command]
    ]
    code = run_command_line([*command.split(), *arguments, "--json"])
    said = capsys.readouterr()
    json.loads(said.out)
    # No cluster runs here: that is the answer, and its exit code.
    assert (code, said.err) == (int(command == "local status"), "")


@pytest.mark.parametrize("command", sorted(REFUSED))
def test_what_the_api_refuses_is_told_on_standard_error(
    command: str, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_command_line([*command.split(), "--json"])
    said = capsys.readouterr()
    assert (code, said.out) == (1, "")
    assert REFUSED[command] in said.err


@pytest.mark.parametrize("command", ["plan pause"])
def test_what_cannot_be_done_is_told_on_standard_error(
    command: str, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_command_line([*command.split(), "no-such-plan", "--json"])
    said = capsys.readouterr()
    assert (code, said.out) == (1, "")
    assert "does not exist" in said.err
