"""Metrics carry the SDK's names and count what really happened."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dcos_tensorflow.api.metrics import Metrics
from dcos_tensorflow.core.model.actions import Action, Decline, Revive, Suppress
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.step import Decision
from sample_states import a_record, a_state, failed, gang, offered, played, registered, running


def samples(text: str) -> dict[str, float]:
    return {
        sample.name + "".join(f"/{value}" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def scraped(ask: Any) -> Any:
    def scrape(state: ServiceState) -> dict[str, float]:
        answer = ask("/v1/metrics/prometheus", state)
        assert answer.headers["content-type"].startswith("text/plain")
        return samples(answer.text)

    return scrape


def decided(state: ServiceState, *actions: Action, changed: tuple[str, ...] = ()) -> Decision:
    return Decision(state, (), actions, "", changed)


def test_offers_are_counted(scraped: Any) -> None:
    found = scraped(played(registered(), offered(1, 2, 3, 4, 5)))

    assert (found["offers_received"], found["offers_processed"]) == (5, 5)


def test_offers_in_hand_are_received_and_not_processed(scraped: Any) -> None:
    found = scraped(played(registered(), offered(1)))

    assert (found["offers_received"], found["offers_processed"]) == (1, 0)


@pytest.mark.parametrize(
    ("state", "value"),
    [
        (failed(), -1),
        (running(), 0),
        (a_state(), 1),
        (a_state(JobPhase.STARTING, gang(TaskState.STAGING)), 2),
        (a_state(JobPhase.BACKING_OFF), 2),
    ],
)
def test_the_deploy_plan_is_a_number(scraped: Any, state: ServiceState, value: int) -> None:
    assert scraped(state)["plan_status_deploy"] == value


def test_suppression_is_shown(scraped: Any) -> None:
    assert scraped(a_state(suppressed=True))["is_suppressed"] == 1
    assert scraped(a_state(suppressed=None))["is_suppressed"] == 0


def test_tasks_are_counted_by_role_and_state(scraped: Any) -> None:
    assert scraped(running())["dcos_tensorflow_tasks/worker/running"] == 2


def test_training_progress_is_shown_per_task(scraped: Any) -> None:
    record = a_record("worker-0")
    report = {"progress": {"step": 200, "loss": 0.25, "accuracy": None}}
    found = scraped(a_state(JobPhase.RUNNING, [record], reports={record.task_id: report}))

    assert found["dcos_tensorflow_task_step/worker-0"] == 200
    assert found["dcos_tensorflow_task_loss/worker-0"] == 0.25
    assert "dcos_tensorflow_task_accuracy/worker-0" not in found


def test_a_report_of_an_unknown_form_shows_nothing(scraped: Any) -> None:
    record = a_record("worker-0")
    state = a_state(JobPhase.RUNNING, [record], reports={record.task_id: {"progress": "fast"}})

    assert "dcos_tensorflow_task_step/worker-0" not in scraped(state)


class TestObserved:
    def test_calls_to_the_master_are_counted(self) -> None:
        metrics = Metrics()
        metrics.observe(
            decided(
                a_state(),
                Decline(("o1", "o2"), 3600.0),
                Decline(("o3",), 5.0),
                Revive(("*",)),
                Suppress(("*",)),
            )
        )

        counts = metrics.counts()
        assert (counts["declines.long"], counts["declines.short"]) == (2, 1)
        assert (counts["revives"], counts["suppresses"]) == (1, 1)

    def test_changes_of_tasks_are_counted_once(self) -> None:
        metrics = Metrics()
        metrics.observe(decided(a_state()))
        for _ in range(2):
            state = a_state(JobPhase.STARTING, gang())
            metrics.observe(decided(state, changed=tuple(state.tasks)))

        assert metrics.counts()["task_status.task_running"] == 3

    def test_tasks_found_at_the_start_are_no_changes(self) -> None:
        metrics = Metrics()
        metrics.observe(decided(running()))

        assert "task_status.task_running" not in metrics.counts()

    def test_counts_reach_both_formats(self, source: Any, client_of: Any) -> None:
        metrics = Metrics()
        metrics.observe(decided(a_state(), Revive(("*",))))
        source.current = a_state()
        client = client_of(metrics=metrics)

        assert samples(client.get("/v1/metrics/prometheus").text)["revives"] == 1
        assert client.get("/v1/metrics").json()["counters"]["revives"] == {"count": 1}

    def test_dropwizards_json_has_its_sections(self, ask: Any) -> None:
        body = ask("/v1/metrics", running()).json()

        assert body["gauges"]["plan_status.deploy"] == {"value": 0}
        assert {"counters", "gauges", "histograms", "meters", "timers"} <= set(body)
