"""The queue's API as its client asks it: who may do what, and the way of a job's code."""

from __future__ import annotations

import hashlib
import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from dcos_tensorflow.api.audit import AuditLog
from dcos_tensorflow.api.callers.access import Access
from dcos_tensorflow.api.server import ApiServer
from dcos_tensorflow.client.api_address import registered
from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.deploy.job.given_options import GivenOptions
from dcos_tensorflow.deploy.settings import collect
from dcos_tensorflow.queue_service.app import QueueApi, Schedulers
from dcos_tensorflow.queue_service.client import QueueClient, Wishes
from dcos_tensorflow.queue_service.members import Members
from dcos_tensorflow.queue_service.rights import Rights
from dcos_tensorflow.queue_service.scheduler_tasks import Installed
from dcos_tensorflow.queue_service.teams_file import Membership
from simulated.played_queue import PlayedQueue

OPERATOR, RED, BLUE, OF_RIGHTS = (
    f"the-token-of-{name}-is-long" for name in ("operator", "red", "blue", "rights")
)


class Served:
    """A played queue behind its API."""

    def __init__(self, queue: PlayedQueue, folder: Path) -> None:
        self.queue = queue
        self.folder = folder
        self.code = queue.code.folder
        self.audit = folder / "audit.jsonl"
        members = Members(Membership({"red": RED, "blue": BLUE}))
        access = Access(OPERATOR, logins=members)
        work = WorkDirectory(folder)
        self.rights = Rights(
            folder / "secrets", OF_RIGHTS, collect(None, {}, {}), work, {}, local=True
        )
        schedulers = Schedulers(self.rights, Installed(None, False))  # type: ignore[arg-type]
        api = QueueApi(
            queue.service,
            access,
            members,
            AuditLog(self.audit),
            code=queue.code,
            schedulers=schedulers,
        )
        self.server = ApiServer(api.app())
        self.server.start()

    def client(self, token: str) -> QueueClient:
        return QueueClient(registered(self.server.address, token), WorkDirectory(self.folder))

    def status(self, method: str, path: str, body: bytes = b"", **headers: str) -> int:
        """Return what a request of the red team is answered."""
        return self.answer(path, RED, body, method, **headers)[0]

    def scheduler_asks(self, path: str, body: bytes = b"") -> bytes:
        """Return what the scheduler of a job of the red team is answered."""
        method = "POST" if body else "GET"
        status, answer = self.answer(
            f"/v1/schedulers/{path}", self.rights.token("red"), body, method
        )
        assert status == 200
        return answer

    def answer(
        self, path: str, token: str, body: bytes = b"", method: str = "GET", **headers: str
    ) -> tuple[int, bytes]:
        sent = {"authorization": f"Bearer {token}", **headers}
        with closing(http.client.HTTPConnection(self.server.address)) as connection:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def job(self, name: str, **service: object) -> GivenOptions:
        """Return the options of a job whose code lies in a folder of its own."""
        source = self.folder / name
        source.mkdir()
        (source / "train.py").write_text("print('step 1')\n")
        given = {"name": name, "job_url": str(source), "job_name": "train", **service}
        return GivenOptions({"service": given, "worker": {"count": 1, "cpus": 1, "mem": 100}})


@pytest.fixture
def served(queue: PlayedQueue, tmp_path: Path) -> Iterator[Served]:
    made = Served(queue, tmp_path)
    yield made
    made.server.stop()


def test_a_job_runs_with_the_code_that_was_submitted(served: Served) -> None:
    client = served.client(RED)
    client.submit(served.job("job"), Wishes())
    (served.folder / "job" / "train.py").write_text("raise SystemExit\n")
    served.queue.turn()
    told = json.loads(served.scheduler_asks("job"))
    assert told["options"]["service"]["job_name"] == "train"
    code = served.scheduler_asks("job/code")
    assert told["code"].startswith(hashlib.sha256(code).hexdigest())


