"""The dashboards of two services at once, behind the local DC/OS' Admin Router, in a browser."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser_page import DESKTOP, Page
from dcos_tensorflow.deploy.embedded.dcos_integration import DcosIntegration
from embedded_mesos import EmbeddedCluster
from local_dcos import DcosConfig, LocalDcos, Login

from .world import World

TESTS = Path(__file__).resolve().parents[2]
#: A service in a folder, too: what is relative to its page begins deeper.
SERVICES = ("alpha", "team/beta")
#: A real API that asks for the token of this DC/OS, over a state that never changes.
SERVICE = f"""
import json, os, sys, threading
sys.path[:0] = {[str(TESTS), str(TESTS.parent / "framework")]!r}
from dataclasses import replace
from pathlib import Path
from servers.answering_service import Service
from dcos_tensorflow.api.callers.access import Access
from dcos_tensorflow.api.app import create_app
from dcos_tensorflow.api.server import ApiServer
from samples.states import running

service, name, token = Service(), sys.argv[1], json.loads(Path(sys.argv[2]).read_text())["secret"]
state = running()
service.current = replace(state, spec=replace(state.spec, name=name))
service.on_event = lambda: Path(sys.argv[3]).write_text(str(service.events))
ApiServer(create_app(service, access=Access(token)), port=int(os.environ["PORT0"])).start()
threading.Event().wait()
"""


def orders(folder: Path, name: str) -> Path:
    """Return the file that a service writes when it is given an order."""
    return folder / f"{name.replace('/', '-')}-orders"


def serve(world: World, folder: Path) -> None:
    """Have both services run as apps."""
    script = folder / "service.py"
    script.write_text(SERVICE)
    for name in SERVICES:
        given = [name, str(folder / "dcos" / "api-token.json"), str(orders(folder, name))]
        app = {
            "id": name,
            "cmd": f"exec {sys.executable} service.py {' '.join(given)}",
            "fetch": [{"uri": script.as_uri()}],
            "cpus": 0.1,
            "mem": 128,
            "labels": {"DCOS_SERVICE_NAME": name, "DCOS_SERVICE_PORT_INDEX": "0"},
            "healthChecks": [{"protocol": "MESOS_HTTP", "path": "/v1/health", "portIndex": 0}],
        }
        assert world.ask("POST", "/service/marathon/v2/apps", app).status == 201
    for name in SERVICES:
        world.settled(f"/{name}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dashboards")


@pytest.fixture(scope="module")
def world(cluster: EmbeddedCluster, credential: Path, folder: Path) -> Iterator[World]:
    login = Login("operator", "a-password")
    config = DcosConfig(
        folder=folder / "dcos", master=cluster.master, credential=credential, login=login
    )
    with LocalDcos(config, DcosIntegration()) as dcos:
        known = World(dcos)
        body = {"uid": login.user, "password": login.password}
        token = known.ask("POST", "/acs/api/v1/auth/login", body).json()["token"]
        known.headers["Authorization"] = f"token={token}"
        serve(known, folder)
        yield known


@pytest.mark.soak
def test_two_dashboards_show_each_its_own_service_and_order_nothing_of_the_other(
    world: World, folder: Path
) -> None:
    with Page() as page:
        page.order("send", headers=world.headers)
        for name in SERVICES:
            url = f"http://{world.dcos.address}/service/{name}/"
            page.order("open", url=url, scheme="light", **DESKTOP)
            page.see("h1", name)
            page.see(".link.live")
            page.order("click", where='nav a[href="#/tasks"]')
            page.order("click", where='a[href="#/tasks/worker-1"]')
            assert page.order("complaints") == []
        page.order("click", where=".buttons button >> text=Restart")
        page.order("click", where="dialog .primary")
        page.see(".said", "Restart worker-1: received")
        assert [orders(folder, name).exists() for name in SERVICES] == [False, True]


@pytest.mark.soak
@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", ""), ("GET", "v1/job"), ("GET", "v1/events"), ("POST", "v1/pod/worker-0/restart")],
)
def test_a_viewer_without_a_token_sees_nothing_and_can_do_nothing(
    world: World, name: str, method: str, path: str
) -> None:
    stranger = World(world.dcos)
    reply = stranger.ask(method, f"/service/{name}/{path}", headers={"Accept": "text/html"})
    assert (reply.status, reply.body) == (401, b"")
