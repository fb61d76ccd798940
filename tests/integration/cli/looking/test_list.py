"""All services at a glance: of this machine, under any scheduler, and of a ZooKeeper."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.cli.main import run_command_line
from dcos_tensorflow.client import registry
from dcos_tensorflow.client.registry import Registration
from dcos_tensorflow.client.work_directory import WorkDirectory
from dcos_tensorflow.core.kept.writes import first_writes
from dcos_tensorflow.core.model.actions import Write
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.scheduler.told_address import ToldAddress
from dcos_tensorflow.state.store import open_store
from samples.states import a_spec, a_state
from servers.answering_service import TOKEN, Service


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WorkDirectory:
    monkeypatch.setenv("DCOS_TENSORFLOW_HOME", str(tmp_path))
    return WorkDirectory(tmp_path)


@pytest.fixture
def service() -> Iterator[Service]:
    found = Service()
    yield found
    found.end()


def keep(url: str, name: str, state: ServiceState) -> None:
    with closing(open_store(url, name)) as store, store.lead("a scheduler", 5.0, lambda _: None):
        store.commit(first_writes(state))


def listed(capsys: Any, *flags: str) -> dict[str, dict[str, str]]:
    assert run_command_line(["list", "--json", *flags]) == 0
    return {each["service"]: each for each in json.loads(capsys.readouterr().out)}


def test_the_services_of_this_machine_are_shown_with_where_they_stand(
    work: WorkDirectory, service: Service, capsys: Any
) -> None:
    for name in ("running", "ended", "left", "a__b"):
        work.service(name).prepare()
    api = service.server.start()
    directory = work.service("running")
    registry.register(directory, Registration("tensorflow", os.getpid(), api, TOKEN))
    end = {"outcome": "failed", "exit_code": 3, "summary": "it broke"}
    work.service("ended").last_end.write_text(json.dumps(end))
    keep(work.service("left").state_url, "left", a_state(spec=a_spec(name="left")))
    registry.register(work.service("a__b"), Registration("a/b", 0, "", state="zk://z:2181"))

    found = listed(capsys)
    assert found["tensorflow"]["phase"] == "running"
    assert found["tensorflow"]["scheduler"] == f"http://{api} (pid {os.getpid()})"
    assert (found["ended"]["outcome"], found["ended"]["why"]) == ("failed", "it broke")
    assert (found["left"]["phase"], found["left"]["scheduler"]) == ("placing", "")
    assert "its state is in zk://z:2181" in found["a/b"]["why"]
    assert run_command_line(["list"]) == 0
    assert TOKEN not in capsys.readouterr().out


def test_that_there_is_none_is_told(work: WorkDirectory, capsys: Any) -> None:
    assert run_command_line(["list"]) == 0
    assert "start one with run" in capsys.readouterr().out


def test_a_state_file_that_is_not_there_is_told(work: WorkDirectory, capsys: Any) -> None:
    assert run_command_line(["list", "--state", "sqlite:///state.db"]) == 2
    assert "no file state.db" in capsys.readouterr().err


@pytest.fixture(params=["sqlite", pytest.param("zookeeper", marks=pytest.mark.zookeeper)])
def shared_state(request: Any, tmp_path: Path) -> str:
    """Where several services keep their state."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/state.db"
    return f"zk://{request.getfixturevalue('zookeeper_server').address}/told"


def test_a_leader_of_a_state_is_shown_with_where_it_is_asked(
    work: WorkDirectory, shared_state: str, capsys: Any
) -> None:
    with (
        closing(open_store(shared_state, "queues/q")) as queue,
        queue.lead("a queue", 5.0, lambda _: None),
    ):
        queue.commit([Write("Jobs/1", b"{}")])
    for name in ("told", "earlier", "late"):
        keep(shared_state, name, a_state(spec=a_spec(name=name)))
    with ExitStack() as stack:
        leaders = {}
        for name in ("told", "earlier", "late"):
            store = stack.enter_context(closing(open_store(shared_state, name)))
            leaders[name] = stack.enter_context(store.lead(name, 5.0, lambda _: None)).holder
            # The late one has not told its address yet: what is kept is that of the one before.
            before = replace(leaders[name], since="before") if name == "late" else leaders[name]
            told = ToldAddress("https://node1:8080", before).write()
            store.commit([told] if name != "earlier" else [])
        found = listed(capsys, "--state", shared_state)
    assert set(found) == {"told", "earlier", "late"}
    assert found["told"]["scheduler"].startswith("https://node1:8080 told (pid ")
    for name in ("earlier", "late"):
        assert found[name]["scheduler"].startswith("address unknown (its scheduler has told none")
    found = listed(capsys, "--state", shared_state)
    assert {each["scheduler"] for each in found.values()} == {""}


@pytest.mark.zookeeper
def test_the_services_of_a_zookeeper_are_shown_with_who_leads_them(
    work: WorkDirectory, zookeeper_server: Any, capsys: Any
) -> None:
    url = f"zk://{zookeeper_server.address}/listed"
    keep(url, "unserved", a_state(spec=a_spec(name="unserved")))
    with (
        closing(open_store(url, "a/b")) as store,
        store.lead("a scheduler", 5.0, lambda _: None),
    ):
        store.commit(first_writes(a_state(spec=a_spec(name="a/b"))))
        found = listed(capsys, "--state", url)
        assert f"a scheduler (pid {os.getpid()} on host" in found["a/b"]["scheduler"]
    assert found["a/b"]["phase"] == "placing"
    assert found["unserved"]["phase"] == "placing"
    assert found["unserved"]["why"] == "no scheduler serves it"