@pytest.mark.parametrize("token", [RED, OPERATOR, OF_RIGHTS])
def test_what_a_scheduler_asks_is_told_to_none_but_schedulers(served: Served, token: str) -> None:
    served.client(RED).submit(served.job("job"), Wishes())
    served.queue.turn()
    assert served.answer("/v1/schedulers/job", token)[0] == 401


@pytest.mark.parametrize("part", ["", "/code"])
def test_a_scheduler_asks_for_no_job_of_another_team(served: Served, part: str) -> None:
    served.client(RED).submit(served.job("job"), Wishes())
    served.queue.turn()
    assert served.answer(f"/v1/schedulers/job{part}", served.rights.token("blue"))[0] == 401


def test_a_scheduler_is_told_that_its_job_is_not_to_run(served: Served) -> None:
    served.client(RED).submit(served.job("job"), Wishes(hold=True))
    assert served.answer("/v1/schedulers/job", served.rights.token("red"))[0] == 404


def test_a_job_that_its_scheduler_refuses_has_failed(served: Served) -> None:
    client = served.client(RED)
    client.submit(served.job("job"), Wishes())
    served.queue.turn()
    why = b'{"why": "there is no such Python"}'
    served.scheduler_asks("job/refused", why)
    found = client.job("job")
    assert (found["state"], found["why"]) == ("failed", "there is no such Python")


def test_what_a_scheduler_says_of_its_refusal_is_cut_to_what_is_kept(served: Served) -> None:
    client = served.client(RED)
    client.submit(served.job("job"), Wishes())
    served.queue.turn()
    served.scheduler_asks("job/refused", json.dumps({"why": "x" * 900_000}).encode())
    assert len(client.job("job")["why"]) < 10_000


@pytest.mark.parametrize(("token", "path"), [(RED, "jobs"), ("", "schedulers/job/refused")])
def test_of_a_body_no_more_is_read_than_makes_sense(served: Served, token: str, path: str) -> None:
    served.client(RED).submit(served.job("job"), Wishes())
    served.queue.turn()
    said = token or served.rights.token("red")
    assert served.answer(f"/v1/{path}", said, b" " * 1_000_001, "POST")[0] == 413


def test_the_same_code_is_brought_once(served: Served) -> None:
    client = served.client(RED)
    given = served.job("job")
    client.submit(given, Wishes())
    client.order("job", "cancel")
    client.submit(given, Wishes())
    assert len(list(served.code.iterdir())) == 1


def test_a_queue_on_another_machine_has_the_code_of_the_jobs_that_wait(served: Served) -> None:
    served.client(RED).submit(served.job("job"), Wishes())
    (archive,) = served.code.iterdir()
    content = archive.read_bytes()
    archive.unlink()
    served.queue.begin()
    assert archive.read_bytes() == content


def test_the_code_of_a_job_goes_when_no_job_needs_it(served: Served) -> None:
    client, given = served.client(RED), served.job("one")
    other = given.with_override('service.name="two"')
    client.submit(given, Wishes())
    client.submit(other, Wishes())
    client.order("one", "cancel")
    assert len(list(served.code.iterdir())) == 1
    client.order("two", "cancel")
    assert list(served.code.iterdir()) == []
    served.queue.begin()
    assert list(served.code.iterdir()) == []


def test_a_team_sees_its_own_jobs_and_the_operator_all(served: Served) -> None:
    served.client(RED).submit(served.job("one"), Wishes())
    served.client(BLUE).submit(served.job("two"), Wishes())
    seen = {token: {j["job"] for j in served.client(token).jobs()} for token in (RED, BLUE)}
    assert seen == {RED: {"one"}, BLUE: {"two"}}
    assert {job["job"] for job in served.client(OPERATOR).jobs()} == {"one", "two"}


@pytest.mark.parametrize("token", ["", "a-token-that-is-nobodys"])
def test_who_has_no_token_is_told_nothing(served: Served, token: str) -> None:
    with pytest.raises(CliError, match="token"):
        served.client(token).jobs()


