"""What is asked of the service over HTTP becomes an event, with the SDK's bodies and codes."""

import json
from dataclasses import replace
from typing import Any

import pytest

from data_files import DCOS_CLI_RECORDINGS
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model.controls import Controls
from dcos_tensorflow.core.model.events import (
    ConfigurationChanged,
    PlanCommand,
    PlanVerb,
    PodCommand,
    PodVerb,
    UninstallRequested,
)
from dcos_tensorflow.core.model.job import JobPhase, Outcome, Verdict
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.plans.plan import plans
from dcos_tensorflow.core.spec.service_spec import TaskRole
from dcos_tensorflow.options import load, service_spec
from samples.states import a_record, a_role, a_spec, a_state, gang, running, with_job, with_records

PLACING = a_state()


@pytest.fixture
def order(source: Any, client: Any) -> Any:
    """Return what POST of a path answers for a state."""

    def post(path: str, state: Any, body: Any = None) -> Any:
        source.current = state
        content = json.dumps(body) if body is not None else None
        return client.post(path, content=content)

    return post


class TestPlanVerbs:
    @pytest.mark.parametrize(
        ("word", "verb"),
        [
            ("start", PlanVerb.START),
            ("stop", PlanVerb.STOP),
            ("interrupt", PlanVerb.PAUSE),
            ("restart", PlanVerb.FORCE_RESTART),
        ],
    )
    @pytest.mark.parametrize("path", ["/v1/plans/deploy", "/v1/plan"])
    def test_one_becomes_an_event(
        self, order: Any, source: Any, path: str, word: str, verb: PlanVerb
    ) -> None:
        answer = order(f"{path}/{word}", PLACING)
        assert (answer.status_code, answer.json()["message"]) == (200, f"Received cmd: {word}")
        assert source.events == [PlanCommand("deploy", verb)]

    def test_what_was_paused_continues(self, order: Any, source: Any) -> None:
        paused = replace(PLACING, controls=Controls(paused=("deploy/worker",)))
        assert order("/v1/plans/deploy/continue?phase=worker", paused).status_code == 200
        assert source.events == [PlanCommand("deploy", PlanVerb.RESUME, "worker")]

    def test_the_answer_says_why(self, order: Any) -> None:
        answer = order("/v1/plans/deploy/interrupt", PLACING)
        assert answer.json()["why"] == 'plan "deploy" is paused'

    def test_what_is_so_already_is_208_and_no_event(self, order: Any, source: Any) -> None:
        paused = replace(PLACING, controls=Controls(paused=("deploy",)))
        answer = order("/v1/plans/deploy/interrupt", paused)
        assert (answer.status_code, source.events) == (208, [])
        assert "already" in answer.json()["message"]

    def test_a_phase_and_a_step_may_be_named_by_id(self, order: Any, source: Any) -> None:
        phase = next(p for p in plans(PLACING.view())["deploy"].phases if p.name == "tensorboard")
        query = f"phase={phase.id}&step={phase.steps[0].id}"
        assert order(f"/v1/plans/deploy/forceComplete?{query}", PLACING).status_code == 200
        assert source.events == [
            PlanCommand("deploy", PlanVerb.FORCE_COMPLETE, "tensorboard", "tensorboard-0:[node]")
        ]

    @pytest.mark.parametrize(
        "path",
        [
            "/v1/plans/nosuch/interrupt",
            "/v1/plans/deploy/interrupt?phase=nosuch",
            "/v1/plans/deploy/restart?phase=worker&step=nosuch",
        ],
    )
    def test_what_does_not_exist_is_the_sdks_plain_text(
        self, order: Any, source: Any, path: str
    ) -> None:
        answer = order(path, PLACING)
        assert (answer.status_code, answer.text) == (404, "Element not found")
        assert source.events == []

    def test_a_step_without_its_phase_is_a_bad_request(self, order: Any) -> None:
        assert order("/v1/plans/deploy/restart?step=worker-0:[node]", PLACING).status_code == 400

    def test_what_cannot_be_done_is_409_with_the_reason(self, order: Any, source: Any) -> None:
        path = "/v1/plans/deploy/forceComplete?phase=worker&step=worker-0:[node]"
        answer = order(path, PLACING)
        assert (answer.status_code, source.events) == (409, [])
        assert "decides about the job's end" in answer.json()["message"]

    def test_parameters_that_would_reach_no_task_are_named(self, order: Any) -> None:
        answer = order("/v1/plans/deploy/start", PLACING, {"A": "B"})
        assert answer.status_code == 400
        assert "A would reach no task" in answer.json()["message"]

    @pytest.mark.parametrize("body", [[], "x", 7])
    def test_a_body_of_another_kind_is_a_bad_request(self, order: Any, body: Any) -> None:
        assert order("/v1/plans/deploy/start", PLACING, body).status_code == 400

    def test_the_empty_parameters_of_the_sdks_client_will_do(self, order: Any) -> None:
        assert order("/v1/plans/deploy/start", PLACING, {}).status_code == 200

    def test_the_deprecated_plan_is_deploy(self, ask: Any) -> None:
        assert ask("/v1/plan", running()).json() == ask("/v1/plans/deploy", running()).json()


