"""What is beside the SDK's paths: the cluster, the job, and why it waits."""

from dataclasses import replace
from typing import Any

from dcos_tensorflow.api.views.cluster import FULL_UP_TO
from dcos_tensorflow.core.cluster.rendering import server_definition, tf_config
from dcos_tensorflow.core.model.cluster_spec import ClusterSpec
from dcos_tensorflow.core.model.controls import Controls
from dcos_tensorflow.core.model.job import JobPhase, Outcome, Verdict
from dcos_tensorflow.core.model.service_state import Evidence
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.service_spec import TaskRole
from samples.states import (
    NOW,
    a_record,
    a_role,
    a_spec,
    a_state,
    an_incident,
    gang,
    offered,
    played,
    registered,
    running,
)


class TestCluster:
    def test_before_the_first_placement_it_is_empty(self, ask: Any) -> None:
        body = ask("/v1/cluster", a_state()).json()
        assert (body["epoch"], body["addresses"], body["tasks"]) == (0, {}, {})

    def test_it_shows_what_each_task_was_told(self, ask: Any) -> None:
        state = running()
        body = ask("/v1/cluster", state).json()
        assert state.epoch is not None
        assert body["epoch"] == 1
        assert body["addresses"]["worker-0"] == "127.0.0.11:31100"
        for name in ("ps-0", "worker-0", "worker-1"):
            assert body["tasks"][name]["tf_config"] == tf_config(state.spec, state.epoch, name)
            assert body["tasks"][name]["server"] == server_definition(state.spec, state.epoch, name)

    def test_a_sidecar_is_told_nothing(self, ask: Any) -> None:
        task = ask("/v1/cluster", running()).json()["tasks"]["tensorboard-0"]
        assert (task["tf_config"], task["server"]) == (None, None)

    def test_a_task_without_an_address_is_told_nothing(self, ask: Any) -> None:
        spec = a_spec(roles=(a_role(TaskRole.WORKER, 3), a_role(TaskRole.PS, 1)))
        body = ask("/v1/cluster", a_state(JobPhase.RUNNING, gang(), spec=spec)).json()
        assert body["tasks"]["worker-2"]["tf_config"] is None

    def test_a_large_cluster_is_shown_task_by_task(self, ask: Any) -> None:
        count = FULL_UP_TO + 1
        spec = a_spec(roles=(a_role(TaskRole.WORKER, count),))
        epoch = ClusterSpec(1, {f"worker-{n}": f"127.0.0.1:{1000 + n}" for n in range(count)})
        state = a_state(JobPhase.RUNNING, spec=spec, epoch=epoch)
        whole = ask("/v1/cluster", state).json()
        one = ask("/v1/cluster/worker-7", state).json()
        assert whole["complete"] is False
        assert "tf_config" not in whole["tasks"]["worker-7"]
        assert one["tf_config"]["task"] == {"type": "worker", "index": 7}


class TestJob:
    def test_it_tells_phase_and_why(self, ask: Any) -> None:
        body = ask("/v1/job", running()).json()
        assert (body["phase"], body["why"]) == ("running", "all 3 tasks run")
        assert body["deciding_tasks"] == ["worker-0"]

    def test_it_tells_the_verdict_and_the_incidents(self, ask: Any) -> None:
        verdict = Verdict(Outcome.FAILED, 3, "worker-1 failed")
        job = {"verdict": verdict, "incidents": (an_incident(),), "restarts": 2}
        body = ask("/v1/job", a_state(JobPhase.DONE, gang(), job=job)).json()
        assert body["verdict"] == {
            "outcome": "failed",
            "exit_code": 3,
            "summary": "worker-1 failed",
        }
        assert body["incidents"][0]["task"] == "worker-1"
        assert body["restarts"] == 2

    def test_a_failure_counts_for_the_task_that_failed_first(self, ask: Any) -> None:
        peer = an_incident("worker-0", collateral=("worker-1",))
        job = {"incidents": (an_incident(), an_incident(), peer)}
        tasks = ask("/v1/job", a_state(JobPhase.RUNNING, gang(), job=job)).json()["tasks"]
        assert [tasks[name]["failures"] for name in ("ps-0", "worker-0", "worker-1")] == [0, 1, 2]

    def test_it_tells_the_result(self, ask: Any) -> None:
        state = a_state(JobPhase.DONE, job={"result": {"accuracy": 0.97}})
        assert ask("/v1/job", state).json()["result"] == {"accuracy": 0.97}

    def test_it_tells_the_progress_of_each_task(self, ask: Any) -> None:
        record = a_record("worker-0")
        progress = {"step": 200, "loss": float("nan"), "accuracy": None}
        report = {"state": "running", "progress": progress, "pid": 4711}
        state = a_state(JobPhase.RUNNING, [record], reports={record.task_id: report})
        task = ask("/v1/job", state).json()["tasks"]["worker-0"]
        assert task["report"]["progress"] == {"step": 200, "loss": "NaN", "accuracy": None}
        assert "pid" not in task["report"]

    def test_it_tells_what_each_task_uses_and_was_given(self, ask: Any, source: Any) -> None:
        used = {"cpu_percent": 80.0, "mem_bytes": 3, "gpus": [], "steps_per_second": None}
        source.used = {a_record("worker-0").task_id: used}
        tasks = ask("/v1/job", running()).json()["tasks"]
        given = {"cpus": 1.0, "mem_limit_bytes": 512 << 20}
        assert tasks["worker-0"]["usage"] == {**used, **given}
        assert tasks["worker-1"]["usage"] is None

    def test_it_tells_what_an_ended_task_left_behind(self, ask: Any) -> None:
        record = a_record("worker-0", TaskState.FAILED)
        evidence = {record.task_id: Evidence("ValueError: shapes", ("Traceback", "ValueError"))}
        state = a_state(JobPhase.STOPPING, [record], evidence=evidence)
        assert ask("/v1/job", state).json()["tasks"]["worker-0"]["evidence"] == {
            "summary": "ValueError: shapes",
            "last_lines": ["Traceback", "ValueError"],
        }

    def test_it_lists_tasks_that_were_never_launched(self, ask: Any) -> None:
        tasks = ask("/v1/job", a_state()).json()["tasks"]
        assert list(tasks) == ["ps-0", "worker-0", "worker-1", "tensorboard-0"]
        assert tasks["ps-0"]["state"] is None