def test_a_team_cannot_cancel_the_job_of_another(served: Served) -> None:
    served.client(RED).submit(served.job("one"), Wishes())
    with pytest.raises(CliError, match="there is no job one"):
        served.client(BLUE).order("one", "cancel")


def test_an_order_is_in_the_audit_log_with_its_author(served: Served) -> None:
    served.client(RED).submit(served.job("one"), Wishes())
    served.client(OPERATOR).order("one", "hold")
    entries = [json.loads(line) for line in served.audit.read_text().splitlines()]
    told = [(one["who"], one["verb"], one["status"]) for one in entries]
    assert ("team:red", "POST /v1/jobs", 201) in told
    assert ("operator", "POST /v1/jobs/one/hold", 200) in told


def test_a_secret_in_clear_is_not_handed_to_a_queue(served: Served) -> None:
    given = served.job("job", env=json.dumps({"API_PASSWORD": "hunter2"}))
    with pytest.raises(UsageError, match="in clear"):
        served.client(RED).submit(given, Wishes())


@pytest.mark.parametrize(
    "sections",
    [
        {"service": {"name": "job", "job_url": "/etc", "job_name": "x"}},
        {"service": {"name": "job", "job_url": "file:///etc", "job_name": "x"}},
        {
            "service": {"name": "job", "job_cmd": "true"},
            "data": [{"uri": "secret", "path": "data"}],
        },
    ],
)
def test_a_team_has_nothing_read_on_the_queues_machine(
    served: Served, sections: dict[str, object]
) -> None:
    worker = {"worker": {"count": 1, "cpus": 1, "mem": 100}}
    body = json.dumps({"options": {**sections, **worker}, "folder": str(served.folder)})
    assert served.status("POST", "/v1/jobs", body.encode()) == 400
    assert served.client(OPERATOR).jobs() == []


@pytest.mark.parametrize(
    ("name", "status"), [("../../etc/passwd", 404), (f"{'a' * 64}.zip", 400), ("x.zip", 400)]
)
def test_code_has_the_name_of_what_it_is(served: Served, name: str, status: int) -> None:
    assert served.status("PUT", f"/v1/code/{name}", b"not that") == status
    assert list(served.code.iterdir()) == []


def test_a_page_of_another_site_orders_nothing(served: Served) -> None:
    served.client(RED).submit(served.job("one"), Wishes())
    asked = served.status("POST", "/v1/jobs/one/cancel", origin="https://evil.example")
    assert asked == 403


@pytest.fixture
def told(served: Served) -> Iterator[list[str]]:
    """What the scheduler of the red team's job is asked."""
    asked: list[str] = []

    async def answer(request: Request) -> JSONResponse:
        asked.append(f"{request.method} {request.url.path} {request.headers['authorization']}")
        return JSONResponse({"service": "job"})

    methods = ["GET", "POST"]
    scheduler = ApiServer(Starlette(routes=[Route("/{path:path}", answer, methods=methods)]))
    scheduler.start()
    served.queue.schedulers.api = scheduler.address
    served.client(RED).submit(served.job("job"), Wishes())
    served.queue.turn()
    yield asked
    scheduler.stop()


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_operator_asks_the_scheduler_of_a_job_through_the_queue(
    served: Served, told: list[str], method: str
) -> None:
    status, answer = served.answer("/v1/services/job/v1/job", OPERATOR, b"", method)
    assert (status, json.loads(answer)) == (200, {"service": "job"})
    assert told == [f"{method} /v1/job Bearer reds-job"]


def test_a_team_reads_of_its_own_jobs_schedulers_alone(served: Served, told: list[str]) -> None:
    path = "/v1/services/job/v1/job"
    assert served.answer(path, RED)[0] == 200
    assert served.answer(path, RED, b"", "POST")[0] == 403
    assert served.answer(path, BLUE)[0] == 404
    assert len(told) == 1
