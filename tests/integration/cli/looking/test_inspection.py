"""What a service tells of itself, against a real API over a state."""

import json
import os
import re
import webbrowser
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.api.app import create_app
from dcos_tensorflow.api.callers.access import Access
from dcos_tensorflow.api.server import ApiServer
from dcos_tensorflow.cli.main import run_command_line
from dcos_tensorflow.client import registry
from dcos_tensorflow.client.registry import Registration
from dcos_tensorflow.client.work_directory import work_directory
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.options import effective, load
from samples.states import a_record, a_spec, a_state, an_incident, gang, with_job

OPTIONS = {
    "service": {"name": "tensorflow", "job_cmd": "train --password=hunter2"},
    "worker": {"env": {"API_PASSWORD": "hunter2"}},
}


class Service:
    """A state behind an API that a registration leads to."""

    def __init__(self) -> None:
        self.current = a_state(JobPhase.RUNNING, [*gang(), a_record("tensorboard-0")])
        self.options: Mapping[str, Any] = effective(load(OPTIONS))
        self.server = ApiServer(create_app(self, access=Access("a-token")))

    def state(self) -> ServiceState | None:
        return self.current

    def usages(self) -> Mapping[str, Any]:
        return {}

    def leader(self) -> str:
        return ""

    def refused_options(self) -> Mapping[str, Any]:
        return {}

    def configuration(self) -> Mapping[str, Any]:
        return self.options

    def secret_texts(self) -> frozenset[str]:
        return frozenset()

    def configurations(self) -> Mapping[str, ServiceSpec]:
        return {}


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    found = Service()
    monkeypatch.setenv("DCOS_TENSORFLOW_HOME", str(tmp_path))
    directory = work_directory(tmp_path, os.environ).service("tensorflow")
    directory.prepare()
    api = found.server.start()
    registry.register(directory, Registration("tensorflow", os.getpid(), api, "a-token"))
    yield found
    found.server.stop()


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """Return what a command prints: on standard output, or on the other when it fails."""
    assert run_command_line(list(arguments)) == code
    printed = capsys.readouterr()
    return printed.err if code else printed.out


class TestEndpoints:
    def test_their_names_are_listed(self, service: Service, capsys: Any) -> None:
        names = ["ps", "worker", "tensorboard"]
        assert json.loads(said(capsys, "endpoints", "--json")) == names
        assert said(capsys, "endpoints").startswith("ps, worker, tensorboard: ")

    def test_of_one_a_program_gets_both_kinds_of_addresses(
        self, service: Service, capsys: Any
    ) -> None:
        told = json.loads(said(capsys, "endpoints", "worker", "--json"))
        assert [len(told["address"]), len(told["dns"])] == [2, 2]

    def test_of_one_a_person_is_shown_a_line_a_task(self, service: Service, capsys: Any) -> None:
        first, second = said(capsys, "endpoints", "worker").splitlines()
        assert "  worker-0." in first
        assert "  worker-1." in second

    def test_an_unknown_one_is_told(self, service: Service, capsys: Any) -> None:
        assert "There is no endpoint nosuch" in said(capsys, "endpoints", "nosuch", code=1)


class TestStatus:
    def test_a_job_that_runs_tells_its_restarts_and_its_newest_incident(
        self, service: Service, capsys: Any
    ) -> None:
        found = an_incident(task="worker-1", summary="its machine was lost")
        service.current = with_job(service.current, incidents=(found,), restarts=2)
        told = said(capsys, "status")
        assert re.search(r"restarts +2$", told, re.MULTILINE)
        assert re.search(r"last incident .* worker-1: its machine was lost$", told, re.MULTILINE)

    def test_a_job_without_incidents_tells_of_none(self, service: Service, capsys: Any) -> None:
        assert "incident" not in said(capsys, "status")


class TestDashboard:
    def test_its_address_is_printed_and_its_token_is_not(
        self, service: Service, capsys: Any
    ) -> None:
        assert run_command_line(["dashboard"]) == 0
        printed = capsys.readouterr()
        assert printed.out == f"http://{service.server.address}/\n"
        assert "--token" in printed.err
        assert "a-token" not in printed.out + printed.err

    def test_its_token_is_printed_to_who_asks_for_it(self, service: Service, capsys: Any) -> None:
        assert said(capsys, "dashboard", "--token") == "a-token\n"


