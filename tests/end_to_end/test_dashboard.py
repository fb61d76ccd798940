"""The dashboard in a real browser, during a real training: every view, a task killed, a failover.

With ``DASHBOARD_PICTURES=docs/pictures`` the pictures of the documents are taken.
"""

import contextlib
import json
import os
import signal
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from browser_page import DESKTOP, PHONE, Page
from command_line import EXAMPLES, NEWEST
from embedded_mesos import AgentConfig, EmbeddedCluster
from free_ports import free_port
from local_dcos.upstream import forward
from processes import processes
from scheduler_process import SchedulerProcess
from untrusted_input.asgi_server import AsgiServer
from waiting import eventually

pytestmark = [pytest.mark.soak, pytest.mark.tensorflow, pytest.mark.timeout(700)]

TOKEN = "a-token-for-the-page"
PREFIX = "/service/digits"
#: TensorFlow's start on a busy machine.
PATIENCE = 240.0
#: Each view, and a text that it shows of this training.
VIEWS = {
    "overview": "steps per second",
    "tasks": "talk to 1 parameter server",
    "plans": "Restart",
    "why": "Offers that were not used",
    "cluster": "strategy between_graph",
    "checkpoints": "model.ckpt",
    "logs": "worker-1",
    "options": "parameter_server",
    "runs": "(this one)",
}


class Training:
    """A long training of one parameter server and two workers, and its scheduler."""

    def __init__(self, folder: Path, master: str, python: str) -> None:
        self.folder, self._master, self._starts = folder, master, 0
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        options = json.loads((EXAMPLES / "digits" / "options.json").read_text())
        context = {"steps": 10**6, "batch_size": 16, "learning_rate": 0.001}
        options["service"] |= {
            "job_url": str(EXAMPLES / "digits"),
            "job_context": json.dumps(context),
            "python": python,
        }
        self._options = folder / "digits.json"
        self._options.write_text(json.dumps(options))
        self.scheduler = self.start()

    def start(self) -> SchedulerProcess:
        """Start a scheduler where the one before was."""
        self._starts += 1
        self.scheduler = SchedulerProcess(
            f"scheduler-{self._starts}",
            self.folder,
            self._options,
            self._master,
            f"sqlite:///{self.folder}/state.db",
            *("--api-port", str(self.port)),
            environment={
                "DCOS_TENSORFLOW_HOME": str(self.folder / "home"),
                "DCOS_TENSORFLOW_API_TOKEN": TOKEN,
                "DCOS_TENSORFLOW_API_OPEN": "false",
            },
        )
        return self.scheduler

    def first_step(self) -> int:
        """Return the step at which the curve of worker-0 begins."""
        headers = {"Authorization": f"Bearer {TOKEN}"}
        request = urllib.request.Request(f"{self.url}/v1/curves", headers=headers)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return int(json.load(answer)["worker-0"]["step"][0])

    def process_of(self, task: str) -> int:
        """Return the process of a task's own code; 0 where there is none."""
        found = processes("digits", TASK_NAME=task)
        folder = str(self.folder)
        return next((p.pid for p in found if folder in f"{p.command} {p.variables}"), 0)


@pytest.fixture(scope="module")
def training(
    tmp_path_factory: pytest.TempPathFactory, tensorflow: Callable[[str], str]
) -> Iterator[Training]:
    python, folder = tensorflow(NEWEST), tmp_path_factory.mktemp("dashboard")
    agents = [AgentConfig(address=f"127.0.0.{n}", cpus=2, mem=4096) for n in (1, 2)]
    with EmbeddedCluster(agents, folder / "mesos") as cluster:
        training = Training(folder, cluster.master, python)
        try:
            assert training.scheduler.api
            yield training
        finally:
            training.scheduler.close()


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with Page() as page:
        yield page


def enter(page: Page, training: Training, size: dict[str, int], scheme: str = "light") -> None:
    """Open the page and give it the token."""
    page.order("open", url=f"{training.url}/", scheme=scheme, **size)
    # The browser itself complains of the answer 401 that makes the page ask for a token.
    page.see("#token")
    page.order("forgive")
    page.order("fill", where="#token", text=TOKEN)
    page.order("click", where="form button")
    page.see(".link.live")


def show(page: Page, view: str) -> None:
    page.order("click", where=f'nav a[href="#/{view}"]')
    page.see("main", VIEWS[view], seconds=PATIENCE)


def steps_shown(page: Page) -> int:
    # Before the first one the page shows none.
    script = """[...document.querySelectorAll(".figures div")].find(
        (one) => one.querySelector("dt").innerText === "step")?.querySelector("dd").innerText"""
    told = page.order("evaluate", script=script) or ""
    return int(told.replace(",", "")) if told.replace(",", "").isdigit() else 0


