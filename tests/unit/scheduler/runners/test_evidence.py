"""What an ended task's sandbox tells."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dcos_tensorflow.core.model.actions import CollectEvidence
from dcos_tensorflow.core.model.events import EvidenceFound
from dcos_tensorflow.mesos.address import Address
from dcos_tensorflow.mesos.agent_files import AgentUnreachable, Sandbox
from dcos_tensorflow.scheduler.runners import evidence_reading as evidence
from dcos_tensorflow.scheduler.runners.evidence_reading import EvidenceReader, read_evidence
from waiting import eventually

TASK = "mnist__worker-0__1"
HERE = Sandbox(Address("agent", 5051), "/sandboxes/1")


class Files:
    """The files of one sandbox."""

    def __init__(self, **files):
        self.files = files

    def tail_in(self, sandbox, name, lines=40):
        key = name.replace("-", "_").replace(".", "_")
        if key not in self.files:
            raise FileNotFoundError(name)
        return self.files[key].splitlines()[-lines:]


def test_the_runners_report_is_the_first_choice():
    report = {"summary": "no module named foo", "hint": "see service.job_name", "last_lines": ["a"]}
    found = read_evidence(Files(task_exit_json=json.dumps(report), stderr="x"), HERE, TASK)
    assert found.summary == "no module named foo; see service.job_name"
    assert found.last_lines == ("a",)


def test_without_a_report_the_line_of_stderr_that_speaks_of_an_error_tells():
    stderr = "I0101 fetching\nFailed to fetch 'http://x/job.zip': 404\nbye\n"
    found = read_evidence(Files(stderr=stderr), HERE, TASK)
    assert found.summary == "Failed to fetch 'http://x/job.zip': 404"


@pytest.mark.parametrize(
    "line",
    [
        "I0000 00:00:1795458945.262882 5077 port.cc:153] oneDNN custom operations are on. You may"
        " see slightly different numerical results due to floating-point round-off errors",
        "2026-11-23 18:36:31.262882: I tensorflow/core/util/port.cc:113] round-off errors",
        "W0000 00:00:1795621680.087087 12185 local_rendezvous.cc:412] Local rendezvous is aborting",
        "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
    ],
)
def test_what_tensorflow_logs_all_the_time_is_why_nothing_ended(line):
    assert read_evidence(Files(stderr=f"{line}\n"), HERE, TASK).summary == ""
    assert read_evidence(Files(stderr=f"bye\n{line}\n"), HERE, TASK).summary == "bye"


def test_a_sandbox_that_cannot_be_read_is_no_error():
    assert read_evidence(Files(), HERE, TASK).summary == ""


def test_the_last_progress_of_a_task_is_read():
    report = '{"summary": "", "progress": {"step": 5}}'
    assert read_evidence(Files(task_exit_json=report), HERE, TASK).progress == {"step": 5}


def test_a_report_cut_in_the_middle_is_not_believed():
    assert read_evidence(Files(task_exit_json='{"summ'), HERE, TASK).summary == ""


class Agents:
    """Agents with a sandbox for each of their tasks; those that are away never answer."""

    def __init__(self, *away: str) -> None:
        self.away = set(away)
        self.looks: list[str] = []
        self.under_way = 0
        self.most_under_way = 0
        self.changed = threading.Condition()
        self.given_up = threading.Event()

    def sandboxes(self, agent_id: str, framework_id: str, task_ids: Any) -> dict[str, Sandbox]:
        with self.changed:
            self.looks.append(agent_id)
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            if agent_id in self.away:
                self.given_up.wait(60.0)
                raise AgentUnreachable("no answer in time")
            return {task: Sandbox(Address(agent_id, 5051), f"/{task}") for task in task_ids}
        finally:
            with self.changed:
                self.under_way -= 1

    def tail_in(self, sandbox: Sandbox, file: str, lines: int = 40) -> list[str]:
        return [f"Error of {sandbox.directory}"] if file == "stderr" else []


class Reading:
    """A reader with a clock of its own, and what it has told."""

    def __init__(self, agents: Agents, threads: int = 4) -> None:
        self.agents = agents
        self.now = 0.0
        self.told: dict[str, str] = {}
        self.times: dict[str, int] = {}
        self.pool = ThreadPoolExecutor(threads)
        self.reader = EvidenceReader(
            agents, lambda: "f", self._take, self.pool, clock=lambda: self.now
        )

    def _take(self, found: EvidenceFound) -> None:
        self.times[found.task_id] = self.times.get(found.task_id, 0) + 1
        self.told[found.task_id] = found.summary

    def collect(self, *where: tuple[str, str]) -> None:
        for task_id, agent_id in where:
            self.reader.collect(CollectEvidence(task_id, agent_id))

    def close(self) -> None:
        self.agents.given_up.set()
        self.pool.shutdown(wait=True, cancel_futures=True)


@pytest.fixture
def reading():
    """Return a function that makes a reader of these agents."""
    made: list[Reading] = []

    def make(agents: Agents, threads: int = 4) -> Reading:
        made.append(Reading(agents, threads))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_all_that_ended_on_one_agent_takes_one_look_or_two(reading):
    one = reading(Agents())
    one.collect(*((f"t{number}", "a") for number in range(100)))
    eventually(lambda: len(one.told) == 100)
    # The first task may be looked at before the others have come.
    assert one.told["t7"] == "Error of /t7"
    assert len(one.agents.looks) < 50


def test_a_task_that_its_agent_does_not_know_cannot_be_read(reading):
    agents = Agents()
    agents.sandboxes = lambda *_: {}
    one = reading(agents)
    one.collect(("t", "a"))
    eventually(lambda: one.told == {"t": ""})


def test_five_hundred_tasks_on_agents_that_do_not_answer_are_told_of_in_time(reading):
    lost = [(f"t{number}", f"a{number}") for number in range(500)]
    one = reading(Agents(*(agent for _, agent in lost)))
    one.collect(*lost)
    one.reader.expire()
    assert one.told == {}
    one.now = evidence.LONGEST_SECONDS
    one.reader.expire()
    assert one.told == {task: "" for task, _ in lost}
    assert one.agents.most_under_way <= 4


def test_an_agent_that_was_given_up_is_not_asked_any_more_and_told_of_once(reading):
    agents = Agents("gone")
    one = reading(agents, threads=1)
    one.collect(("first", "gone"))
    eventually(lambda: agents.looks == ["gone"])
    one.collect(*((f"t{number}", f"a{number}") for number in range(50)))
    one.now = evidence.LONGEST_SECONDS
    one.reader.expire()
    agents.given_up.set()
    one.pool.shutdown(wait=True)
    assert agents.looks == ["gone"]
    assert set(one.times.values()) == {1}


def test_what_has_ended_last_is_read_first(reading):
    agents = Agents("slow")
    one = reading(agents, threads=1)
    one.collect(("first", "slow"))
    eventually(lambda: agents.looks == ["slow"])
    one.collect(("old", "a"), ("new", "b"))
    agents.given_up.set()
    eventually(lambda: len(one.told) == 3)
    assert agents.looks == ["slow", "b", "a"]


def test_to_ask_waits_for_no_answer(reading):
    one = reading(Agents("gone"), threads=1)
    began = time.monotonic()
    one.collect(*((f"t{number}", "gone") for number in range(100)))
    assert time.monotonic() - began < 30.0
    assert one.told == {}
