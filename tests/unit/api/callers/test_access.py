"""Rights of callers, and the answers to callers without a right or with nonsense."""

import logging
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.api.callers.access import OpenBinding, check_binding
from dcos_tensorflow.core.model.events import StopRequested
from dcos_tensorflow.core.model.job import JobPhase
from samples.states import a_state, running

TOKEN = "a-token-with-an-ümlaut"


@pytest.fixture
def guarded(source: Any, client_of: Any) -> Any:
    """Return a client of an API that demands a token."""
    source.current = running()
    return client_of(token=TOKEN)


def bearing(text: str) -> dict[bytes, bytes]:
    return {b"authorization": text.encode("utf-8")}


class TestToken:
    @pytest.mark.parametrize("path", ["/v1/plans", "/v1/why", "/v1/metrics/prometheus"])
    def test_without_it_nothing_is_shown(self, guarded: Any, path: str) -> None:
        answer = guarded.get(path)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["message"].endswith("Authorization: Bearer <token>")

    @pytest.mark.parametrize("form", ["Bearer {}", "bearer {}", "token={}"])
    def test_with_it_everything_is(self, source: Any, client_of: Any, form: str) -> None:
        source.current = running()
        headers = {"authorization": form.format(TOKEN).encode()}
        answer = client_of(token=TOKEN).get("/v1/plans", headers=headers)
        assert answer.status_code == 200

    @pytest.mark.parametrize(
        "text", ["", "Bearer", "Bearer ", "Bearer other", "Basic abc", "tökén"]
    )
    def test_a_wrong_one_is_refused(self, guarded: Any, text: str) -> None:
        assert guarded.get("/v1/plans", headers=bearing(text)).status_code == 401

    def test_health_is_open_for_marathon_but_keeps_its_reasons(self, guarded: Any) -> None:
        assert guarded.get("/v1/health?verbose").json() == {"value": 200}

    def test_artifacts_are_open_for_the_fetcher(self, guarded: Any, source: Any) -> None:
        (source.directory / "job-1f.zip").write_bytes(b"PK")
        assert guarded.get("/v1/artifacts/job-1f.zip").content == b"PK"


class TestBinding:
    @pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "localhost", "::1", "[::1]"])
    def test_loopback_needs_no_token(self, host: str) -> None:
        check_binding(host, False, allow_open=False)

    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.0.0.7", "node7.example.com"])
    def test_the_network_needs_a_token_or_a_clear_word(self, host: str) -> None:
        check_binding(host, True, allow_open=False)
        check_binding(host, False, allow_open=True)
        with pytest.raises(OpenBinding, match="without a token"):
            check_binding(host, False, allow_open=False)


class TestStop:
    def test_it_becomes_an_event(self, source: Any, client: Any) -> None:
        source.current = running()
        answer = client.post("/v1/job/stop", json={"why": "enough\nseen"})
        assert (answer.status_code, answer.json()) == (200, {"message": "Received cmd: stop"})
        assert source.events == [StopRequested("enough seen")]

    def test_it_needs_no_body(self, source: Any, client: Any) -> None:
        source.current = running()
        assert client.post("/v1/job/stop").status_code == 200
        assert source.events == [StopRequested("asked for by the API")]

    @pytest.mark.parametrize("phase", [JobPhase.ENDING, JobPhase.DONE])
    def test_a_second_one_is_already_so(self, source: Any, client: Any, phase: JobPhase) -> None:
        source.current = a_state(phase)
        assert client.post("/v1/job/stop").status_code == 208
        assert source.events == []

    @pytest.mark.parametrize(
        "body", [b"{", b"[]", b'"why"', b'{"why": 7}', b'{"reason": "x"}', b"\xff", b"[" * 60_000]
    )
    def test_nonsense_is_a_bad_request(self, source: Any, client: Any, body: bytes) -> None:
        source.current = running()
        answer = client.post("/v1/job/stop", content=body)
        assert answer.status_code == 400
        assert "why" in answer.json()["message"]
        assert source.events == []

    def test_a_body_without_end_is_not_read_to_its_end(self, source: Any, client: Any) -> None:
        source.current = running()
        answer = client.post("/v1/job/stop", content=b" " * 70_000)
        assert answer.status_code == 400
        assert "65536" in answer.json()["message"]

    @pytest.mark.parametrize(
        ("host", "status"),
        [
            ("127.0.0.1:80", 200),
            ("localhost", 200),
            ("[::1]:80", 200),
            ("127.0.0.1.evil.example.com", 403),
            ("evil.example.com:80", 403),
        ],
    )
    def test_a_name_that_was_made_to_mean_this_machine_does_not_help(
        self, source: Any, client_of: Any, host: str, status: int
    ) -> None:
        source.current = running()
        client = client_of()
        client.http.base_url = "http://127.0.0.1"
        assert client.post("/v1/job/stop", headers={"host": host}).status_code == status

    def test_behind_a_proxy_with_a_token_any_name_will_do(
        self, source: Any, client_of: Any
    ) -> None:
        source.current = running()
        client = client_of(token=TOKEN)
        client.http.base_url = "http://127.0.0.1"
        headers = {b"host": b"dcos.example.com", b"authorization": f"Bearer {TOKEN}".encode()}
        assert client.post("/v1/job/stop", headers=headers).status_code == 200


