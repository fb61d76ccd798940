"""One job that trains, with real processes, and what can be asked of it.

``Training`` is a chief, a ps and two workers that behave as a ParameterServerStrategy does
(``tests/end_to_end/programs/trainer.py``), each on an agent of its own, and one agent to spare. It
is asked what its user sees: the HTTP API, the processes, the steps, the result. Two services make
it: ``ScheduledTraining`` has its scheduler in the test's process, ``ServedTraining`` in processes
that can be killed.
"""

import contextlib
import json
import os
import sys
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cluster_faults import FaultyCluster
from data_files import PROGRAMS
from dcos_tensorflow.api.app import create_app
from dcos_tensorflow.api.server import ApiServer
from dcos_tensorflow.deploy.served_job import SchedulerSource
from dcos_tensorflow.options import effective, load, service_spec
from dcos_tensorflow.scheduler.scheduler import Scheduler
from jobs.scheduled_jobs import here
from scheduler_process import SchedulerProcess
from waiting import eventually

Json = dict[str, Any]

TRAINER = PROGRAMS / "trainer.py"
#: Seconds; an unhurried machine needs a tenth of it.
DEADLINE = 60.0
#: The job ends when it is told to, and not before this step.
LAST_STEP = 40
GANG = ("chief-0", "ps-0", "worker-0", "worker-1")
#: What a task takes; an agent has room for exactly one.
SMALL = {"cpus": 0.1, "mem": 64, "disk": 10}


def job_options(folder: Path, **sections: Mapping[str, Any]) -> Json:
    """Return the options of the job; ``sections`` add keys to theirs or replace them."""
    marks = folder / "marks"
    marks.mkdir(exist_ok=True)
    options: dict[str, Json] = {
        "service": {
            "name": "job",
            "user": "",
            "job_cmd": f"{sys.executable} {TRAINER} {marks} {LAST_STEP}",
            "python": sys.executable,
            "strategy": "parameter_server",
            "kill_grace_seconds": 1,
            "outcome_grace_seconds": 1,
        },
        "checkpoints": {"uri": str(folder / "checkpoints")},
        # A retry that was charged would end the job.
        "retry": {"limit": 0, "initial_backoff_seconds": 0.2, "max_backoff_seconds": 1},
        "gang": {"hold_seconds": 2, "retry_seconds": 0.5},
        "chief": {"count": 1, **SMALL},
        "parameter_server": {"count": 1, **SMALL},
        "worker": {"count": 2, **SMALL},
    }
    for name, values in sections.items():
        options[name] = {**options.get(name, {}), **values}
    return options


