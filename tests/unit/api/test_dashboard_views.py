"""Views of the dashboard that a training on one machine does not fill, in a real browser."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from browser_page import DESKTOP, PHONE, Page
from dcos_tensorflow.api.app import create_app
from dcos_tensorflow.api.callers.access import Access
from dcos_tensorflow.api.server import ApiServer
from dcos_tensorflow.capacity.ledger import Ledger
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.task import mesos_task_id
from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec, CommandSpec
from dcos_tensorflow.history.curves import Curves
from dcos_tensorflow.history.folder import RunFolder
from dcos_tensorflow.history.keeper import Keeper, Sources
from dcos_tensorflow.history.points import Point, line_of
from dcos_tensorflow.history.record import record_of, with_points
from dcos_tensorflow.mesos.agent_files import FilePart
from dcos_tensorflow.scheduler.machines.ledger_records import changes_between
from samples.states import TOKEN_KEY, a_state, changed, failed, reporting, running
from samples.telltale_state import CONTEXT_SECRET, SECRETS, SIGNATURE, URL_SECRET, telltale
from servers.answering_service import TOKEN, Service
from unit.capacity.machine_lives import HERE, NEW, WRITTEN, bought, heard, seen

pytestmark = [pytest.mark.soak]

#: Each view, and a text that it has when its answers have come.
VIEWS = {
    "tasks": "All tasks",
    "plans": "Force complete",
    "why": "Offers that were not used",
    "cluster": "strategy",
    "checkpoints": "output is in",
    "logs": "step 5",
    "options": "In force",
    "runs": "There is no former run",
    "overview": "Details",
}


class Printing(Service):
    """A service whose tasks have printed something."""

    def __init__(self) -> None:
        super().__init__()
        self.printed: dict[str, bytes] = {}

    def read_file(
        self, agent_id: str, task_id: str, file: str, offset: int, length: int
    ) -> FilePart:
        whole = self.printed[task_id] if file == "stdout" else b""
        return FilePart(offset, whole[offset : offset + length], len(whole))


@pytest.fixture
def service() -> Iterator[Printing]:
    service = Printing()
    service.server.start()
    yield service
    service.server.stop()


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with Page() as page:
        yield page


def enter(
    page: Page, service: Service, view: str, size: Mapping[str, int] = MappingProxyType(DESKTOP)
) -> None:
    page.order("open", url=f"http://{service.server.address}/#/{view}", scheme="light", **size)
    page.order("fill", where="#token", text=TOKEN)
    page.order("forgive")
    page.order("click", where="form button")
    page.see(".link.live")


def test_the_logs_of_all_tasks_are_read_and_searched(page: Page, service: Printing) -> None:
    state = running()
    service.current = state
    service.printed = {
        record.task_id: f"hello of {name}\nloss 0.5\n".encode()
        for name, record in state.tasks.items()
    }
    enter(page, service, "logs")
    # At once: the page draws itself anew each second, with what was chosen before.
    page.order(
        "evaluate",
        script="((select) => { select.value = ''; select.dispatchEvent(new Event('change')); })"
        "(document.querySelector('select'))",
    )
    for name in state.tasks:
        page.see(".log", f"{name} hello of {name}")
    service.printed = {task: text + b"later\n" for task, text in service.printed.items()}
    page.see(".log", "later")
    page.order("fill", where="input[type=search]", text="HELLO")
    page.see("p[role=status]", f"{len(state.tasks)} of {3 * len(state.tasks)} lines")
    assert (page.order("violations"), page.order("complaints")) == ([], [])


def test_a_new_attempt_of_a_task_is_read_from_its_own_beginning(
    page: Page, service: Printing
) -> None:
    state = running()
    service.current = state
    service.printed = {r.task_id: b"of the first attempt\n" for r in state.tasks.values()}
    enter(page, service, "logs")
    page.see(".log", "of the first attempt")
    record = state.tasks["worker-0"]
    again = replace(record, attempt=2, task_id=mesos_task_id("tensorflow", "worker-0", "second"))
    service.printed[again.task_id] = b"of the second\n"
    others = [one for one in state.tasks.values() if one is not record]
    service.current = a_state(JobPhase.RUNNING, [*others, again])
    page.see(".log", "of the second")


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_curves_of_a_former_run_are_laid_over_those_of_this_one(
    page: Page, tmp_path: Path, size: dict[str, int]
) -> None:
    service = Service()
    for number, name in enumerate(("1-abc", "2-def"), 1):
        state = service.current = replace(reporting(4), run=number)
        record = {
            **record_of(state, {"rate": number}, {}),
            "id": name,
            "started_at": 990.0 + number,
        }
        points = [Point(1000.0 + step, step, {"loss": number / 2}) for step in (2, 3)]
        RunFolder(tmp_path / name).keep_record(with_points(record, points))
        lines = [line_of("worker-0", point, lambda told: told) for point in points]
        RunFolder(tmp_path / name).append(lines)
    keeper = Keeper(tmp_path, Curves(), Sources(lambda: None, dict, lambda s, t: t, lambda s: None))
    service.server = ApiServer(create_app(service, access=Access(TOKEN), history=keeper))
    service.server.start()
    try:
        enter(page, service, "runs", size)
        page.see("tbody tr:nth-child(1)", "2 (this one)")
        page.see("tbody tr:nth-child(2)", "loss 0.5")
        page.order("click", where="tbody tr:nth-child(2) a")
        service.current = replace(reporting(9), run=2)
        page.see(".key", "worker-0 0.1")
        page.see(".key", "worker-0 of run 1 0.5")
        page.see("[aria-label='Side by side']", "rate")
        page.order("fill", where="input[name=tags] >> nth=1", text="baseline, first")
        page.order("click", where="form:has([name=tags]) button >> nth=1")
        page.see("tbody tr:nth-child(2)", "baseline")
        page.order("fill", where="input[type=search]", text="tag:first")
        page.see("#filtered", "1 of 2 runs")
        page.order("click", where="summary >> nth=1")
        page.see("pre", '"rate": 1')
        assert (page.order("violations"), page.order("complaints")) == ([], [])
        assert page.order("overflow") <= 0
    finally:
        service.server.stop()


def with_a_machine(state: Any) -> Any:
    ledger = seen(heard(bought(), NEW, 100), HERE, 200)
    records = {k: v for k, v in changes_between(Ledger(), ledger).items() if v is not None}
    spec = replace(state.spec, capacity=CapacitySpec(CommandSpec(("rack",)), budget=50.0))
    return replace(
        state,
        spec=spec,
        capacity=records,
        subscription=replace(state.subscription, stepped_at=WRITTEN + 7200),
    )


def test_machines_and_the_bill_are_shown_where_machines_are_bought(
    page: Page, service: Printing
) -> None:
    service.current = with_a_machine(running())
    enter(page, service, "capacity")
    page.see("main", NEW.instance_type)
    page.see("main", "Saved")
    assert (page.order("violations"), page.order("complaints")) == ([], [])
    assert page.order("overflow") <= 0


def test_a_checkpoint_is_shown_with_its_size(page: Page, service: Printing) -> None:
    record = running().tasks["worker-0"]
    told = {"step": 40, "path": "model.ckpt-40", "bytes": 2_500_000, "saved_at": 1.0}
    service.current = changed(running(), reports={record.task_id: {"checkpoint": told}})
    enter(page, service, "checkpoints")
    page.see("main", "2.5 MB")
    assert (page.order("violations"), page.order("complaints")) == ([], [])


def test_no_view_and_no_event_holds_a_secret(page: Page, service: Printing) -> None:
    state = telltale()
    output = f"s3://bucket/{SECRETS['GCS_KEY']}?password={SECRETS['DB_PASSWORD']}"
    service.current = state
    service.given = {
        "worker": {"env": dict(SECRETS)},
        "service": {"job_url": f"https://{URL_SECRET}@files.example.com/job.zip"},
        "output": {"uri": output, "secret_access_key": CONTEXT_SECRET},
    }
    printed = f"{' '.join(SECRETS.values())} {TOKEN_KEY} step 5\n".encode()
    service.printed = {record.task_id: printed for record in state.tasks.values()}
    secrets = [*SECRETS.values(), "url-password", SIGNATURE, CONTEXT_SECRET, TOKEN_KEY, TOKEN]
    stream = HTTPConnection(service.server.address, timeout=60)
    stream.request("GET", "/v1/events", headers={"authorization": f"Bearer {TOKEN}"})
    told = next(line for line in stream.getresponse() if line.startswith(b"data: ")).decode()
    stream.close()
    assert [secret for secret in secrets if secret in told] == []
    enter(page, service, "overview")
    # All that the page is told from now on, however it shows it.
    page.order(
        "evaluate",
        script="fetch = ((ask) => async (...more) => { const answer = await ask(...more);"
        " answer.clone().text().then((text) => (globalThis.told = (globalThis.told ?? '') + text));"
        " return answer; })(fetch)",
    )
    for view, text in VIEWS.items():
        page.order("click", where=f'nav a[href="#/{view}"]')
        page.see("main", text)
        shown = page.order(
            "evaluate", script="document.documentElement.outerHTML + globalThis.told"
        )
        assert [secret for secret in secrets if secret in shown] == [], view


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_task_that_a_job_failed_of_is_the_first_and_the_others_ended_with_it(
    page: Page, service: Printing, size: dict[str, int]
) -> None:
    service.current = failed()
    enter(page, service, "tasks", size)
    page.see("tbody tr:nth-child(1)", "worker-1")
    page.see("tbody tr:nth-child(1) .failed")
    page.see("tbody tr:nth-child(2)", "the job is ending")
    page.order("fill", where="input[type=search]", text="failures>0")
    page.see("#filtered", "1 of 4 tasks")
    assert (page.order("violations"), page.order("complaints")) == ([], [])
    assert page.order("overflow") <= 0


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_what_each_task_takes_of_its_machine_is_shown_where_it_is_known(
    page: Page, service: Printing, size: dict[str, int]
) -> None:
    gpus = [{"utilisation": share, "mem_bytes": 2_000_000_000} for share in (0.25, 0.75)]
    used = {"cpu_percent": 151.2, "mem_bytes": 1_500_000_000, "gpus": gpus}
    service.current = running()
    task = service.current.tasks["worker-0"].task_id
    service.used = {task: {**used, "steps_per_second": None}}
    enter(page, service, "tasks", size)
    page.see("tbody tr:has-text('worker-0')", "151 %")
    page.see("tbody tr:has-text('worker-0')", "1.5")
    page.see("tbody tr:has-text('worker-0')", "50 %, 4")
    assert "151" not in page.order("text", where="tbody tr:has-text('worker-1')")
    assert (page.order("violations"), page.order("overflow") <= 0) == ([], True)
