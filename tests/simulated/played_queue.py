"""A queue whose jobs' schedulers are played by a table, and whose clock is moved by hand."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dcos_tensorflow.client.api_address import ApiAddress, registered
from dcos_tensorflow.queue.model import Host, Rules, Team
from dcos_tensorflow.queue_service import records
from dcos_tensorflow.queue_service.cluster_view import ClusterView
from dcos_tensorflow.queue_service.code_store import CodeStore
from dcos_tensorflow.queue_service.history import QueueHistory
from dcos_tensorflow.queue_service.job_schedulers import JobLook
from dcos_tensorflow.queue_service.jobs import Asker, Request
from dcos_tensorflow.queue_service.service import QueueService
from dcos_tensorflow.queue_service.teams_file import Membership, SchedulerTask, Teams, TeamUse
from dcos_tensorflow.state.store import StateStore, open_store

OPERATOR = Asker("operator")
RED, BLUE = Asker("team:red", "red"), Asker("team:blue", "blue")
HOSTS = (Host("host", 4_000, 16_000),)
#: As if schedulers took nothing: the tests count in whole CPUs.
NO_SCHEDULER = SchedulerTask.model_construct(cpus=0.0, mem=0)
QUICK = Rules(reclaim_after=10.0, least_run=5.0, grace=5.0, between_giving_way=5.0)


class AtOnce(Executor):
    """Does what it is given in the calling thread."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


@dataclass
class Clock:
    now: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class PlayedSchedulers:
    """Schedulers of jobs as ``JobSchedulers`` shows them."""

    clock: Clock
    serving: set[str] = field(default_factory=set)
    ends: dict[str, dict[str, Any]] = field(default_factory=dict)
    starts: list[str] = field(default_factory=list)
    resized: list[tuple[str, str, int]] = field(default_factory=list)
    #: Where they are asked.
    api: str = ""
    #: Why none is bought.
    no_machine: str = ""
    #: The machines whose budget is spent.
    going: frozenset[str] = frozenset()
    #: What a start raises.
    broken: Exception | None = None

    def start(self, job: str, team: str, hostname: str) -> None:
        if self.broken is not None:
            raise self.broken
        self.starts.append(job)
        self.serving.add(job)

    def api_of(self, job: str, team: str) -> ApiAddress:
        return registered(self.api, f"{team}s-{job}")

    def agent_of(self, job: str) -> str:
        return HOSTS[0].name if job in self.serving else ""

    def machines_that_go(self, now: float) -> frozenset[str]:
        return self.going

    def why_no_machine(self, job: str) -> str:
        return self.no_machine

    def look(self, service: str, team: str, now: float) -> JobLook:
        serves = service in self.serving
        return JobLook(serves, None if serves else self.ends.get(service), answers=serves)

    def stop(self, service: str, team: str, why: str) -> bool:
        self.end(service, "stopped", why)
        return True

    def forget(self, job: str, team: str) -> None:
        self.ends.pop(job, None)

    def resize(self, service: str, team: str, section: str, slots: int) -> bool:
        self.resized.append((service, section, slots))
        return True

    def end(self, service: str, outcome: str, why: str = "") -> None:
        """Let the job of a service end."""
        self.serving.discard(service)
        self.ends[service] = {
            "outcome": outcome,
            "summary": why,
            "finished_at": self.clock.now,
            "exit_code": 0,
        }


class PlayedQueue:
    """A queue of two teams on one host of four CPUs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = Clock()
        self.schedulers = PlayedSchedulers(self.clock)
        self.rules = QUICK
        self.store: StateStore | None = None
        self.code = CodeStore(folder / "code")
        self.code.folder.mkdir()
        self.service = self.begin()

    def begin(self, *, knows_cluster: bool = True) -> QueueService:
        """Serve the queue anew, from what is stored."""
        if self.store is not None:
            self.store.close()
        self.store = open_store(f"sqlite:///{self.folder / 'state.db'}", "queues/queue")
        self.store.lead("a test", 0.0, lambda why: None)
        values = self.store.load()
        kept = records.read(values)
        self.code.restore(values, kept.needed_code)
        self.service = QueueService(
            self.teams(),
            kept,
            store=self.store,
            schedulers=self.schedulers,  # type: ignore[arg-type]
            pool=AtOnce(),
            code=self.code,
            history=QueueHistory(self.folder / "history.jsonl"),
            clock=self.clock,
        )
        if knows_cluster:
            self.service.cluster_is(ClusterView(HOSTS, {}))
        return self.service

    def teams(self) -> Teams:
        free = TeamUse(("*",), (), "")
        return Teams(
            "queue",
            (Team("red", guarantee=0.5), Team("blue", guarantee=0.5)),
            {"red": free, "blue": free},
            self.rules,
            "",
            {},
            NO_SCHEDULER,
            Membership(),
            {},
        )

    def submit(self, name: str, asker: Asker = RED, **more: Any) -> str:
        return self.service.submit(asker, request(name, **more))

    def turn(self, seconds: float = 0.0, times: int = 1) -> None:
        for _ in range(times):
            self.clock.now += seconds
            self.service.turn()

    def state(self, job: str) -> str:
        return str(self.service.line_of(OPERATOR, job)["state"])


def request(name: str, cpus: float = 2.0, **more: Any) -> Request:
    """Return what asks for a job of one worker; ``options`` are laid over it."""
    given: dict[str, Any] = {
        "service": {"name": name, "job_cmd": "true"},
        "worker": {"count": 1, "cpus": cpus, "mem": 100},
        **more.pop("options", {}),
    }
    return Request(options=given, **more)
