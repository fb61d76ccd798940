"""What ``run`` begins before it has read the options."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import embedded_mesos
from dcos_tensorflow.cli.embedded.machine import AgentWishes
from dcos_tensorflow.cli.serving import starting
from dcos_tensorflow.cli.serving.given_options import GivenOptions
from dcos_tensorflow.cli.serving.run_request import RunRequest
from dcos_tensorflow.cli.settings import collect_for_run
from dcos_tensorflow.cli.work_directory import WorkDirectory
from dcos_tensorflow.options import OptionsError
from embedded_mesos import StartedProcess
from embedded_mesos.background_cluster import background_of


@pytest.mark.parametrize(
    ("given", "overrides", "name"),
    [
        ({"service": {"name": "digits"}}, (), "digits"),
        ({"service": {"name": "a"}}, ("service.name=b", "service.name=c"), "c"),
        ({}, ("service.name=b",), "b"),
        ({"service": {"name": 3}}, (), ""),
        ({"service": {"name": "a\0b"}}, (), ""),
        ({"service": {"name": "../../a"}}, (), ""),
        ({"service": ["name"]}, (), ""),
        ({}, (), ""),
    ],
)
def test_a_name_is_likely_where_it_stands_there_and_can_be_one(
    given: dict[str, object], overrides: tuple[str, ...], name: str, tmp_path: Path
) -> None:
    file = tmp_path / "options.json"
    file.write_text(json.dumps(given))
    assert GivenOptions(given, overrides).likely_name() == name
    assert GivenOptions(file, overrides).likely_name() == name


def test_no_name_is_likely_in_a_file_that_is_no_json(tmp_path: Path) -> None:
    file = tmp_path / "options.json"
    file.write_text("{")
    assert GivenOptions(file).likely_name() == ""


def test_the_process_of_a_cluster_is_ended_when_the_options_are_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[StartedProcess] = []

    def begin(state_dir: Path) -> StartedProcess:
        begun.append(background_of(state_dir).spawn())
        return begun[-1]

    monkeypatch.setattr(embedded_mesos, "begin", begin)
    request = RunRequest(
        given=GivenOptions({"service": {"name": "a"}, "wroker": {}}),
        settings=collect_for_run(os.environ, {}, local=True),
        wishes=AgentWishes(),
        work=WorkDirectory(tmp_path),
    )
    with pytest.raises(OptionsError):
        starting.run(request)
    assert [one._process.returncode is None for one in begun] == [False]