def trains(page: Page, beyond: int = 0) -> int:
    """Wait until the page shows a later step, and return it."""
    return eventually(
        lambda: steps if (steps := steps_shown(page)) > beyond else 0,
        seconds=PATIENCE,
        what="a later step",
    )


def test_a_wrong_token_is_said_to_be_one(page: Page, training: Training) -> None:
    page.order("open", url=f"{training.url}/", scheme="light", **DESKTOP)
    page.see("#token")
    assert page.order("violations") == []
    page.order("fill", where="#token", text="wrong")
    page.order("click", where="form button")
    page.see("#problem", "This token is not the service's.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_view_shows_its_part_and_complains_of_nothing(
    page: Page, training: Training, size: dict[str, int], scheme: str
) -> None:
    enter(page, training, size, scheme)
    page.see(".badge", "running", seconds=PATIENCE)
    trains(page)
    for view in VIEWS:
        show(page, view)
        assert page.order("violations") == [], view
        assert page.order("overflow") <= 0, view
    assert page.order("complaints") == []


def test_a_killed_task_and_a_killed_scheduler_are_seen_without_a_reload(
    page: Page, training: Training
) -> None:
    enter(page, training, DESKTOP)
    steps = trains(page)
    process = eventually(lambda: training.process_of("worker-1"), seconds=PATIENCE)
    os.kill(process, signal.SIGKILL)
    page.see(".incidents", "worker-1", seconds=PATIENCE)
    steps = trains(page, beyond=steps)
    training.scheduler.kill()
    page.see(".link.lost", "connection lost")
    assert steps_shown(page) >= steps
    training.start()
    page.see(".link.live", seconds=PATIENCE)
    trains(page, beyond=steps)
    page.see(".incidents", "worker-1", seconds=PATIENCE)
    assert training.first_step() < steps
    # What the browser itself complains of is that no server answered meanwhile.
    assert [told for told in page.order("complaints") if "net::ERR" not in told] == []
    if folder := os.environ.get("DASHBOARD_PICTURES"):
        take_pictures(page, training, Path(folder).resolve())


def take_pictures(page: Page, training: Training, folder: Path) -> None:
    """Take those of the overview and the tasks, and of the overview on a phone."""
    page.order("shoot", file=str(folder / "dashboard.png"))
    show(page, "tasks")
    page.order("shoot", file=str(folder / "dashboard-tasks.png"))
    enter(page, training, PHONE, "dark")
    page.see(".chart canvas")
    page.order("shoot", file=str(folder / "dashboard-phone.png"))


def test_an_order_is_given_when_it_is_confirmed(page: Page, training: Training) -> None:
    enter(page, training, DESKTOP)
    show(page, "tasks")
    page.order("click", where='a[href="#/tasks/worker-1"]')
    page.order("click", where=".buttons button >> text=Restart")
    page.see("dialog", "Restart worker-1?")
    assert page.order("violations") == []
    page.order("press", key="Escape")
    page.order("click", where=".buttons button >> text=Restart")
    page.order("click", where="dialog .primary")
    page.see(".said", "Restart worker-1: received")
    assert page.order("complaints") == []


def test_it_is_right_under_the_prefix_of_a_proxy(page: Page, training: Training) -> None:
    with proxy(training) as url:
        page.order("open", url=url, scheme="light", **DESKTOP)
        page.see(".link.live")
        trains(page)
        for view in VIEWS:
            show(page, view)
        assert page.order("complaints") == []


@contextlib.contextmanager
def proxy(training: Training) -> Iterator[str]:
    """Have the local DC/OS' Admin Router in front, which lets the browser in; yield the address."""

    def passed(request: Request) -> Response:
        target = request.url.path.removeprefix(PREFIX)
        answer = forward(
            f"127.0.0.1:{training.port}",
            f"{target}?{request.url.query}" if request.url.query else target,
            method=request.method,
            body=b"",
            headers=dict(request.headers),
            authorization={"authorization": f"Bearer {TOKEN}"},
            prefix=PREFIX,
        )
        body: Any = answer.body
        kind = StreamingResponse if not isinstance(body, bytes) else Response
        return kind(body, answer.status, dict(answer.headers), media_type=answer.content_type)

    server = AsgiServer("the proxy", "127.0.0.1", 0, grace_seconds=1)
    address = server.bind()
    server.serve(Starlette(routes=[Route(PREFIX + "/{path:path}", passed)]), "proxy")
    try:
        yield f"http://{address}{PREFIX}/"
    finally:
        server.stop()
