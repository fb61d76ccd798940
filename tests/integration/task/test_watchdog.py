"""The watchdog on real processes: frozen, stalled, no longer listening."""

import math
import os
import signal
import time

import pytest

from dcos_tensorflow.task.runner import TICK_SECONDS
from dcos_tensorflow.task.supervise.observer import TABLE_SECONDS
from free_ports import free_port
from processes import alive
from waiting import eventually, stays

READY = "print('ready', flush=True)\n"
WAIT = READY + "import time\nwhile True: time.sleep(60)\n"


def running(start, source=WAIT, **spec):
    task = start(source, **spec)
    task.wait_for_text("ready")
    task.wait_for_state("running")
    return task


@pytest.mark.parametrize(
    "job",
    [{"name": "job"}, {"command": "python3 job.py; echo not reached"}],
    ids=["script", "command"],
)
def test_a_frozen_process_is_killed_and_told(start, job):
    source = "import os\nopen('pid', 'w').write(f'{os.getpid()}\\n')\n" + WAIT
    task = running(start, source, job=job, hold_on_failure=True, freeze_seconds=1)
    pid = task.pid_in("pid")
    os.kill(pid, signal.SIGSTOP)
    frozen_at = time.time()
    told = task.wait_for_state("failed")["exit"]
    # The default is 10 s, and this must be less.
    assert told["ended_at"] - frozen_at < 10
    assert told["class"] == "frozen"
    assert "stopped (state T)" in told["summary"]
    assert not alive(pid)


def test_the_status_tells_for_how_long_a_process_is_frozen(start):
    task = running(start, freeze_seconds=0)
    os.kill(task.status()["pid"], signal.SIGSTOP)
    eventually(lambda: task.status()["frozen_seconds"] > 0.5, what="it is seen to be frozen")
    os.kill(task.status()["pid"], signal.SIGCONT)
    eventually(lambda: task.status()["frozen_seconds"] == 0, what="it is seen to go on")


#: In one piece: a pause between two of the steps would be taken for the stall.
STALLS = """\
import os
os.write(1, b''.join(b'step %d\\n' % step for step in range(1, 6)))
"""


def test_a_step_that_does_not_move_any_more_is_given_up(start):
    task = start(STALLS + WAIT, hold_on_failure=True, stall_seconds=1)
    told = task.wait_for_state("failed")["exit"]
    assert told["class"] == "stalled"
    assert "No step after step 5" in told["summary"]


LISTENS = """\
import socket, sys
server = socket.socket()
server.bind(('127.0.0.1', int(sys.argv[1]) if sys.argv[1:] else PORT))
server.listen()
print('listens', flush=True)
import os, time
while not os.path.exists('close'): time.sleep(0.02)
"""


def own_cluster(port):
    config = {
        "cluster": {"worker": [f"127.0.0.1:{port}"]},
        "task": {"type": "worker", "index": 0},
    }
    return {"epoch": 1, "distribute": {"tf_config": config, "wait_for": []}}


def wait_until_ports_are_seen(task):
    """Have the runner look at the process so often that a look at the ports is among them.

    Only of a process that is stopped and goes on can be told that it was looked at.
    """
    pid = task.wait_for_state("running")["pid"]
    # Two in each round; the first may belong to a look at the ports that came too early.
    for _ in range(1 + math.ceil(TABLE_SECONDS / TICK_SECONDS / 2)):
        os.kill(pid, signal.SIGSTOP)
        eventually(lambda: task.status()["frozen_seconds"] > 0, what="it is seen to be frozen")
        os.kill(pid, signal.SIGCONT)
        eventually(lambda: task.status()["frozen_seconds"] == 0, what="it is seen to go on")


def test_a_server_that_has_closed_its_port_is_given_up(start):
    port = free_port()
    source = LISTENS.replace("PORT", str(port)) + "server.close()\n" + WAIT
    task = start(source, cluster=own_cluster(port), freeze_seconds=4, hold_on_failure=True)
    task.wait_for_text("listens")
    # The port counts once it was seen.
    wait_until_ports_are_seen(task)
    (task.sandbox / "close").touch()
    told = task.wait_for_state("failed")["exit"]
    assert told["class"] == "frozen"
    assert f"port {port} has been closed" in told["summary"]


def test_a_server_whose_process_has_ended_in_order_is_no_sign(start):
    port = free_port()
    task = start(
        files={"serve.py": LISTENS},
        job={"command": f"python3 serve.py {port}; echo ready; sleep 600"},
        cluster=own_cluster(port),
        freeze_seconds=1,
    )
    task.wait_for_text("listens")
    assert stays(lambda: task.status()["state"] == "running", 1.5)
    (task.sandbox / "close").touch()
    task.wait_for_text("ready")
    assert stays(lambda: task.status()["state"] == "running", 2.5)
