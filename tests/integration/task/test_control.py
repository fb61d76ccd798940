"""What the scheduler can ask and order, over HTTP; and how a task waits for its peers."""

import http.client
import json
import os
import signal
import socket
import time

import pytest

from dcos_tensorflow.task.report.authentication import signed_headers
from free_ports import free_port
from runner_process import TOKEN
from waiting import eventually

WAIT = "print('ready', flush=True)\nimport time\nwhile True: time.sleep(60)\n"
SAYS_EPOCH = "import os\nprint('epoch', os.environ['TF_EPOCH'], flush=True)\n" + WAIT


def running(start, source=WAIT, **spec):
    task = start(source, **spec)
    task.wait_for_text("ready")
    task.wait_for_state("running")
    return task


@pytest.fixture(scope="module")
def task(start_lasting):
    return running(start_lasting, attempt=3, cluster={"epoch": 2})


def test_the_status_says_what_runs(task):
    status = task.status()
    expected = {
        "service": "mnist",
        "task": "worker-0",
        "attempt": 3,
        "epoch": 2,
        "state": "running",
        "waiting_for": [],
        "starts": 1,
        "exit_code": None,
        "contract": "script",
    }
    assert expected.items() <= status.items()
    assert time.time() - status["started_at"] < 60


def test_a_status_is_held_back_until_something_happens(start):
    task = running(start, hold_on_failure=True)
    before = task.status()
    os.kill(before["pid"], signal.SIGKILL)
    code, after = task.request("GET", f"/v1/status?after={before['revision']}&wait=5")
    assert (code, after["state"]) == (200, "failed")


def test_a_status_is_not_held_back_from_a_client_that_does_not_know_the_newest(task):
    began = time.monotonic()
    task.request("GET", "/v1/status?after=0&wait=5")
    assert time.monotonic() - began < 5


def test_a_status_without_news_comes_when_the_time_is_up(task):
    before = task.status()
    code, after = task.request("GET", f"/v1/status?after={before['revision']}&wait=0.2")
    assert (code, after["revision"]) == (200, before["revision"])


@pytest.mark.parametrize("query", ["after=x&wait=1", "after=1", "after=1&wait=-1", "wait=nan"])
def test_a_status_that_is_asked_for_wrongly_is_refused(task, query):
    code, answer = task.request("GET", f"/v1/status?{query}")
    assert code == 400
    assert answer["error"] == "after must be a revision, and wait a number of seconds"


def test_a_newer_start_starts_the_process_again_in_the_same_container(start):
    task = running(start, SAYS_EPOCH)
    before = task.status()
    code, answer = task.order(2)
    assert (code, answer["changed"]) == (200, True)
    after = task.wait_for_state("running", epoch=2, starts=2)
    task.wait_for_text("epoch 2")
    assert after["pid"] != before["pid"]
    assert task.process.poll() is None


def test_the_new_tf_config_reaches_the_process(start):
    source = "import os\nprint(os.environ.get('TF_CONFIG'), flush=True)\n" + WAIT
    task = running(start, source)
    config = {"cluster": {"worker": ["127.0.0.2:1"]}}
    task.order(2, distribute={"tf_config": config, "wait_for": []}, server=None)
    task.wait_for_text('{"cluster":{"worker":["127.0.0.2:1"]}}')


def test_a_stop_ends_the_task(start):
    task = running(start)
    assert task.request("POST", "/v1/stop")[0] == 202
    assert task.wait() == 143
    assert task.report()["summary"] == "Stopped: the scheduler asked for it"


def test_a_stop_can_bring_its_own_grace(start):
    ignore = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    task = running(start, ignore + WAIT, grace_seconds=600)
    assert task.request("POST", "/v1/stop", {"grace_seconds": 0.1})[0] == 202
    assert task.wait() == 137


#: What a script is like that saves when it is asked to end: where it serves, it never gets to that.
SERVES = """\
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if False:
    import tensorflow as tf
    tf.distribute.ParameterServerStrategy()
"""


def test_a_worker_that_its_code_says_serves_ends_at_once(start):
    cluster = {"ps": ["127.0.0.1:1"], "chief": ["127.0.0.1:2"], "worker": ["127.0.0.1:3"]}
    here = {"cluster": cluster, "task": {"type": "worker", "index": 0}}
    told = {"epoch": 1, "distribute": {"tf_config": here}}
    task = running(start, SERVES + WAIT, role="worker", grace_seconds=600, cluster=told)
    assert task.status()["strategy"] == "parameter_server"
    task.process.send_signal(signal.SIGTERM)
    assert task.wait() == 137


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("GET", "/v1/nothing", None, 404),
        ("POST", "/v1/status", None, 405),
        ("DELETE", "/v1/cluster", None, 405),
        ("PUT", "/v1/cluster", b"{", 400),
        ("PUT", "/v1/cluster", {"epoch": 2}, 400),
        ("PUT", "/v1/cluster", b"\xff", 400),
        ("POST", "/v1/stop", {"grace_seconds": "long"}, 400),
        ("POST", "/v1/stop", {"grace_seconds": -1}, 400),
    ],
)
def test_a_bad_request_gets_an_error_in_json_and_changes_nothing(task, method, path, body, code):
    given, answer = task.request(method, path, body)
    assert given == code
    assert answer["error"]
    assert task.status()["state"] == "running"


