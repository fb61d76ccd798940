"""The window of a host of many: who has the token is let in, and what a state store tells."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest

from dcos_tensorflow.api.callers.access import Access
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.core.kept.writes import first_writes
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.scheduler.gate import Gate
from dcos_tensorflow.scheduler.told_address import ToldAddress
from dcos_tensorflow.state.store import open_store
from dcos_tensorflow.window import of_state
from dcos_tensorflow.window.app import Window
from dcos_tensorflow.window.copied_runs import CopiedRuns
from dcos_tensorflow.window.login import Login
from dcos_tensorflow.window.of_state import OfState
from dcos_tensorflow.window.of_this_machine import OfThisMachine
from dcos_tensorflow.window.services import Services
from samples.states import a_spec, a_state
from servers.answering_service import TOKEN, Service
from untrusted_input.asgi_server import AsgiServer

#: What the window is asked by: not an address, as in a company's network.
NAMED = {"host": "window.example:8422"}
PAGES = ["/", "/queue/", "/services/digits/"]


def asked(stack: ExitStack, services: Services, *, tls: bool = False) -> httpx.Client:
    """Serve a window, and return a browser that is not logged in."""
    server = AsgiServer("the window", "127.0.0.1", 0, grace_seconds=1)
    server.bind()
    window = Window(services, Login("the key"), 8422, Access(TOKEN), tls=tls)
    server.serve(window.app(), "window")
    stack.callback(server.stop)
    return stack.enter_context(httpx.Client(base_url=f"http://{server.address}"))


def bearer(token: str = TOKEN) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[httpx.Client]:
    with ExitStack() as stack:
        yield asked(stack, OfThisMachine(WorkDirectory(tmp_path)))


class TestTheDoor:
    @pytest.mark.parametrize("page", PAGES)
    def test_each_page_asks_for_the_token_and_has_the_files_for_that(
        self, stranger: httpx.Client, page: str
    ) -> None:
        answer = stranger.get(page)
        assert (answer.status_code, "entrance.js" in answer.text) == (401, True)
        assert stranger.get(f"{page}dashboard/entrance.js").status_code == 200

    def test_who_says_the_token_is_logged_in_by_a_cookie(self, stranger: httpx.Client) -> None:
        cookie = stranger.post("/login", headers=bearer()).headers["set-cookie"].lower()
        assert all(word in cookie for word in ("httponly", "samesite=strict"))
        assert stranger.get("/services").json() == {"services": [], "queue": None}

    def test_over_tls_the_cookie_goes_back_by_tls_alone(self, tmp_path: Path) -> None:
        with ExitStack() as stack:
            browser = asked(stack, OfThisMachine(WorkDirectory(tmp_path)), tls=True)
            cookie = browser.post("/login", headers=bearer()).headers["set-cookie"]
        assert "secure" in cookie.lower()

    def test_a_program_says_the_token_with_each_request(self, stranger: httpx.Client) -> None:
        assert stranger.get("/services", headers={**bearer(), **NAMED}).status_code == 200

    @pytest.mark.parametrize("path", ["/login", "/services/digits/v1/job/stop"])
    @pytest.mark.parametrize("headers", [{}, bearer("another"), {"cookie": "another=1"}])
    def test_who_has_it_not_orders_nothing(
        self, stranger: httpx.Client, path: str, headers: dict[str, str]
    ) -> None:
        answer = stranger.post(path, headers=headers)
        assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)

    def test_who_guesses_has_to_wait(self, stranger: httpx.Client) -> None:
        told = {stranger.get("/services", headers=bearer(f"{n}")).status_code for n in range(20)}
        assert told == {401, 429}

    @pytest.mark.parametrize(
        "headers", [{"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}]
    )
    @pytest.mark.parametrize("path", ["/login", "/services/digits/v1/job/stop"])
    def test_a_page_of_another_site_orders_nothing_with_a_browser_that_is_logged_in(
        self, stranger: httpx.Client, headers: dict[str, str], path: str
    ) -> None:
        stranger.post("/login", headers=bearer())
        assert stranger.post(path, headers={**headers, **bearer()}).status_code == 403


class TestAStateStore:
    """What is shown of the services of a state store: ``led`` and ``left`` are in it."""

    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/state.db"

    @pytest.fixture
    def led(self, url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
        """A service with a leader that has told its address, beside one that none leads."""
        monkeypatch.setattr(of_state, "_FRESH_SECONDS", 0.0)
        with ExitStack() as stack:
            service = Service()
            stack.callback(service.end)
            address = f"http://{service.server.start()}"
            for name in ("left", "led"):
                store = stack.enter_context(closing(open_store(url, name)))
                leadership = store.lead("a scheduler", 5.0, lambda _: None)
                store.commit(first_writes(a_state(JobPhase.RUNNING, spec=a_spec(name=name))))
                if name == "led":
                    store.commit([ToldAddress(address, leadership.holder).write()])
                else:
                    leadership.release()
            yield service

    @pytest.fixture
    def browser(self, url: str, led: Service) -> Iterator[httpx.Client]:
        with ExitStack() as stack:
            browser = asked(stack, OfState(url, TOKEN, CopiedRuns(Gate()), in_clear=False))
            browser.headers.update(bearer())
            yield browser

    def test_all_of_it_are_listed(self, browser: httpx.Client) -> None:
        found = {one["name"]: one for one in browser.get("/services").json()["services"]}
        assert {name: one["served"] for name, one in found.items()} == {"led": True, "left": False}
        assert "no scheduler serves it" in found["left"]["summary"]

    def test_a_leader_is_asked_with_the_token(self, browser: httpx.Client) -> None:
        assert browser.get("/services/led/v1/job").json()["service"] == "tensorflow"

    def test_of_one_that_none_leads_the_state_is_shown_and_nothing_is_ordered(
        self, browser: httpx.Client
    ) -> None:
        with browser.stream("GET", "/services/left/v1/events") as answer:
            told = next(line for line in answer.iter_lines() if line.startswith("data: "))
        assert "as it is stored; no scheduler serves it" in told
        for path in ("job", "why", "runs", "curves", "cluster", "configurations/target"):
            assert browser.get(f"/services/left/v1/{path}").status_code == 200
        assert browser.post("/services/left/v1/job/stop").status_code == 409
        assert browser.get("/services/left/v1/pod/worker-0/files/stdout").status_code == 404

    def test_of_one_whose_leader_has_told_no_address_that_is_said(
        self, browser: httpx.Client, url: str
    ) -> None:
        with (
            closing(open_store(url, "left")) as store,
            store.lead("of an earlier release", 5.0, lambda _: None),
        ):
            answer = browser.post("/services/left/v1/job/stop")
        assert (answer.status_code, "address unknown" in answer.json()["message"]) == (409, True)

    def test_a_page_that_is_open_shows_what_has_changed_in_the_store(
        self, browser: httpx.Client, url: str
    ) -> None:
        with browser.stream("GET", "/services/left/v1/events") as answer:
            told = (line for line in answer.iter_lines() if line.startswith("data: "))
            assert "no scheduler serves it" in next(told)
            with (
                closing(open_store(url, "left")) as store,
                store.lead("of an earlier release", 5.0, lambda _: None),
            ):
                assert "address unknown" in next(told)

    def test_an_order_goes_to_the_leader_of_now(
        self, browser: httpx.Client, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(of_state, "_FRESH_SECONDS", 1e9)
        assert browser.get("/services/left/v1/job").json()["service"] == "left"
        with closing(open_store(url, "left")) as store:
            holder = store.lead("a scheduler", 5.0, lambda _: None).holder
            store.commit([ToldAddress("http://127.0.0.1:9", holder).write()])
            answer = browser.post("/services/left/v1/job/stop")
        assert (answer.status_code, "does not answer" in answer.json()["message"]) == (503, True)

    def test_a_store_that_is_away_is_told(
        self, browser: httpx.Client, url: str, tmp_path: Path
    ) -> None:
        (tmp_path / "state.db").rename(tmp_path / "away.db")
        answer = browser.get("/services")
        assert (answer.status_code, "state store" in answer.json()["message"]) == (503, True)