class Training(ABC):
    """The job: its API, its processes, its steps."""

    def __init__(self, folder: Path, cluster: FaultyCluster, options: Json) -> None:
        self.folder = folder
        self.marks = folder / "marks"
        self.cluster = cluster
        self.options = options
        self.gang = GANG
        #: What ran when the test last looked (``look``).
        self.pids: dict[str, int] = {}
        self.attempts: dict[str, str] = {}
        #: When the last incident was that an earlier test has made.
        self.earlier = 0.0

    # What its user asks.

    @property
    @abstractmethod
    def api(self) -> str:
        """Where the service's API listens."""

    def ask(self, path: str, body: Any = None) -> tuple[int, Any]:
        """GET a path, or POST a body to it; return status and JSON, 0 where there is no answer."""
        data = None if body is None else json.dumps(body).encode() if body else b""
        try:
            with urllib.request.urlopen(f"http://{self.api}{path}", data, timeout=10) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"null")
        except OSError as error:
            return 0, str(error)

    def order(self, path: str, body: Json | None = None) -> Any:
        """POST what the service has to take."""
        status, answer = self.ask(path, body or "")
        assert status == 200, answer
        return answer

    def job(self) -> Json:
        """Return /v1/job, without incidents of earlier tests; empty while no scheduler answers."""
        status, body = self.ask("/v1/job")
        if status != 200:
            return {}
        return {**body, "incidents": [i for i in body["incidents"] if i["at"] > self.earlier]}

    def framework_id(self) -> str:
        status, body = self.ask("/v1/state/frameworkId")
        assert status == 200, body
        return str(body[0])

    def plan(self, name: str) -> str:
        """Return the status of a plan."""
        _, body = self.ask(f"/v1/plans/{name}")
        return str(body["status"])

    def incidents(self) -> list[Json]:
        return list(self.job()["incidents"])

    def told(self) -> str:
        """Return all that the service says about what has happened."""
        job = self.job()
        return " / ".join([*(i["summary"] for i in job["incidents"]), job["why"]])

    def waits_for(self, phase: str) -> Json:
        """Wait until the job is in this phase; return /v1/job."""
        return self.says(lambda job: job["phase"] == phase, f"the phase {phase}")

    def says(self, condition: Callable[[Json], object], what: str) -> Json:
        """Wait until /v1/job fits; return it."""
        __tracebackhide__ = True
        found: Json = {}

        def fits() -> bool:
            found.clear()
            found.update(self.job())
            return bool(found) and bool(condition(found))

        try:
            eventually(fits, seconds=DEADLINE, what=what)
        except AssertionError as error:
            keys = ("phase", "why", "verdict", "incidents", "restarting", "absent")
            raise AssertionError(f"{error}; { ({k: found.get(k) for k in keys}) }") from None
        return found

    # What runs.

    def running_pids(self) -> dict[str, int]:
        """Return the user's process of each task, as it said itself; without those that ended."""
        found = {}
        for name in self.gang:
            with contextlib.suppress(OSError, ValueError):
                pid = int((self.marks / f"{name}.pid").read_text())
                state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z":
                    found[name] = pid
        return found

    def running_attempts(self) -> dict[str, str]:
        return {name: task.get("task_id", "") for name, task in self.job()["tasks"].items()}

    def task_id(self, name: str) -> str:
        return str(self.job()["tasks"][name]["task_id"])

    def agent_of(self, name: str) -> int:
        """Return the agent that runs a task, by its place in the cluster's configuration."""
        return self.cluster.faults.agent_of(self.task_id(name))

    def signal(self, name: str, number: int) -> None:
        """Send a signal to the user's process of a task."""
        os.kill(self.running_pids()[name], number)

    def step(self) -> int:
        with contextlib.suppress(OSError, ValueError):
            return int((self.marks / "highest").read_text())
        return 0

    def trains(self) -> None:
        """Wait until the chief has made some steps from now on, whichever chief it is."""
        chief, first = None, 0

        def went_on() -> bool:
            nonlocal chief, first
            now = self.running_pids().get("chief-0"), self.step()
            if now[0] is None or now[0] != chief:
                chief, first = now
                return False
            return now[1] > first + 3

        eventually(went_on, seconds=DEADLINE, what=f"steps after {self.step()}")

    def look(self) -> None:
        """Wait until all of the gang runs and trains; remember what runs."""
        __tracebackhide__ = True
        self.waits_for("running")
        eventually(
            lambda: self.running_pids().keys() == set(self.gang),
            seconds=DEADLINE,
            what="a process of every task",
        )
        self.trains()
        self.pids, self.attempts = self.running_pids(), self.running_attempts()

    def looks_anew(self) -> None:
        """Look, and leave out of account what earlier tests have made of it."""
        self.look()
        self.earlier = max((i["at"] for i in self.incidents()), default=self.earlier)

    # What a fault has led to.

    def recovers(
        self, *restarted: str, moved: tuple[str, ...] = (), perhaps: tuple[str, ...] = ()
    ) -> Json:
        """Wait until these have a new process and all trains on; return /v1/job.

        Of them, those in ``moved`` have a new container. Those in ``perhaps`` may have started
        again too: it depends on where others found a place. No other task was touched: the same
        processes in the same containers. Nothing was charged.
        """
        __tracebackhide__ = True

        def changed() -> set[str]:
            now = self.running_pids()
            return {name for name, pid in self.pids.items() if now.get(name) != pid}

        def is_back() -> bool:
            return changed() >= set(restarted) and self.running_pids().keys() == set(self.gang)

        try:
            eventually(is_back, seconds=DEADLINE, what=f"new processes of {restarted}")
        except AssertionError as error:
            raise AssertionError(f"{error}; {changed()} changed; {self.told()}") from None
        job = self.waits_for("running")
        self.trains()
        now, told = self.running_attempts(), self.told()
        elsewhere = {name for name, attempt in self.attempts.items() if now[name] != attempt}
        assert changed() - set(perhaps) == set(restarted), told
        assert elsewhere == set(moved), told
        assert not any(incident["charged"] for incident in job["incidents"]), job["incidents"]
        assert self.twice() == []
        return job

    def is_untouched(self) -> Json:
        """Check that every process is the one that was seen, and trains on; return /v1/job."""
        __tracebackhide__ = True
        return self.recovers()

    def ends_right(self) -> Json:
        """Let the job end; it has succeeded, with the right sum, and without a charged retry."""
        __tracebackhide__ = True
        (self.marks / "finish").touch()
        job = self.waits_for("done")
        assert job["verdict"]["outcome"] == "succeeded", job
        assert not any(incident["charged"] for incident in job["incidents"]), job["incidents"]
        result = json.loads((self.marks / "result").read_text())
        assert result["step"] >= LAST_STEP
        assert result["sum"] == result["step"] * (result["step"] + 1) // 2
        assert self.twice() == []
        return job

    def twice(self) -> list[str]:
        """Return the tasks of which two processes wanted to train at once."""
        return [file.stem for file in self.marks.glob("*.twice")]


class ScheduledTraining(Training):
    """With its scheduler in this process."""

    def __init__(
        self, folder: Path, cluster: FaultyCluster, options: Json, *, state: str = ""
    ) -> None:
        super().__init__(folder, cluster, options)
        config = here(folder, cluster.master, **({"state": state} if state else {}))
        read = load(options)
        self.scheduler = Scheduler(
            service_spec(read), config, serve_api=self._serve_api, given=effective(read)
        )
        self.scheduler.start()

    def _serve_api(self, scheduler: Scheduler) -> ApiServer:
        return ApiServer(create_app(SchedulerSource(scheduler)))

    @property
    def api(self) -> str:
        return self.scheduler.api_address

    def close(self) -> None:
        self.scheduler.stop()


class ServedTraining(Training):
    """With its scheduler in a process of its own, and others that stand by or come after it."""

    def __init__(self, folder: Path, cluster: FaultyCluster, options: Json, *, state: str) -> None:
        super().__init__(folder, cluster, options)
        self.state = state
        self.file = folder / "options.json"
        self.file.write_text(json.dumps(options))
        self.started: list[SchedulerProcess] = []
        self.leader: SchedulerProcess | None = None

    def start(self, *flags: str, **more: Any) -> SchedulerProcess:
        """Start a scheduler, which is asked from now on."""
        name = f"scheduler-{len(self.started)}"
        arguments = (name, self.folder, self.file, self.cluster.master, self.state, *flags)
        self.leader = SchedulerProcess(*arguments, environment={}, **more)
        self.started.append(self.leader)
        return self.leader

    @property
    def api(self) -> str:
        assert self.leader is not None, "no scheduler was started"
        return str(self.leader.api)

    def close(self) -> None:
        for one in self.started:
            one.close()