class TestPodVerbs:
    @pytest.mark.parametrize("verb", list(PodVerb))
    def test_one_becomes_an_event(self, order: Any, source: Any, verb: PodVerb) -> None:
        state = replace(running(), controls=Controls(paused_tasks=("worker-1",)))
        name = "worker-1" if verb is PodVerb.RESUME else "worker-0"
        answer = order(f"/v1/pod/{name}/{verb}", state)
        assert (answer.status_code, answer.json()) == (200, {"pod": name, "tasks": [name]})
        assert source.events == [PodCommand(verb, (name,))]

    def test_an_attempt_that_was_given_up_is_let_go_of_by_its_id(
        self, order: Any, source: Any
    ) -> None:
        old = "tensorflow__worker-1__of-another-life"
        state = replace(running(), abandoned={old: "a9"})
        answer = order(f"/v1/pod/{old}/replace", state)
        assert (answer.status_code, answer.json()) == (200, {"pod": old, "tasks": [old]})
        assert source.events == [PodCommand(PodVerb.REPLACE, (old,))]

    @pytest.mark.parametrize("tasks", [["node"], ["worker-0"], []])
    def test_the_pods_one_task_may_be_named(self, order: Any, tasks: list[str]) -> None:
        assert order("/v1/pod/worker-0/pause", running(), tasks).status_code == 200

    def test_other_tasks_of_a_pod_are_404_and_listed(self, order: Any, source: Any) -> None:
        answer = order("/v1/pod/worker-0/pause", running(), ["node", "worker-1"])
        assert (answer.status_code, answer.json()["tasks"]) == (404, ["worker-1"])
        assert source.events == []

    def test_a_body_that_is_no_list_is_a_bad_request(self, order: Any) -> None:
        assert order("/v1/pod/worker-0/pause", running(), {"a": 1}).status_code == 400

    @pytest.mark.parametrize("verb", list(PodVerb))
    def test_an_unknown_one_is_the_sdks_plain_text(self, order: Any, verb: PodVerb) -> None:
        answer = order(f"/v1/pod/worker-9/{verb}", running())
        assert (answer.status_code, answer.text) == (404, "Element not found")

    def test_one_that_is_paused_already_is_received_and_no_event(
        self, order: Any, source: Any
    ) -> None:
        state = replace(running(), controls=Controls(paused_tasks=("worker-1",)))
        assert order("/v1/pod/worker-1/pause", state).status_code == 200
        assert source.events == []

    def test_one_that_has_finished_is_409(self, order: Any) -> None:
        records = [*gang()[:2], a_record("worker-1", TaskState.FINISHED)]
        state = a_state(JobPhase.RUNNING, records, job={"deployed": True})
        answer = order("/v1/pod/worker-1/restart", state)
        assert answer.status_code == 409
        assert "has finished" in answer.json()["message"]

    def test_a_paused_one_is_pausing_until_its_process_is_stopped(self, ask: Any) -> None:
        state = replace(running(), controls=Controls(paused_tasks=("worker-1",)))
        pod = ask("/v1/pod/worker-1/status", state).json()
        assert pod["tasks"][0]["status"] == "PAUSING"

    def test_a_paused_one_is_paused_when_its_runner_says_so(self, ask: Any) -> None:
        record = a_record("worker-1", start=2, held=True)
        report = {"start": 2, "run": False, "state": "held"}
        state = a_state(
            JobPhase.RUNNING,
            [*gang()[:2], record],
            job={"deployed": True},
            controls=Controls(paused_tasks=("worker-1",)),
            reports={record.task_id: report},
        )
        pod = ask("/v1/pod/worker-1/status", state).json()
        assert pod["tasks"][0]["status"] == "PAUSED"

    def test_one_that_is_being_removed_is_listed_last(self, ask: Any) -> None:
        state = a_state(JobPhase.RUNNING, [*gang(), a_record("worker-2")], job={"deployed": True})
        assert ask("/v1/pod", state).json()[-1] == "worker-2"
        assert ask("/v1/pod/worker-2/status", state).json()["name"] == "worker-2"