class TestOptions:
    def test_all_of_them_are_shown_with_their_defaults(self, service: Service, capsys: Any) -> None:
        found = json.loads(said(capsys, "options"))
        assert found["service"]["name"] == "tensorflow"
        assert "cpus" in found["worker"]

    @pytest.mark.parametrize("command", ["options", "describe"])
    def test_secrets_are_hidden(self, service: Service, capsys: Any, command: str) -> None:
        out = said(capsys, command)
        assert "API_PASSWORD" in out
        assert "hunter2" not in out

    def test_describe_sorts_them_as_the_sdk_does(self, service: Service, capsys: Any) -> None:
        found = json.loads(said(capsys, "describe"))
        assert list(found) == sorted(found)
        assert found == json.loads(said(capsys, "options"))

    def test_a_scheduler_that_does_not_know_them_says_so(
        self, service: Service, capsys: Any
    ) -> None:
        service.options = {}
        assert "does not know its options" in said(capsys, "options", code=1)


class TestTensorBoard:
    def test_its_address_is_told(self, service: Service, capsys: Any) -> None:
        assert said(capsys, "tensorboard").startswith("http://")

    def test_it_is_opened_when_that_is_asked_for(
        self, service: Service, capsys: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened: list[str] = []
        monkeypatch.setattr(webbrowser, "open", lambda url: not opened.append(url))
        told = said(capsys, "tensorboard", "--open")
        assert opened == [told.strip()]

    def test_without_a_browser_the_address_is_told_all_the_same(
        self, service: Service, capsys: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(webbrowser, "open", lambda url: False)
        assert "the address is http://" in said(capsys, "tensorboard", "--open", code=1)

    def test_while_it_does_not_run_it_says_why(self, service: Service, capsys: Any) -> None:
        service.current = a_state(JobPhase.RUNNING, gang(TaskState.RUNNING))
        told = said(capsys, "tensorboard", code=1)
        assert told.startswith("Error: TensorBoard does not run: ")

    def test_without_one_the_option_is_named(self, service: Service, capsys: Any) -> None:
        spec = a_spec()
        roles = tuple(role for role in spec.roles if role.role != "tensorboard")
        service.current = replace(service.current, spec=replace(spec, roles=roles))
        assert "set service.use_tensorboard" in said(capsys, "tensorboard", code=1)


class TestDebug:
    def test_configurations_are_shown(self, service: Service, capsys: Any) -> None:
        known = configuration_id(service.current.spec)
        assert json.loads(said(capsys, "debug", "config", "list")) == [known]
        assert json.loads(said(capsys, "debug", "config", "target_id")) == [known]
        shown = json.loads(said(capsys, "debug", "config", "show", known))
        assert shown == json.loads(said(capsys, "debug", "config", "target"))

    def test_an_unknown_configuration_is_told(self, service: Service, capsys: Any) -> None:
        nobody = "00000000-0000-0000-0000-000000000000"
        told = said(capsys, "debug", "config", "show", nobody, code=1)
        assert f"There is no configuration {nobody}." in told

    def test_what_is_no_id_is_told(self, service: Service, capsys: Any) -> None:
        assert "not a UUID" in said(capsys, "debug", "config", "show", "x", code=1)

    def test_properties_are_shown(self, service: Service, capsys: Any) -> None:
        assert "suppressed" in json.loads(said(capsys, "debug", "state", "properties"))
        assert said(capsys, "debug", "state", "property", "deployment-completed") == "false\n"

    def test_an_unknown_property_is_told(self, service: Service, capsys: Any) -> None:
        told = said(capsys, "debug", "state", "property", "x", code=1)
        assert "There is no property x." in told

    def test_the_framework_id_is_shown_in_a_list(self, service: Service, capsys: Any) -> None:
        found = json.loads(said(capsys, "debug", "state", "framework_id"))
        assert found == [service.current.framework_id]
