"""The audit log: every order, who gave it and from where, and what it changed."""

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.api import audit
from dcos_tensorflow.api.audit import AuditEntry, AuditLog
from dcos_tensorflow.api.callers.access import TRIES, Access
from samples.states import running

OPERATOR = {"authorization": "Bearer operators-token"}
READER = {"authorization": "Bearer readers-token"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
def client(source: Any, client_of: Any, path: Path) -> Any:
    source.current = running()
    return client_of(access=Access("operators-token", "readers-token"), audit=AuditLog(path))


def entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_an_order_is_written_with_who_gave_it_from_where_and_what_was_answered(
    client: Any, path: Path
) -> None:
    client.post("/v1/job/stop?x=1", headers=OPERATOR)
    (entry,) = entries(path)
    at = entry.pop("at")
    assert at.endswith("+00:00")
    assert entry == {
        "who": "operator",
        "from": "127.0.0.1:123",
        "verb": "POST /v1/job/stop?x=1",
        "status": 200,
        "message": "Received cmd: stop",
    }


def test_it_is_written_before_it_is_carried_out(
    source: Any, client: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    monkeypatch.setattr(source, "submit", lambda event: written.extend(entries(path)))
    client.post("/v1/job/stop", headers=OPERATOR)
    assert len(written) == 1


def test_an_update_is_written_with_the_paths_that_change_and_no_value(
    source: Any, client: Any, path: Path
) -> None:
    options = {
        "service": {
            "name": source.current.spec.name,
            "job_url": "https://example.org/job.zip",
            "job_name": "train",
            "env": {"GREETING": "a-value-of-the-options"},
        },
        "worker": {"count": 7},
    }
    answer = client.post("/v1/job/update", headers=OPERATOR, json=options)

    (entry,) = entries(path)
    assert entry["status"] == answer.status_code
    assert "a-value-of-the-options" not in path.read_text()
    if answer.status_code == 200:
        assert entry["configuration"]["to"] == answer.json()["id"]
        assert entry["configuration"]["changed"]


def test_paths_of_what_differs_are_told_down_to_the_value() -> None:
    before = {
        "roles": [{"role": "worker", "count": 2, "env": {"A": "1"}}, {"role": "ps"}],
        "name": "x",
    }
    after = {"roles": [{"role": "worker", "count": 3, "env": {"B": "2"}}], "name": "x"}
    assert sorted(audit._differing(before, after)) == [
        "roles.ps",
        "roles.worker.count",
        "roles.worker.env.A",
        "roles.worker.env.B",
    ]


@pytest.mark.parametrize(
    ("headers", "who", "status"),
    [(READER, "reader", 403), ({"authorization": "Bearer guessed"}, "", 401)],
)
def test_an_order_that_is_refused_is_written_too(
    client: Any, path: Path, headers: dict[str, str], who: str, status: int
) -> None:
    client.post("/v1/uninstall", headers=headers)
    (entry,) = entries(path)
    assert (entry["who"], entry["status"]) == (who, status)
    assert "guessed" not in path.read_text()


def test_an_order_that_makes_no_sense_is_written_with_its_answer(client: Any, path: Path) -> None:
    client.post("/v1/pod/nobody/restart", headers=OPERATOR)
    client.post("/v1/job/stop", headers=OPERATOR, content=b"{")
    assert [entry["status"] for entry in entries(path)] == [404, 400]


def test_who_only_looks_is_not_written(client: Any, path: Path) -> None:
    client.get("/v1/plans", headers=READER)
    client.get("/v1/plans")
    assert not path.exists()


def test_who_guesses_on_fills_no_log(client: Any, path: Path) -> None:
    for _ in range(TRIES * 3):
        client.get("/v1/plans", headers={"authorization": "Bearer guessed"})
    assert len(entries(path)) == TRIES


def test_secrets_that_a_client_sends_are_not_in_it(client: Any, path: Path) -> None:
    client.post("/v1/job/stop?password=hunter2&x=operators-token", headers=OPERATOR)
    assert "hunter2" not in path.read_text()
    assert "operators-token" not in path.read_text()


def test_a_line_is_one_entry_whatever_is_asked(client: Any, path: Path) -> None:
    client.post("/v1/plans/a%0a%7b%7d%1b[2J/start", headers=OPERATOR)
    assert len(entries(path)) == 1
    assert "\x1b" not in path.read_text()


class TestFile:
    def test_no_other_user_reads_it_whatever_the_umask(self, path: Path) -> None:
        before = os.umask(0)
        try:
            AuditLog(path).note(an_entry())
        finally:
            os.umask(before)
        assert path.stat().st_mode & 0o777 == 0o600

    def test_one_that_others_could_read_is_theirs_no_more(self, path: Path) -> None:
        path.touch(0o644)
        AuditLog(path).note(an_entry())
        assert path.stat().st_mode & 0o777 == 0o600

    def test_no_link_leads_it_elsewhere(
        self, path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        path.symlink_to(tmp_path / "elsewhere")
        with caplog.at_level(logging.ERROR):
            AuditLog(path).note(an_entry())
        assert not (tmp_path / "elsewhere").exists()
        assert "cannot be written" in caplog.text

    def test_it_grows_to_a_size_and_a_number_of_files(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(audit, "FILE_BYTES", 1000)
        monkeypatch.setattr(audit, "FILES_BEFORE", 2)
        log = AuditLog(path)
        for number in range(60):
            log.note(an_entry(f"entry {number}"))
        files = sorted(path.parent.glob("audit.jsonl*"))
        assert [file.name for file in files] == ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"]
        assert all(file.stat().st_size <= 1000 for file in files)
        assert all(file.stat().st_mode & 0o777 == 0o600 for file in files)
        assert entries(path)[-1]["message"] == "entry 59"

    def test_a_long_text_is_cut(self, path: Path) -> None:
        AuditLog(path).note(an_entry("x" * 100_000))
        assert path.stat().st_size < 1000


def an_entry(message: str = "") -> AuditEntry:
    return AuditEntry("operator", "10.0.0.1:1", "POST /v1/job/stop", 200, message)