OPTIONS = {
    "service": {"name": "tensorflow", "job_url": "http://host/job.zip", "job_name": "mnist"},
    "worker": {"count": 2},
    "parameter_server": {"count": 1},
}
SPEC = service_spec(load(OPTIONS))


def changed(**worker: Any) -> dict[str, Any]:
    return {**OPTIONS, "worker": {"count": 2, **worker}}


SUCCEEDED = Verdict(Outcome.SUCCEEDED, 0, "the job has succeeded")


class TestUpdate:
    def running(self) -> Any:
        return replace(running(), spec=SPEC)

    def test_other_options_become_an_event(self, order: Any, source: Any) -> None:
        answer = order("/v1/job/update", self.running(), changed(mem=8192))
        target = service_spec(load(changed(mem=8192)))
        assert answer.status_code == 200
        assert answer.json()["id"] == configuration_id(target)
        assert source.events == [ConfigurationChanged(target)]

    def test_who_asks_for_what_is_in_force_asks_no_more_for_what_was_refused(
        self, order: Any, source: Any
    ) -> None:
        state = self.running()
        told = replace(state.told, refused_configuration="worker.count: is too small")
        answer = order("/v1/job/update", replace(state, told=told), OPTIONS)
        assert answer.status_code == 208
        assert source.events == [ConfigurationChanged(SPEC)]

    def test_the_answer_names_whose_containers_are_replaced(self, order: Any) -> None:
        state = self.running()
        for record in state.tasks.values():
            state = with_records(state, replace(record, fingerprint="of-before"))
        answer = order("/v1/job/update", state, changed(mem=8192))
        assert answer.json()["restarts"][-2:] == ["worker-0", "worker-1"]

    def test_a_part_of_the_options_is_laid_over_those_in_force(
        self, order: Any, source: Any
    ) -> None:
        source.options = changed(mem=8192)
        answer = order("/v1/job/update?merge=true", self.running(), {"worker": {"count": 3}})
        assert answer.status_code == 200
        (event,) = source.events
        whole = changed(mem=8192)
        whole["worker"]["count"] = 3
        assert event == ConfigurationChanged(service_spec(load(whole)))

    def test_nothing_is_laid_over_options_that_are_not_known(self, order: Any, source: Any) -> None:
        source.options = {}
        answer = order("/v1/job/update?merge=true", self.running(), {"worker": {"count": 3}})
        assert (answer.status_code, source.events) == (409, [])

    def test_merge_is_true_or_false(self, order: Any) -> None:
        answer = order("/v1/job/update?merge=yes", self.running(), OPTIONS)
        assert answer.status_code == 400

    @pytest.mark.parametrize(
        ("options", "status"),
        [
            (changed(mem=8192), 200),
            (OPTIONS, 208),
            (changed(memm=1), 400),
            ({**OPTIONS, "service": {**OPTIONS["service"], "name": "other"}}, 417),
        ],
    )
    def test_a_check_answers_as_the_update_would_and_changes_nothing(
        self, order: Any, source: Any, options: Any, status: int
    ) -> None:
        checked = order("/v1/job/check", self.running(), options)
        assert (checked.status_code, source.events) == (status, [])
        updated = order("/v1/job/update", self.running(), options).json()
        assert {**checked.json(), "message": ""} == {**updated, "message": ""}

    @pytest.mark.parametrize(("query", "status"), [("", 417), ("?restart=true", 200)])
    def test_a_job_that_is_done_takes_other_options_by_a_scheduler_that_begins_the_next_run(
        self, order: Any, source: Any, query: str, status: int
    ) -> None:
        done = with_job(self.running(), phase=JobPhase.DONE, verdict=SUCCEEDED)
        answer = order(f"/v1/job/check{query}", done, changed(mem=8192))
        assert (answer.status_code, source.events) == (status, [])

    def test_a_scheduler_that_begins_the_next_run_goes_by_the_name_of_its_service(
        self, order: Any
    ) -> None:
        done = with_job(self.running(), phase=JobPhase.DONE, verdict=SUCCEEDED)
        other = {**OPTIONS, "service": {**OPTIONS["service"], "name": "other"}}
        answer = order("/v1/job/check?restart=true", done, other)
        assert "the name of a service cannot be changed" in answer.json()["message"]

    def test_the_options_of_the_target_are_208(self, order: Any, source: Any) -> None:
        assert order("/v1/job/update", self.running(), OPTIONS).status_code == 208
        assert source.events == []

    def test_a_wrong_option_is_named_with_its_path(self, order: Any, source: Any) -> None:
        answer = order("/v1/job/update", self.running(), changed(memm=1))
        assert answer.status_code == 400
        assert answer.json()["problems"][0]["path"] == "worker.memm"
        assert source.events == []

    def test_what_a_running_service_cannot_become_is_417(self, order: Any, source: Any) -> None:
        renamed = {**OPTIONS, "service": {**OPTIONS["service"], "name": "other"}}
        answer = order("/v1/job/update", self.running(), renamed)
        assert (answer.status_code, source.events) == (417, [])
        assert "the name of a service cannot be changed" in answer.json()["message"]

    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b"7"])
    def test_what_is_no_object_is_a_bad_request(
        self, client: Any, source: Any, content: bytes
    ) -> None:
        source.current = self.running()
        assert client.post("/v1/job/update", content=content).status_code == 400

    def test_larger_options_than_can_be_kept_are_a_bad_request(
        self, client: Any, source: Any
    ) -> None:
        source.current = self.running()
        assert client.post("/v1/job/update", content=b" " * 1_000_001).status_code == 400


