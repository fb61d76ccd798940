"""Reading sandboxes from an agent that answers as a real one does."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from dcos_tensorflow.mesos.address import Address
from dcos_tensorflow.mesos.agent_files import (
    PAGE_BYTES,
    AgentFiles,
    AgentRefused,
    AgentUnknown,
    AgentUnreachable,
    FileNotFound,
    HttpAccess,
    SandboxNotFound,
)
from dcos_tensorflow.mesos.credentials import Credentials
from masters.mesos_at import files_at

TASK = ("S1", "F1", "task-1")
DIRECTORY = "/var/lib/mesos/slaves/S1/frameworks/F1/executors/task-1/runs/r"


class Agent:
    """Answers /slaves, /state and /files/read."""

    def __init__(self, server):
        self.server = server
        self.files = {}
        self.reads = []
        self.state = {
            "frameworks": [
                {
                    "id": "F1",
                    "executors": [{"id": "task-1", "directory": DIRECTORY}],
                }
            ]
        }
        server.on_call = self.answer

    def answer(self, exchange):
        url = urlsplit(exchange.request.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if url.path == "/slaves":
            pid = f"slave(1)@{self.server.address}"
            slaves = [{"id": "S1", "hostname": "localhost", "port": 1, "pid": pid}]
            self.json(exchange, {"slaves": slaves})
        elif url.path == "/state":
            self.json(exchange, self.state)
        elif url.path == "/files/read" and query["path"] in self.files:
            self.read(exchange, self.files[query["path"]], query)
        else:
            exchange.respond(404)

    def read(self, exchange, content, query):
        offset = int(query["offset"])
        if offset == -1:
            self.json(exchange, {"data": "", "offset": len(content)})
            return
        length = min(int(query.get("length", PAGE_BYTES)), PAGE_BYTES)
        self.reads.append(length)
        data = content[offset : offset + length].decode("utf-8", "surrogateescape")
        self.json(exchange, {"data": data, "offset": offset})

    def json(self, exchange, value):
        text = json.dumps(value, ensure_ascii=False)
        exchange.respond(200, text.encode("utf-8", "surrogateescape"))


@pytest.fixture
def agent(master):
    return Agent(master)


@pytest.fixture
def files(agent):
    return files_at(agent.server.address)


def test_the_last_lines_of_a_file_are_read(agent, files):
    agent.files[f"{DIRECTORY}/stderr"] = b"".join(b"line %d\n" % i for i in range(100))
    assert files.tail(*TASK, "stderr", lines=3) == ["line 97", "line 98", "line 99"]
    assert files.tail(*TASK, "stderr", lines=1000)[0] == "line 0"
    assert files.tail(*TASK, "stderr", lines=0) == []


def test_an_empty_file_has_no_lines(agent, files):
    agent.files[f"{DIRECTORY}/stderr"] = b""
    assert files.tail(*TASK, "stderr") == []


def test_only_the_end_of_a_long_file_is_read(agent, files):
    agent.files[f"{DIRECTORY}/stdout"] = b"x" * 99 + b"\n"
    agent.files[f"{DIRECTORY}/stdout"] *= 50_000
    assert files.tail(*TASK, "stdout", lines=40) == ["x" * 99] * 40
    assert sum(agent.reads) == PAGE_BYTES


def test_a_tail_without_line_ends_is_bounded(agent, files):
    agent.files[f"{DIRECTORY}/stdout"] = b"x" * 5_000_000
    (line,) = files.tail(*TASK, "stdout")
    assert len(line) == 1024 * 1024


def test_a_long_file_is_read_in_pages_and_any_bytes_come_through(agent, files):
    content = ("zwölf Boxkämpfer\n" * 10_000).encode()
    agent.files[f"{DIRECTORY}/out/log"] = content + b"\xff\xfe"
    lines = files.tail(*TASK, "out/log", lines=10**6)
    assert "\n".join(lines) == content.decode() + "\ufffd\ufffd"
    assert max(agent.reads) == PAGE_BYTES


def test_each_thing_that_is_missing_has_its_own_error(agent, files):
    with pytest.raises(FileNotFound):
        files.tail(*TASK, "no-such-file")
    with pytest.raises(SandboxNotFound):
        files.tail("S1", "F1", "no-such-task", "stderr")
    with pytest.raises(AgentUnknown):
        files.tail("S9", "F1", "task-1", "stderr")


@pytest.mark.parametrize("file", ["/etc/passwd", "../x", "a/../../b"])
def test_a_path_out_of_the_sandbox_is_refused(file, files):
    with pytest.raises(ValueError, match="inside the sandbox"):
        files.tail(*TASK, file)


def test_an_agent_that_does_not_answer_is_unreachable(master):
    master.on_call = lambda exchange: exchange.hold()
    files = files_at(master.address, HttpAccess(timeout_seconds=0.2))
    with pytest.raises(AgentUnreachable, match="no answer in time"):
        files.tail(*TASK, "stderr")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (lambda e: e.respond(401), AgentRefused),
        (lambda e: e.respond(500, b"broken"), AgentUnreachable),
        (lambda e: e.respond(200, b"<html>"), AgentUnreachable),
        (lambda e: e.close(), AgentUnreachable),
    ],
    ids=["401", "500", "html", "closed"],
)
def test_each_bad_answer_has_its_error(answer, error, master):
    master.on_call = answer
    with pytest.raises(error):
        files_at(master.address).tail(*TASK, "stderr")


def test_a_master_that_does_not_lead_is_followed(masters):
    leader, follower = masters(), masters()
    agent = Agent(leader)
    agent.files[f"{DIRECTORY}/stderr"] = b"x\n"
    follower.on_call = lambda e: e.respond(307, Location=f"//{leader.address}")
    assert files_at(follower.address).tail(*TASK, "stderr") == ["x"]


def test_masters_that_point_at_each_other_are_given_up(master):
    master.on_call = lambda e: e.respond(307, Location=f"//{master.address}")
    with pytest.raises(AgentUnreachable, match="circle"):
        files_at(master.address).tail(*TASK, "stderr")


def test_credentials_are_sent(agent):
    agent.files[f"{DIRECTORY}/stderr"] = b"x\n"
    access = HttpAccess(Credentials("tf", "secret"))
    files_at(agent.server.address, access).tail(*TASK, "stderr")
    sent = {request.headers["authorization"] for request in agent.server.requests}
    assert sent == {"Basic dGY6c2VjcmV0"}


def test_with_a_gateway_the_agents_address_comes_from_its_offers(agent):
    class Gateway:
        master = Address("127.0.0.1", 1)
        access = HttpAccess()

        def agent_url(self, agent_id):
            return f"http://{agent.server.address}" if agent_id == "S1" else None

    agent.files[f"{DIRECTORY}/stderr"] = b"x\n"
    assert AgentFiles(Gateway()).tail(*TASK, "stderr") == ["x"]
    assert not agent.server.requests_of("/slaves?slave_id=S1")


def test_a_part_is_read_as_the_bytes_that_it_is(agent, files):
    agent.files[f"{DIRECTORY}/stdout"] = "aé".encode()[:2] + b"\xff\n"
    sandbox = files.locate(*TASK)
    part = files.read_part(sandbox, "stdout", 1, 100)
    assert (part.offset, part.data, part.size) == (1, b"\xc3\xff\n", 4)


def test_no_more_than_was_there_and_no_more_than_a_page_is_asked_for(agent, files):
    agent.files[f"{DIRECTORY}/stdout"] = b"x" * (PAGE_BYTES + 5)
    sandbox = files.locate(*TASK)
    assert len(files.read_part(sandbox, "stdout", 0, 10**9).data) == PAGE_BYTES
    assert files.read_part(sandbox, "stdout", PAGE_BYTES + 3, 100).data == b"xx"
    assert files.read_part(sandbox, "stdout", 10**9, 100).data == b""


def test_a_part_outside_the_sandbox_is_refused(files):
    with pytest.raises(ValueError, match="inside the sandbox"):
        files.read_part(files.locate(*TASK), "../stdout", 0, 1)
