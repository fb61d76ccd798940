"""Which digit is on each of MNIST's 10,000 images, in a batch of which everything is killed.

The model is one that a job has trained before. ``BATCH_KILLS`` says how often something is killed;
a seed in ``BATCH_KILLS_SEED`` plays the same kills again, at other moments.
"""

import contextlib
import gzip
import json
import os
import random
import re
import signal
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cluster_faults import FaultError, FaultyCluster
from command_line import EXAMPLES, NEWEST, CommandLine
from data_files import OTHERS
from dcos_tensorflow.task.wrapper_protocol import WRAPPER_FLAG
from embedded_mesos import AgentConfig, Timing
from scheduler_process import SchedulerProcess
from servers.s3_server import S3Server
from waiting import eventually

KILLS = int(os.environ.get("BATCH_KILLS", "50"))
SEED = int(os.environ.get("BATCH_KILLS_SEED", "1"))
#: Generous: an unhurried machine needs a tenth of it.
DEADLINE = 300.0
IMAGES, PER_SHARD, SLOTS = 10_000, 10, 3
#: Before the next kill there are so many outputs more: what the one before has interrupted is taken
#: up first, and a shard that is killed on two machines is taken for the one at fault.
OUTPUTS_BETWEEN_KILLS = 4 * SLOTS
MNIST = OTHERS / "data" / "mnist"
DATA = json.dumps([{"uri": str(MNIST), "path": "mnist"}])

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(600 + 30 * KILLS),
    pytest.mark.skipif(not MNIST.is_dir(), reason=f"MNIST is another project's: no {MNIST}"),
]


class Inference:
    """The batch of ``examples/batch`` with its output in S3, and every way to kill of it."""

    def __init__(
        self, folder: Path, cluster: FaultyCluster, s3: S3Server, python: str, model: str
    ) -> None:
        self.folder, self.cluster, self.s3 = folder, cluster, s3
        self.dice = random.Random(SEED)
        self.options = self._options(python, model)
        self.log = (folder / "scheduler.log").open("ab")
        self.scheduler = self.start_scheduler()
        self.killed: Counter[str] = Counter()
        #: The processes of the user that these kills have ended, at most.
        self.ended = 0

    def _options(self, python: str, model: str) -> Path:
        """Write the example's options: what is there is not brought anew to each slot."""
        options = json.loads((EXAMPLES / "batch" / "options.json").read_text())
        options["service"] |= {
            "job_url": str(EXAMPLES / "batch"),
            "python": python,
            "job_context": json.dumps({"images": str(MNIST / "t10k-images-idx3-ubyte.gz")}),
            "env": {"MODEL": model},
        }
        options["batch"] = {
            "inputs": {"range": [0, IMAGES, PER_SHARD]},
            "output": "s3://bucket/digits/part-{index:04}.jsonl",
            "parallelism": SLOTS,
        }
        options["retry"] = {"initial_backoff_seconds": 0.2, "max_backoff_seconds": 1}
        options["s3"] = self.s3.options(self.folder)
        file = self.folder / "job.json"
        file.write_text(json.dumps(options))
        return file

    def start_scheduler(self) -> SchedulerProcess:
        flags = ("--wait-for-leadership", "--exit-when-done", "--task-secrets-dir", self.folder)
        where = self.options, self.cluster.master, f"sqlite:///{self.folder}/state.db"
        more = (*map(str, flags), "--s3-places", self.s3.url)
        return SchedulerProcess("scheduler", self.folder, *where, *more, environment={})

    def close(self) -> None:
        self.scheduler.close()
        self.log.close()

    # What can be killed. Each says whether there was anything.

    def tasks(self) -> list[str]:
        url = f"http://{self.cluster.master}/state"
        with urllib.request.urlopen(url, timeout=10) as answer:
            frameworks: list[Any] = json.load(answer)["frameworks"]
        found = [task for framework in frameworks for task in framework["tasks"]]
        return [task["id"] for task in found if task["state"] == "TASK_RUNNING"]

    def kill_process(self) -> bool:
        for task_id in self._shuffled():
            with contextlib.suppress(FaultError, OSError):
                for pid in self.cluster.faults.task_pids(task_id):
                    if WRAPPER_FLAG in Path(f"/proc/{pid}/cmdline").read_text().split("\0"):
                        os.kill(pid, signal.SIGKILL)
                        self.ended += 1
                        return True
        return False

    def kill_runner(self) -> bool:
        for task_id in self._shuffled():
            with contextlib.suppress(FaultError):
                self.cluster.faults.signal_task(task_id, signal.SIGKILL)
                self.ended += 1
                return True
        return False

    def lose_machine(self) -> bool:
        agent = self._busy_agent()
        self.cluster.faults.lose_machine(agent)
        self.cluster.faults.replace_machine(agent)
        return True

    def shut_down_agent(self) -> bool:
        agent = self._busy_agent()
        self.cluster.faults.shut_down_agent(agent)
        self.cluster.faults.restart_agent(agent)
        return True

    def kill_scheduler(self) -> bool:
        self.scheduler.kill()
        self.scheduler = self.start_scheduler()
        return True

    def _shuffled(self) -> list[str]:
        return self.dice.sample(tasks := self.tasks(), len(tasks))

    def _busy_agent(self) -> int:
        """Return an agent, and count all that runs on it as ended."""
        agent = self.dice.randrange(len(self.cluster.agents))
        for task_id in self.tasks():
            with contextlib.suppress(FaultError):
                self.ended += self.cluster.faults.agent_of(task_id) == agent
        return agent

    def ways(self) -> dict[Callable[[], bool], float]:
        return {
            self.kill_process: 5,
            self.kill_runner: 2,
            self.lose_machine: 1,
            self.shut_down_agent: 1,
            self.kill_scheduler: 2,
        }

    def kill_something(self) -> None:
        ways = self.ways()
        way = self.dice.choices(list(ways), list(ways.values()))[0]
        eventually(way, seconds=DEADLINE, what=f"something for {way.__name__}")
        self.killed[way.__name__] += 1
        self.log.write(f"KILL {self.killed.total()}: {way.__name__}\n".encode())
        self.log.flush()

    # What has come of it.

    def outputs(self) -> int:
        return len(self.s3.list_keys("digits/"))

    def digits(self) -> list[tuple[int, int]]:
        keys = self.s3.list_keys("digits/")
        bodies = (self.s3.client.get_object(Bucket="bucket", Key=key)["Body"] for key in keys)
        found = [json.loads(line) for body in bodies for line in body.read().splitlines()]
        return [(one["image"], one["digit"]) for one in found]

    def times(self, file: str, pattern: str) -> int:
        """How often a line like this is in all sandboxes that there ever were."""
        found = (self.folder / "mesos").rglob(f"runs/*/{file}")
        return sum(len(re.findall(pattern, each.read_text(), re.M)) for each in found)


