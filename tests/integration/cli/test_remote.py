"""Commands for a scheduler elsewhere, by its API's address: nothing of it is on this machine."""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from dcos_tensorflow.cli.main import run_command_line
from samples.states import changed
from servers.answering_service import SPEC, TOKEN, Service
from servers.web_server import Handler, served

ASKED = (
    "list",
    "status",
    "why",
    "cluster",
    "options",
    "describe",
    "dashboard",
    "endpoints",
    "endpoints worker",
    "plan list",
    "plan status deploy",
    "plan start recovery",
    "pod list",
    "pod status",
    "pod status ps-0",
    "pod info ps-0",
    "pod restart worker-1",
    "update status",
    "update configurations",
    "update start --set worker.count=3",
    "debug config list",
    "debug config target",
    "debug state framework_id",
    "debug state properties",
    "debug pod pause worker-0",
    "stop --no-wait",
    "uninstall tensorflow --yes --no-wait",
)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A service that the variables lead to, with its token."""
    found = Service()
    found.current = changed(found.current, spec=SPEC)
    monkeypatch.setenv("DCOS_TENSORFLOW_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DCOS_TENSORFLOW_API", f"http://{found.server.start()}")
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    monkeypatch.setenv("DCOS_TENSORFLOW_CLIENT_TOKEN_FILE", str(token))
    yield found
    found.end()


@pytest.mark.parametrize("command", ASKED)
def test_a_command_that_asks_or_steers_works_from_elsewhere(
    service: Service, capsys: Any, command: str
) -> None:
    assert run_command_line(command.split()) == 0, capsys.readouterr().err
    told = capsys.readouterr()
    assert told.out
    assert TOKEN not in told.out + told.err


def test_flags_win_over_variables(
    service: Service, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = os.environ["DCOS_TENSORFLOW_API"]
    monkeypatch.setenv("DCOS_TENSORFLOW_API", "http://127.0.0.1:1")
    assert run_command_line(["plan", "list"]) == 1
    assert "does not answer at http://127.0.0.1:1" in capsys.readouterr().err
    assert run_command_line(["plan", "list", "--api", address]) == 0


def test_a_service_of_another_name_is_not_touched(service: Service, capsys: Any) -> None:
    assert run_command_line(["stop", "mnist"]) == 2
    assert "is that of tensorflow, not of mnist" in capsys.readouterr().err
    assert service.events == []


def test_a_token_that_is_missing_or_wrong_is_told_with_what_to_do(
    service: Service, capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("another")
    assert run_command_line(["plan", "list"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("Error: The scheduler at http://127.0.0.1:")
    assert "refuses this token" in told
    assert "another" not in told
    monkeypatch.delenv("DCOS_TENSORFLOW_CLIENT_TOKEN_FILE")
    assert run_command_line(["plan", "list"]) == 1
    assert "asks for its token: name the file" in capsys.readouterr().err


def test_a_token_file_without_an_address_is_no_command_for_this_machine(
    service: Service, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DCOS_TENSORFLOW_API")
    assert run_command_line(["plan", "list", "--api-token-file", "token"]) == 2
    assert "--api-token-file is for an API" in capsys.readouterr().err


class _Strange(Handler):
    """Answers every request in the same way, and keeps what it was asked."""

    status = 200
    headers_of: dict[str, str] = {}
    body = b"<html>"
    asked: list[str] = []

    def do_GET(self) -> None:
        self.asked.append(str(self.headers))
        self.answer(self.status, self.body, **self.headers_of)


@contextmanager
def strange(tls: ssl.SSLContext | None = None, **answer: Any) -> Iterator[tuple[str, list[str]]]:
    """Serve a constant answer; return the address and what was asked."""
    handler = type("Handler", (_Strange,), {"asked": [], **answer})
    with served(handler, tls) as address:
        yield address, handler.asked


def test_a_token_does_not_follow_a_redirect(service: Service, capsys: Any) -> None:
    with strange() as (elsewhere, asked_there):
        moved = {"headers_of": {"Location": f"http://{elsewhere}/v1/job"}, "status": 302}
        with strange(**moved) as (here, asked_here):
            assert run_command_line(["plan", "list", "--api", f"http://{here}"]) == 1
    assert f"sends to another address (http://{elsewhere}/v1/job)" in capsys.readouterr().err
    assert [TOKEN in headers for headers in asked_here] == [True]
    assert asked_there == []


def test_what_is_no_scheduler_is_told_in_a_sentence(service: Service, capsys: Any) -> None:
    with strange() as (here, _):
        assert run_command_line(["plan", "list", "--api", f"http://{here}"]) == 1
    assert "is no scheduler of dcos-tensorflow" in capsys.readouterr().err


def test_tls_is_spoken_with_who_can_prove_who_they_are(
    service: Service, capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with strange(context, body=b'{"service": "mnist"}') as (here, asked):
        command = ["plan", "list", "--api", f"https://{here}"]
        assert run_command_line(command) == 1
        assert "is not trusted" in capsys.readouterr().err
        assert asked == []
        file = tmp_path / "authority.pem"
        authority.cert_pem.write_to_path(file)
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        assert run_command_line(command) == 0
        assert [TOKEN in headers for headers in asked] == [True, True]
