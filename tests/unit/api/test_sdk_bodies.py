"""The SDK's paths answer with the SDK's bodies and codes."""

import json
from dataclasses import replace
from typing import Any

import pytest

from data_files import DCOS_CLI_RECORDINGS
from dcos_tensorflow.core.kept.configuration_id import configuration_id
from dcos_tensorflow.core.model.job import JobPhase
from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.service_spec import Container, Containerizer, TaskRole
from dcos_tensorflow.core.spec.volume_spec import Reservation, VolumeSpec
from samples.states import (
    FRAMEWORK_ID,
    a_record,
    a_role,
    a_spec,
    a_state,
    changed,
    failed,
    gang,
    offered,
    played,
    registered,
    running,
    with_records,
)


@pytest.mark.parametrize(
    "path",
    [
        "plans/nosuch",
        *(f"pod/{name}/status" for name in ("worker-2", "worker-00", "worker", "chief-0")),
        "pod/worker--1/info",
        "endpoints/chief",
        "state/properties/token-key",
        "configurations/259fd873-ed7f-48b0-9369-43d6f91b9c5a",
        "cluster/worker-9",
    ],
)
def test_what_is_not_there_is_the_sdks_plain_text(ask: Any, path: str) -> None:
    answer = ask(f"/v1/{path}", running())
    assert (answer.status_code, answer.text) == (404, "Element not found")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


def test_a_plan_without_work_is_complete(ask: Any) -> None:
    for name in ("decommission", "update"):
        answer = ask(f"/v1/plans/{name}", running())
        assert (answer.status_code, answer.json()["status"]) == (200, "COMPLETE")


def test_properties_are_listed_in_order(ask: Any) -> None:
    names = ask("/v1/state/properties", running()).json()
    assert names == sorted(names)


class TestPlans:
    def test_the_plans_are_listed(self, ask: Any) -> None:
        assert ask("/v1/plans", running()).json() == ["deploy", "recovery"]

    def test_a_complete_plan_is_200(self, ask: Any) -> None:
        answer = ask("/v1/plans/deploy", running())
        assert (answer.status_code, answer.json()["status"]) == (200, "COMPLETE")

    def test_a_plan_in_progress_is_202(self, ask: Any) -> None:
        answer = ask("/v1/plans/deploy", a_state(JobPhase.STARTING, gang(TaskState.STAGING)))
        assert (answer.status_code, answer.json()["status"]) == (202, "IN_PROGRESS")

    def test_a_plan_with_errors_is_417(self, ask: Any) -> None:
        answer = ask("/v1/plans/deploy", failed())
        assert (answer.status_code, answer.json()["status"]) == (417, "ERROR")
        assert "worker-1 failed" in answer.json()["errors"][0]

    def test_a_step_has_id_name_status_and_message(self, ask: Any) -> None:
        step = ask("/v1/plans/deploy", running()).json()["phases"][0]["steps"][0]
        assert list(step) == ["id", "name", "status", "message"]
        assert (step["name"], step["status"]) == ("ps-0:[node]", "COMPLETE")


class TestPods:
    def test_the_pods_are_listed_before_any_was_launched(self, ask: Any) -> None:
        assert ask("/v1/pod", a_state()).json() == ["ps-0", "worker-0", "worker-1", "tensorboard-0"]

    def test_their_status_is_grouped_by_role(self, ask: Any) -> None:
        body = ask("/v1/pod/status", running()).json()
        assert body["service"] == "tensorflow"
        assert [pod["name"] for pod in body["pods"]] == ["ps", "worker", "tensorboard"]
        assert body["pods"][0]["instances"] == [
            {
                "name": "ps-0",
                "tasks": [
                    {"id": a_record("ps-0").task_id, "name": "ps-0", "status": "RUNNING"},
                ],
            }
        ]

    def test_one_that_was_never_launched_is_pending(self, ask: Any) -> None:
        body = ask("/v1/pod/ps-0/status", a_state()).json()
        assert body == {
            "name": "ps-0",
            "tasks": [{"id": "", "name": "ps-0", "status": "PENDING"}],
        }

    def test_info_is_taskinfo_and_taskstatus(self, ask: Any) -> None:
        record = a_record("ps-0", TaskState.FAILED, reason="REASON_X", message="exit 1")
        (pod,) = ask("/v1/pod/ps-0/info", a_state(JobPhase.STOPPING, [record])).json()
        assert pod["info"]["taskId"] == {"value": record.task_id}
        assert {"name": "cpus", "type": "SCALAR", "scalar": {"value": 1.0}, "role": "*"} in pod[
            "info"
        ]["resources"]
        assert pod["status"]["state"] == "TASK_FAILED"
        assert pod["status"]["message"] == "exit 1"

    def test_info_names_the_container_image(self, ask: Any) -> None:
        container = Container("tf:2", Containerizer.DOCKER)
        spec = a_spec(roles=(a_role(TaskRole.WORKER, 1, container=container),))
        (pod,) = ask(
            "/v1/pod/worker-0/info", a_state(JobPhase.RUNNING, [a_record("worker-0")], spec=spec)
        ).json()
        assert pod["info"]["container"] == {"type": "DOCKER", "docker": {"image": "tf:2"}}