class TestErrors:
    @pytest.mark.parametrize(
        ("method", "path", "status"),
        [
            ("GET", "/v1/nosuch", 404),
            ("GET", "/v1/plans/", 404),
            ("POST", "/v1/plans/deploy/kill", 404),
            ("POST", "/v1/pod/worker-0/kill", 404),
            ("POST", "/v1/plans/deploy", 405),
            ("GET", "/v1/job/stop", 405),
        ],
    )
    def test_what_does_not_exist_names_the_verbs_that_do(
        self, client: Any, method: str, path: str, status: int
    ) -> None:
        answer = client.request(method, path)
        assert answer.status_code == status
        assert "POST /v1/job/stop" in answer.json()["verbs"]
        assert "POST /v1/plans/{plan}/interrupt" in answer.json()["verbs"]
        assert path in answer.json()["message"]

    def test_a_wrong_method_names_the_right_ones(self, client: Any) -> None:
        assert client.get("/v1/job/stop").headers["allow"] == "POST"

    @pytest.mark.parametrize(
        ("method", "path"), [("GET", "/v1/plans"), ("GET", "/v1/health"), ("POST", "/v1/job/stop")]
    )
    def test_a_fault_of_ours_is_500_and_a_log_line(
        self, client: Any, source: Any, caplog: pytest.LogCaptureFixture, method: str, path: str
    ) -> None:
        source.failure = RuntimeError("the text of a fault may hold anything")
        with caplog.at_level(logging.ERROR):
            answer = client.request(method, path)
        assert answer.status_code == 500
        assert "RuntimeError" in answer.json()["message"]
        assert "may hold anything" not in answer.text
        assert f"{method} {path} failed" in caplog.text

    def test_head_is_get_without_a_body(self, client: Any, source: Any) -> None:
        source.current = running()
        answer = client.head("/v1/plans")
        assert (answer.status_code, answer.content) == (200, b"")


class TestArtifacts:
    @pytest.fixture
    def file(self, source: Any) -> Path:
        path: Path = source.directory / "task-runner-0123456789abcdef.pyz"
        path.write_bytes(b"#!zipapp")
        return path

    def test_one_is_served_with_its_length(self, client: Any, file: Path) -> None:
        answer = client.get(f"/v1/artifacts/{file.name}")
        assert (answer.content, answer.headers["content-length"]) == (b"#!zipapp", "8")

    def test_head_tells_the_length(self, client: Any, file: Path) -> None:
        answer = client.head(f"/v1/artifacts/{file.name}")
        assert (answer.content, answer.headers["content-length"]) == (b"", "8")

    @pytest.mark.parametrize(
        "path",
        [
            "nosuch.pyz",
            "..%2foutside",
            "%2e%2e%2foutside",
            "../outside",
            "..",
            "%2e%2e",
            ".hidden",
            "folder",
            "folder/inside",
            "folder%2finside",
            "link",
            "%00",
            "a%0ab",
            "",
        ],
    )
    def test_nothing_else_is(self, client: Any, source: Any, path: str) -> None:
        outside = source.directory.parent / "outside"
        outside.write_text("not for you")
        (source.directory / ".hidden").write_text("not for you")
        (source.directory / "folder").mkdir()
        (source.directory / "folder" / "inside").write_text("not for you")
        (source.directory / "link").symlink_to(outside)
        answer = client.get(f"/v1/artifacts/{path}")
        assert answer.status_code == 404
        assert "not for you" not in answer.text

    def test_a_source_that_is_careless_is_not_asked_for_paths(
        self, client: Any, source: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[str] = []
        monkeypatch.setattr(source, "artifact", asked.append)
        client.get("/v1/artifacts/%2e%2e")
        assert asked == []
