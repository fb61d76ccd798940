"""The function contract: what the wrapper does before the peers answer, and what only after.

A module ``tensorflow`` of the job's own stands in for the real one: what counts here is the order.
"""

import socket

import pytest

from free_ports import free_port
from processes import alive
from waiting import eventually

#: A Server that says that it was made, and a ConfigProto.
TENSORFLOW = """\
import sys
print("tensorflow is imported", flush=True)

class compat:
    class v1:
        class train:
            class MonitoredTrainingSession:
                pass

            class ClusterSpec:
                def __init__(self, cluster):
                    pass

            class Server:
                def __init__(self, cluster, job_name, task_index, config):
                    print("server", job_name, task_index, flush=True)

                @staticmethod
                def create_local_server(config):
                    print("local server", flush=True)

        @staticmethod
        def ConfigProto(device_count):
            pass
"""
JOB = """\
def main(server, log_dir, context):
    import sys
    print("main", repr(sys.stdin.read()), flush=True)
"""
HOST = "127.0.0.3"


def function_cluster(port, epoch=1):
    server = {
        "cluster": {"ps": [f"{HOST}:{port}"], "worker": [f"{HOST}:1"]},
        "job_name": "worker",
        "task_index": 0,
        "wait_for": [f"{HOST}:{port}"],
    }
    return {"epoch": epoch, "distribute": None, "server": server}


def listen(port):
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    peer.bind((HOST, port))
    peer.listen()
    return peer


@pytest.fixture
def start_function(start):
    """Return a function that starts the job with its stand-in, waiting for ``port``."""

    def start_it(port, **spec):
        files = {"tensorflow.py": TENSORFLOW}
        return start(JOB, files=files, cluster=function_cluster(port), **spec)

    return start_it


def test_tensorflow_is_imported_while_the_peers_are_waited_for(start_function):
    port = free_port()
    task = start_function(port)
    task.wait_for_text("tensorflow is imported\n")
    status = task.wait_for_state("waiting", waiting_for=[f"{HOST}:{port}"])
    assert alive(status["pid"])
    assert task.text() == "tensorflow is imported\n"


def test_server_and_main_follow_when_the_peers_answer(start_function):
    port = free_port()
    task = start_function(port)
    task.wait_for_text("tensorflow is imported")
    with listen(port):
        assert task.wait() == 0
    assert task.text() == "tensorflow is imported\nserver worker 0\nmain ''\n"


def test_a_function_at_its_gate_can_be_stopped(start_function):
    task = start_function(free_port())
    pid = task.wait_for_state("waiting")["pid"]
    task.process.terminate()
    assert task.wait() == 143
    assert task.report()["class"] == "interrupted"
    assert not alive(pid)
    assert "server" not in task.text()


def test_a_function_at_its_gate_does_not_go_on_when_its_runner_is_killed(start_function):
    task = start_function(free_port())
    task.wait_for_text("tensorflow is imported")
    pid = task.status()["pid"]
    task.process.kill()
    task.process.wait()
    eventually(lambda: not alive(pid), what="the user's process gone")
    assert "server" not in task.text()


@pytest.mark.parametrize("peers", [True, False])
def test_a_function_whose_checkpoint_is_another_does_not_even_import_tensorflow(
    start_function, peers
):
    task = start_function(free_port(), held=True, hold_on_failure=True)
    task.wait_for_state("held")
    alone = {"epoch": 2, "distribute": None, "server": None}
    cluster = function_cluster(free_port(), 2) if peers else alone
    task.order(2, **cluster, restore_step=5, expects_restore_step=True)
    status = task.wait_for_state("failed", waiting_for=[])
    assert status["exit"]["class"] == "checkpoint_mismatch"
    assert task.text() == ""


def test_a_crash_of_native_code_tells_where_the_job_was(start):
    source = "def main(server, log_dir, context):\n    import ctypes; ctypes.string_at(0)\n"
    task = start(source, files={"tensorflow.py": TENSORFLOW})
    assert task.wait() == 139
    assert any("in main" in line for line in task.report()["last_lines"])


def test_a_job_of_one_task_gets_a_server_of_its_own(start):
    task = start(JOB, files={"tensorflow.py": TENSORFLOW})
    assert task.wait() == 0
    assert task.text() == "tensorflow is imported\nlocal server\nmain ''\n"


def test_an_evaluator_with_a_function_ends_with_a_sentence(start):
    task = start(JOB, files={"tensorflow.py": TENSORFLOW}, role="evaluator")
    assert (task.wait(), task.text()) == (78, "")
    assert "evaluator cannot run main" in task.report()["summary"]