class TestConfigurations:
    OLDER = a_spec(roles=(a_role(TaskRole.WORKER, 1), a_role(TaskRole.PS, 1)))

    @pytest.fixture(autouse=True)
    def _stored(self, source: Any) -> None:
        source.stored = {configuration_id(spec): spec for spec in (self.OLDER, a_spec())}

    def test_all_are_listed_the_target_first(self, ask: Any) -> None:
        assert ask("/v1/configurations", running()).json() == [
            configuration_id(a_spec()),
            configuration_id(self.OLDER),
        ]

    def test_one_of_before_is_shown_without_options(self, ask: Any) -> None:
        body = ask(f"/v1/configurations/{configuration_id(self.OLDER)}", running()).json()
        assert [(pod["type"], pod["count"]) for pod in body["pod-specs"]] == [
            ("ps", 1),
            ("worker", 1),
        ]
        assert "options" not in body

    def test_the_only_other_one_is_gone_back_to(self, order: Any, source: Any) -> None:
        answer = order("/v1/job/rollback", running())
        assert answer.json()["message"] == "Received cmd: rollback"
        assert source.events == [ConfigurationChanged(self.OLDER)]

    def test_one_is_gone_back_to_by_its_id(self, order: Any, source: Any) -> None:
        body = {"id": configuration_id(self.OLDER).upper()}
        assert order("/v1/job/rollback", running(), body).status_code == 200
        assert source.events == [ConfigurationChanged(self.OLDER)]

    def test_the_target_is_208(self, order: Any) -> None:
        body = {"id": configuration_id(a_spec())}
        assert order("/v1/job/rollback", running(), body).status_code == 208

    def test_one_that_is_not_stored_is_the_sdks_plain_text(self, order: Any) -> None:
        body = {"id": "259fd873-ed7f-48b0-9369-43d6f91b9c5a"}
        answer = order("/v1/job/rollback", running(), body)
        assert (answer.status_code, answer.text) == (404, "Element not found")

    @pytest.mark.parametrize("body", [{"id": "x"}, {"id": 7}, {"uuid": "x"}, []])
    def test_nonsense_is_a_bad_request(self, order: Any, body: Any) -> None:
        assert order("/v1/job/rollback", running(), body).status_code == 400

    def test_of_several_one_must_be_named(self, order: Any, source: Any) -> None:
        third = a_spec(roles=(a_role(TaskRole.WORKER, 5),))
        source.stored[configuration_id(third)] = third
        answer = order("/v1/job/rollback", running())
        assert answer.status_code == 400
        assert configuration_id(third) in answer.json()["message"]


