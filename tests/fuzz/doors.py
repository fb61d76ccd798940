"""Where input of strangers comes in: for each door inputs to begin with, and what takes them.

A door lets every refusal through that its code promises, and raises whatever else comes: that is a
crash. What is accepted is carried on to its reader: an offer that converts and then ends
``step``, ends the scheduler.
"""

import asyncio
import contextlib
import functools
import gzip
import io
import json
import logging
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import asdict
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dcos_tensorflow.api.answers import json_answer
from dcos_tensorflow.api.views import curves as run_views
from dcos_tensorflow.api.views import job as job_views
from dcos_tensorflow.cli.commands import runs as run_command
from dcos_tensorflow.client.api_address import AddressUnusable, told
from dcos_tensorflow.client.kept.runs import KeptRun
from dcos_tensorflow.core.kept.restore import StateUnreadable, restore
from dcos_tensorflow.core.model.events import Event, RunnerReported
from dcos_tensorflow.core.model.service_state import LaunchSettings, ServiceState
from dcos_tensorflow.core.step import step
from dcos_tensorflow.history.bucket import RunBucket
from dcos_tensorflow.history.curves import Curves
from dcos_tensorflow.history.picture import Drawn, picture
from dcos_tensorflow.history.points import Point, lines_of
from dcos_tensorflow.history.record import joined, record_of, with_points
from dcos_tensorflow.mesos.agent_files import FileNotFound, FilePart
from dcos_tensorflow.mesos.callbacks import Callbacks
from dcos_tensorflow.mesos.outstanding import OutstandingOffers
from dcos_tensorflow.mesos.stream import StreamEnded, SubscribeRefused, SubscriptionStream
from dcos_tensorflow.mesos.wire.convert import update_from_json
from dcos_tensorflow.mesos.wire.offered_resources import ConversionError
from dcos_tensorflow.options import OptionsError, effective, load, service_spec
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.scheduler.runners import runner_request
from dcos_tensorflow.scheduler.told_address import ToldAddress
from dcos_tensorflow.state.leadership import Holder
from dcos_tensorflow.task.output.event_files import EventFiles
from dcos_tensorflow.task.output.progress import Progress, read_line, read_record
from dcos_tensorflow.task.report.operator_commands import parse_command
from dcos_tensorflow.task.report.server import RequestError, _grace_seconds, _text
from dcos_tensorflow.task.report.server import _json as _json_of
from dcos_tensorflow.task.spec import parse_order, parse_spec
from dcos_tensorflow.task.spec_fields import SpecError
from dcos_tensorflow.task.storage.manifest import DocumentError, decode_manifest, decode_pointer
from dcos_tensorflow.task.storage.s3.location import parse_uri
from samples.states import NOW, a_state, an_incident, running, with_job
from simulated.scheduler import started
from untrusted_input.archives import ArchiveRefused, Limits, unpack


@dataclass(frozen=True)
class Door:
    """One way in."""

    #: Inputs that are taken as they are.
    seeds: tuple[bytes, ...]
    #: Takes one input, and raises nothing.
    enter: Callable[[bytes], None]


def _json(*documents: Any) -> tuple[bytes, ...]:
    return tuple(json.dumps(each).encode() for each in documents)


def _then(state: ServiceState, events: Iterable[Event]) -> None:
    """Have the core take the events, and look at what time brings."""
    for number, event in enumerate(events):
        state = step(state, (event,), NOW + 60 + number).state
    step(state, (), NOW + 600)


# Options.

OPTIONS = (
    {
        "service": {
            "name": "mnist",
            "job_url": "http://host/job.zip",
            "job_name": "train",
            "env": {"A": "1"},
            "secrets": [{"source": "file:/x", "env": "B"}],
            "rlimits": [{"name": "RLIMIT_NOFILE", "soft": 10, "hard": 20}],
        },
        "worker": {"count": 2, "cpus": 1, "mem": 512, "placement": '[["hostname", "UNIQUE"]]'},
        "parameter_server": {"count": 1},
        "gpu_worker": {"count": 1, "gpus": 1},
        "s3": {"url": "s3://bucket/prefix", "credentials": {"profile": "x"}},
    },
    {"service": {"job_name": "train"}, "sweep": {"trials": 3, "parameters": {"a": [1, 2]}}},
)


def _options(data: bytes) -> None:
    with contextlib.suppress(OptionsError):
        wanted = load(data.decode("utf-8", "surrogateescape"))
        effective(wanted)
        service_spec(wanted)


# The API.

