"""The dashboard's files, and the stream of events that it lives on. No browser is needed here."""

import gzip
import http.client
import json
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from os.path import normpath
from pathlib import Path
from typing import Any

import pytest

from browser_page import DESKTOP, Page
from dashboard_modules import in_node
from dcos_tensorflow.api import live
from dcos_tensorflow.api.live import merge_patch
from dcos_tensorflow.api.pages import FOLDER
from dcos_tensorflow.api.views import job as why_view
from dcos_tensorflow.history.curves import MOST_POINTS, Curves
from dcos_tensorflow.history.folder import RunFolder
from dcos_tensorflow.history.keeper import Keeper, Sources
from dcos_tensorflow.history.points import Point, line_of
from dcos_tensorflow.history.record import record_of
from dcos_tensorflow.plugin.plain_text import escaped
from samples.states import an_incident, changed, reporting, running, with_job
from servers.answering_service import TOKEN, Service
from untrusted_input.page_files import files
from waiting import eventually

REPOSITORY = Path(__file__).resolve().parents[3]
HTML = {"accept": "text/html,*/*;q=0.8"}
MOST_BYTES = 150_000
#: Nothing takes so long; a busy machine needs a part of it.
SECONDS = 30.0


def test_a_browser_is_given_the_page_without_a_token(client_of: Any) -> None:
    answer = client_of(token=TOKEN).get("/", headers=HTML)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")


def test_who_takes_no_html_is_told_that_there_is_no_such_path(client: Any) -> None:
    answer = client.get("/", headers={"accept": "application/json"})
    assert (answer.status_code, answer.json()["message"]) == (404, "no such path: GET /")


def test_a_client_that_does_not_say_what_it_takes_is_given_the_page(client: Any) -> None:
    assert client.get("/").headers["content-type"] == "text/html; charset=utf-8"


def test_every_file_comes_with_headers_that_let_in_no_script_but_ours(client: Any) -> None:
    for name in files(FOLDER):
        answer = client.get(f"/dashboard/{name}")
        policy = answer.headers["content-security-policy"]
        assert (answer.status_code, answer.headers["x-content-type-options"]) == (200, "nosniff")
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy


@pytest.mark.parametrize("name", ["no-such.js", "../app.py", "%2e%2e/app.py", "", "sub/main.js"])
def test_nothing_else_of_the_package_is_given(client: Any, name: str) -> None:
    assert client.get(f"/dashboard/{name}").status_code == 404


def test_the_page_has_no_inline_script_or_style_and_only_relative_addresses() -> None:
    page = files(FOLDER)["index.html"][0].decode()
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", page) == []
    named = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert named
    for address in named:
        assert address.removeprefix("dashboard/") in files(FOLDER)


def test_every_module_that_is_imported_is_there() -> None:
    for name, (content, _) in files(FOLDER).items():
        for imported in re.findall(rb'^import .* from "(\.[^"]+)";$', content, re.MULTILINE):
            assert normpath(Path(name).parent / imported.decode()) in files(FOLDER), name


def test_all_of_it_is_small() -> None:
    assert sum(len(gzip.compress(content)) for content, _ in files(FOLDER).values()) < MOST_BYTES


def test_the_lock_names_each_version_that_is_shipped_and_no_registry() -> None:
    text = (REPOSITORY / "packaging" / "dashboard" / "package-lock.json").read_text()
    packages = json.loads(text)["packages"]
    shipped = dict(
        re.findall(r"^== (\S+) (\S+)$", files(FOLDER)["vendored/licences.txt"][0].decode(), re.M)
    )
    locked = {name: packages[f"node_modules/{name}"]["version"] for name in shipped}
    assert locked == shipped == packages[""]["dependencies"]
    assert "resolved" not in text


@pytest.mark.soak
def test_the_libraries_are_those_that_npm_has() -> None:
    """They are copied by ``packaging/dashboard/vendor.mjs`` and never changed by hand."""
    folder = REPOSITORY / "packaging" / "dashboard"
    if shutil.which("node") is None or not (folder / "node_modules" / "preact").is_dir():
        pytest.skip("nothing to compare with: npm ci --prefix packaging/dashboard")
    command = ["node", str(folder / "vendor.mjs"), "--check"]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


