"""The recordings of a real Mesos, played against the embedded cluster.

Each test plays one: same calls, same answers, same events. What a ``note`` line says was done to
the real agents and masters is ordered from ``Faults`` here.
"""

import ast
import http.client
import io
import json
import signal
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster_faults import FaultyCluster
from embedded_mesos import AgentConfig, Timing
from masters.mesos_recording import Player, read, with_note
from masters.recorded_shapes import compare_shape
from servers.web_server import Handler, served
from waiting import eventually

Json = dict[str, Any]
MakeCluster = Callable[..., FaultyCluster]

#: The agent that the recorder froze, killed and restarted: 127.0.0.2.
SECOND = 1


@pytest.mark.parametrize(
    "name",
    [
        "subscribe_offers_decline",
        "two_agents_in_one_accept",
        "reconcile",
        "failover",
        "malformed",
        "operator_teardown_limits",
    ],
)
def test_recording_is_reproduced(name: str, make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    Player(read(name), lambda: cluster.master).play()


def test_unacknowledged_updates_are_sent_again_as_recorded(make_cluster: MakeCluster) -> None:
    # Twice, after one wait and after a doubled one; the next copy is far off.
    cluster = make_cluster(timing=Timing(allocation=0.1, update_retry=1.0))
    Player(read("unacked_retry"), lambda: cluster.master).play()


@pytest.mark.parametrize("name", ["launch_finish_fail", "many_tasks"])
def test_recording_with_ended_tasks_is_reproduced(name: str, make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    Player(read(name), lambda: cluster.master, used_offers_only=True).play()


def test_tasks_are_killed_as_recorded(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()

    def wait_for_the_trap(line: Json) -> None:
        if _call_type(line) == "KILL" and line["request"]["body"]["kill"]["task_id"] == {
            "value": "k2"
        }:
            pid = cluster.faults.task_pids("k2")[0]
            eventually(lambda: _catches(pid, signal.SIGTERM), what="the trap")

    # Slower than recorded: the grace has to be enough for what the trap does.
    Player(
        read("kill"),
        lambda: cluster.master,
        scale=2,
        on_request=wait_for_the_trap,
        used_offers_only=True,
    ).play()


def _catches(pid: int, number: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (number - 1) & 1)


def test_group_ends_with_its_first_failure_as_recorded(
    make_cluster: MakeCluster, tmp_path: Path
) -> None:
    cluster, go = make_cluster(), tmp_path / "go"
    lines = _with_command(read("launch_group"), "sleep 1; exit 4", f"{_until(go)}; exit 4")

    def fail(note: str) -> None:
        if note == "let it fail":
            # Its update is held back: the one before it is not acknowledged yet.
            eventually(lambda: _runs(cluster, "g-a"), what="the other task of the group")
            go.touch()

    Player(
        with_note(lines, "let it fail", before=lambda line: _says(line, "g-b", "TASK_FAILED")),
        lambda: cluster.master,
        on_note=fail,
        used_offers_only=True,
    ).play()


def _runs(cluster: FaultyCluster, task_id: str) -> bool:
    with cluster.lock:
        return any(
            one.task_id == task_id and one.state == "TASK_RUNNING"
            for agent in cluster.agents
            for one in agent.containerizer.containers.values()
        )


def test_checks_report_as_recorded(make_cluster: MakeCluster, tmp_path: Path) -> None:
    cluster, go = make_cluster(), tmp_path / "go"
    lines = _with_command(read("health"), "sleep 4", _until(go))
    Player(
        with_note(lines, "let it end", before=lambda line: _says(line, "checked", "TASK_FINISHED")),
        lambda: cluster.master,
        on_note=lambda note: go.touch() if note == "let it end" else None,
        used_offers_only=True,
    ).play()


def _until(file: Path) -> str:
    """Return a command that ends when there is a file: it takes as long as the test wants."""
    return f"until [ -e {file} ]; do sleep 0.1; done"


def _with_command(lines: list[Json], recorded: str, command: str) -> list[Json]:
    """Return ``lines`` with another command in the place of a recorded one."""
    text, old = json.dumps(lines), json.dumps({"value": recorded})
    assert old in text
    return list(json.loads(text.replace(old, json.dumps({"value": command}))))


def _says(line: Json, task_id: str, state: str) -> bool:
    status = line.get("event", {}).get("update", {}).get("status", {})
    return bool(status) and (status["task_id"]["value"], status["state"]) == (task_id, state)


def test_invalid_launches_get_the_recorded_updates(make_cluster: MakeCluster) -> None:
    # Longer cycles: a task has to start and end within one, as it did when this was recorded.
    cluster = make_cluster(timing=Timing(allocation=0.3))
    Player(read("invalid_launches"), lambda: cluster.master, scale=0.3).play()


def test_resources_are_reserved_and_volumes_made(make_cluster: MakeCluster, tmp_path: Path) -> None:
    cluster, go = make_cluster(), tmp_path / "go"
    command = "echo hi > data/f; "
    lines = _with_command(read("reserve_create"), f"{command}sleep 1", command + _until(go))
    # The rest of its agent is offered while the task runs.
    Player(
        with_note(lines, "let it end", before=lambda line: _says(line, "on-vol", "TASK_FINISHED")),
        lambda: cluster.master,
        on_note=lambda note: go.touch() if note == "let it end" else None,
    ).play()


def test_framework_is_removed_after_its_failover_timeout(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()

    def wait_for_removal(line: Json) -> None:
        if line["from"] == "too-late":
            completed = cluster.core.state.completed_frameworks
            eventually(lambda: bool(completed), what="the failover timeout")

    player = Player(read("failover_timeout"), lambda: cluster.master, on_request=wait_for_removal)
    player.play()
    eventually(lambda: not cluster.host.executor_pids(), what="the end of its tasks")


def test_gpus_are_offered_by_capability(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(gpus=2)
    Player(read("gpu"), lambda: cluster.master).play()


def test_silent_agent_is_unreachable_and_comes_back(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(gpus=2)

    def order(note: str) -> None:
        if note.startswith("agent stopped"):
            cluster.faults.freeze_agent(SECOND)
        elif note.startswith("agent continued"):
            cluster.faults.thaw_agent(SECOND)

    Player(read("agent_partition"), lambda: cluster.master, on_note=order).play()


def test_restarted_agent_keeps_its_tasks_and_a_gone_one_loses_them(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster(gpus=2)
    orders = {
        "agent killed (SIGKILL)": lambda: cluster.faults.crash_agent(SECOND),
        "start it": lambda: cluster.faults.restart_agent(SECOND),
        "agent told to shut down (SIGUSR1)": lambda: cluster.faults.shut_down_agent(SECOND),
    }
    # The recorded note about the start was written when its effects had been seen.
    lines = with_note(read("agent_restart_gone"), "start it", before=_says_reregistered)
    Player(
        lines, lambda: cluster.master, on_note=lambda note: orders.get(note, lambda: None)()
    ).play()


def _says_reregistered(line: Json) -> bool:
    status = line.get("event", {}).get("update", {}).get("status", {})
    return bool(status.get("reason") == "REASON_AGENT_REREGISTERED")


def test_basic_authentication(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(credentials={"tf": "tf-secret"})
    Player(read("authentication"), lambda: cluster.master).play()


def test_quota_limits_offers(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    Player(read("quota"), lambda: cluster.master).play()


def test_maintenance_and_draining(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()

    def wait_for_offer(line: Json) -> None:
        if line["request"]["body"]["type"] == "GET_AGENTS":
            offers = cluster.core.state.offers
            eventually(lambda: bool(offers), what="an offer of the other agent")

    Player(read("maintenance_drain"), lambda: cluster.master, on_request=wait_for_offer).play()


def test_roles_are_offered_and_suppressed_one_by_one(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(agents=_FIRST_AGENT_ALONE)
    # Before this was recorded the role `tensorflow` had been offered much, the other nothing.
    cluster.core.state.allocations[("tensorflow", "")] = 1
    Player(read("multi_role"), lambda: cluster.master).play()


_FIRST_AGENT_ALONE = (
    AgentConfig(cpus=4, mem=8192, ports=(31000, 31999), attributes={"rack": "rack1", "agent": 1.0}),
)


def test_constraints_and_suppressed_roles_narrow_the_offers(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    lines = read("constraints_suppressed")
    updated = next(line["t"] for line in lines if _call_type(line) == "UPDATE_FRAMEWORK")
    # Which agent is offered to which role first was chance: only the set of them is compared.
    kept = [line for line in lines if line["t"] < updated or not _is_about_offers(line)]

    def see_offers(note: str) -> None:
        if "127.0.0.1" in note:
            _collect_offers(player, note)

    player = Player(kept, lambda: cluster.master, on_note=see_offers)
    player.play()


def _call_type(line: Json) -> str | None:
    body = line.get("request", {}).get("body")
    return body.get("type") if isinstance(body, dict) else None


def _is_about_offers(line: Json) -> bool:
    return _call_type(line) == "DECLINE" or line.get("event", {}).get("type") == "OFFERS"


def _collect_offers(player: Player, note: str) -> None:
    expected = set(ast.literal_eval(note.partition(": ")[2]))
    stream = player.streams["scheduler"]
    seen = set()

    def all_seen() -> bool:
        with stream.changed:
            events, stream.events = stream.events, []
        offers = [one for event in events for one in event.get("offers", {}).get("offers", [])]
        for offer in offers:
            seen.add((offer["hostname"], offer["allocation_info"]["role"]))
            decline = {"offer_ids": [offer["id"]], "filters": {"refuse_seconds": 0.01}}
            framework_id = offer["framework_id"]
            player.send(
                "scheduler",
                {"type": "DECLINE", "framework_id": framework_id, "decline": decline},
            )
        return seen == expected

    eventually(all_seen, what=f"offers {expected}, seen: {seen}")


@pytest.mark.parametrize("absent", [False, True], ids=["at once", "after a while"])
def test_new_master_learns_of_the_task_from_its_agent(
    absent: bool, make_cluster: MakeCluster
) -> None:
    cluster = make_cluster()

    def order(note: str) -> None:
        if note.startswith("leader is"):
            cluster.faults.redirect(cluster.master)
        elif note == "the leader is asked":
            cluster.faults.redirect(None)
        elif note == "leading master killed":
            (cluster.faults.stop_master if absent else cluster.faults.lose_master)()
        elif note.startswith("new leader") and absent:
            cluster.faults.start_master()

    lines = with_note(
        read("master_failover"),
        "the leader is asked",
        before=lambda line: line.get("from") == "first",
    )
    player = Player(lines, lambda: cluster.master, on_note=order)
    player.play()


# -- what operators and tasks see --------------------------------------------------------------


def test_environment_and_what_operators_see(make_cluster: MakeCluster) -> None:
    # No second cycle: nothing was on offer when the recorder looked.
    cluster = make_cluster(timing=Timing(allocation=30))
    lines = read("environment")
    views = [line for line in lines if _is_view(line)]

    def look(line: Json) -> None:
        if _call_type(line) != "TEARDOWN":
            return
        for view in views:
            _compare_view(cluster, view, player)

    kept = [line for line in lines if not _is_view(line)]
    player = Player(kept, lambda: cluster.master, on_request=look)
    player.play()


def _is_view(line: Json) -> bool:
    return "request" in line and (
        (_call_type(line) or "").startswith("GET_") or "body" not in line["request"]
    )


def _compare_view(cluster: FaultyCluster, line: Json, player: Player) -> None:
    request, recorded = line["request"], line["response"]
    path, address = request["path"], cluster.master
    if path.startswith("agent "):
        path, address = path.removeprefix("agent "), f"127.0.0.1:{cluster.agents[0].identity.port}"
    work_dir = cluster.agents[0].identity.work_dir
    path = player.ids.translate(path).replace("/var/lib/mesos/agent-1", work_dir)
    connection = http.client.HTTPConnection(address)
    body = json.dumps(request["body"]) if "body" in request else None
    headers = {"Content-Type": "application/json"} if body else {}
    connection.request(request["method"], path, body, headers)
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    assert response.status == recorded.get("status", 200), path
    if path == "/metrics/snapshot":
        # Mesos counts much more than this cluster has; what is there has Mesos' name.
        assert set(json.loads(text)) <= set(recorded["body"]) | {"master/tasks_unreachable"}
    elif isinstance(recorded.get("body"), dict):
        compare_shape(_unlike_us(recorded["body"]), json.loads(text), path)
    elif recorded.get("body_text", "").startswith(("[", "{")):
        compare_shape(json.loads(recorded["body_text"]), json.loads(text), path)
        if "offset=0" in path:
            _compare_stdout(player, recorded, text, work_dir)
    else:
        assert bool(text) == bool(recorded.get("body_text") or recorded.get("body")), path


def _compare_stdout(player: Player, recorded: Json, text: str, work_dir: str) -> None:
    expected = json.loads(recorded["body_text"])["data"]
    live = json.loads(text)["data"].replace(work_dir, "/var/lib/mesos/agent-1")
    player.ids.compare_text(expected, live, "the task's environment")


def _unlike_us(body: Json) -> Json:
    """Leave out what earlier scenarios left in the recorded master and agents."""
    if "completed_frameworks" in body:
        return {**body, "completed_frameworks": []}
    return body


# -- files over HTTP ---------------------------------------------------------------------------


def _archive_tgz() -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        info = tarfile.TarInfo("d/a.txt")
        info.size = 2
        archive.addfile(info, io.BytesIO(b"a\n"))
    return data.getvalue()


def _archive_zip() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("d/b.txt", "b\n")
    return data.getvalue()


@pytest.fixture
def file_server() -> Iterator[int]:
    """Serve the recorded files; ``/slow.zip`` is not answered before the test's end."""
    files = {
        "/d.tgz": _archive_tgz(),
        "/d.zip": _archive_zip(),
        "/run.sh": b"#!/bin/sh\necho ran\n",
    }
    ended = threading.Event()

    class Files(Handler):
        def do_GET(self) -> None:
            if self.path == "/slow.zip":
                ended.wait(30)
            body = files.get(self.path)
            self.answer(200 if body is not None else 404, body or b"")

        def handle(self) -> None:
            try:
                super().handle()
            except ConnectionError:
                return

    with served(Files) as address:
        yield int(address.rpartition(":")[2])
        ended.set()


def test_fetcher(make_cluster: MakeCluster, file_server: int) -> None:
    cluster = make_cluster()
    player = Player(read("fetcher"), lambda: cluster.master)
    player.ids.bind("6099", str(file_server))
    player.play()
    sandbox = next(
        one.sandbox
        for agent in cluster.agents
        for one in [*agent.containerizer.containers.values(), *agent.containerizer.completed]
        if one.task_id == "fetch"
    )
    with open(f"{sandbox}/stdout") as stdout:
        text = stdout.read()
    # d/a.txt unpacked, run.sh executed, the zip under its new name and not unpacked.
    assert text.endswith("a\nran\n")
    assert "x.zip" in text
    assert "b.txt" not in text


def test_executor_is_shut_down_and_a_task_killed_before_it_starts(
    make_cluster: MakeCluster, file_server: int
) -> None:
    cluster = make_cluster()
    player = Player(read("message_shutdown"), lambda: cluster.master, exact_offers=False)
    player.ids.bind("6098", str(file_server))
    player.play()
