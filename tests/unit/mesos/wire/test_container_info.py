"""Secrets, limits and shared memory as Mesos' JSON has them."""

import base64
import json
from typing import Any

import pytest

from dcos_tensorflow.core.spec.container_spec import ResourceLimit, TaskSecret
from dcos_tensorflow.core.spec.service_spec import Container, Containerizer
from dcos_tensorflow.mesos.wire.convert import ConversionError
from samples.launched_tasks import a_launch, scalar, task_info

OFFER: dict[str, Any] = {
    "id": {"value": "O1"},
    "agent_id": {"value": "S1"},
    "allocation_info": {"role": "*"},
    "resources": [scalar("cpus", 4.0), scalar("mem", 4096.0)],
}
DOCKER = Container("tf:1", Containerizer.DOCKER)
KEYTAB = TaskSecret("team/keytab", file="krb5.keytab", option="worker.secrets.0")
PASSWORD = TaskSecret("env:DB_PASSWORD", env="PASSWORD", option="service.secrets.0")


def info(**fields: Any) -> dict[str, Any]:
    return task_info(a_launch(**fields), [OFFER])


def test_a_secret_of_the_store_is_a_reference_in_the_environment() -> None:
    found = info(secrets=(TaskSecret("team/password", env="PASSWORD"),))
    assert found["command"]["environment"]["variables"] == [
        {
            "name": "PASSWORD",
            "type": "SECRET",
            "secret": {"type": "REFERENCE", "reference": {"name": "team/password"}},
        }
    ]


def test_a_secret_that_the_scheduler_has_read_is_a_value() -> None:
    found = info(secrets=(PASSWORD,), secret_values={"env:DB_PASSWORD": b"\xffx"})
    (variable,) = found["command"]["environment"]["variables"]
    assert variable["type"] == "SECRET"
    assert variable["secret"] == {
        "type": "VALUE",
        "value": {"data": base64.b64encode(b"\xffx").decode()},
    }


def test_a_secret_file_is_a_volume_of_a_mesos_container() -> None:
    assert info(secrets=(KEYTAB,))["container"] == {
        "type": "MESOS",
        "volumes": [
            {
                "container_path": "krb5.keytab",
                "mode": "RO",
                "source": {
                    "type": "SECRET",
                    "secret": {"type": "REFERENCE", "reference": {"name": "team/keytab"}},
                },
            }
        ],
    }


def test_a_file_that_the_scheduler_has_read_is_the_runners_to_write() -> None:
    secret = TaskSecret("file:/k", file="conf/key", option="worker.secrets.0")
    found = info(secrets=(secret,), secret_values={"file:/k": b"\xffx"})
    (variable,) = found["command"]["environment"]["variables"]
    assert (variable["name"], variable["type"]) == ("TASK_RUNNER_SECRET_FILES", "SECRET")
    text = base64.b64decode(variable["secret"]["value"]["data"])
    assert json.loads(text) == {"conf/key": base64.b64encode(b"\xffx").decode()}


def test_no_volume_holds_a_secret_since_masters_show_volumes() -> None:
    secret = TaskSecret("file:/k", file="key", option="worker.secrets.0")
    found = info(secrets=(secret,), secret_values={"file:/k": b"x"})
    assert "container" not in found


def test_a_secret_file_stands_beside_the_image_and_its_directories() -> None:
    container = Container("tf:1", host_directories=("/data",))
    found = info(secrets=(KEYTAB,), container=container)["container"]
    assert found["mesos"]["image"]["docker"]["name"] == "tf:1"
    assert [volume["container_path"] for volume in found["volumes"]] == ["/data", "krb5.keytab"]


def test_limits_are_named_as_mesos_names_them() -> None:
    limits = (ResourceLimit("RLIMIT_NOFILE", 1024, 4096), ResourceLimit("RLIMIT_CORE"))
    assert info(rlimits=limits)["container"] == {
        "type": "MESOS",
        "rlimit_info": {
            "rlimits": [
                {"type": "RLMT_NOFILE", "soft": 1024, "hard": 4096},
                {"type": "RLMT_CORE"},
            ]
        },
    }


def test_shared_memory_of_its_own_has_a_size() -> None:
    assert info(shm_size=256)["container"] == {
        "type": "MESOS",
        "linux_info": {"ipc_mode": "PRIVATE", "shm_size": 256},
    }


def test_dockers_engine_is_told_by_parameters() -> None:
    limits = (ResourceLimit("RLIMIT_NOFILE", 1024, 4096), ResourceLimit("RLIMIT_CORE"))
    found = info(container=DOCKER, rlimits=limits, shm_size=256)["container"]["docker"]
    assert found["parameters"] == [
        {"key": "ulimit", "value": "nofile=1024:4096"},
        {"key": "ulimit", "value": "core=-1:-1"},
        {"key": "shm-size", "value": "256m"},
    ]


def test_dockers_engine_gets_no_secrets() -> None:
    with pytest.raises(ConversionError, match="secrets need the Mesos containerizer"):
        info(container=DOCKER, secrets=(KEYTAB,))


def test_what_the_scheduler_should_have_read_is_never_asked_of_the_store() -> None:
    with pytest.raises(ConversionError, match=r"service\.secrets\.0: nothing was read"):
        info(secrets=(PASSWORD,))


def test_a_task_without_wishes_has_no_container() -> None:
    assert "container" not in info()
