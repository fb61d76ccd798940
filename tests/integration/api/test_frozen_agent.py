"""Files of a task whose agent does not answer, asked for over the API: nothing else waits."""

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cluster_faults import FaultyCluster
from dcos_tensorflow.api.app import create_app
from dcos_tensorflow.api.server import ApiServer
from dcos_tensorflow.deploy.served_job import SchedulerSource
from dcos_tensorflow.scheduler.scheduler import Scheduler
from embedded_mesos import AgentConfig
from jobs.scheduled_jobs import command_job, here, running, wait_until
from waiting import eventually

pytestmark = pytest.mark.timeout(120)

FILE = "/v1/pod/worker-0/files/stdout"
Ask = Callable[..., int]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[FaultyCluster]:
    with FaultyCluster([AgentConfig(cpus=2, mem=2048)], tmp_path / "mesos") as made:
        yield made


@pytest.fixture
def ask(tmp_path: Path, cluster: FaultyCluster) -> Iterator[Ask]:
    """Return what asks the API of a scheduler whose task runs, for the status of its answer."""
    scheduler = Scheduler(
        command_job("sleep 600", workers=1),
        here(tmp_path, cluster.master),
        serve_api=lambda s: ApiServer(create_app(SchedulerSource(s))),
    )
    scheduler.start()
    wait_until(scheduler, running)

    def status_of(path: str, method: str = "GET") -> int:
        with closing(http.client.HTTPConnection(scheduler.api_address, timeout=60)) as connection:
            connection.request(method, path)
            return connection.getresponse().status

    yield status_of
    scheduler.stop()


def test_an_agent_that_does_not_answer_holds_up_nothing_else(
    ask: Ask, cluster: FaultyCluster
) -> None:
    eventually(lambda: ask(FILE) == 200)
    cluster.faults.freeze_agent(0)
    statuses: list[int] = []
    waiting = [threading.Thread(target=lambda: statuses.append(ask(FILE))) for _ in range(60)]
    for each in waiting:
        each.start()
    assert ask("/v1/plans") == 200
    assert ask("/v1/job/stop", "POST") == 200
    assert statuses == []
    cluster.faults.thaw_agent(0)
    for each in waiting:
        each.join(60)
    assert len(statuses) == 60
