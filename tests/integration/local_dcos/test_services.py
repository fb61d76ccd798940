"""What passes through the service proxy, and what of the logs and files can be reached."""

import http.client
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dcos_tensorflow.deploy.embedded.dcos_integration import DcosIntegration
from embedded_mesos import EmbeddedCluster
from local_dcos import DcosConfig, LocalDcos
from waiting import eventually

from .world import World

SERVER = """
import http.server, os

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/there?x=1")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path == "/teapot":
            self.send_response(418)
            self.send_header("X-Own", "yes")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path == "/stream":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"5\\r\\nfirst\\r\\n")
            self.wfile.flush()
            self.rfile.read(1)
        else:
            self.echo()

    def echo(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = f"{self.command} {self.path} ".encode() + self.rfile.read(length)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_PUT = do_DELETE = echo

    def log_message(self, *args):
        pass

print("ready", flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT0"])), Handler).serve_forever()
"""


@pytest.fixture(scope="module")
def world(
    cluster: EmbeddedCluster, credential: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """Return a local DC/OS with the service: what a test asks of it changes nothing."""
    folder = tmp_path_factory.mktemp("dcos")
    script = folder / "server.py"
    script.write_text(SERVER)
    config = DcosConfig(folder=folder / "dcos", master=cluster.master, credential=credential)
    with LocalDcos(config, DcosIntegration()) as dcos:
        yield served(World(dcos), script)


def served(found: World, script: Path) -> World:
    app = {
        "id": "echo",
        "cmd": f"exec {sys.executable} server.py",
        "fetch": [{"uri": script.as_uri()}],
        "labels": {"DCOS_SERVICE_NAME": "echo", "DCOS_SERVICE_PORT_INDEX": "0"},
        "healthChecks": [{"protocol": "MESOS_HTTP", "path": "/", "portIndex": 0}],
    }
    assert found.ask("POST", "/service/marathon/v2/apps", app).status == 201
    found.settled("/echo")
    return found


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_method_target_and_body_arrive_as_they_were_sent(world: World, method: str) -> None:
    target = "/a%2Fb/worker-0%3A%5Bnode%5D?phase=x&step=%5B"
    reply = world.ask(method, f"/service/echo{target}", b"body")
    assert reply.body.decode() == f"{method} {target} body"


def test_status_and_headers_come_back_as_they_were_sent(world: World) -> None:
    reply = world.ask("GET", "/service/echo/teapot")
    assert (reply.status, reply.headers["x-own"]) == (418, "yes")


def test_a_redirection_stays_behind_the_proxy(world: World) -> None:
    assert world.ask("GET", "/service/echo/moved").headers["location"] == "/service/echo/there?x=1"


def test_a_stream_is_passed_on_while_it_goes_on(world: World) -> None:
    connection = http.client.HTTPConnection(world.dcos.address, timeout=20)
    connection.request("GET", "/service/echo/stream")
    response = connection.getresponse()
    assert response.read(5) == b"first"
    connection.close()


def test_the_name_alone_is_the_root_of_the_service(world: World) -> None:
    assert world.ask("GET", "/service/echo").body == b"GET / "


def test_a_browser_is_led_behind_the_slash_that_its_page_needs(world: World) -> None:
    connection = http.client.HTTPConnection(world.dcos.address, timeout=20)
    connection.request("GET", "/service/echo?a=1", headers={"Accept": "text/html,*/*"})
    response = connection.getresponse()
    assert (response.status, response.getheader("location")) == (307, "/service/echo/?a=1")
    connection.close()


def test_a_log_outside_of_the_sandbox_is_not_found(world: World) -> None:
    task = world.app("/echo")["tasks"][0]["id"]
    outside = "../../../../../../../../etc/passwd"
    assert world.ask("GET", f"/system/v1/logs/v2/task/{task}/file/{outside}").status == 404


def test_the_files_of_an_app_can_be_read(world: World) -> None:
    agent = world.app("/echo")["tasks"][0]["slaveId"]
    root = world.sandbox("/echo")
    listed = [one["path"] for one in world.get(f"/agent/{agent}/files/browse?path={root}")]
    assert f"{root}/server.py" in listed
    found = eventually(
        lambda: world.get(f"/agent/{agent}/files/read?path={root}/stdout&offset=0")["data"]
    )
    assert found == "ready\n"
    assert world.ask("GET", f"/agent/{agent}/files/download?path=/etc/passwd").status == 404


def test_an_unknown_path_is_named(world: World) -> None:
    reply = world.ask("GET", "/nothing")
    assert (reply.status, reply.body) == (404, b"404 Not Found: /nothing\n")


def test_a_wrong_method_is_told_the_right_one(world: World) -> None:
    reply = world.ask("GET", "/package/install")
    assert (reply.status, reply.headers["allow"]) == (405, "POST")


def test_the_log_of_an_app_can_be_followed_until_the_end(world: World) -> None:
    task = world.app("/echo")["tasks"][0]["id"]
    connection = http.client.HTTPConnection(world.dcos.address, timeout=20)
    headers = {"Accept": "text/event-stream"}
    connection.request(
        "GET", f"/system/v1/logs/v2/task/{task}/file/stdout?cursor=END&skip=-10", headers=headers
    )
    response = connection.getresponse()
    line = b""
    while b"ready" not in line:
        line = response.readline()
    # The stream never ends by itself: the local DC/OS ends without it.
    world.dcos.stop()
    connection.close()
    world.dcos.start()