class TestUninstall:
    def test_it_becomes_an_event(self, order: Any, source: Any) -> None:
        answer = order("/v1/uninstall", running(), {"why": "done with it"})
        assert (answer.status_code, answer.json()["message"]) == (200, "Received cmd: uninstall")
        assert source.events == [UninstallRequested("done with it")]

    def test_a_second_one_is_208(self, order: Any, source: Any) -> None:
        state = a_state(JobPhase.ENDING, gang(), job={"uninstalling": True})
        assert order("/v1/uninstall", state).status_code == 208
        assert source.events == []

    def test_a_job_that_is_done_can_still_be_uninstalled(self, order: Any, source: Any) -> None:
        assert order("/v1/uninstall", a_state(JobPhase.DONE)).status_code == 200

    @pytest.mark.parametrize(
        ("phase", "erased", "status"),
        [(JobPhase.ENDING, False, 202), (JobPhase.DONE, False, 202), (JobPhase.DONE, True, 200)],
    )
    def test_the_plan_is_200_exactly_when_nothing_is_left_to_do(
        self, ask: Any, phase: JobPhase, erased: bool, status: int
    ) -> None:
        state = a_state(phase, gang(TaskState.KILLED), job={"uninstalling": True}, erased=erased)
        assert ask("/v1/plans/deploy", state).status_code == status

    def test_the_framework_id_is_gone_when_the_framework_is(self, ask: Any) -> None:
        state = a_state(JobPhase.DONE, job={"uninstalling": True}, framework_id="", erased=True)
        assert ask("/v1/state/frameworkId", state).status_code == 404

    def test_marathon_takes_what_is_left_for_healthy(self, ask: Any) -> None:
        state = a_state(JobPhase.DONE, job={"uninstalling": True}, framework_id="", erased=True)
        assert 200 <= ask("/v1/health", state).status_code < 400


class TestAccess:
    @pytest.mark.parametrize(
        "path",
        ["/v1/job/stop", "/v1/plans/deploy/stop", "/v1/pod/worker-0/restart", "/v1/uninstall"],
    )
    def test_a_page_of_another_site_orders_nothing(
        self, source: Any, client: Any, path: str
    ) -> None:
        source.current = running()
        assert client.post(path, headers={"sec-fetch-site": "cross-site"}).status_code == 403
        assert source.events == []

    def test_there_is_no_cache_to_refresh(self, client: Any, source: Any) -> None:
        source.current = running()
        assert client.put("/v1/state/refresh").status_code == 409


@pytest.mark.parametrize(
    ("recording", "state"),
    [
        ("tensorflow-plan-pause", PLACING),
        ("tensorflow-plan-resume", replace(PLACING, controls=Controls(paused=("deploy",)))),
        ("tensorflow-plan-pause-again", replace(PLACING, controls=Controls(paused=("deploy",)))),
        ("tensorflow-plan-stop", running()),
        ("tensorflow-pod-restart", running()),
        ("tensorflow-pod-replace", running()),
        ("tensorflow-pod-restart-unknown", running()),
        ("tensorflow-debug-pod-pause", running()),
        ("tensorflow-debug-pod-resume-task", running()),
        ("tensorflow-update-pause", PLACING),
    ],
)
def test_what_the_sdks_client_orders_is_answered_as_it_expects(
    order: Any, recording: str, state: Any
) -> None:
    for line in (DCOS_CLI_RECORDINGS / f"{recording}.jsonl").read_text().splitlines():
        exchange = json.loads(line)
        request = exchange.get("request")
        if not request or not request["path"].startswith("/service/tensorflow/v1"):
            continue
        path = request["path"].removeprefix("/service/tensorflow")
        answer = order(path, state, request.get("body"))
        expected = exchange["response"]

        assert answer.status_code == expected["status"]
        if isinstance(expected["body"], dict):
            assert set(expected["body"]) <= set(answer.json())