def learned(command_line: CommandLine, python: str) -> dict[str, Any]:
    """Train the model as a person does; return what the job has told as its result."""
    learn = EXAMPLES / "batch" / "learn.json"
    told = (f"--set=data={DATA}", f"--set=service.python={python}", "--json", "--yes")
    ended = command_line("run", learn, *told, timeout=DEADLINE)
    assert ended.code == 0, ended.out
    document = json.loads(ended.out[ended.out.index("\n{") :])
    result: dict[str, Any] = document["result"]
    return result


def test_every_image_is_classified_once_whatever_is_killed(
    tmp_path: Path, s3: S3Server, tensorflow: Callable[[str], str]
) -> None:
    python = tensorflow(NEWEST)
    result = learned(CommandLine(tmp_path / "home"), python)
    agents = [AgentConfig(address=f"127.0.0.{n}", cpus=1, mem=3000, disk=2000) for n in (1, 2, 3)]
    # Mesos gives an agent up after 75 s; here it is two, because it happens so often.
    timing = Timing(agent_ping=0.5, agent_ping_timeouts=4)
    with FaultyCluster(agents, tmp_path / "mesos", timing=timing) as cluster:
        work = Inference(tmp_path, cluster, s3, python, result["model"])
        try:
            for _ in range(KILLS):
                wanted = work.outputs() + OUTPUTS_BETWEEN_KILLS
                more = f"{wanted} outputs after {dict(work.killed)}"
                eventually(lambda n=wanted: work.outputs() >= n, seconds=DEADLINE, what=more)
                work.kill_something()
            code = work.scheduler.process.wait(timeout=DEADLINE)
        finally:
            work.close()
    assert code == 0, (tmp_path / "scheduler.log").read_text()[-4000:]
    assert s3.list_keys("digits/") == [
        f"digits/part-{n:04}.jsonl" for n in range(IMAGES // PER_SHARD)
    ]
    digits = work.digits()
    assert [image for image, _ in digits] == list(range(IMAGES))
    assert accuracy(digits) == pytest.approx(result["accuracy"], abs=0.02)
    begun = work.times("stderr", r"start \d+, unit \d+ .*contract shards: ")
    loads = work.times("stdout", r"^loads the model ")
    print(
        f"{dict(work.killed)}: {loads} loads of the model by {begun} processes in {SLOTS} slots; "
        f"{work.ended} were killed"
    )
    assert SLOTS <= loads <= begun <= SLOTS + work.ended


def accuracy(digits: list[tuple[int, int]]) -> float:
    with gzip.open(MNIST / "t10k-labels-idx1-ubyte.gz") as file:
        labels = file.read()[8:]
    return sum(labels[image] == digit for image, digit in digits) / len(digits)
