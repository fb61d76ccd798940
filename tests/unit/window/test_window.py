"""The window: who is let in, what it shows of a finished service, and what it passes on."""

import json
import os
import re
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest

from dcos_tensorflow.client.kept.last_page import LastPage, keep_page
from dcos_tensorflow.client.registry import Registration, register
from dcos_tensorflow.client.work_directory import ServiceDirectory, WorkDirectory
from dcos_tensorflow.history.folder import RunFolder
from dcos_tensorflow.history.record import record_of
from dcos_tensorflow.window import boards, kept
from dcos_tensorflow.window.app import Window
from dcos_tensorflow.window.login import LINK_SECONDS, Login
from dcos_tensorflow.window.of_this_machine import OfThisMachine
from samples.states import running
from untrusted_input.asgi_server import AsgiServer

KEY = "the key"
TOKEN = "the-scheduler-s-token"
#: Answers below the path that it is given as TensorBoard does, with the folder that it is given.
BOARD = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

given = dict(zip(sys.argv[1::2], sys.argv[2::2]))

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        is_mine = self.path.startswith(given["--path_prefix"] + "/")
        self.send_response(200 if is_mine else 404)
        self.end_headers()
        self.wfile.write(given["--logdir"].encode())

def run_main():
    server = HTTPServer((given["--host"], int(given["--port"])), Handler)
    place = f"http://127.0.0.1:{server.server_port}{given['--path_prefix']}/"
    print(f"TensorBoard 2 at {place} (Press CTRL+C to quit)", file=sys.stderr, flush=True)
    server.serve_forever()
