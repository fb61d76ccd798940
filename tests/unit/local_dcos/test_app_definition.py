"""What cannot run on one machine is refused by name and path."""

from typing import Any

import pytest

from local_dcos.errors import InvalidApp
from local_dcos.marathon.app_definition import app_of, normalised

APP: dict[str, Any] = {"id": "group/tf", "cmd": "sleep 1"}


def paths_of(**definition: Any) -> list[str]:
    with pytest.raises(InvalidApp) as caught:
        normalised({**APP, **definition})
    return [path for path, _ in caught.value.details]


@pytest.mark.parametrize(
    ("definition", "path"),
    [
        ({"id": "Upper"}, "/id"),
        ({"id": ""}, "/id"),
        ({"cmd": None}, "/cmd"),
        ({"args": ["x"]}, "/cmd"),
        ({"container": {"type": "DOCKER", "docker": {"image": "x"}}}, "/container/type"),
        ({"container": {"type": "MESOS", "docker": {"image": "x"}}}, "/container/docker"),
        ({"networks": [{"mode": "container", "name": "dcos"}]}, "/networks/0/mode"),
        ({"constraints": [["hostname", "UNIQUE"]]}, "/constraints"),
        ({"env": {"A": 1}}, "/env/A"),
        ({"env": {"A": {"secret": "s"}}}, "/env/A"),
        ({"labels": {"A": 1}}, "/labels/A"),
        ({"residency": {}}, "/residency"),
        ({"portDefinitions": [{"port": 70000}]}, "/portDefinitions/0/port"),
        ({"healthChecks": [{"protocol": "GRPC"}]}, "/healthChecks/0/protocol"),
        ({"healthChecks": [{"portIndex": 3}]}, "/healthChecks/0/portIndex"),
        ({"fetch": [{}]}, "/fetch/0/uri"),
        ({"instances": -1}, "/instances"),
        ({"instances": 2, "labels": {"MARATHON_SINGLE_INSTANCE_APP": "true"}}, "/instances"),
    ],
)
def test_what_cannot_run_is_named(definition: dict[str, Any], path: str) -> None:
    assert path in paths_of(**definition)


def test_every_reason_is_given_at_once() -> None:
    assert set(paths_of(env={"A": 1}, instances="x")) == {"/env/A", "/instances"}


def test_an_id_becomes_absolute() -> None:
    assert normalised(APP)["id"] == "/group/tf"


def test_a_definition_that_marathon_showed_can_be_sent_back() -> None:
    shown = {**normalised(APP), "version": "v", "tasks": [], "tasksRunning": 1, "deployments": []}
    assert normalised(shown) == normalised(APP)


def test_a_single_instance_app_is_stopped_before_it_is_started() -> None:
    app = app_of(normalised({**APP, "labels": {"MARATHON_SINGLE_INSTANCE_APP": "true"}}))
    assert (app.minimum_health, app.maximum_over) == (0, 0)


def test_secrets_are_known_by_their_source() -> None:
    definition = {**APP, "env": {"A": {"secret": "s"}}, "secrets": {"s": {"source": "tf/key"}}}
    assert app_of(normalised(definition)).secret_env == {"A": "tf/key"}
