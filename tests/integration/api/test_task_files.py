"""Files of real tasks over the API: on the embedded cluster, with agents that fail."""

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster_faults import FaultyCluster
from dcos_tensorflow.api.app import create_app
from dcos_tensorflow.api.server import ApiServer
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.container_spec import TaskSecret
from dcos_tensorflow.deploy.served_job import SchedulerSource
from dcos_tensorflow.scheduler.gate import Allowed
from dcos_tensorflow.scheduler.scheduler import Scheduler
from embedded_mesos import AgentConfig
from scheduled_jobs import command_job, here, running, wait_until
from waiting import eventually

pytestmark = pytest.mark.timeout(120)

#: Prints a line whose bytes are not all UTF-8, and waits.
COMMAND = (
    r"printf 'caf\303\251 \377\n'; mkdir -p logs; echo deep > logs/train.log;"
    " while :; do sleep 0.2; done"
)


class Service:
    """A scheduler of one task on an embedded cluster, with its API."""

    def __init__(self, folder: Path) -> None:
        self.cluster = FaultyCluster([AgentConfig(cpus=2, mem=2048)], folder / "mesos")
        self.cluster.start()
        (folder / "password").write_text("hunter2-is-secret")
        spec = command_job(COMMAND, workers=1)
        secret = TaskSecret(f"file:{folder}/password", file="keys/password", option="secrets[0]")
        spec = replace(spec, roles=tuple(replace(r, secrets=(secret,)) for r in spec.roles))
        config = here(folder, self.cluster.master, allowed=Allowed(directory=folder))
        self.scheduler = Scheduler(
            spec,
            config,
            serve_api=lambda s: ApiServer(create_app(SchedulerSource(s))),
        )
        self.scheduler.start()
        wait_until(self.scheduler, running)

    def stop(self) -> None:
        self.scheduler.stop()
        self.cluster.stop()

    @property
    def record(self) -> Any:
        state = self.scheduler.state()
        assert state is not None
        return state.tasks["worker-0"]

    def ask(self, path: str, method: str = "GET") -> tuple[int, Any]:
        connection = http.client.HTTPConnection(self.scheduler.api_address, timeout=60)
        with closing(connection):
            connection.request(method, path)
            answer = connection.getresponse()
            text = answer.read().decode()
        return answer.status, json.loads(text) if text.startswith(("{", "[")) else text

    def file(self, name: str, query: str = "") -> tuple[int, Any]:
        return self.ask(f"/v1/pod/worker-0/files/{name}{query}")

    def printed(self) -> str:
        status, body = self.file("stdout")
        return str(body["data"]) if status == 200 else ""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    found = Service(tmp_path)
    eventually(lambda: "caf" in found.printed())
    yield found
    found.stop()


def test_files_are_given_as_they_are_and_secrets_are_not(service: Service) -> None:
    status, body = service.file("stdout")
    line = body["data"].splitlines()[-1]
    assert (status, line, body["next_offset"]) == (200, "café \ufffd", body["size"])
    start = body["size"] - len("café ".encode()) - 2
    assert service.file("stdout", f"?offset={start}")[1]["data"] == "café \ufffd\n"
    eventually(lambda: service.file("logs/train.log")[0] == 200)
    assert service.file("logs/train.log")[1]["data"] == "deep\n"
    assert service.file("keys/password")[0] == 403
    assert service.file("no-such")[0] == 404


def test_an_attempt_that_was_replaced_can_still_be_read(service: Service) -> None:
    before = service.record
    size = service.file("stdout")[1]["size"]
    assert service.ask("/v1/pod/worker-0/replace", "POST")[0] == 200
    wait_until(
        service.scheduler,
        lambda s: (
            s.tasks["worker-0"].task_id != before.task_id
            and s.tasks["worker-0"].state is TaskState.RUNNING
        ),
    )
    earlier = f"?task_id={before.task_id}&agent_id={before.agent_id}"
    status, body = service.file("stdout", earlier)
    assert (status, body["task_id"]) == (200, before.task_id)
    assert body["size"] >= size
    assert service.file("stdout")[1]["task_id"] == service.record.task_id


def test_an_agent_that_is_away_is_told(service: Service) -> None:
    service.cluster.faults.crash_agent(0)
    status, body = service.file("stdout")
    assert (status, "files/read" in body["message"]) == (503, True)
    service.cluster.faults.restart_agent(0)
    eventually(lambda: service.file("stdout")[0] == 200)


def test_an_agent_that_does_not_answer_holds_up_nothing_else(service: Service) -> None:
    service.cluster.faults.freeze_agent(0)
    statuses: list[int] = []
    waiting = [
        threading.Thread(target=lambda: statuses.append(service.file("stdout")[0]))
        for _ in range(60)
    ]
    for each in waiting:
        each.start()
    assert service.ask("/v1/plans")[0] == 200
    assert service.ask("/v1/job/stop", "POST")[0] == 200
    assert statuses == []
    service.cluster.faults.thaw_agent(0)
    for each in waiting:
        each.join(60)
    assert len(statuses) == 60
