"""Every command of ``dcos tensorflow`` answers in JSON with --json, against the real HTTP API."""

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route

from dcos_tensorflow.api.app import create_app
from dcos_tensorflow.api.server import ApiServer
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model.controls import Controls
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.plugin.main import parser, run
from samples.state_source import Source
from samples.states import a_record, a_spec, a_state

#: command -> its arguments; OPTIONS is the path of an options file.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "describe": (),
    "endpoints": ("worker",),
    "plan list": (),
    "plan status": ("deploy",),
    "plan show": ("deploy",),
    "plan start": ("deploy",),
    "plan stop": ("deploy",),
    "plan pause": ("deploy",),
    "plan interrupt": ("deploy",),
    "plan resume": ("deploy",),
    "plan continue": ("deploy",),
    "plan force-restart": ("deploy",),
    "plan restart": ("deploy",),
    "plan force-complete": ("deploy", "tensorboard", "tensorboard-0:[node]"),
    "plan force": ("deploy", "tensorboard", "tensorboard-0:[node]"),
    "pod list": (),
    "pod status": (),
    "pod info": ("worker-0",),
    "pod restart": ("worker-0",),
    "pod replace": ("worker-0",),
    "update start": ("--options", "OPTIONS"),
    "update status": (),
    "update show": (),
    "update pause": (),
    "update resume": (),
    "update force-restart": (),
    "update force-complete": ("tensorboard", "tensorboard-0:[node]"),
    "update package-versions": (),
    "debug config list": (),
    "debug config target": (),
    "debug config target_id": (),
    "debug config show": (configuration_id(a_spec()),),
    "debug pod pause": ("worker-0",),
    "debug pod resume": ("worker-0",),
    "debug state framework_id": (),
    "debug state properties": (),
    "debug state property": ("suppressed",),
    "debug state refresh_cache": (),
    "why": (),
    "options": (),
    "tensorboard": (),
    "logs": (),
    "cluster": (),
}
#: There is no cache of the state, and the API says so.
REFUSED = {"debug state refresh_cache"}


def leaves(
    above: argparse.ArgumentParser, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    trees = [a for a in above._actions if isinstance(a, argparse._SubParsersAction)]
    for tree in trees:
        for name, below in tree.choices.items():
            yield from leaves(below, (*path, name))
    if not trees:
        yield " ".join(path), above


#: But what prints the help alone.
COMMANDS = {k: v for k, v in leaves(parser("dcos tensorflow")) if k != "help"}


class Deploying(Source):
    """A service that is being deployed, and takes every order."""

    def __init__(self, command: str) -> None:
        resumes = command in ("plan resume", "plan continue", "update resume")
        controls = Controls(
            paused=("deploy",) if resumes else (),
            paused_tasks=("worker-0",) if command == "debug pod resume" else (),
        )
        board = ("tensorboard-0",) if command == "tensorboard" else ()
        records = [a_record(name) for name in ("ps-0", "worker-0", *board)]
        super().__init__(state=a_state(JobPhase.PLACING, records, controls=controls))
        self.options = {"worker": {"count": 2}}

    def change_configuration(
        self, options: Mapping[str, Any], *, restarted: bool = False
    ) -> ServiceSpec:
        return a_spec()


def package_manager(request: Request) -> Response:
    return JSONResponse(
        {
            "package": {"name": "tensorflow", "version": "1.0.0"},
            "resolvedOptions": {"worker": {"count": 2}},
            "upgradesTo": [],
            "downgradesTo": [],
        }
    )


def log(request: Request) -> Response:
    return PlainTextResponse("step 1\n")


@pytest.fixture
def environ(command: str) -> Iterator[dict[str, str]]:
    """The environment that the ``dcos`` command gives, of a cluster with one service."""
    cluster = Starlette(
        routes=[
            Mount("/service/tensorflow", create_app(Deploying(command))),
            Route("/cosmos/service/{verb}", package_manager, methods=["POST"]),
            Route("/system/v1/logs/v2/task/{task}/file/{name}", log),
        ]
    )
    server = ApiServer(cluster)
    yield {"DCOS_URL": f"http://{server.start()}"}
    server.stop()


def test_every_command_is_tried() -> None:
    assert set(ARGUMENTS) == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_the_flag(command: str) -> None:
    assert "--json" in COMMANDS[command].format_help()


@pytest.mark.parametrize("command", ARGUMENTS)
def test_standard_output_is_json(
    command: str,
    environ: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "options.json"
    file.write_text("{}")
    given = [str(file) if word == "OPTIONS" else word for word in ARGUMENTS[command]]
    code = run(["tensorflow", *command.split(), *given, "--json"], environ)
    said = capsys.readouterr()
    if command in REFUSED:
        assert (code, said.out) == (1, "")
        return
    assert (code, said.err) == (0, "")
    # The lines of a log are a document each; everything else is one.
    for document in said.out.splitlines() if command == "logs" else [said.out]:
        json.loads(document)
