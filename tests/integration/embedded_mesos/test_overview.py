"""The page of an embedded cluster: who is let in, sandboxes, and the orders for demonstrations."""

import base64
import http.client
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from browser_page import DESKTOP, PHONE, Page
from cluster_faults import FaultyCluster
from dcos_tensorflow.deploy.embedded.cluster import PAGE, PRINCIPAL
from embedded_mesos import Credential
from masters.mesos_scheduler import Scheduler, task
from untrusted_input.page_files import HEADERS
from waiting import eventually

MakeCluster = Callable[..., FaultyCluster]
SECRET = "the-cluster's-secret"
KNOWN = {PRINCIPAL: SECRET}
SLEEP = "mkdir deep; echo 1 > deep/er; echo hello from the sandbox; exec sleep 100"


def asked(
    cluster: FaultyCluster, path: str, method: str = "GET", body: Any = None, **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    """Ask the master with its secret, as its page does."""
    login = base64.b64encode(f"{PRINCIPAL}:{SECRET}".encode()).decode()
    connection = http.client.HTTPConnection(cluster.master, timeout=30)
    given = {"Authorization": f"Basic {login}", **headers}
    connection.request(method, path, body and json.dumps(body), given)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer, text


def stranger(cluster: FaultyCluster, path: str, method: str = "GET") -> http.client.HTTPResponse:
    return asked(cluster, path, method, **{"Authorization": "Basic nobody", "Accept": "text/html"})[
        0
    ]


def entered(cluster: FaultyCluster) -> Scheduler:
    return Scheduler(cluster.master, credentials=Credential(PRINCIPAL, SECRET))


def started(scheduler: Scheduler) -> None:
    offer = scheduler.offer("127.0.0.1", least_cpus=0.1)
    scheduler.launch(offer, task(offer, "t", SLEEP))
    scheduler.run_until("t", "TASK_RUNNING")


def agents(cluster: FaultyCluster) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(asked(cluster, "/overview/agents")[1])
    return found


def file(cluster: FaultyCluster, verb: str, path: str, more: str = "") -> tuple[int, bytes]:
    folder = agents(cluster)[0]["sandboxes"]["t"]
    where = f"/overview/agents/0/files/{verb}?path={quote(folder + path)}{more}"
    answer, text = asked(cluster, where)
    return answer.status, text


def test_the_page_is_given_to_everybody_and_lets_in_no_script_but_ours(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster(credentials=KNOWN, page=PAGE)
    for path in ("/", "/dashboard/embedded.js", "/dashboard/dashboard.css"):
        answer = stranger(cluster, path)
        assert (answer.status, answer.headers["content-security-policy"]) == (
            200,
            HEADERS["content-security-policy"],
        )


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/state"),
        ("GET", "/overview/agents"),
        ("GET", "/overview/agents/0/files/browse?path=/"),
        ("POST", "/overview/agents/0/start"),
        ("POST", "/overview/tasks/t/kill"),
        ("POST", "/api/v1"),
    ],
)
def test_who_does_not_know_the_secret_sees_nothing_and_can_do_nothing(
    make_cluster: MakeCluster, method: str, path: str
) -> None:
    assert stranger(make_cluster(credentials=KNOWN, page=PAGE), path, method).status == 401