REQUESTS = (
    {"method": "GET", "path": "/v1/plans/deploy", "query": "", "headers": {}, "body": ""},
    {"method": "GET", "path": "/v1/pod/worker-0/info", "query": "", "headers": {}, "body": ""},
    {"method": "GET", "path": "/v1/pod/worker-0/files/stdout", "query": "offset=0&length=9"},
    {"method": "GET", "path": "/v1/debug/plans", "query": "plan=deploy&phase=worker&step=x"},
    {"method": "GET", "path": "/v1/configurations/target", "query": "", "headers": {"Host": "x"}},
    {"method": "GET", "path": "/v1/artifacts/job-1f.zip", "query": ""},
    {"method": "GET", "path": "/v1/units", "query": "state=done"},
    {"method": "GET", "path": "/v1/health", "query": "verbose"},
    {"method": "POST", "path": "/v1/plans/deploy/interrupt", "query": "phase=worker"},
    {"method": "POST", "path": "/v1/plans/deploy/restart", "query": "phase=worker&step=worker-0"},
    {"method": "POST", "path": "/v1/plans/deploy/forceComplete", "query": "phase=worker"},
    {"method": "POST", "path": "/v1/plans/deploy/start", "body": "{}"},
    {"method": "POST", "path": "/v1/plans/deploy/continue", "query": ""},
    {"method": "POST", "path": "/v1/pod/worker-0/replace", "query": ""},
    {"method": "POST", "path": "/v1/pod/worker-0/restart", "query": ""},
    {"method": "POST", "path": "/v1/pod/worker-0/pause", "body": '["worker-0"]'},
    {
        "method": "POST",
        "path": "/v1/pod/worker-0/exec",
        "body": '{"command": ["ls", "-l"], "timeout_seconds": 5}',
    },
    {"method": "POST", "path": "/v1/pod/worker-0/copy", "body": '{"path": "made/model"}'},
    {"method": "GET", "path": f"/v1/pod/worker-0/exec/{'0' * 32}", "query": "after=3"},
    {"method": "POST", "path": "/v1/job/stop", "body": '{"why": "enough"}'},
    {
        "method": "POST",
        "path": "/v1/job/update",
        "query": "merge=true",
        "body": '{"worker":{"count":3}}',
    },
    {"method": "POST", "path": "/v1/job/check", "body": json.dumps(OPTIONS[0])},
    {"method": "POST", "path": "/v1/job/rollback", "body": '{"id": "x"}'},
    {"method": "POST", "path": "/v1/uninstall", "body": '{"why": ""}'},
)


class _Answered(Exception):
    """An answer that no request may get."""


@functools.cache
def _api() -> Callable[[dict[str, Any]], None]:
    from dcos_tensorflow.api.app import create_app
    from servers.answering_service import Service

    logging.getLogger("dcos_tensorflow").addHandler(logging.NullHandler())

    class WithFiles(Service):
        def read_file(self, agent_id: str, task_id: str, file: str, *_: int) -> FilePart:
            raise FileNotFound("there is no such file")

    service = WithFiles()
    app, loop = create_app(service), asyncio.new_event_loop()

    def ask(scope: dict[str, Any], body: bytes) -> None:
        service.events.clear()
        sent: list[Any] = []
        bodies = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> Any:
            return next(bodies, {"type": "http.disconnect"})

        async def send(message: Any) -> None:
            sent.append(message)

        loop.run_until_complete(app(scope, receive, send))
        if sent[0]["status"] == 500:
            raise _Answered(b"".join(each.get("body", b"") for each in sent[1:]))
        _then(running(), service.events)

    def enter(request: dict[str, Any]) -> None:
        part = {name: str(request.get(name, "")) for name in ("method", "path", "query", "body")}
        headers = request.get("headers")
        named = headers.items() if isinstance(headers, dict) else ()
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": part["method"],
            "path": part["path"],
            "raw_path": part["path"].encode("utf-8", "replace"),
            "query_string": part["query"].encode("utf-8", "replace"),
            "root_path": "",
            "scheme": "http",
            "server": ("127.0.0.1", 1),
            "client": ("127.0.0.1", 2),
            "headers": [
                (str(n).lower().encode("latin-1", "replace"), str(v).encode("latin-1", "replace"))
                for n, v in named
            ],
        }
        ask(scope, part["body"].encode("utf-8", "replace"))

    return enter


def _request(data: bytes) -> None:
    request = _parsed(data)
    if isinstance(request, dict):
        _api()(request)


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


# What masters say.


