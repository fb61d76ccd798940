"""Plans, pods, updates and uninstalls from the command line, against a real API over a state."""

import json
import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.cli.main import run_command_line
from dcos_tensorflow.client import registry
from dcos_tensorflow.client.kept.stored import stored_state
from dcos_tensorflow.client.registry import Registration
from dcos_tensorflow.client.work_directory import ServiceDirectory, work_directory
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.kept.writes import first_writes, writes_between
from dcos_tensorflow.core.model.controls import Controls
from dcos_tensorflow.core.model.events import (
    ConfigurationChanged,
    Event,
    PlanCommand,
    PlanVerb,
    PodCommand,
    PodVerb,
    UninstallRequested,
)
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.options import load, service_spec
from dcos_tensorflow.state.store import open_store
from samples.states import a_state, failed, gang, with_records
from servers.answering_service import OPTIONS, SPEC, Service


@pytest.fixture
def options_file(tmp_path: Path) -> Path:
    file = tmp_path / "options.json"
    file.write_text(json.dumps({**OPTIONS, "worker": {"count": 2, "mem": 8192}}))
    return file


class TestPlans:
    def test_they_are_listed_as_json(self, service: Service, capsys: Any) -> None:
        assert run_command_line(["plan", "list"]) == 0
        assert json.loads(capsys.readouterr().out) == ["deploy", "recovery"]

    @pytest.mark.parametrize("word", ["status", "show"])
    def test_one_is_shown_as_a_tree(self, service: Service, capsys: Any, word: str) -> None:
        assert run_command_line(["plan", word, "deploy"]) == 0
        assert capsys.readouterr().out.splitlines()[:3] == [
            "deploy (serial strategy) (COMPLETE)",
            "├─ ps (parallel strategy) (COMPLETE)",
            "│  └─ ps-0:[node] (COMPLETE)",
        ]

    def test_one_is_shown_as_json(self, service: Service, capsys: Any) -> None:
        assert run_command_line(["plan", "status", "deploy", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["status"] == "COMPLETE"

    def test_one_with_errors_is_shown_with_them(self, service: Service, capsys: Any) -> None:
        service.current = failed()
        assert run_command_line(["plan", "status", "deploy"]) == 0
        assert "Errors:\n- worker-1 failed" in capsys.readouterr().out

    def test_an_unknown_one_is_told_in_the_sdks_words(self, service: Service, capsys: Any) -> None:
        assert run_command_line(["plan", "status", "nosuch"]) == 1
        assert "Plan, phase, and/or step does not exist" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("arguments", "command", "told"),
        [
            (
                ["pause", "deploy"],
                PlanCommand("deploy", PlanVerb.PAUSE),
                '"deploy" plan has been paused.\n',
            ),
            (
                ["interrupt", "deploy", "worker"],
                PlanCommand("deploy", PlanVerb.PAUSE, "worker"),
                '"deploy" plan: phase "worker" has been paused.\n',
            ),
            (
                ["force-complete", "deploy", "tensorboard", "tensorboard-0:[node]"],
                PlanCommand(
                    "deploy", PlanVerb.FORCE_COMPLETE, "tensorboard", "tensorboard-0:[node]"
                ),
                '"deploy" plan: step "tensorboard-0:[node]" in phase "tensorboard" has been forced'
                " to complete.\n",
            ),
            (
                ["restart", "deploy"],
                PlanCommand("deploy", PlanVerb.FORCE_RESTART),
                '"deploy" plan has been restarted.\n',
            ),
        ],
    )
    def test_a_verb_is_ordered_and_told(
        self, service: Service, capsys: Any, arguments: list[str], command: Event, told: str
    ) -> None:
        service.current = a_state()
        assert run_command_line(["plan", *arguments]) == 0
        assert (service.events, capsys.readouterr().out) == ([command], told)

    def test_what_is_so_already_is_an_error_in_the_sdks_words(
        self, service: Service, capsys: Any
    ) -> None:
        service.current = replace(a_state(), controls=Controls(paused=("deploy",)))
        assert run_command_line(["plan", "pause", "deploy"]) == 1
        assert "Command has already been issued" in capsys.readouterr().err

    def test_what_cannot_be_done_says_why(self, service: Service, capsys: Any) -> None:
        service.current = a_state()
        arguments = ["plan", "force-complete", "deploy", "worker", "worker-0:[node]"]
        assert run_command_line(arguments) == 1
        assert "decides about the job's end" in capsys.readouterr().err

    @pytest.mark.parametrize("word", ["start", "stop"])
    def test_start_and_stop_answer_in_json(self, service: Service, capsys: Any, word: str) -> None:
        assert run_command_line(["plan", word, "recovery"]) == 0
        assert json.loads(capsys.readouterr().out)["message"] == f"Received cmd: {word}"

    def test_a_service_that_does_not_run_is_named(
        self, service: Service, capsys: Any, tmp_path: Path
    ) -> None:
        work_directory(tmp_path, os.environ).service("other").prepare()
        assert run_command_line(["plan", "list", "--name", "other"]) == 1
        assert "No scheduler of other runs" in capsys.readouterr().err


class TestPods:
    def test_they_are_listed_as_json(self, service: Service, capsys: Any) -> None:
        assert run_command_line(["pod", "list"]) == 0
        assert json.loads(capsys.readouterr().out)[0] == "ps-0"

    def test_all_are_shown_as_a_tree(self, service: Service, capsys: Any) -> None:
        assert run_command_line(["pod", "status"]) == 0
        assert capsys.readouterr().out.splitlines()[:4] == [
            "tensorflow",
            "├─ ps",
            "│  └─ ps-0",
            "│     └─ ps-0 (RUNNING)",
        ]

    def test_one_is_shown_as_a_tree(self, service: Service, capsys: Any) -> None:
        assert run_command_line(["pod", "status", "ps-0"]) == 0
        assert capsys.readouterr().out == "ps-0\n└─ ps-0 (RUNNING)\n"

    def test_what_mesos_knows_of_one_is_json(self, service: Service, capsys: Any) -> None:
        assert run_command_line(["pod", "info", "ps-0"]) == 0
        assert json.loads(capsys.readouterr().out)[0]["info"]["name"] == "ps-0"

    @pytest.mark.parametrize("verb", [PodVerb.RESTART, PodVerb.REPLACE, PodVerb.PAUSE])
    def test_a_verb_is_ordered(self, service: Service, capsys: Any, verb: PodVerb) -> None:
        assert run_command_line(["pod", str(verb), "worker-1", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == {"pod": "worker-1", "tasks": ["worker-1"]}
        assert service.events == [PodCommand(verb, ("worker-1",))]

    @pytest.mark.parametrize("verb", [PodVerb.RESTART, PodVerb.REPLACE, PodVerb.PAUSE])
    def test_a_person_is_told_what_follows(
        self, service: Service, capsys: Any, verb: PodVerb
    ) -> None:
        assert run_command_line(["pod", str(verb), "worker-1"]) == 0
        (sentence,) = capsys.readouterr().out.splitlines()
        assert "worker-1" in sentence
        assert sentence.endswith(".")

    def test_an_unknown_one_is_named(self, service: Service, capsys: Any) -> None:
        assert run_command_line(["pod", "restart", "worker-9"]) == 1
        assert "There is no pod worker-9" in capsys.readouterr().err


class TestUpdate:
    @pytest.fixture(autouse=True)
    def _spec(self, service: Service) -> None:
        service.current = replace(service.current, spec=SPEC)

    def test_other_options_are_ordered(
        self, service: Service, capsys: Any, options_file: Path
    ) -> None:
        arguments = ["update", "start", "--options", str(options_file), "--set", "worker.count=3"]
        assert run_command_line(arguments) == 0
        (event,) = service.events
        assert isinstance(event, ConfigurationChanged)
        assert [(r.count, r.resources.mem) for r in event.spec.roles if r.role == "worker"] == [
            (3, 8192)
        ]
        assert "Update started" in capsys.readouterr().out

    def test_what_is_given_is_laid_over_the_options_in_force(
        self, service: Service, tmp_path: Path
    ) -> None:
        part = tmp_path / "part.json"
        part.write_text(json.dumps({"worker": {"mem": 8192}}))
        assert run_command_line(["update", "start", "--options", str(part)]) == 0
        (event,) = service.events
        assert event == ConfigurationChanged(
            service_spec(load({**OPTIONS, "worker": {"count": 2, "mem": 8192}}))
        )

    def test_one_option_needs_no_file(self, service: Service) -> None:
        assert run_command_line(["update", "start", "tensorflow", "--set", "worker.count=3"]) == 0
        (event,) = service.events
        assert event == ConfigurationChanged(
            service_spec(load({**OPTIONS, "worker": {"count": 3}}))
        )

    def test_all_options_are_replaced_when_that_is_asked_for(
        self, service: Service, tmp_path: Path
    ) -> None:
        whole = tmp_path / "whole.json"
        whole.write_text(json.dumps({**OPTIONS, "worker": {"mem": 8192}}))
        assert run_command_line(["update", "start", "--replace", "--options", str(whole)]) == 0
        (event,) = service.events
        assert event == ConfigurationChanged(service_spec(load(json.loads(whole.read_text()))))

    def test_options_that_are_not_known_have_nothing_laid_over_them(
        self, service: Service, capsys: Any
    ) -> None:
        service.options = {}
        assert run_command_line(["update", "start", "--set", "worker.count=3"]) == 1
        assert "give all of them, with --replace." in capsys.readouterr().err
        assert service.events == []

    def test_nothing_to_change_is_a_wrong_command_line(self, service: Service, capsys: Any) -> None:
        assert run_command_line(["update", "start"]) == 2
        assert "Nothing to change" in capsys.readouterr().err

    def test_a_wrong_option_is_told_and_nothing_is_ordered(
        self, service: Service, capsys: Any, options_file: Path
    ) -> None:
        arguments = ["update", "start", f"--options={options_file}", "--set", "worker.memm=3"]
        assert run_command_line(arguments) == 2
        assert "worker.memm" in capsys.readouterr().err
        assert service.events == []

    def test_what_the_service_cannot_become_is_told(
        self, service: Service, capsys: Any, options_file: Path
    ) -> None:
        arguments = ["update", "start", f"--options={options_file}", "--set", "service.name=x"]
        assert run_command_line(arguments) == 1
        assert "The configuration is not changed" in capsys.readouterr().err

    def test_the_same_options_change_nothing(
        self, service: Service, capsys: Any, tmp_path: Path
    ) -> None:
        file = tmp_path / "same.json"
        file.write_text(json.dumps(OPTIONS))
        assert run_command_line(["update", "start", "--options", str(file)]) == 0
        assert "nothing changes" in capsys.readouterr().out

    def test_it_goes_back_to_the_configuration_before(self, service: Service, capsys: Any) -> None:
        before = replace(SPEC, retry=replace(SPEC.retry, limit=9))
        service.stored = {configuration_id(before): before}
        assert run_command_line(["update", "rollback", configuration_id(before)]) == 0
        assert service.events == [ConfigurationChanged(before)]

    def test_it_is_paused_through_the_deploy_plan(self, service: Service, capsys: Any) -> None:
        for record in service.current.tasks.values():
            outdated = replace(record, fingerprint="of-before")
            service.current = with_records(service.current, outdated)
        assert run_command_line(["update", "pause"]) == 0
        assert service.events == [PlanCommand("deploy", PlanVerb.PAUSE)]

    def test_its_progress_is_the_deploy_plan(self, service: Service, capsys: Any) -> None:
        assert run_command_line(["update", "status"]) == 0
        assert capsys.readouterr().out.startswith("deploy (serial strategy)")


class TestUninstall:
    def gone(self, *given_up: str) -> ServiceState:
        return a_state(
            JobPhase.DONE,
            gang(TaskState.KILLED),
            job={"uninstalling": True, "given_up": given_up},
            erased=True,
            framework_id="",
        )

    def test_it_waits_until_nothing_is_left(self, service: Service, capsys: Any) -> None:
        service.afterwards = self.gone()
        assert run_command_line(["uninstall", "tensorflow", "--yes"]) == 0
        assert service.events == [UninstallRequested("from the command line")]
        assert capsys.readouterr().out == "tensorflow is uninstalled.\n"

    def test_it_names_what_was_given_up(self, service: Service, capsys: Any) -> None:
        service.afterwards = self.gone("ps-0 on node1")
        assert run_command_line(["uninstall", "tensorflow", "--yes"]) == 0
        given_up = "Given up, because its agent did not answer: ps-0 on node1"
        assert given_up in capsys.readouterr().out

    def test_a_scheduler_that_has_gone_when_nothing_is_stored_has_done_its_work(
        self, service: Service, capsys: Any
    ) -> None:
        service.on_event = service.leave
        assert run_command_line(["uninstall", "tensorflow", "--yes"]) == 0
        assert capsys.readouterr().out == "tensorflow is uninstalled.\n"

    def test_a_scheduler_that_died_on_the_way_is_no_success(
        self, service: Service, capsys: Any, tmp_path: Path
    ) -> None:
        service.on_event = service.leave
        store = open_store(f"sqlite:///{tmp_path}/state.db", "tensorflow")
        with closing(store), store.lead("a scheduler", 0.0, lambda _: None):
            store.commit(first_writes(service.current))
        assert run_command_line(["uninstall", "tensorflow", "--yes"]) == 1
        assert "scheduler OPTIONS.json --uninstall" in capsys.readouterr().err

    @pytest.fixture
    def left(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServiceDirectory:
        """Return the folder of a service whose scheduler has ended."""
        monkeypatch.setenv("DCOS_TENSORFLOW_HOME", str(tmp_path))
        directory = work_directory(tmp_path, os.environ).service("tensorflow")
        directory.prepare()
        registry.register(
            directory, Registration("tensorflow", 0, "", state=directory.state_url, local=True)
        )
        return directory

    def keep(self, directory: ServiceDirectory, state: ServiceState) -> None:
        store = open_store(directory.state_url, "tensorflow")
        with closing(store), store.lead("a scheduler", 0.0, lambda _: None):
            new = replace(state, framework_id="")
            store.commit([*first_writes(new), *writes_between(new, state)])

    def test_a_job_that_has_ended_needs_no_scheduler_to_be_forgotten(
        self, left: ServiceDirectory, capsys: Any
    ) -> None:
        self.keep(left, a_state(JobPhase.DONE, framework_id=""))
        (left.checkpoints / "step-1").touch()
        assert run_command_line(["uninstall", "tensorflow", "--yes"]) == 0
        assert capsys.readouterr().out == "tensorflow is uninstalled.\n"
        assert stored_state(left.state_url, "tensorflow") is None
        assert (left.checkpoints / "step-1").exists()
        assert not left.registration.exists()

    def test_a_job_that_has_not_ended_is_not_forgotten(
        self, left: ServiceDirectory, capsys: Any
    ) -> None:
        self.keep(left, a_state(JobPhase.RUNNING))
        assert run_command_line(["uninstall", "tensorflow", "--yes"]) == 1
        assert "dcos-tensorflow stop tensorflow ends it" in capsys.readouterr().err
        assert stored_state(left.state_url, "tensorflow") is not None

    def test_a_service_that_holds_what_only_a_scheduler_gives_back_is_not_forgotten(
        self, left: ServiceDirectory, capsys: Any
    ) -> None:
        # A framework that stays known to Mesos is also how reservations are given back.
        self.keep(left, a_state(JobPhase.DONE))
        assert run_command_line(["uninstall", "tensorflow", "--yes"]) == 1
        assert stored_state(left.state_url, "tensorflow") is not None

    def test_it_does_not_go_without_saying_so(self, service: Service, capsys: Any) -> None:
        assert run_command_line(["uninstall", "tensorflow"]) == 2
        assert "--yes" in capsys.readouterr().err
        assert service.events == []

    def test_it_says_when_it_takes_too_long(self, service: Service, capsys: Any) -> None:
        arguments = ["uninstall", "tensorflow", "--yes", "--timeout", "0"]
        assert run_command_line(arguments) == 1
        assert "plan status deploy --name=tensorflow" in capsys.readouterr().err

    def test_it_can_be_left_to_itself(self, service: Service, capsys: Any) -> None:
        assert run_command_line(["uninstall", "tensorflow", "--yes", "--no-wait"]) == 0
        assert "is being uninstalled" in capsys.readouterr().out