class TestEndpoints:
    def test_the_roles_that_listen_are_listed(self, ask: Any) -> None:
        roles = tuple(a_role(role, 1) for role in TaskRole)
        names = ask("/v1/endpoints", a_state(spec=a_spec(roles=roles))).json()
        served = ["data-dispatcher", "data-worker"]
        assert names == ["ps", "chief", "worker", "gpu-worker", "tensorboard", *served]

    def test_one_has_addresses_and_dns_names(self, ask: Any) -> None:
        state = running()
        state = replace(state, spec=a_spec(name="/ml/tensorflow"))
        assert ask("/v1/endpoints/worker", state).json() == {
            "address": ["127.0.0.11:31100", "127.0.0.11:31110"],
            "dns": [
                "worker-0.mltensorflow.autoip.dcos.thisdcos.directory:31100",
                "worker-1.mltensorflow.autoip.dcos.thisdcos.directory:31110",
            ],
        }

    def test_an_ipv6_address_is_bracketed(self, ask: Any) -> None:
        state = a_state(JobPhase.STARTING, [a_record("ps-0", address="fd01::7")])
        assert ask("/v1/endpoints/ps", state).json()["address"] == ["[fd01::7]:31300"]

    def test_an_ended_task_is_no_endpoint(self, ask: Any) -> None:
        state = a_state(JobPhase.DONE, gang(TaskState.FINISHED))
        assert ask("/v1/endpoints/worker", state).json() == {"address": [], "dns": []}


class TestStateAndConfigurations:
    def test_the_framework_id_is_in_a_list_of_one(self, ask: Any) -> None:
        assert ask("/v1/state/frameworkId", running()).json() == [FRAMEWORK_ID]

    def test_there_is_no_framework_id_before_the_first_registration(self, ask: Any) -> None:
        answer = ask("/v1/state/frameworkId", a_state(framework_id=""))
        assert (answer.status_code, answer.text) == (404, "Element not found")

    def test_every_property_that_is_listed_can_be_read(self, ask: Any) -> None:
        names = ask("/v1/state/properties", running()).json()
        assert {"suppressed", "deployment-completed", "job"} <= set(names)
        assert [ask(f"/v1/state/properties/{n}", running()).status_code for n in names] == [
            200
        ] * len(names)

    def test_a_property_is_its_raw_value(self, ask: Any) -> None:
        assert ask("/v1/state/properties/deployment-completed", running()).json() is True

    @pytest.mark.parametrize("path", ["/v1/configurations", "/v1/configurations/targetId"])
    def test_the_target_is_the_only_configuration(self, ask: Any, path: str) -> None:
        assert ask(path, running()).json() == [configuration_id(running().spec)]

    def test_the_target_holds_outline_options_and_spec(self, ask: Any, source: Any) -> None:
        source.options = {"worker": {"count": 2}}
        body = ask("/v1/configurations/target", running()).json()
        assert body["name"] == "tensorflow"
        assert [(pod["type"], pod["count"]) for pod in body["pod-specs"]][:2] == [
            ("ps", 1),
            ("worker", 2),
        ]
        assert body["options"] == {"worker": {"count": 2}}
        assert body["spec"]["job"]["name"] == "mnist"

    def test_the_target_is_found_by_its_id(self, ask: Any) -> None:
        by_id = ask(f"/v1/configurations/{configuration_id(running().spec)}", running())
        assert by_id.json() == ask("/v1/configurations/target", running()).json()

    def test_an_id_that_is_no_uuid_is_a_bad_request(self, ask: Any) -> None:
        answer = ask("/v1/configurations/7", running())
        assert answer.status_code == 400
        assert "UUID" in answer.json()["message"]