def test_another_page_in_the_same_browser_can_do_nothing(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(credentials=KNOWN, page=PAGE)
    headers = {"Sec-Fetch-Site": "cross-site"}
    assert asked(cluster, "/overview/tasks/t/kill", "POST", **headers)[0].status == 403


def test_who_takes_no_html_is_answered_as_by_mesos(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(credentials=KNOWN, page=PAGE)
    assert asked(cluster, "/", Accept="application/json")[0].status == 404


def test_a_sandbox_is_browsed_read_and_downloaded(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(credentials=KNOWN, page=PAGE)
    with entered(cluster) as scheduler:
        started(scheduler)
        eventually(lambda: file(cluster, "download", "/stdout")[1] == b"hello from the sandbox\n")
        status, found = file(cluster, "browse", "")
        assert status == 200
        assert {one["path"].rpartition("/")[2] for one in json.loads(found)} >= {"stdout", "deep"}
        assert json.loads(file(cluster, "read", "/deep/er", "&offset=0")[1])["data"] == "1\n"


@pytest.mark.parametrize("path", ["/../../../../../../../../../../../../etc/passwd", "/no-such"])
def test_nothing_outside_the_sandboxes_is_read(make_cluster: MakeCluster, path: str) -> None:
    cluster = make_cluster(credentials=KNOWN, page=PAGE)
    with entered(cluster) as scheduler:
        started(scheduler)
        assert file(cluster, "download", path)[0] == 404


def test_a_killed_task_has_failed(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(credentials=KNOWN, page=PAGE)
    with entered(cluster) as scheduler:
        started(scheduler)
        assert asked(cluster, "/overview/tasks/t/kill", "POST")[0].status == 200
        scheduler.run_until("t", "TASK_FAILED")
        assert asked(cluster, "/overview/tasks/t/kill", "POST")[0].status == 404


def test_a_killed_agent_takes_its_tasks_along_and_another_comes_in_its_place(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster(credentials=KNOWN, page=PAGE)
    with entered(cluster) as scheduler:
        started(scheduler)
        eventually(lambda: file(cluster, "download", "/stdout")[1], what="the task's output")
        before = agents(cluster)[0]
        body = {"type": "MARK_AGENT_GONE", "mark_agent_gone": {"agent_id": {"value": before["id"]}}}
        assert asked(cluster, "/overview/agents/0/start", "POST")[0].status == 404
        assert asked(cluster, "/api/v1", "POST", body)[0].status == 200
        scheduler.run_until("t", "TASK_GONE_BY_OPERATOR")
        assert not agents(cluster)[0]["is_there"]
        assert asked(cluster, "/overview/agents/0/start", "POST")[0].status == 200
        eventually(lambda: agents(cluster)[0]["id"] not in ("", before["id"]), what="a new agent")
        # What the old one's tasks have left can still be read.
        assert file(cluster, "download", "/stdout")[1] == b"hello from the sandbox\n"


@pytest.mark.soak
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_browser_asks_for_the_secret_shows_a_sandbox_and_kills_what_it_is_told_to(
    make_cluster: MakeCluster, size: dict[str, int], scheme: str
) -> None:
    cluster = make_cluster(credentials=KNOWN, page=PAGE)
    with entered(cluster) as scheduler, Page() as page:
        started(scheduler)
        page.order("open", url=f"http://{cluster.master}/", scheme=scheme, **size)
        page.see("#token")
        assert page.order("violations") == []
        page.order("fill", where="#token", text="wrong")
        page.order("click", where="form button")
        page.see("#problem", "This secret is not the cluster's.")
        # The browser itself complains of each answer 401.
        page.order("forgive")
        page.order("fill", where="#token", text=SECRET)
        page.order("click", where="form button")
        page.see(".link.live")
        page.see("main", "127.0.0.2")
        assert page.order("violations") == []
        assert page.order("overflow") <= 0
        page.order("click", where="a >> text=files")
        page.see("main", "stdout")
        assert page.order("violations") == []
        page.order("click", where="main a >> text=stdout")
        page.see(".log", "hello from the sandbox")
        assert page.order("violations") == []
        page.order("click", where="a >> text=The cluster")
        page.order("click", where="button >> text=Kill >> nth=2")
        page.see("dialog", "Kill t?")
        assert page.order("violations") == []
        page.order("click", where="dialog .primary")
        page.see(".badge", "failed")
        page.order("click", where="button >> text=Kill >> nth=1")
        page.order("click", where="dialog .primary")
        page.see(".badge", "gone")
        page.order("click", where="button >> text=Start")
        page.order("click", where="dialog .primary")
        page.see("tbody tr:nth-child(2) .badge", "active")
        assert page.order("complaints") == []