"""


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ended(tmp_path: Path) -> ServiceDirectory:
    """The folder of a service whose job is done, with what one of its tasks has printed."""
    directory = WorkDirectory(tmp_path).service("digits")
    directory.prepare()
    watched, answers = {"job": {"phase": "done"}, "why": {}}, {"v1/units": {"units": []}}
    keep_page(directory, LastPage(watched, answers))
    sandbox = directory.task_logs / "worker-0"
    sandbox.mkdir(parents=True)
    (sandbox / "stdout").write_text("step 1\nstep 2\n")
    return directory


@pytest.fixture
def stranger(tmp_path: Path, ended: ServiceDirectory, clock: Clock) -> Iterator[httpx.Client]:
    """A browser that is not logged in."""
    server = AsgiServer("the window", "127.0.0.1", 0, grace_seconds=1)
    server.bind()
    services = OfThisMachine(WorkDirectory(tmp_path))
    window = Window(services, Login(KEY, clock), 8422)
    server.serve(window.app(), "window")
    with httpx.Client(base_url=f"http://{server.address}") as client:
        yield client
    server.stop()
    services.stop()


def link(client: httpx.Client) -> str:
    return str(client.post("/links", headers={"authorization": f"Bearer {KEY}"}).json()["path"])


@pytest.fixture
def browser(stranger: httpx.Client) -> httpx.Client:
    """A browser that has followed a link."""
    assert stranger.get(link(stranger)).status_code == 303
    return stranger


class TestLogin:
    def test_a_link_leads_to_the_service_that_it_names(self, stranger: httpx.Client) -> None:
        answer = stranger.get(f"{link(stranger)}&service=digits")
        assert answer.headers["location"] == "/services/digits/"

    def test_a_link_leads_to_no_place_that_is_no_service_s(self, stranger: httpx.Client) -> None:
        answer = stranger.get(f"{link(stranger)}&service=//evil.example")
        assert answer.headers["location"] == "/"

    def test_a_link_works_once(self, stranger: httpx.Client) -> None:
        path = link(stranger)
        stranger.get(path)
        assert stranger.get(path).status_code == 403

    def test_a_link_that_was_not_followed_in_time_works_no_longer(
        self, stranger: httpx.Client, clock: Clock
    ) -> None:
        path = link(stranger)
        clock.now += LINK_SECONDS + 1
        assert stranger.get(path).status_code == 403

    def test_a_link_is_given_for_the_key_alone(self, stranger: httpx.Client) -> None:
        answer = stranger.post("/links", headers={"authorization": "Bearer another"})
        assert answer.status_code == 403

    @pytest.mark.parametrize(
        "path",
        ["/", "/services", "/services/digits/", "/services/digits/v1/job"],
    )
    def test_a_browser_that_is_not_logged_in_sees_nothing(
        self, stranger: httpx.Client, path: str
    ) -> None:
        assert stranger.get(path).status_code == 403

    @pytest.mark.parametrize(
        "headers",
        [
            pytest.param({"host": "evil.example:8422"}, id="by another name"),
            pytest.param({"origin": "http://127.0.0.1:9"}, id="from another port"),
            pytest.param({"sec-fetch-site": "cross-site"}, id="from another site"),
        ],
    )
    def test_a_page_of_another_site_sees_nothing(
        self, browser: httpx.Client, headers: dict[str, str]
    ) -> None:
        assert browser.get("/services", headers=headers).status_code == 403

    def test_no_script_reads_the_cookie_and_no_other_site_sends_it(
        self, stranger: httpx.Client
    ) -> None:
        cookie = stranger.get(link(stranger)).headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie


class TestAFinishedService:
    def test_it_is_listed(self, browser: httpx.Client) -> None:
        (told,) = browser.get("/services").json()["services"]
        assert (told["name"], told["served"]) == ("digits", False)

    def test_its_dashboard_is_there(self, browser: httpx.Client) -> None:
        assert "dashboard/main.js" in browser.get("/services/digits/").text
        assert browser.get("/services/digits/dashboard/main.js").status_code == 200

    def test_what_it_showed_last_is_shown_as_kept(self, ended: ServiceDirectory) -> None:
        assert kept.watched(ended) == {"job": {"phase": "done"}, "why": {}, "kept": True}

    @pytest.mark.parametrize(
        ("path", "answer"),
        [
            ("v1/job", {"phase": "done"}),
            ("v1/units", {"units": []}),
            ("v1/runs", []),
        ],
    )
    def test_the_api_answers_from_its_folder(
        self, browser: httpx.Client, path: str, answer: object
    ) -> None:
        assert browser.get(f"/services/digits/{path}").json() == answer

    def test_what_its_tasks_printed_is_shown_by_whole_lines(self, browser: httpx.Client) -> None:
        path = "/services/digits/v1/pod/worker-0/files/stdout"
        part = browser.get(f"{path}?length=10").json()
        assert (part["data"], part["next_offset"], part["size"]) == ("step 1\n", 7, 14)
        assert browser.get(f"{path}?offset=7").json()["data"] == "step 2\n"

    @pytest.mark.parametrize(
        "path", ["worker-0/files/train.py", "..%2Fworker-0/files/stdout", "worker-0/files/stderr"]
    )
    def test_no_other_file_is_shown(self, browser: httpx.Client, path: str) -> None:
        assert browser.get(f"/services/digits/v1/pod/{path}").status_code == 404

    @pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/etc/passwd")])
    def test_what_is_no_file_of_the_task_is_not_read(
        self, browser: httpx.Client, ended: ServiceDirectory, make: Any
    ) -> None:
        make(ended.task_logs / "worker-0" / "stderr")
        answer = browser.get("/services/digits/v1/pod/worker-0/files/stderr")
        assert answer.status_code == 404

    def test_a_page_that_follows_it_is_told_what_it_showed_last(
        self, browser: httpx.Client
    ) -> None:
        with browser.stream("GET", "/services/digits/v1/events") as answer:
            lines = answer.iter_lines()

            assert next(lines) == "event: whole"
            assert json.loads(next(lines).removeprefix("data: "))["kept"] is True

    def test_a_page_that_follows_it_asks_again_once_a_scheduler_serves_it(
        self, browser: httpx.Client, ended: ServiceDirectory
    ) -> None:
        with browser.stream("GET", "/services/digits/v1/events") as answer:
            register(ended, Registration("digits", os.getpid(), "127.0.0.1:9", TOKEN))

            assert [line for line in answer.iter_lines() if line][-1].startswith("data: ")

    def test_nothing_can_be_ordered(self, browser: httpx.Client) -> None:
        assert browser.post("/services/digits/v1/job/stop").status_code == 409

    def test_notes_of_its_runs_are_kept(
        self, browser: httpx.Client, ended: ServiceDirectory
    ) -> None:
        record = {**record_of(running(), {}, {}), "id": "1-abc"}
        RunFolder(ended.history / "1-abc").keep_record(record)
        place, notes = "/services/digits/v1/runs/1/notes", {"tags": ["paper"], "note": "the best"}
        assert browser.post(place, json=notes).json() == notes
        (found,) = browser.get("/services/digits/v1/runs").json()
        assert {name: found[name] for name in notes} == notes
        assert browser.post(place, json={"tags": [3]}).status_code == 400
        assert browser.post(place.replace("runs/1", "runs/2"), json=notes).status_code == 404

    @pytest.mark.parametrize("content", ["", "{", "[]", '{"watched": 3}'])
    def test_a_damaged_page_is_none(
        self, browser: httpx.Client, ended: ServiceDirectory, content: str
    ) -> None:
        ended.last_page.write_text(content)
        assert browser.get("/services/digits/v1/events").status_code == 404

    def test_an_unknown_service_is_told(self, browser: httpx.Client) -> None:
        assert browser.get("/services/letters/v1/job").status_code == 404


class Scheduler(BaseHTTPRequestHandler):
    """Answers with what it was asked."""

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        told = {
            "asked": f"{self.command} {self.path}",
            "body": body.decode(),
            "token": self.headers.get("authorization"),
            "cookie": self.headers.get("cookie"),
        }
        text = json.dumps(told).encode()
        self.send_response(401 if "refused" in self.path else 417)
        self.send_header("content-type", "application/json")
        self.send_header("set-cookie", "theirs=1")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def served(ended: ServiceDirectory) -> Iterator[HTTPServer]:
    """A scheduler that serves the service."""
    server = HTTPServer(("127.0.0.1", 0), Scheduler)
    Thread(target=server.serve_forever, daemon=True).start()
    api = f"127.0.0.1:{server.server_port}"
    register(ended, Registration("digits", os.getpid(), api, TOKEN))
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.usefixtures("served")
class TestAServiceThatIsServed:
    def test_a_question_is_passed_on_with_the_token_and_without_the_cookie(
        self, browser: httpx.Client
    ) -> None:
        answer = browser.get("/services/digits/v1/pod/a%2Fb?phase=x%20y")
        assert answer.status_code == 417
        assert answer.json() == {
            "asked": "GET /v1/pod/a%2Fb?phase=x%20y",
            "body": "",
            "token": f"Bearer {TOKEN}",
            "cookie": None,
        }
        assert "set-cookie" not in answer.headers

    def test_an_order_is_passed_on_with_its_body(self, browser: httpx.Client) -> None:
        answer = browser.post("/services/digits/v1/job/stop", content='{"why": "enough"}')
        told = answer.json()
        assert (told["asked"], told["body"]) == ("POST /v1/job/stop", '{"why": "enough"}')

    def test_a_scheduler_that_refuses_the_token_asks_the_browser_for_none(
        self, browser: httpx.Client
    ) -> None:
        assert browser.get("/services/digits/v1/refused").status_code == 502

    def test_a_body_without_end_is_refused(self, browser: httpx.Client) -> None:
        answer = browser.post("/services/digits/v1/update", content=b" " * 1_000_001)
        assert answer.status_code == 400


def test_a_scheduler_that_does_not_answer_is_told(
    browser: httpx.Client, ended: ServiceDirectory
) -> None:
    register(ended, Registration("digits", os.getpid(), "127.0.0.1:9", TOKEN))
    assert browser.get("/services/digits/v1/job").status_code == 503


class TestTensorBoard:
    """The board that a browser starts for a service."""

    @pytest.fixture
    def place(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Return a Python that has a TensorBoard: a server that tells its path and lives on."""
        packages = tmp_path / "env" / "lib" / "python3.11" / "site-packages" / "tensorboard"
        packages.mkdir(parents=True)
        (packages / "__init__.py").touch()
        (packages / "main.py").write_text(BOARD)
        python = tmp_path / "env" / "bin" / "python"
        python.parent.mkdir()
        python.write_text(f'#!/bin/sh\nPYTHONPATH={packages.parent} exec {sys.executable} "$@"\n')
        python.chmod(0o755)
        monkeypatch.setattr(boards, "_pythons", lambda: iter([python]))
        return packages / "main.py"

    def test_it_is_below_a_path_that_none_can_guess_and_ends_with_the_window(
        self, browser: httpx.Client, ended: ServiceDirectory, place: Path
    ) -> None:
        (ended.checkpoints / "events.out.tfevents.1").touch()
        answer = browser.post("/services/digits/tensorboard")
        address = str(answer.json()["address"])
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", address)
        assert httpx.get(address).text == str(ended.checkpoints)
        assert httpx.get(f"{httpx.URL(address).copy_with(path='/')}").status_code == 404
        assert browser.post("/services/digits/tensorboard").json()["address"] == address

    def test_without_summaries_it_is_refused_with_where_to_write_them(
        self, browser: httpx.Client, place: Path
    ) -> None:
        answer = browser.post("/services/digits/tensorboard")
        assert (answer.status_code, "LOG_DIR" in answer.json()["message"]) == (409, True)

    def test_where_none_is_installed_it_says_what_helps(
        self, browser: httpx.Client, ended: ServiceDirectory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(boards, "_pythons", lambda: iter([]))
        (ended.checkpoints / "events.out.tfevents.1").touch()
        answer = browser.post("/services/digits/tensorboard")
        assert "pip install tensorboard" in answer.json()["message"]

    def test_one_that_does_not_start_is_told_with_its_last_words(
        self, browser: httpx.Client, ended: ServiceDirectory, place: Path
    ) -> None:
        place.write_text("def run_main():\n    raise SystemExit('no such plugin')")
        (ended.checkpoints / "events.out.tfevents.1").touch()
        answer = browser.post("/services/digits/tensorboard")
        assert "no such plugin" in answer.json()["message"]

    def test_who_is_not_logged_in_starts_none(self, stranger: httpx.Client) -> None:
        assert stranger.post("/services/digits/tensorboard").status_code == 403