#: What a task may put into metrics, logs and names.
HOSTILE = (
    "acc\u202eycarucc",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07\x1b[2J",
    "line\rother\nnext\tcell",
    "half \ud800 and \udc00, whole \U0001f600",
    *(f"{number:04x}: a{chr(number)}b" for number in range(0x3000)),
)


MODULES = {"plain": "words.js", "html": "html.js", "partsOf, escaped": "address.js"}


def asked(script: str) -> Any:
    return in_node(script, HOSTILE, MODULES)


def test_the_page_shows_text_of_others_as_the_command_line_does() -> None:
    assert asked("given.map(plain)") == [escaped(text, lines=True) for text in HOSTILE]


def test_whatever_a_view_puts_into_an_element_is_shown_so() -> None:
    found = asked(
        "given.map((text) => html`<p title=${text} aria-label=${text}>${text}${[[text]]}</p>`)"
    )
    told = [escaped(text, lines=True) for text in HOSTILE]
    assert [one["props"]["children"] for one in found] == [[text, [[text]]] for text in told]
    assert [one["props"]["title"] for one in found] == told
    assert [one["props"]["aria-label"] for one in found] == told


def test_an_address_that_a_person_types_breaks_no_page() -> None:
    assert asked('partsOf("#/tasks/%/100%25/%ff/%E4%BD%A0")') == [
        "tasks",
        "%",
        "100%",
        "%ff",
        "\u4f60",
    ]


def test_a_name_with_half_a_character_breaks_no_page() -> None:
    found = asked('["a/b %", "x\\udcff", "\U0001f600"].map(escaped)')
    assert found == ["a%2Fb%20%25", "x%EF%BF%BD", "%F0%9F%98%80"]


def own_lines(*apart: str) -> list[str]:
    """Return the lines of the dashboard's own modules."""
    scripts = REPOSITORY / "framework" / "dcos_tensorflow" / "api" / "dashboard"
    vendored = {"preact.js", "htm.js", "uplot.js"}
    return [
        line
        for path in scripts.rglob("*.js")
        if path.name not in {*vendored, *apart}
        for line in path.read_text().splitlines()
    ]


def test_no_view_reads_or_writes_an_address_by_another_way() -> None:
    lines = own_lines("address.js")
    assert [line for line in lines if re.search(r"(de|en)codeURI|\bescape\(", line)] == []


def test_no_view_shows_text_by_another_way() -> None:
    lines = [
        line
        for line in own_lines()
        if re.search(r"textContent =|innerHTML|document\.title =|createTextNode|fillText", line)
    ]
    assert lines
    free = ('"";', "shard ?")
    assert [
        line for line in lines if "plain(" not in line and not any(f in line for f in free)
    ] == []


@pytest.fixture
def service() -> Iterator[Service]:
    """A service behind a real server: its answers do not wait for their own end."""
    service = Service()
    service.server.start()
    yield service
    service.server.stop()


class Viewer:
    """Reads the stream of events as a page does."""

    def __init__(self, service: Service, token: str = TOKEN) -> None:
        self._connection = http.client.HTTPConnection(service.server.address, timeout=SECONDS)
        self._connection.request("GET", "/v1/events", headers={"authorization": f"Bearer {token}"})
        self.answer = self._connection.getresponse()
        self.document: dict[str, Any] = {}

    def next(self) -> str:
        """Take in the next event and return its kind; empty at the end of the stream."""
        kind = ""
        while line := self.answer.readline().decode():
            if line.startswith("event: "):
                kind = line.removeprefix("event: ").strip()
            elif line.startswith("data: "):
                body = json.loads(line.removeprefix("data: "))
                self.document = patched({} if kind == "whole" else self.document, body)
                return kind
        return ""

    def until(self, condition: Callable[[dict[str, Any]], bool]) -> None:
        while not condition(self.document):
            assert self.next(), "the stream has ended"

    def close(self) -> None:
        self.answer.close()
        self._connection.close()


def patched(target: Any, patch: Any) -> Any:
    """Apply a merge patch as RFC 7396 says it, in its own words."""
    if not isinstance(patch, dict):
        return patch
    found = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = patched(found.get(name), value)
    return found


@pytest.fixture
def view(service: Service) -> Iterator[Callable[..., Viewer]]:
    opened: list[Viewer] = []

    def make(**more: Any) -> Viewer:
        opened.append(Viewer(service, **more))
        return opened[-1]

    yield make
    for viewer in opened:
        viewer.close()


def test_the_stream_begins_with_everything(view: Callable[..., Viewer]) -> None:
    viewer = view()
    assert viewer.next() == "whole"
    assert set(viewer.document) == {"job", "why", "plans"}
    assert viewer.document["job"]["phase"] == "running"


def test_the_stream_needs_the_token(view: Callable[..., Viewer]) -> None:
    assert view(token="wrong").answer.status == 401


def test_secrets_are_masked_in_what_is_told(service: Service, view: Callable[..., Viewer]) -> None:
    service.current = with_job(running(), incidents=(an_incident(summary="password=hunter22"),))
    viewer = view()
    viewer.next()
    assert "hunter22" not in json.dumps(viewer.document)
    assert "password=<redacted>" in viewer.document["job"]["incidents"][0]["summary"]


def test_what_changes_is_told_to_every_viewer(
    service: Service, view: Callable[..., Viewer]
) -> None:
    viewers = [view(), view()]
    assert [viewer.next() for viewer in viewers] == ["whole", "whole"]
    service.current = with_job(running(), restarts=7)
    for viewer in viewers:
        assert viewer.next() == "patch"
        assert viewer.document["job"]["restarts"] == 7


def test_what_tasks_use_is_told_though_the_state_stays_the_same(
    service: Service, view: Callable[..., Viewer]
) -> None:
    viewer = view()
    viewer.next()
    record = service.current.tasks["worker-0"] if service.current is not None else None
    assert record is not None
    used = {"cpu_percent": 80.0, "mem_bytes": 3, "gpus": [], "steps_per_second": None}
    service.used = {record.task_id: used}
    assert viewer.next() == "patch"
    assert viewer.document["job"]["tasks"]["worker-0"]["usage"]["cpu_percent"] == 80.0


def test_the_stream_ends_when_there_is_no_state_any_more(
    service: Service, view: Callable[..., Viewer]
) -> None:
    viewer = view()
    viewer.next()
    service.current = None
    assert viewer.next() == ""


def test_the_stream_ends_when_the_state_cannot_be_shown(
    service: Service, view: Callable[..., Viewer], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(state: Any) -> Any:
        raise RuntimeError("a fault of ours")

    viewer = view()
    viewer.next()
    monkeypatch.setattr(why_view, "why", broken)
    service.current = with_job(running(), restarts=2)
    assert viewer.next() == ""


def test_who_comes_after_the_last_viewer_has_gone_sees_the_newest(
    service: Service, view: Callable[..., Viewer]
) -> None:
    first = view()
    first.next()
    first.close()
    service.current = with_job(running(), restarts=3)
    second = view()
    second.until(lambda document: document.get("job", {}).get("restarts") == 3)


def test_the_server_stops_though_a_viewer_watches(
    service: Service, view: Callable[..., Viewer]
) -> None:
    viewer = view()
    viewer.next()
    stopping = threading.Thread(target=service.server.stop)
    stopping.start()
    assert viewer.next() == ""
    stopping.join(SECONDS)
    assert not stopping.is_alive()


def test_only_so_many_may_watch(
    view: Callable[..., Viewer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MOST_VIEWERS", 1)
    view().next()
    assert view().answer.status == 503


@pytest.mark.soak
def test_a_hidden_page_holds_no_stream(
    service: Service, view: Callable[..., Viewer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MOST_VIEWERS", 1)
    with Page() as page:
        page.order("open", url=f"http://{service.server.address}/", scheme="light", **DESKTOP)
        page.order("fill", where="#token", text=TOKEN)
        page.order("click", where="form button")
        page.see(".link.live")
        assert view().answer.status == 503
        page.order("hide", hidden=True)
        other = eventually(lambda: found if (found := view()).answer.status == 200 else None)
        service.current = with_job(running(), restarts=41)
        other.until(lambda document: document.get("job", {}).get("restarts") == 41)
        other.close()
        page.order("hide", hidden=False)
        page.order("click", where="summary >> text=Details")
        page.see(".facts", "41")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {}),
        ({"a": 1}, {"a": 1, "b": {"c": 2}}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}}),
        ({"a": [1, 2]}, {"a": [2]}),
        ({"a": {"b": 1}}, {"a": 4}),
        ({"a": 1}, {"a": True}),
    ],
)
def test_a_patch_leads_from_the_one_to_the_other(before: Any, after: Any) -> None:
    assert patched(before, merge_patch(before, after)) == after


def test_what_the_training_has_told_is_kept_as_a_curve() -> None:
    curves = Curves()
    for step in (1, 2, 2, 3):
        curves.observe(reporting(step))
    found = [(point.step, point.metrics["loss"]) for point in curves.points()["worker-0"]]
    assert found == [(1, 0.5), (2, 1 / 3), (3, 0.25)]


def test_a_long_curve_is_thinned_out_and_keeps_its_newest_point() -> None:
    curves = Curves()
    for step in range(MOST_POINTS * 2 + 5):
        curves.observe(reporting(step))
    points = curves.points()["worker-0"]
    assert len(points) <= MOST_POINTS
    assert points[-1].step == MOST_POINTS * 2 + 4
    assert [point.step for point in points] == sorted(point.step or 0 for point in points)


@pytest.mark.parametrize("progress", [None, [], {"at": "x"}, {"at": 1.0}, {"step": True, "at": 1}])
def test_a_report_without_numbers_is_no_point(progress: Any) -> None:
    record = running().tasks["worker-0"]
    curves = Curves()
    curves.observe(changed(running(), reports={record.task_id: {"progress": progress}}))
    assert curves.points() == {}


def kept(path: Path, state: Any) -> Keeper:
    """Return what keeps the runs below a folder, where the run of a state is kept."""
    RunFolder(path / "1-abc").keep_record({**record_of(state, {"a": 1}, {}), "id": "1-abc"})
    point = Point(5.0, 5, {"loss": 0.1})
    RunFolder(path / "1-abc").append([line_of("worker-0", point, lambda told: told)])
    sources = Sources(lambda: None, dict, lambda state, told: told, lambda state: None)
    return Keeper(path, Curves(), sources)


@pytest.mark.parametrize("run", ["1", "1-abc"])
def test_the_curves_of_a_former_run_are_answered(
    source: Any, client_of: Any, tmp_path: Path, run: str
) -> None:
    source.current = reporting(4)
    client = client_of(history=kept(tmp_path / "history", reporting(4)))
    found = client.get(f"/v1/curves?run={run}").json()
    assert found == {"worker-0": {"at": [5.0], "step": [5], "metrics": {"loss": [0.1]}}}


def test_of_a_run_that_is_not_kept_there_are_no_curves(
    source: Any, client_of: Any, tmp_path: Path
) -> None:
    source.current = reporting(4)
    client = client_of(history=kept(tmp_path / "history", reporting(4)))
    for run in ("2", "..", "1-abc/..", "history"):
        assert client.get("/v1/curves", params={"run": run}).status_code == 404


def test_the_runs_that_are_kept_are_answered(source: Any, client_of: Any, tmp_path: Path) -> None:
    source.current = reporting(4)
    (found,) = client_of(history=kept(tmp_path / "history", reporting(4))).get("/v1/runs").json()
    assert (found["id"], found["phase"], found["options"]) == ("1-abc", "running", {"a": 1})


def test_an_operator_says_something_of_a_run_and_each_order_replaces_the_one_before(
    source: Any, client_of: Any, tmp_path: Path
) -> None:
    source.current = reporting(4)
    client = client_of(history=kept(tmp_path / "history", reporting(4)))
    client.post("/v1/runs/1/notes", json={"tags": ["a"], "note": "first"})
    assert client.post("/v1/runs/1-abc/notes", json={"tags": ["b"]}).json()["tags"] == ["b"]
    (found,) = client.get("/v1/runs").json()
    assert (found["tags"], found["note"]) == (["b"], "")
    assert client.post("/v1/runs/2/notes", json={}).status_code == 404


def test_the_curves_are_answered_in_columns(source: Any, client_of: Any) -> None:
    curves = Curves()
    source.current = reporting(4, metrics={"val_auc": float("nan")})
    curves.observe(source.current)
    found = client_of(curves=curves).get("/v1/curves").json()
    assert found == {
        "worker-0": {"at": [1004.0], "step": [4], "metrics": {"loss": [0.2], "val_auc": ["NaN"]}}
    }
