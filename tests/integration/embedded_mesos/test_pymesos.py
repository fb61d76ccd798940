"""Stock pymesos drives tasks to their end, also in the way of tfmesos."""

import json
import subprocess
import sys
from collections.abc import Callable

from embedded_mesos import EmbeddedCluster

MakeCluster = Callable[..., EmbeddedCluster]

# As tfmesos does it: tasks tell the scheduler where they listen, and it tells each where all do.
_MEETING = """
import json, socket, sys
from addict import Dict
from pymesos import MesosSchedulerDriver, Scheduler

SERVER = '''
import json, socket, sys
scheduler = socket.create_connection((sys.argv[1], int(sys.argv[2])))
own = socket.create_server(("127.0.0.1", 0))
scheduler.sendall(json.dumps([sys.argv[3], own.getsockname()[1]]).encode() + b"\\\\n")
json.loads(scheduler.makefile().readline())
'''
TASKS = ("ps:0", "worker:0", "worker:1")

class Tensors(Scheduler):
    def __init__(self, address):
        self.address, self.waiting, self.ended = address, list(TASKS), []
    def resourceOffers(self, driver, offers):
        for offer in offers:
            tasks = []
            while self.waiting and len(tasks) < 2:
                name = self.waiting.pop(0)
                task = Dict()
                task.task_id.value = task.name = name
                task.agent_id.value = offer.agent_id.value
                task.resources = [
                    Dict(name=kind, type="SCALAR", scalar=Dict(value=value))
                    for kind, value in (("cpus", 0.1), ("mem", 32))
                ]
                task.command.shell = False
                task.command.value = sys.executable
                host, port = self.address
                task.command.arguments = [sys.executable, "-c", SERVER, host, str(port), name]
                tasks.append(task)
            driver.launchTasks(offer.id, tasks)
        if not self.waiting:
            driver.suppressOffers()
    def statusUpdate(self, driver, update):
        if update.state == "TASK_FINISHED":
            self.ended.append(update.task_id.value)
        if len(self.ended) == len(TASKS):
            driver.stop()

meeting = socket.create_server(("127.0.0.1", 0))
scheduler = Tensors(meeting.getsockname())
framework = Dict(user="root", name="tensors", hostname=socket.gethostname())
driver = MesosSchedulerDriver(scheduler, framework, sys.argv[1], use_addict=True)
driver.start()
met = [meeting.accept()[0] for _ in TASKS]
cluster = dict(json.loads(one.makefile().readline()) for one in met)
for one in met:
    one.sendall(json.dumps(cluster).encode() + b"\\n")
driver.join()
print(json.dumps([sorted(cluster), sorted(scheduler.ended)]))
"""


def test_tasks_meet_at_a_scheduler_as_those_of_tfmesos_do(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _MEETING, cluster.master],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    tasks = ["ps:0", "worker:0", "worker:1"]
    assert json.loads(done.stdout.splitlines()[-1]) == [tasks, tasks]