class TestDebug:
    def with_verdicts(self) -> ServiceState:
        return played(registered(), offered(1, 2, 3, 4, 5))

    @pytest.mark.parametrize("path", ["/v2/debug/offers", "/v1/debug/offers"])
    def test_offers_tell_what_became_of_them(self, ask: Any, path: str) -> None:
        body = ask(path, self.with_verdicts()).json()
        assert body["acceptedCount"] == 4
        assert body["rejectedCount"] == 1
        assert sum(body["failureReasons"].values()) == 1
        assert len(body["rejectedAgents"]) == 1
        assert {offer["outcome"] for offer in body["offers"]} == {"pass", "fail"}

    def test_a_verdict_has_time_pod_outcome_explanation_and_offer(self, ask: Any) -> None:
        verdict = ask("/v2/debug/offers", self.with_verdicts()).json()["offers"][0]
        assert list(verdict) == [
            "timestamp",
            "pod-instance-name",
            "outcome",
            "explanation",
            "offer",
        ]
        assert verdict["timestamp"] == 1_800_000_001_000
        assert isinstance(verdict["explanation"], list)

    def test_plans_are_outlined_with_counts(self, ask: Any) -> None:
        body = ask("/v1/debug/plans", running()).json()
        assert (body["totalSteps"], body["completedSteps"]) == (4, 4)
        assert body["activePlans"] == []

    def test_plans_can_be_narrowed_to_a_step(self, ask: Any) -> None:
        path = "/v1/debug/plans?plan=deploy&phase=worker&step=worker-1:[node]"
        (plan,) = ask(path, running()).json()["plans"]
        assert [phase["steps"] for phase in plan["phases"]] == [
            [{"name": "worker-1:[node]", "status": "COMPLETE"}]
        ]

    @pytest.mark.parametrize("path", ["/v1/debug/plans", "/v1/debug/taskStatuses"])
    @pytest.mark.parametrize(
        "query",
        [
            "plan=x",
            "plan=deploy&phase=x",
            "plan=deploy&phase=ps&step=x",
            "phase=ps",
            "plan=deploy&step=ps-0:[node]",
        ],
    )
    def test_what_does_not_exist_is_named(self, ask: Any, path: str, query: str) -> None:
        assert list(ask(f"{path}?{query}", running()).json()) == ["invalid-input"]

    def test_task_statuses_are_by_plan_phase_and_step(self, ask: Any) -> None:
        body = ask("/v1/debug/taskStatuses", running()).json()
        assert body["deploy"]["ps"]["ps-0:[node]"] == [
            {"name": "ps-0", "taskId": a_record("ps-0").task_id, "taskState": "TASK_RUNNING"}
        ]

    def test_task_statuses_of_what_was_never_launched_are_null(self, ask: Any) -> None:
        body = ask("/v1/debug/taskStatuses", a_state()).json()
        assert body["deploy"]["ps"]["ps-0:[node]"][0]["taskState"] is None

    def test_what_is_reserved_is_listed_by_host(self, ask: Any) -> None:
        assert ask("/v1/debug/reservations", with_volume()).json() == {"node1": ["r1"]}

    def test_a_pods_resources_have_its_volume(self, ask: Any) -> None:
        info = ask("/v1/pod/ps-0/info", with_volume()).json()[0]["info"]
        (disk,) = [r for r in info["resources"] if "disk" in r]
        assert disk["scalar"] == {"value": 500.0}
        assert disk["disk"]["persistence"] == {"id": "ps-0.r1"}


def with_volume() -> ServiceState:
    """Return a running service whose parameter server has a persistent volume."""
    state = running()
    record = replace(state.tasks["ps-0"], resource_id="r1")
    roles = tuple(
        replace(r, volume=VolumeSpec(500.0, "tf-volume")) if r.role is TaskRole.PS else r
        for r in state.spec.roles
    )
    reservation = Reservation("r1", "f", "ps-0", record.task_id, "a1", "node1", "svc-role", True)
    return replace(
        with_records(state, record),
        spec=replace(state.spec, roles=roles),
        reservations={"r1": reservation},
    )


def recorded() -> list[tuple[str, dict[str, Any]]]:
    """Return (recording, exchange) of what real clients asked a scheduler's GET paths."""
    found = []
    for file in sorted(DCOS_CLI_RECORDINGS.glob("tensorflow-*.jsonl")):
        for line in file.read_text().splitlines():
            exchange = json.loads(line)
            request, response = exchange.get("request"), exchange.get("response")
            if (
                request
                and request["method"] == "GET"
                and request["path"].startswith("/service/tensorflow/")
                and response["status"] in (200, 202)
            ):
                found.append((file.stem, exchange))
    return found


def shape(value: Any) -> Any:
    """Return the form of a body: types, and the keys of objects; lists by their first item."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__


def includes(ours: Any, theirs: Any) -> bool:
    """Say whether every key that the recorded body has is there, with the same type."""
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and all(
            key in ours and includes(ours[key], item) for key, item in theirs.items()
        )
    if isinstance(theirs, list):
        return isinstance(ours, list) and (not theirs or not ours or includes(ours[0], theirs[0]))
    return ours == theirs


class TestRecordedClients:
    def test_what_the_clients_ask_has_the_recorded_shape(self, ask: Any) -> None:
        in_progress = a_state(JobPhase.STARTING, gang(TaskState.STAGING))
        differing = []
        for name, exchange in recorded():
            path = exchange["request"]["path"].removeprefix("/service/tensorflow")
            # The recording server's options are not ours to have.
            body = exchange["response"]["body"]
            if isinstance(body, dict):
                body.pop("options", None)
            state = in_progress if exchange["response"]["status"] == 202 else running()
            if path.endswith("/suppressed"):
                state = changed(state, suppressed=True)
            answer = ask(path, state)
            status = exchange["response"]["status"]
            same = answer.status_code == status and includes(shape(answer.json()), shape(body))
            if not same:
                differing.append((name, path, answer.status_code, answer.text[:200]))

        assert recorded()
        assert differing == []
