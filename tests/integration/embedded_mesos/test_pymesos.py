"""Stock pymesos drives a task to its end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

from embedded_mesos.cluster import EmbeddedCluster

MakeCluster = Callable[..., EmbeddedCluster]

# A process of its own: pymesos takes SIGINT and a logger at import.
_SCHEDULER = """
import json, sys
from pymesos import MesosSchedulerDriver, Scheduler

class One(Scheduler):
    def __init__(self):
        self.states, self.launched, self.driver = [], False, None
    def resourceOffers(self, driver, offers):
        for offer in offers:
            if self.launched:
                driver.declineOffer(offer["id"])
                continue
            self.launched = True
            driver.launchTasks(offer["id"], [{
                "task_id": {"value": "t"}, "agent_id": offer["agent_id"], "name": "t",
                "command": {"value": "true"},
                "resources": [
                    {"name": "cpus", "type": "SCALAR", "scalar": {"value": 0.1}},
                    {"name": "mem", "type": "SCALAR", "scalar": {"value": 32}},
                ],
            }])
    def statusUpdate(self, driver, update):
        self.states.append(update["state"])
        if update["state"] == "TASK_FINISHED":
            driver.stop()

scheduler = One()
framework = {"user": "root", "name": "pymesos"}
master, principal, secret = sys.argv[1:]
driver = MesosSchedulerDriver(
    scheduler, framework, master, use_addict=False, principal=principal, secret=secret
)
driver.run()
print(json.dumps(scheduler.states))
"""


def test_stock_pymesos_that_was_told_the_secret_runs_a_task(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(credentials={"tf": "hush"})
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _SCHEDULER, cluster.master, "tf", "hush"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    states = json.loads(done.stdout.splitlines()[-1])
    assert states == ["TASK_STARTING", "TASK_RUNNING", "TASK_FINISHED"]
    assert not cluster.core.state.frameworks
