"""Metrics carry the SDK's names, are all documented, and count what really happened."""

import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dcos_tensorflow.api.counters import Histogram
from dcos_tensorflow.api.metrics import FAMILIES, Family, Metrics
from dcos_tensorflow.core.failures.causes import KINDS
from dcos_tensorflow.core.model.actions import Decline, Revive, Suppress
from dcos_tensorflow.core.model.events import OffersReceived, RunnerReported, StopRequested
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.resources import Resources
from samples.states import (
    NOW,
    a_record,
    a_state,
    an_incident,
    an_offer,
    changed,
    failed,
    gang,
    offered,
    played,
    registered,
    running,
)
from samples.turns import a_turn, restarted, turned, turns_of

DOCUMENT = Path(__file__).parents[3] / "docs" / "metrics.md"
USED = {
    "cpu_percent": 150.0,
    "mem_bytes": 1 << 30,
    "gpus": [{"utilisation": 0.5, "mem_bytes": 2 << 30}],
    "steps_per_second": 12.5,
}
SMALL = Resources(cpus=0.1, mem=8, disk=8)


def samples(text: str) -> dict[str, float]:
    return {
        sample.name + "".join(f"/{value}" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture
def scraped_of(source: Any, client_of: Any) -> Any:
    """Return what a scrape of these metrics answers."""

    def scrape(metrics: Metrics, state: ServiceState | None = None) -> dict[str, float]:
        source.current = state or a_state()
        return samples(client_of(metrics=metrics).get("/v1/metrics/prometheus").text)

    return scrape


@pytest.fixture
def scraped(ask: Any) -> Any:
    def scrape(state: ServiceState) -> dict[str, float]:
        answer = ask("/v1/metrics/prometheus", state)
        assert answer.headers["content-type"].startswith("text/plain")
        return samples(answer.text)

    return scrape


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
            a_turn(
                a_state(),
                Decline(("o1", "o2"), 3600.0),
                Decline(("o3",), 5.0),
                Revive(("*",)),
                Suppress(("*",)),
            )
        )
        counts = metrics.measured().counts
        assert (counts["declines.long"], counts["declines.short"]) == (2, 1)
        assert (counts["revives"], counts["suppresses"]) == (1, 1)

    def test_changes_of_tasks_are_counted_once(self) -> None:
        metrics = Metrics()
        before = a_state()
        for _ in range(2):
            state = a_state(JobPhase.STARTING, gang())
            metrics.observe(a_turn(state, changed=tuple(state.tasks), before=before))
            before = state
        assert metrics.measured().counts["task_status.task_running"] == 3

    def test_tasks_found_at_the_start_are_no_changes(self) -> None:
        metrics = Metrics()
        metrics.observe(a_turn(running()))
        assert metrics.measured().counts["task_status.task_running"] == 0

    def test_counts_reach_both_formats(self, source: Any, client_of: Any) -> None:
        metrics = Metrics()
        metrics.observe(a_turn(a_state(), Revive(("*",))))
        source.current = a_state()
        client = client_of(metrics=metrics)
        assert samples(client.get("/v1/metrics/prometheus").text)["revives"] == 1
        assert client.get("/v1/metrics").json()["counters"]["revives"] == {"count": 1}

    def test_dropwizards_json_has_its_sections(self, ask: Any) -> None:
        body = ask("/v1/metrics", running()).json()
        assert body["gauges"]["plan_status.deploy"] == {"value": 0}
        assert {"counters", "gauges", "histograms", "meters", "timers"} <= set(body)


def documented() -> dict[str, Family]:
    """Return what the table in docs/metrics.md says."""
    row = r"^\| `(\w+)(?:\{([\w,]+)\})?` \| (\w+) \| (.+) \|$"
    return {
        name: Family(kind, what, tuple(labels.split(",")) if labels else ())
        for name, labels, kind, what in re.findall(row, DOCUMENT.read_text(), re.MULTILINE)
    }


def test_the_documents_table_says_what_is_served() -> None:
    assert documented() == FAMILIES


def test_everything_that_is_documented_is_served(source: Any, client_of: Any) -> None:
    source.current, metrics = everything(), Metrics()
    metrics.observe(a_turn(source.current, events=reported("worker-0", checkpoint={"step": 80})))
    source.used = {a_record("worker-0").task_id: USED}
    text = client_of(metrics=metrics).get("/v1/metrics/prometheus").text
    served = {
        f"{family.name}_total" if family.type == "counter" else family.name: family.type
        for family in text_string_to_metric_families(text)
    }
    sometimes = {"plan_status_update", "plan_status_decommission"}
    assert served == {n: f.kind for n, f in FAMILIES.items() if n not in sometimes}


def test_what_a_task_uses_is_told_by_task_and_gpu(source: Any, client_of: Any) -> None:
    source.current, source.used = running(), {a_record("worker-1").task_id: USED}
    found = samples(client_of().get("/v1/metrics/prometheus").text)
    used = {name: value for name, value in found.items() if name.endswith("worker-1")}
    assert used == {
        "dcos_tensorflow_task_cpu_percent/worker-1": 150.0,
        "dcos_tensorflow_task_memory_bytes/worker-1": 1 << 30,
        "dcos_tensorflow_task_steps_per_second/worker-1": 12.5,
        "dcos_tensorflow_task_gpu_utilisation/0/worker-1": 0.5,
        "dcos_tensorflow_task_gpu_memory_bytes/0/worker-1": 2 << 30,
    }


def everything() -> ServiceState:
    """Return a state that has something to tell under every name, but of plans that come and go."""
    told = {
        "progress": {"step": 100, "loss": 0.5, "accuracy": 0.9},
        "checkpoint": {"step": 80},
        "storage": {"checkpoints": {"lag_seconds": 7.0}},
    }
    records = gang()
    reports = {record.task_id: told for record in records}
    return a_state(JobPhase.RUNNING, records, reports=reports, job={"deployed": True})


def reported(task: str, **report: Any) -> tuple[RunnerReported]:
    return (RunnerReported(a_record(task).task_id, report),)


class TestDurations:
    def test_a_turn_is_measured_part_by_part(self, scraped_of: Any) -> None:
        metrics = Metrics()
        metrics.observe(a_turn(a_state()))
        found = scraped_of(metrics)
        assert found["dcos_tensorflow_event_loop_latency_seconds_sum"] == 0.003
        assert found["dcos_tensorflow_step_seconds_sum"] == 0.03
        assert found["dcos_tensorflow_calls_seconds_sum"] == 0.2

    def test_a_turn_that_writes_nothing_is_no_commit(self, scraped_of: Any) -> None:
        metrics = Metrics()
        metrics.observe(a_turn(a_state()))
        assert scraped_of(metrics)["dcos_tensorflow_commit_seconds_count"] == 0

    def test_a_bucket_counts_what_took_as_long_at_most(self, scraped_of: Any) -> None:
        metrics = Metrics()
        metrics.observe(a_turn(a_state()))
        found = scraped_of(metrics)
        assert found["dcos_tensorflow_step_seconds_bucket/0.025"] == 0
        assert found["dcos_tensorflow_step_seconds_bucket/0.05"] == 1
        assert found["dcos_tensorflow_step_seconds_bucket/+Inf"] == 1

    def test_a_bound_belongs_to_its_bucket(self) -> None:
        histogram = Histogram((1.0, 2.0))
        histogram.add(1.0)
        assert histogram.counts == [1, 0, 0]

    def test_a_look_at_offers_is_the_sdks_timer(self, scraped_of: Any) -> None:
        metrics = Metrics()
        metrics.observe(a_turn(a_state(), events=(offered(1),)))
        metrics.observe(a_turn(a_state()))
        assert scraped_of(metrics)["offers_process_count"] == 1

    def test_what_the_loop_is_at_is_shown_while_it_is_at_it(self, scraped_of: Any) -> None:
        found = scraped_of(Metrics(lambda: (12, 3.5)))
        assert found["dcos_tensorflow_events_waiting"] == 12
        assert found["dcos_tensorflow_event_loop_busy_seconds"] == 3.5

    def test_the_wait_of_a_gang_ends_with_its_launch(self, scraped_of: Any) -> None:
        metrics, state = Metrics(), a_state()
        for at, event in ((NOW, registered()), (NOW + 90, offered(1, 2, 3, 4, 5))):
            turn = turned(state, event, at=at)
            metrics.observe(turn)
            state = turn.decision.state
        assert state.job.phase is JobPhase.STARTING
        assert scraped_of(metrics)["dcos_tensorflow_placement_seconds_count"] == 1

    def test_a_restart_is_told_with_its_cause_and_what_it_took(self, scraped_of: Any) -> None:
        metrics = Metrics()
        for turn in turns_of(restarted(an_incident(at=NOW, kind="out of memory"))):
            metrics.observe(turn)
        found = scraped_of(metrics)
        assert found["dcos_tensorflow_recoveries_total/out of memory"] == 1
        assert found["dcos_tensorflow_recovery_seconds_sum/failure"] == 10

    def test_a_cause_is_there_before_it_is_one(self, scraped_of: Any) -> None:
        found = scraped_of(Metrics())
        assert {found[f"dcos_tensorflow_recoveries_total/{kind}"] for kind in KINDS} == {0}

    def test_lost_steps_are_counted(self, scraped_of: Any) -> None:
        metrics = Metrics()
        for turn in turns_of(restarted(steps=[100, 81])):
            metrics.observe(turn)
        assert scraped_of(metrics)["dcos_tensorflow_lost_steps_total"] == 19


class TestCheckpoints:
    def test_the_age_begins_when_a_newer_one_is_heard_of(
        self, scraped_of: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("time.time", lambda: NOW + 50)
        metrics = Metrics()
        for at, step in ((NOW, 60), (NOW + 10, 80), (NOW + 20, 80), (NOW + 30, 60)):
            events = reported("worker-0", checkpoint={"step": step})
            metrics.observe(a_turn(everything(), events=events, at=at))
        assert scraped_of(metrics, everything())["dcos_tensorflow_checkpoint_age_seconds"] == 40

    def test_the_lag_is_what_was_trained_since(self, scraped: Any) -> None:
        assert scraped(everything())["dcos_tensorflow_checkpoint_lag_steps"] == 20

    def test_a_job_without_one_has_no_age(self, scraped: Any) -> None:
        assert not [name for name in scraped(running()) if "_checkpoint_" in name]


class TestOffers:
    @pytest.mark.parametrize(
        ("state", "verdict"),
        [
            (played(registered(), offered(1, 2, 3, 4, 5)), "launched"),
            (played(registered(), OffersReceived((an_offer(1, resources=SMALL),))), "unfit"),
            (played(registered(), offered(1), StopRequested("enough"), offered(2)), "unwanted"),
        ],
        ids=["launched", "unfit", "unwanted"],
    )
    def test_they_are_counted_by_what_became_of_them(
        self, scraped: Any, state: ServiceState, verdict: str
    ) -> None:
        assert scraped(state)[f"dcos_tensorflow_offers_total/{verdict}"] >= 1

    def test_a_revive_that_comes_too_early_is_throttled(self, scraped: Any) -> None:
        state = changed(played(registered()), suppressed=None)
        state = turned(state, at=state.desk.revived_at + 1).decision.state
        assert scraped(state)["revives_throttles"] == 1
