"""``state``: what is kept of a service is told of, saved and put back; nothing is written over."""

import json
import stat
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from command_line import CommandLine, Ended
from dcos_tensorflow.core.kept.writes import first_writes
from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.state.store import StateStore, open_store
from samples.states import running

LOGIN = "me:r1ght"
_numbers = count()


class Kept:
    """A place for a service's state, and the command that looks at it."""

    def __init__(self, command_line: CommandLine, url: str, login_file: Path | None) -> None:
        self._command_line = command_line
        self._url = url
        self._login = [f"--zookeeper-login-file={login_file}"] if login_file else []

    def store(self) -> StateStore:
        return open_store(self._url.replace("zk://", f"zk://{LOGIN}@"), "job")

    def __call__(self, *arguments: str | Path) -> Ended:
        flags = ("--name=job", f"--state={self._url}", *self._login)
        return self._command_line.ask("state", *arguments, *flags)


@pytest.fixture(params=["sqlite", pytest.param("zookeeper", marks=pytest.mark.zookeeper)])
def place(
    request: pytest.FixtureRequest, command_line: CommandLine, tmp_path: Path
) -> Callable[[], Kept]:
    """Return what makes places where nothing is kept yet."""

    def make() -> Kept:
        if request.param == "sqlite":
            return Kept(command_line, f"sqlite:///{tmp_path}/{next(_numbers)}.db", None)
        file = tmp_path / "login"
        file.write_text(LOGIN)
        server = request.getfixturevalue("zookeeper_server")
        return Kept(command_line, server.url(f"/kept-{next(_numbers)}"), file)

    return make


@pytest.fixture
def kept(place: Callable[[], Kept]) -> Kept:
    """A place where a service is kept, without a leader."""
    found = place()
    with closing(found.store()) as store, store.lead("test", 10, lambda why: None):
        store.commit(first_writes(running()))
    return found


def test_what_was_exported_is_put_back_elsewhere(
    kept: Kept, place: Callable[[], Kept], tmp_path: Path
) -> None:
    file = tmp_path / "job.state"
    assert kept("export", file).code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    other = place()
    put_back = other("import", file)
    assert put_back.code == 0, put_back.out
    with closing(kept.store()) as one, closing(other.store()) as two:
        assert one.load() == two.load()
    assert "is sound" in other("check").out


def test_each_command_tells_programs_what_it_found(
    kept: Kept, place: Callable[[], Kept], tmp_path: Path
) -> None:
    file, other = tmp_path / "job.state", place()
    told = [
        json.loads(ended.out)
        for ended in (
            kept("export", file, "--json"),
            other("import", file, "--json"),
            other("check", "--json"),
        )
    ]
    assert [each["service"] for each in told] == ["job"] * 3
    assert len({each["values"] for each in told}) == 1


def test_nothing_is_put_over_what_is_kept(kept: Kept, tmp_path: Path) -> None:
    kept("export", tmp_path / "job.state")
    refused = kept("import", tmp_path / "job.state")
    assert refused.code == 1
    assert "are kept there already" in refused.out


def test_nothing_is_put_under_a_scheduler_that_runs(
    kept: Kept, place: Callable[[], Kept], tmp_path: Path
) -> None:
    kept("export", tmp_path / "job.state")
    other = place()
    with closing(other.store()) as store, store.lead("a scheduler", 10, lambda why: None):
        refused = other("import", tmp_path / "job.state")
    assert refused.code == 8
    assert "a scheduler" in refused.out


def test_an_export_writes_over_no_file(kept: Kept, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    assert kept("export", tmp_path / "mine").code == 1
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_damaged_export_is_not_put_back(
    kept: Kept, place: Callable[[], Kept], tmp_path: Path
) -> None:
    file = tmp_path / "job.state"
    kept("export", file)
    document = json.loads(file.read_text())
    document["values"]["Properties/instance"] = "eA=="
    file.write_text(json.dumps(document))
    refused = place()("import", file)
    assert refused.code == 2
    assert "it is damaged" in refused.out


def test_a_check_says_what_is_damaged(kept: Kept) -> None:
    with closing(kept.store()) as store, store.lead("test", 10, lambda why: None):
        store.commit([Write("Gangs/main/Job", b"{")])
    told = kept("check")
    assert told.code == 8
    assert "Gangs/main/Job" in told.out


def test_where_nothing_is_kept_a_check_makes_nothing(
    place: Callable[[], Kept], tmp_path: Path
) -> None:
    told = place()("check")
    assert told.code == 1
    assert "Nothing is kept of job" in told.out
    assert list(tmp_path.glob("*.db")) == []


@pytest.mark.zookeeper
def test_services_of_a_zookeeper_are_listed_with_a_login_from_a_file(
    command_line: CommandLine, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    server = request.getfixturevalue("zookeeper_server")
    url = server.url(f"/listed-{next(_numbers)}", LOGIN)
    with closing(open_store(url, "job")) as store, store.lead("test", 10, lambda why: None):
        store.commit(first_writes(running()))
    (tmp_path / "login").write_text(LOGIN)
    without = url.replace(f"{LOGIN}@", "")
    listed = command_line.ask(
        "list", f"--state={without}", f"--zookeeper-login-file={tmp_path}/login"
    )
    assert listed.code == 0, listed.out
    assert "no scheduler serves it" in listed.out
