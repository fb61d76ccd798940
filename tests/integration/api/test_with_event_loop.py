"""The API over a real event loop: what is asked for over HTTP happens, and is then shown."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

from dcos_tensorflow.api.app import create_app
from dcos_tensorflow.api.metrics import Metrics
from dcos_tensorflow.api.server import ApiServer
from dcos_tensorflow.core.model.actions import Accept, Action, Kill, Write
from dcos_tensorflow.core.model.events import Event, TaskUpdate
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import LaunchSettings, ServiceState
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.service_spec import RetrySpec
from dcos_tensorflow.scheduler.event_loop import EventLoop
from sample_states import TOKEN_KEY, a_spec, offered, registered
from state_source import Source

DEADLINE_SECONDS = 10.0


class Service(Source):
    """An event loop whose launches run at once and whose kills succeed at once, with its API."""

    def __init__(self) -> None:
        super().__init__()
        # Long enough to be looked at on a machine that is busy.
        retry = RetrySpec(initial_backoff_seconds=60)
        settings = LaunchSettings(token_key=TOKEN_KEY)
        state = ServiceState.of_one_gang(a_spec(retry=retry), "an-instance", settings)
        self.metrics = Metrics()
        self.loop = EventLoop(state, self, self.perform, tick_seconds=0.02)
        self.loop.measure(self.metrics.observe)
        self.server = ApiServer(create_app(self, metrics=self.metrics))
        self.address = self.server.start()
        self.loop.start()

    def close(self) -> None:
        self.loop.stop()
        self.server.stop()

    def commit(self, writes: Sequence[Write]) -> None:
        """Keep nothing: no test here restarts."""

    def erase(self) -> None:
        """There is nothing to remove."""

    def perform(self, action: Action) -> None:
        if isinstance(action, Accept):
            for launch in action.launches:
                self.submit(TaskUpdate(launch.task_id, TaskState.RUNNING, action.agent_id))
        if isinstance(action, Kill):
            self.submit(TaskUpdate(action.task_id, TaskState.KILLED, action.agent_id))

    def state(self) -> ServiceState | None:
        return self.loop.state

    def submit(self, event: Event) -> None:
        self.loop.submit(event)

    def reach(self, phase: JobPhase) -> None:
        assert self.loop.wait_for(lambda s: s.job.phase is phase, DEADLINE_SECONDS)
        assert self.loop.exit is None

    def ask(self, path: str, method: str = "GET", body: str | None = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(self.address, timeout=DEADLINE_SECONDS)
        with closing(connection):
            connection.request(method, path, body)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.close()


def test_a_plan_is_followed_to_its_end(service: Service) -> None:
    assert service.ask("/v1/plans/deploy")[1]["status"] == "PENDING"

    service.submit(registered())
    service.submit(offered(1, 2, 3, 4))
    service.reach(JobPhase.RUNNING)

    status, plan = service.ask("/v1/plans/deploy")
    assert (status, plan["status"]) == (200, "COMPLETE")


def test_a_job_is_stopped_over_http(service: Service) -> None:
    service.submit(registered())
    service.submit(offered(1, 2, 3, 4))
    service.reach(JobPhase.RUNNING)

    assert service.ask("/v1/job/stop", "POST", '{"why": "enough"}')[0] == 200
    service.reach(JobPhase.DONE)

    verdict = service.ask("/v1/job")[1]["verdict"]
    assert (verdict["outcome"], verdict["summary"]) == ("stopped", "enough")
    assert service.ask("/v1/job/stop", "POST")[0] == 208


def test_a_gang_that_comes_back_is_followed_in_the_recovery_plan(service: Service) -> None:
    service.submit(registered())
    service.submit(offered(1, 2, 3, 4))
    service.reach(JobPhase.RUNNING)
    assert service.ask("/v1/plans/recovery")[0] == 200

    failing = service.loop.state.tasks["worker-1"]
    service.submit(TaskUpdate(failing.task_id, TaskState.FAILED, failing.agent_id))
    service.reach(JobPhase.BACKING_OFF)

    status, plan = service.ask("/v1/plans/recovery")
    assert (status, plan["status"]) == (202, "DELAYED")
    assert [phase["name"] for phase in plan["phases"]] == ["restart-1"]
    assert service.ask("/v1/plans/deploy")[0] == 200


def test_a_gang_is_not_placed_while_its_plan_is_paused(service: Service) -> None:
    service.submit(registered())
    assert service.ask("/v1/plans/deploy/interrupt", "POST")[0] == 200
    service.submit(offered(1, 2, 3, 4))
    assert service.loop.wait_for(lambda s: s.desk.log.rejected > 0, DEADLINE_SECONDS)
    assert service.ask("/v1/plans/deploy")[1]["status"] == "WAITING"

    assert service.ask("/v1/plans/deploy/continue", "POST")[0] == 200
    service.submit(offered(5, 6, 7, 8))
    service.reach(JobPhase.RUNNING)


def test_a_sidecar_that_was_forced_complete_is_not_launched(service: Service) -> None:
    service.submit(registered())
    path = "/v1/plans/deploy/forceComplete?phase=tensorboard"
    assert service.ask(path, "POST")[0] == 200
    service.submit(offered(1, 2, 3, 4))
    service.reach(JobPhase.RUNNING)

    assert "tensorboard-0" not in service.loop.state.tasks
    assert service.ask("/v1/plans/deploy")[0] == 200


def test_a_service_is_uninstalled_over_http(service: Service) -> None:
    service.submit(registered())
    service.submit(offered(1, 2, 3, 4))
    service.reach(JobPhase.RUNNING)

    assert service.ask("/v1/uninstall", "POST")[0] == 200
    assert service.loop.wait_for(lambda s: s.removal.erased, DEADLINE_SECONDS)

    status, plan = service.ask("/v1/plans/deploy")
    assert (status, plan["status"]) == (200, "COMPLETE")
    assert [phase["name"] for phase in plan["phases"]][-1] == "deregister-service"


def test_what_happened_is_counted(service: Service) -> None:
    service.submit(registered())
    service.submit(offered(1, 2, 3, 4))
    service.reach(JobPhase.RUNNING)

    counters = service.ask("/v1/metrics")[1]["counters"]
    assert counters["operation.launch"]["count"] == 4
    assert counters["task_status.task_staging"]["count"] == 4
    assert counters["offers.received"]["count"] == 4