def _chunked(*records: Any) -> bytes:
    body = b"".join(b"%d\n%s" % (len(each), each) for each in _json(*records))
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nMesos-Stream-Id: s\r\n\r\n"
    return head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


def _subscription(data: bytes) -> None:
    reader = io.BufferedReader(io.BytesIO(data))
    response = HTTPResponse(SimpleNamespace(makefile=lambda _mode: reader))
    connection = SimpleNamespace(
        request=lambda *_arguments, **_named: None,
        getresponse=lambda: response,
        allow_silence=lambda seconds: None,
        close=lambda: None,
    )
    stream = SubscriptionStream(connection)
    with contextlib.suppress(StreamEnded, SubscribeRefused, HTTPException, OSError):
        response.begin()
        stream.open({"type": "SUBSCRIBE"}, {})
        for event in stream.events():
            event.get("type")


def _id(value: str) -> dict[str, str]:
    return {"value": value}


def _amount(name: str, value: float) -> dict[str, Any]:
    return {"name": name, "type": "SCALAR", "scalar": {"value": value}, "role": "*"}


OFFER = {
    "id": _id("o1"),
    "agent_id": _id("a1"),
    "framework_id": _id("f"),
    "hostname": "node1",
    "url": {"scheme": "http", "address": {"hostname": "h", "ip": "10.0.0.1", "port": 5051}},
    "resources": [
        _amount("cpus", 8),
        _amount("mem", 16384),
        _amount("disk", 10000),
        _amount("gpus", 1),
        {
            "name": "ports",
            "type": "RANGES",
            "ranges": {"range": [{"begin": 31000, "end": 32000}]},
            "allocation_info": {"role": "tensorflow-role"},
            "reservations": [
                {"type": "DYNAMIC", "role": "tensorflow-role", "labels": {"labels": []}}
            ],
        },
    ],
    "attributes": [
        {"name": "rack", "type": "TEXT", "text": {"value": "r1"}},
        {"name": "level", "type": "SCALAR", "scalar": {"value": 3}},
    ],
    "domain": {"fault_domain": {"region": {"name": "r"}, "zone": {"name": "z"}}},
    "allocation_info": {"role": "*"},
    "unavailability": {"start": {"nanoseconds": 1}, "duration": {"nanoseconds": 2}},
}


def _offer(data: bytes) -> None:
    offer = _parsed(data)
    if not isinstance(offer, dict):
        return
    events: list[Event] = []
    driver = SimpleNamespace(declineOffer=lambda ids, filters: None)
    callbacks = Callbacks(OutstandingOffers(), events.append, lambda: NOW)
    callbacks.resourceOffers(driver, [offer])
    callbacks.inverseOffers(driver, [offer])
    _then(a_state(), events)


UPDATE = {
    "task_id": _id(running().tasks["worker-0"].task_id),
    "agent_id": _id("a1"),
    "state": "TASK_FAILED",
    "source": "SOURCE_EXECUTOR",
    "reason": "REASON_COMMAND_EXECUTOR_FAILED",
    "message": "exited with status 1",
    "timestamp": NOW,
    "uuid": "abc=",
    "healthy": False,
    "container_status": {
        "container_id": _id("c"),
        "network_infos": [{"ip_addresses": [{"protocol": "IPv4", "ip_address": "10.0.0.9"}]}],
    },
    "limitation": {"resources": [_amount("mem", 64)]},
}


def _update(data: bytes) -> None:
    status = _parsed(data)
    if isinstance(status, dict):
        with contextlib.suppress(ConversionError):
            _then(running(), [update_from_json(status)])


# What was stored.


def _stored() -> bytes:
    """Return what the store of a service holds whose tasks have been launched."""
    return json.dumps({path: value.decode() for path, value in started().store.items()}).encode()


def _kept(data: bytes) -> None:
    values = _parsed(data)
    if not isinstance(values, dict):
        return
    plain = {
        str(path): (text if isinstance(text, str) else json.dumps(text)).encode("utf-8", "replace")
        for path, text in values.items()
    }
    with contextlib.suppress(StateUnreadable):
        state = restore(plain, LaunchSettings(), NOW)
        if state is not None:
            _then(state, ())


#: What a leader tells of itself, and others read.
ADDRESS = {"url": "https://node1:8080", "leader": asdict(Holder("s", "node1", 7, "2027-01-15"))}


def _address(data: bytes) -> None:
    address = ToldAddress.read(data)
    if address is not None:
        with contextlib.suppress(AddressUnusable):
            told(address.url, "a-token", in_clear=True, is_here=address.leader.is_here)


# Between the scheduler and the task runners.

