"""What a task writes arrives in S3 or CloudWatch Logs: all of it, once, whatever fails between."""

import gzip
import re
import threading

import boto3
import pytest
from moto.server import create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from dcos_tensorflow.task.output.shipping.cloudwatch_sink import CloudWatchSink
from dcos_tensorflow.task.output.shipping.shipper import Shipper
from dcos_tensorflow.task.output.shipping.spool import Spool
from dcos_tensorflow.task.storage.s3.errors import StorageError
from dcos_tensorflow.task.storage.s3.location import S3Settings
from dcos_tensorflow.task.storage.s3.object_store import Connection
from dcos_tensorflow.task.storage.s3.retry import Cancellation, Retrier, RetryBackoff
from dcos_tensorflow.task.storage_spec import LogPlace
from servers.s3_server import KEY_ID, SECRET_KEY, Fault
from waiting import eventually

LOGS = {"uri": "s3://bucket/logs", "interval_seconds": 0.5}
PRINT = "import sys\nfor n in range(5000): print('line', n)\nprint('bad', file=sys.stderr)\n"


@pytest.fixture(autouse=True)
def _credentials(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def shipped(s3, stream="stdout", prefix="logs/mnist/worker-0/1/"):
    """Return what arrived of a stream, by the key of the start."""
    content = {}
    for key in sorted(s3.list_keys(prefix)):
        folder, name = key.rsplit("/", 1)
        if name.startswith(stream):
            body = s3.client.get_object(Bucket="bucket", Key=key)["Body"].read()
            content[folder] = content.get(folder, b"") + gzip.decompress(body)
    return {folder: text.decode() for folder, text in content.items()}


def test_all_output_of_a_task_arrives(start, s3):
    task = start(PRINT, checkpoints={}, logs=LOGS)
    assert task.wait() == 0
    assert shipped(s3) == {"logs/mnist/worker-0/1/1": task.text()}


def test_the_last_words_of_the_runner_arrive_too(start, s3):
    task = start(PRINT, logs=LOGS)
    assert task.wait() == 0
    (stderr,) = shipped(s3, "stderr").values()
    assert stderr == task.text("stderr")
    assert '"exit_code": 0' in stderr


def test_each_start_has_a_place_of_its_own(start, s3):
    task = start("print('once'); raise SystemExit(3)", logs=LOGS)
    task.wait_for_state("failed")
    task.order(2)
    task.wait_for_state("failed", start=2)
    task.request("POST", "/v1/stop")
    assert task.wait() == 3
    assert shipped(s3) == {
        "logs/mnist/worker-0/1/1": "once\n",
        "logs/mnist/worker-0/1/2": "once\n",
    }


def test_output_arrives_while_the_task_runs(start, s3):
    task = start("import time\nprint('here', flush=True)\ntime.sleep(600)", logs=LOGS)
    status = task.wait_for_status(
        lambda status: status["storage"]["logs"]["shipped_parts"] >= 2, "shipped parts"
    )
    assert status["storage"]["logs"]["problem"] is None
    # All of these parts may be of what the runner itself has said.
    eventually(lambda: shipped(s3) == {"logs/mnist/worker-0/1/1": "here\n"}, what="the output")


def test_a_task_without_credentials_for_its_logs_runs_all_the_same(start, s3):
    s3.fault = lambda request: (
        Fault(status=403, code="AccessDenied") if "/logs/" in request.path else None
    )
    task = start("import time\nprint('here', flush=True)\ntime.sleep(600)", logs=LOGS)
    status = task.wait_for_status(
        lambda status: status["storage"]["logs"]["problem"], "the problem with the logs"
    )
    assert status["storage"]["logs"]["problem"]["kind"] == "denied"
    assert task.wait_for_state("running")["storage"]["logs"]["waiting_parts"] > 0


class Shipping:
    """A shipper without a task, and one after it in the same sandbox."""

    def __init__(self, s3, folder):
        self.s3, self.folder = s3, folder

    def shipper(self) -> Shipper:
        settings = S3Settings(endpoint_url=self.s3.url, region="us-east-1")
        connection = Connection(settings, backoff=RetryBackoff(0.001, 0.01, 3))
        place = LogPlace("s3://bucket/logs", roll_bytes=200)
        return Shipper(place, "mnist/worker-0/1", connection, str(self.folder))


@pytest.fixture
def shipping(s3, tmp_path):
    return Shipping(s3, tmp_path / "spool")


def text_of(s3):
    return "".join(shipped(s3).values())


def test_what_a_killed_runner_left_is_shipped_by_the_next(shipping, s3):
    killed = shipping.shipper()
    killed.spool.append("stdout", b"left behind\n")
    after = shipping.shipper()
    after.spool.append("stdout", b"and on\n")
    assert after.finish(10.0) is False  # Nothing was shipped: there was no thread.
    after = shipping.shipper()
    assert after.ship_all()
    assert text_of(s3) == "left behind\nand on\n"


def test_whatever_request_fails_all_arrives_once(shipping, s3):
    written = b""
    faults = iter([Fault(status=503), Fault(lost_answer=True), Fault(cut_request=True)] * 40)
    s3.fault = lambda request: next(faults, None) if request.number % 2 else None
    for number in range(60):
        shipper = shipping.shipper()
        line = b"line %d of the output of this task\n" % number
        written += line
        shipper.spool.append("stdout", line)
        if number % 7 == 6:
            shipper.spool.close()
            shipper._gate.limit(5.0)
            shipper._ending.set()
            shipper.ship_all()
    s3.fault = lambda request: None
    shipper = shipping.shipper()
    shipper._ending.set()
    assert shipper.ship_all()
    assert text_of(s3) == written.decode()


def test_an_attempt_of_the_same_name_overwrites_nothing(s3, tmp_path):
    for name in ("a", "b"):
        shipper = Shipping(s3, tmp_path / name).shipper()
        shipper.spool.append("stdout", f"of {name}\n".encode())
        shipper.spool.close()
        assert shipper.ship_all()
    assert sorted(text_of(s3).splitlines()) == ["of a", "of b"]


class _Quiet(WSGIRequestHandler):
    def log(self, type, message, *args):
        """Say nothing."""


@pytest.fixture(scope="module")
def log_server():
    server = make_server("127.0.0.1", 0, create_backend_app("logs"), True, request_handler=_Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def log_client(log_server):
    client = boto3.session.Session().client(
        "logs",
        endpoint_url=log_server,
        region_name="us-east-1",
        aws_access_key_id=KEY_ID,
        aws_secret_access_key=SECRET_KEY,
    )
    yield client
    client.close()


def messages(client, group, stream):
    found, token = [], {}
    while True:
        answer = client.get_log_events(
            logGroupName=group, logStreamName=stream, startFromHead=True, **token
        )
        if not answer["events"]:
            return found
        found += [event["message"] for event in answer["events"]]
        token = {"nextToken": answer["nextForwardToken"]}


def test_a_tasks_output_arrives_in_a_log_stream(start, s3, log_server, log_client):
    logs = {"uri": "cloudwatch://training", "interval_seconds": 0.5, "endpoint_url": log_server}
    task = start(PRINT, logs=logs)
    assert task.wait() == 0, task.text("stderr")
    found = messages(log_client, "training", "mnist/worker-0/1")
    assert [line for line in found if re.fullmatch(r"line \d+", line)] == [
        f"line {number}" for number in range(5000)
    ]
    assert found.count("bad") == 1


def test_a_part_that_was_cut_goes_on_where_it_stopped(log_client, tmp_path):
    spool = Spool(str(tmp_path), 1 << 20)
    spool.append("stdout", b"".join(b"line %d\n" % number for number in range(25_000)))
    spool.close()
    gate, calls = Cancellation(), []

    class Cut:
        """Fails once, at the second request."""

        def __getattr__(self, name):
            return getattr(log_client, name)

        def put_log_events(self, **request):
            calls.append(request)
            if len(calls) == 2:
                raise ConnectionError
            return log_client.put_log_events(**request)

    retrier = Retrier(gate, RetryBackoff(0.001, 0.01, 1))
    sink = CloudWatchSink(Cut(), retrier, "cut", "stream", lambda seconds: None)
    part = spool.next_part()
    with pytest.raises(Exception, match="no answer"):
        sink.ship(part)
    sink.ship(part)
    assert len(calls) == 4
    assert messages(log_client, "cut", "stream") == [f"line {n}" for n in range(25_000)]


def shipped_part(folder, text):
    spool = Spool(str(folder), 1 << 20)
    spool.append("stdout", text)
    spool.close()
    return spool.next_part()


def test_a_group_that_was_removed_is_made_again(log_client, tmp_path):
    retrier = Retrier(Cancellation(), RetryBackoff(0.001, 0.01, 1))
    sink = CloudWatchSink(log_client, retrier, "removed", "stream", lambda seconds: None)
    sink.ship(shipped_part(tmp_path / "1", b"before\n"))
    log_client.delete_log_group(logGroupName="removed")
    after = shipped_part(tmp_path / "2", b"after\n")
    with pytest.raises(StorageError):
        sink.ship(after)
    sink.ship(after)
    assert messages(log_client, "removed", "stream") == ["after"]


def test_refused_events_are_told_and_not_sent_again(log_client, tmp_path):
    calls = []

    class Refusing:
        def __getattr__(self, name):
            return getattr(log_client, name)

        def put_log_events(self, **request):
            calls.append(request)
            return {"rejectedLogEventsInfo": {"tooNewLogEventStartIndex": 0}}

    retrier = Retrier(Cancellation(), RetryBackoff(0.001, 0.01, 1))
    sink = CloudWatchSink(Refusing(), retrier, "refused", "stream", lambda seconds: None)
    part = shipped_part(tmp_path, b"line\n")
    with pytest.raises(StorageError, match="clock"):
        sink.ship(part)
    sink.ship(part)
    assert len(calls) == 1
