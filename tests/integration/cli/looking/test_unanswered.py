"""Commands that wait for a job's end, while its scheduler goes and another one comes."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.cli.main import run_command_line
from dcos_tensorflow.client import registry
from dcos_tensorflow.client.registry import Registration
from dcos_tensorflow.client.work_directory import ServiceDirectory, WorkDirectory
from dcos_tensorflow.core.model.events import Event, StopRequested, UninstallRequested
from dcos_tensorflow.core.model.job import JobPhase, Outcome, Verdict
from dcos_tensorflow.core.model.task import TaskState
from samples.states import a_state, failed, gang
from servers.answering_service import TOKEN, Service

STOPPED = a_state(
    JobPhase.DONE,
    gang(TaskState.KILLED),
    job={"verdict": Verdict(Outcome.STOPPED, 130, "stopped from the command line")},
)
GONE = a_state(
    JobPhase.DONE,
    gang(TaskState.KILLED),
    job={"uninstalling": True},
    erased=True,
    framework_id="",
)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServiceDirectory:
    monkeypatch.setenv("DCOS_TENSORFLOW_HOME", str(tmp_path))
    found = WorkDirectory(tmp_path).service("tensorflow")
    found.prepare()
    return found


@pytest.fixture
def service(directory: ServiceDirectory) -> Iterator[Service]:
    """A service whose scheduler goes when it is asked for anything, and comes back elsewhere.

    Its first answer says that the order was received; its effect is not known.
    """
    found = Service()

    def serve(api: str) -> None:
        state = f"sqlite:///{directory.path}/state.db"
        registry.register(directory, Registration("tensorflow", os.getpid(), api, TOKEN, state))

    serve(found.server.start())
    found.once_gone = lambda: serve(found.come_back())
    yield found
    found.end()


def leaves_at_first(service: Service, then: Callable[[], None]) -> Callable[[], None]:
    """Return what has the scheduler go at its first event, and do something at the next."""

    def on_event() -> None:
        if len(service.events) == 1:
            service.leave()
        else:
            then()

    return on_event


def becomes(service: Service, state: Any) -> Callable[[], None]:
    return lambda: setattr(service, "current", state)


def test_a_stop_is_asked_for_again_of_the_next_scheduler_and_waits_for_the_tasks_end(
    service: Service, capsys: Any
) -> None:
    service.on_event = leaves_at_first(service, becomes(service, STOPPED))
    assert run_command_line(["stop", "tensorflow"]) == 0
    stop = StopRequested("stopped from the command line")
    assert service.events == [stop, stop]
    assert "tensorflow has ended: stopped" in capsys.readouterr().out


def test_a_stop_says_who_does_not_answer_and_never_that_the_job_has_ended(
    service: Service, capsys: Any
) -> None:
    service.on_event = leaves_at_first(service, lambda: None)
    service.once_gone = lambda: None
    assert run_command_line(["stop", "tensorflow", "--timeout", "1"]) == 1
    told = capsys.readouterr()
    assert "has ended" not in told.out
    assert "Waiting for it to come back." in told.err
    assert "has not ended within 1 s" in told.err
    assert "Its tasks may run." in told.err


def test_a_job_that_failed_before_it_was_stopped_ends_the_stop_with_its_code(
    service: Service, capsys: Any
) -> None:
    service.current = failed()
    assert run_command_line(["stop", "tensorflow"]) == 3
    assert "tensorflow has ended: failed" in capsys.readouterr().out


def test_following_goes_on_with_the_next_scheduler_and_ends_with_the_jobs_code(
    service: Service, directory: ServiceDirectory, capsys: Any
) -> None:
    ended = {"service": "tensorflow", "outcome": "failed", "exit_code": 3, "summary": "it broke"}
    more = {"phase": "done", "result": {}, "places": {}}

    def look(looks: int) -> None:
        if looks == 4:
            service.leave()
        if looks == 8:
            service.current = failed()
            directory.last_end.write_text(json.dumps({**ended, **more}))

    service.on_look = look

    assert run_command_line(["status", "tensorflow", "--follow"]) == 3
    told = capsys.readouterr()
    assert "The job tensorflow has failed: it broke" in told.out


def test_following_waits_for_a_scheduler_that_loads_its_state(
    service: Service, directory: ServiceDirectory, capsys: Any
) -> None:
    loaded, service.current = failed(), None

    def look(looks: int) -> None:
        if looks == 3:
            service.current = loaded
            directory.last_end.write_text(
                json.dumps({"service": "t", "outcome": None, "exit_code": 7, "phase": "done"})
            )

    service.on_look = look

    assert run_command_line(["status", "tensorflow", "--follow", "--json"]) == 7
    assert "the service is starting" in capsys.readouterr().err


def test_an_uninstall_waits_for_the_next_answer(service: Service, capsys: Any) -> None:
    # Of a state that cannot be shown yet there is an answer, too: 503.
    service.on_event = becomes(service, None)
    service.on_look = lambda looks: becomes(service, GONE)() if looks == 4 else None
    assert run_command_line(["uninstall", "tensorflow", "--yes"]) == 0
    events: list[Event] = service.events
    assert events == [UninstallRequested("from the command line")]
    assert capsys.readouterr().out == "tensorflow is uninstalled.\n"