REPORT = {
    "phase": "running",
    "epoch": 3,
    "started": 1,
    "stopped": False,
    "revision": 4,
    "progress": {"step": 10, "loss": 0.5, "metrics": {"accuracy": 0.9}, "at": NOW},
    "waiting_for": ["10.0.0.1:1"],
    "storage": {"checkpoint_step": 5, "errors": []},
    "unit": {"index": 0, "result": {"a": 1}},
    "failure": {"kind": "exception", "summary": "x"},
}


def _answer(document: Any) -> bytes:
    body = json.dumps(document).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def _runner_answer(data: bytes) -> None:
    async def read() -> tuple[int, bytes]:
        reader = asyncio.StreamReader(limit=runner_request._MAX_ANSWER_BYTES)
        reader.feed_data(data)
        reader.feed_eof()
        return await runner_request._answer(reader)

    with contextlib.suppress(runner_request.NotARunner, OSError):
        asyncio.run(read())


def _runner_report(data: bytes) -> None:
    with contextlib.suppress(runner_request.NotARunner):
        report = runner_request._object(data)
        state = running()
        reported = RunnerReported(state.tasks["worker-0"].task_id, report)
        _then(state, [reported])
        told = step(state, (reported,), NOW).state
        curves = Curves()
        curves.observe(told)
        lines_of(curves.points(), lambda known: known)
        json_answer([job_views.job(told), job_views.why(told)])


CLUSTER = {
    "epoch": 2,
    "distribute": {"tf_config": {"cluster": {"worker": ["127.0.0.2:1"]}}, "wait_for": ["h:1"]},
    "server": {"cluster": {"ps": ["h:1"]}, "job_name": "ps", "task_index": 0, "wait_for": []},
}
SPEC = {
    "version": 1,
    "task": "worker-0",
    "attempt": 3,
    "cluster": CLUSTER,
    "job": {"contract": "auto", "name": "digits", "context": "{}", "arguments": ["--epochs", "3"]},
    "cpus": 1.5,
    "gpus": 0,
    "grpc_port": 31000,
    "wait_seconds": 300,
    "grace_seconds": 10,
}


COMMAND = {"id": "0" * 32, "command": ["ls", "-l"], "seconds": 5.5}


def _runner_request(data: bytes) -> None:
    for take, refused in (
        (parse_spec, SpecError),
        (parse_order, SpecError),
        (_grace_seconds, RequestError),
        (lambda text: parse_command(_json_of(text)), ValueError),
    ):
        with contextlib.suppress(refused, RequestError):
            take(_text(data))


# Runs that were kept, where tasks may write, too.

KEPT_RUN = {
    "record": {
        **with_points(
            record_of(with_job(running(), incidents=(an_incident(at=NOW),)), {}, {}),
            [Point(NOW, 3, {"loss": 0.5, "accuracy": 0.9})],
        ),
        "units": {"best": {"metric": "loss", "value": 0.5}},
    },
    "points": [
        {"task": "worker-0", "at": NOW, "step": 3, "metrics": {"loss": 0.5}},
        {"task": "worker-0", "at": NOW + 1, "step": 4, "metrics": {"loss": "nan"}},
    ],
}


def _kept_run(data: bytes) -> None:
    told = _parsed(data)
    packed = data
    if isinstance(told, dict):
        points = told.get("points")
        parts = [told.get("record"), *(points if isinstance(points, list) else [])]
        packed = gzip.compress(b"".join(json.dumps(part).encode() + b"\n" for part in parts))
    store: Any = SimpleNamespace(get=lambda key: (packed, ""))
    record, points = RunBucket(store, parse_uri("s3://bucket/history")).get("1-abc")
    curves = Curves()
    curves.begin_with(points)
    lines_of(curves.points(), lambda known: known)
    mine: Any = KEPT_RUN["record"]
    for each in (record, joined(mine, record)):
        if each:
            json_answer(run_views.runs([each]))
            list(run_command._whole(KeptRun(each, False, lambda: points, lambda notes: None)))
            for over_time in (False, True):
                picture([Drawn("run", each, points)], "loss", over_time=over_time)
    json_answer(run_views.curves(points))


# Archives of jobs.


