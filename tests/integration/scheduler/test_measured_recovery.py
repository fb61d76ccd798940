"""What an operator sees of one recovery: metrics, a trace and the log, tied by one id."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cluster_faults import FaultyCluster
from command_line import write_options
from embedded_mesos import AgentConfig
from scheduler_process import SchedulerProcess
from trace_collector import Collector, collector, said
from waiting import eventually

pytestmark = [pytest.mark.soak, pytest.mark.timeout(240)]

CANARY = "c4n4ry-4711"


@dataclass(frozen=True)
class Recovered:
    """A job of which one process has failed once, and that trains again."""

    scheduler: SchedulerProcess
    traces: Collector

    def metrics(self) -> dict[str, float]:
        """Return all samples of no label but the cause, by name."""
        text = self.scheduler.ask("/v1/metrics/prometheus")[1]
        return {
            "/".join((sample.name, *sample.labels.values())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def lines(self) -> list[dict[str, Any]]:
        """Return the log."""
        return [json.loads(line) for line in self.scheduler.log.splitlines()]


@pytest.fixture(scope="module")
def recovered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recovered]:
    folder = tmp_path_factory.mktemp("recovery")
    fail = folder / "fail"
    command = (
        f"i=0; while true; do i=$((i+1)); echo step $i; sleep 0.1;"
        f' if [ -e "{fail}" ]; then rm "{fail}"; echo "PASSWORD={CANARY}"; exit 1; fi; done'
    )
    options = write_options(
        folder,
        service={"name": "job", "job_cmd": command, "log_format": "json"},
        worker={"count": 1},
        retry={"initial_backoff_seconds": 0.1},
    )
    agents = [AgentConfig(cpus=2, mem=512)]
    with collector() as traces, FaultyCluster(agents, folder / "mesos") as cluster:
        scheduler = SchedulerProcess(
            "scheduler",
            folder,
            options,
            cluster.master,
            f"sqlite:///{folder}/state.db",
            environment={
                "OTEL_EXPORTER_OTLP_ENDPOINT": traces.url,
                "OTEL_BSP_SCHEDULE_DELAY": "100",
            },
        )
        found = Recovered(scheduler, traces)
        try:
            scheduler.wait_for("running")
            step = lambda: found.metrics().get("dcos_tensorflow_task_step/worker-0", 0)  # noqa: E731
            waited_for(scheduler, lambda: step() > 20, "some steps")
            fail.touch()
            waited_for(scheduler, lambda: traces.spans, "a trace")
            yield found
        finally:
            scheduler.close()


def waited_for(scheduler: SchedulerProcess, condition: Callable[[], Any], what: str) -> None:
    eventually(condition, seconds=90, what=lambda: f"{what}: {scheduler.log[-3000:]}")


def test_it_is_counted_with_the_steps_that_it_cost(recovered: Recovered) -> None:
    found = recovered.metrics()

    assert found["dcos_tensorflow_recoveries_total/failed"] == 1
    assert found["dcos_tensorflow_recovery_seconds_sum/failure"] > 0
    assert found["dcos_tensorflow_lost_steps_total"] >= 15


def test_the_event_loop_is_measured(recovered: Recovered) -> None:
    found = recovered.metrics()

    assert found["dcos_tensorflow_step_seconds_count"] > 10
    assert found["dcos_tensorflow_commit_seconds_sum"] > 0
    assert found["dcos_tensorflow_placement_seconds_count"] == 1


def test_it_is_one_trace(recovered: Recovered) -> None:
    names = {span.name for span in recovered.traces.spans}

    assert {"recovery", "cause", "decision", "write", "orders", "first step"} <= names
    assert len({span.trace_id for span in recovered.traces.spans}) == 1


def test_trace_and_log_have_the_same_id(recovered: Recovered) -> None:
    turn = said(recovered.traces.span("decision"))["dcos_tensorflow.turn"]
    (decided,) = [line for line in recovered.lines() if line.get("turn") == turn]

    assert "worker-0" in decided["message"]
    assert decided["events"] == said(recovered.traces.span("cause"))["dcos_tensorflow.events"]
    assert "Gangs/main/Job" in decided["writes"]


def test_what_the_task_has_said_is_in_no_trace(recovered: Recovered) -> None:
    assert CANARY.encode() not in recovered.traces.raw