def test_a_request_without_the_token_is_refused(task):
    assert task.request("POST", "/v1/stop", token="guessed")[0] == 401
    assert task.status()["state"] == "running"


def test_a_captured_order_does_nothing_a_second_time(start):
    task = running(start)
    body = json.dumps({"epoch": 2, "start": 2, "run": True}).encode()
    captured = signed_headers(TOKEN, "PUT", "/v1/cluster", int(time.time()), body)
    assert task.request("PUT", "/v1/cluster", body, **captured)[0] == 200
    task.order(3)
    pid = task.wait_for_state("running", start=3)["pid"]
    code, answer = task.request("PUT", "/v1/cluster", body, **captured)
    assert code == 409, answer
    assert task.status()["pid"] == pid


def test_a_body_that_is_too_large_is_not_read(task):
    connection = http.client.HTTPConnection("127.0.0.1", task.port, timeout=10)
    connection.putrequest("PUT", "/v1/cluster")
    connection.putheader("Content-Length", str(100 * 1024 * 1024))
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status == 413
    answer.close()
    connection.close()


def test_without_a_port_the_task_runs_without_a_server(start):
    task = start("print('done')", port=0, token="")
    assert (task.wait(), task.text()) == (0, "done\n")


def test_a_port_that_is_taken_ends_the_runner_before_anything_runs(start):
    with socket.socket() as holder:
        holder.bind(("0.0.0.0", 0))
        holder.listen()
        task = start("print('ran')", port=holder.getsockname()[1])
        assert task.wait() == 75
    assert "cannot listen on its port" in task.report()["summary"]
    assert task.text() == ""


def test_a_port_without_a_token_is_refused(start):
    task = start("print('ran')", token="")
    assert task.wait() == 71
    assert "TASK_RUNNER_TOKEN" in task.report()["summary"]


def waiting(address):
    return {"epoch": 1, "distribute": {"tf_config": None, "wait_for": [address]}}


def test_the_process_starts_when_its_peers_listen(start):
    address = f"127.0.0.3:{free_port()}"
    task = start(WAIT, cluster=waiting(address))
    assert task.wait_for_state("waiting")["waiting_for"] == [address]
    assert task.text() == ""
    with socket.socket() as peer:
        peer.bind(("127.0.0.3", int(address.rpartition(":")[2])))
        peer.listen()
        task.wait_for_state("running")


def test_progress_is_read_from_the_output(start):
    said = "print('step 12 loss 0.5 accuracy 0.9', flush=True)\nprint('result: {\"a\": 1}')\n"
    task = running(start, said + WAIT)
    status = eventually(lambda: (s := task.status())["result"] and s, what="the result")
    progress = status["progress"]
    assert (progress["step"], progress["loss"], progress["accuracy"]) == (12, 0.5, 0.9)
    assert status["result"] == {"a": 1}


def test_progress_is_read_from_the_progress_file(start):
    said = "import os\nopen(os.environ['PROGRESS_FILE'], 'a').write('{\"step\": 7}\\n')\n"
    task = running(start, said + WAIT)
    eventually(lambda: task.status()["progress"]["step"] == 7, what="the step")


#: An event of step 3 with the scalar ``epoch_loss``, framed as TensorFlow frames it.
WRITES_A_SCALAR = """
import os, struct
value = b"\\x0a\\x0aepoch_loss\\x15" + struct.pack("<f", 0.5)
event = b"\\x09" + bytes(8) + b"\\x10\\x03\\x2a" + bytes([len(value) + 2, 0x0A, len(value)]) + value
events = open(os.environ["LOG_DIR"] + "/events.out.tfevents.1.host", "wb", buffering=0)
events.write(struct.pack("<Q", len(event)) + bytes(4) + event + bytes(4))
"""


def test_of_a_job_that_prints_nothing_the_scalars_are_read_from_its_event_files(start):
    task = running(start, WRITES_A_SCALAR + WAIT)
    progress = eventually(lambda: (p := task.status()["progress"])["loss"] and p, what="the loss")
    assert (progress["step"], progress["loss"], progress["metrics"]) == (3, 0.5, {})