def _archives() -> tuple[bytes, ...]:
    """Return archives with a file, a directory and a link: a zip, and tars of each kind."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/train.py", "x = 1\n" * 50)
        link = zipfile.ZipInfo("b")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        archive.writestr(link, "a/train.py")
    found = [packed.getvalue()]
    for mode in ("w", "w:gz", "w:bz2", "w:xz"):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode=mode, format=tarfile.PAX_FORMAT) as tar:  # type: ignore[call-overload]
            member = tarfile.TarInfo("a/train.py")
            member.size, member.pax_headers = 300, {"comment": "x"}
            tar.addfile(member, io.BytesIO(b"y" * 300))
            for name, kind in (("b", tarfile.SYMTYPE), ("c", tarfile.LNKTYPE)):
                member = tarfile.TarInfo(name)
                member.type, member.linkname = kind, "a/train.py"
                tar.addfile(member)
        found.append(packed.getvalue())
    return tuple(found)


def _archive(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        packed, folder = Path(scratch) / "packed", Path(scratch) / "sandbox"
        packed.write_bytes(data)
        for name in ("job.zip", "job.tar", "job.gz"):
            folder.mkdir()
            try:
                with packed.open("rb") as file:
                    unpack(file, name, str(folder), Limits(unpacked=100_000, files=50))
            except ArchiveRefused:
                assert not list(folder.iterdir()), "something of it is left"
            _only_harmless(folder)
            shutil.rmtree(folder)
        assert list(Path(scratch).iterdir()) == [packed], "something lies outside"


def _only_harmless(folder: Path) -> None:
    for path in folder.rglob("*"):
        assert path.resolve().is_relative_to(folder.resolve()), "a link leads out"
        status = path.lstat()
        assert path.is_symlink() or path.is_file() or path.is_dir(), "something special"
        assert not status.st_mode & 0o6022 or path.is_symlink(), "more rights than a file has"


# What tasks leave.

POINTER = {
    "version": 1,
    "writer": {"lineage": "l", "generation": 1, "owner": "o"},
    "published": [{"id": "i", "key": "k", "sha256": "0" * 64, "step": 1, "size": 3, "at": 1.5}],
    "superseded": [],
}
MANIFEST = {
    "version": 1,
    "id": "i",
    "step": 7,
    "kind": "tensorflow",
    "created_at": 1.5,
    "files": [{"path": "a/b", "key": "k", "size": 3, "part_size": 8, "parts": ["0" * 64]}],
}


def _manifest(data: bytes) -> None:
    for decode in (decode_pointer, decode_manifest):
        with contextlib.suppress(DocumentError):
            decode(data)


def _event_record(event: bytes) -> bytes:
    return len(event).to_bytes(8, "little") + b"\0" * 4 + event + b"\0" * 4


#: Time, step 5, and the summary of a scalar ``loss``.
_EVENT = b"\x09" + b"\0" * 8 + b"\x10\x05" + b"\x2a\x0d\x0a\x0b\x0a\x04loss\x15\0\0\x80\x3f"


def _event_file(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = EventFiles((folder,), own=True)
        (Path(folder) / "events.out.tfevents.1.h").write_bytes(data)
        files.newest_step(())
        json.dumps(files.take_scalars())


def _progress(data: bytes) -> None:
    progress = Progress()
    for line in data.decode("utf-8", "replace").splitlines():
        progress = read_record(read_line(progress, line, NOW), line, NOW)
    json.dumps(progress.as_json())


DOORS: dict[str, Door] = {
    "options": Door(_json(*OPTIONS), _options),
    "api": Door(_json(*REQUESTS), _request),
    "subscription": Door(
        (
            _chunked(
                {"type": "SUBSCRIBED", "subscribed": {"framework_id": _id("f")}},
                {"type": "HEARTBEAT"},
            ),
        ),
        _subscription,
    ),
    "offers": Door(_json(OFFER), _offer),
    "updates": Door(_json(UPDATE), _update),
    "stored": Door((_stored(),), _kept),
    "told-addresses": Door(_json(ADDRESS), _address),
    "runner-answers": Door((_answer(REPORT),), _runner_answer),
    "runner-reports": Door(_json(REPORT), _runner_report),
    "kept-runs": Door((*_json(KEPT_RUN), gzip.compress(b"{}\n")), _kept_run),
    "runner-requests": Door(
        _json(SPEC, {**CLUSTER, "version": 1}, {"grace_seconds": 3}, COMMAND), _runner_request
    ),
    "archives": Door(_archives(), _archive),
    "manifests": Door(_json(POINTER, MANIFEST), _manifest),
    "event-files": Door((_event_record(_EVENT) * 2,), _event_file),
    "progress": Door(
        (b'{"step": 3, "loss": 0.5}\nstep 5, loss = 0.1\nINFO:tensorflow:loss = 1.2, step = 7\n',),
        _progress,
    ),
}
