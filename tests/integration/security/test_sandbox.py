"""What a task lays into its sandbox leads its readers nowhere, and holds none of them up."""

import http.client
import os
import urllib.parse
from pathlib import Path

import pytest

from .listeners import Listeners, as_operator


@pytest.fixture
def sandbox(listeners: Listeners, tmp_path: Path) -> Path:
    """A folder below the agent's own, as tasks have them."""
    found = Path(listeners.cluster.agents[0].identity.work_dir) / "slaves" / tmp_path.name
    found.mkdir(parents=True)
    return found


def status_of(listeners: Listeners, verb: str, path: Path | str) -> int:
    client = http.client.HTTPConnection(listeners.agent, timeout=10)
    query = urllib.parse.urlencode({"path": os.fspath(path), "offset": 0})
    client.request("GET", f"/files/{verb}?{query}", headers=dict(as_operator()))
    try:
        return client.getresponse().status
    finally:
        client.close()


@pytest.mark.parametrize("verb", ["read", "download", "browse"])
def test_a_link_out_of_the_sandbox_is_not_followed(
    listeners: Listeners, sandbox: Path, tmp_path: Path, verb: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("hush")
    (sandbox / "stdout").symlink_to(outside / "secret")
    (sandbox / "folder").symlink_to(outside)
    for path in ("stdout", "folder", "folder/secret", f"{'../' * 20}etc/passwd"):
        assert status_of(listeners, verb, f"{sandbox}/{path}") == 404


@pytest.mark.parametrize("verb", ["read", "download"])
def test_a_pipe_holds_no_reader_up(listeners: Listeners, sandbox: Path, verb: str) -> None:
    os.mkfifo(sandbox / "stdout")
    assert status_of(listeners, verb, sandbox / "stdout") == 400