class TestWhy:
    def test_every_task_that_waits_has_its_reason(self, ask: Any) -> None:
        body = ask("/v1/why", played(registered(), offered(1))).json()
        waiting = [name for name, task in body["tasks"].items() if task["status"] == "PENDING"]
        assert waiting
        assert any("best agent a1 offers" in body["tasks"][name]["why"] for name in waiting)
        assert any(body["tasks"][name]["agents_by_reason"] for name in waiting)

    def test_who_waits_though_the_job_runs_is_told_of(self, ask: Any) -> None:
        ps, worker = a_record("ps-0"), a_record("worker-0")
        report = {"state": "waiting", "waiting_for": [f"{ps.address}:{ps.ports[0]}"]}
        records = [ps, worker, a_record("worker-1")]
        state = a_state(JobPhase.RUNNING, records, reports={worker.task_id: report})
        later = replace(state.subscription, stepped_at=NOW + 40)
        body = ask("/v1/why", replace(state, subscription=later)).json()
        (wait,) = body["waits"]
        assert body["why"].endswith(", but not all get on")
        assert (wait["tasks"], wait["waits_for"], wait["since"]) == (["worker-0"], ["ps-0"], NOW)
        assert "worker-0 waits for ps-0" in wait["told"]
        assert "for 40 s; it starts without after 300 s" in wait["told"]

    def test_offers_in_hand_are_shown(self, ask: Any) -> None:
        body = ask("/v1/why", played(registered(), offered(1))).json()
        assert [offer["agent_id"] for offer in body["offers"]["held"]] == ["a1"]

    def test_offers_that_did_not_help_are_shown_newest_first(self, ask: Any) -> None:
        body = ask("/v1/why", played(registered(), offered(1, 2, 3, 4), offered(5), offered(6)))
        handed_back = body.json()["offers"]["handed_back"]
        assert [v["offer"]["slaveId"]["value"] for v in handed_back] == ["a6", "a5"]
        assert all(verdict["explanation"][0] for verdict in handed_back)

    def test_nothing_waits_once_everything_runs(self, ask: Any) -> None:
        assert ask("/v1/why", running()).json()["tasks"] == {}


class TestStorage:
    def state(self, said: Any) -> Any:
        record = a_record("worker-0")
        report = {"state": "running", "storage": said}
        return a_state(JobPhase.RUNNING, [record], reports={record.task_id: report})

    def test_why_tells_that_a_pod_is_paused(self, ask: Any) -> None:
        paused = replace(running(), controls=Controls(paused_tasks=("worker-1",)))
        told = ask("/v1/why", paused).json()["tasks"]
        assert list(told) == ["worker-1"]
        assert "pod resume worker-1" in told["worker-1"]["why"]

    def test_why_tells_what_is_not_kept_in_s3(self, ask: Any) -> None:
        problem = {"kind": "denied", "retryable": False, "summary": "put: 403", "hint": "allow it"}
        said = {"state": "blocked", "problem": problem, "problem_since": 5.0}
        state = self.state({"state": "idle", "problem": None, "checkpoints": said, "logs": None})
        (found,) = ask("/v1/why", state).json()["storage"]["worker-0"]
        assert (found["part"], found["state"], found["since"]) == ("checkpoints", "blocked", 5.0)
        assert found["why"] == "its checkpoints cannot be kept in S3: put: 403 (allow it)"

    def test_why_tells_what_cannot_be_brought(self, ask: Any) -> None:
        problem = {"kind": "unavailable", "retryable": True, "summary": "get: 503", "hint": ""}
        state = self.state({"state": "retrying", "problem": problem})
        (found,) = ask("/v1/why", state).json()["storage"]["worker-0"]
        assert found["why"] == "the first state waits for S3 and is tried again: get: 503"

    def test_nothing_is_told_of_a_task_for_which_all_is_well(self, ask: Any) -> None:
        for said in (None, "?", {"state": "idle", "checkpoints": {"problem": None}}):
            assert ask("/v1/why", self.state(said)).json()["storage"] == {}

    def test_the_job_shows_what_its_tasks_keep_in_s3(self, ask: Any) -> None:
        state = self.state({"state": "idle", "problem": None})
        task = ask("/v1/job", state).json()["tasks"]["worker-0"]
        assert task["report"]["storage"] == {"state": "idle", "problem": None}
