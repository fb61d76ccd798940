"""What is installed for tasks, and data of their machines, as options say it."""

from typing import Any

import pytest

from dcos_tensorflow.core.spec.service_spec import LinkedData, PackagesSpec, TaskRole
from dcos_tensorflow.options import OptionsError, effective, load, service_spec

JOB = {"job_name": "train"}


def packages(service: dict[str, Any], **sections: Any) -> dict[TaskRole, PackagesSpec]:
    spec = service_spec(load({"service": {**JOB, **service}, **sections}))
    return {role.role: role.packages for role in spec.roles}


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        ("requirements.txt", ("-r requirements.txt",)),
        (["pandas", " scipy>=1 "], ("pandas", "scipy>=1")),
        ('["pandas"]', ("pandas",)),
        ("", ()),
        (
            ["-r requirements.txt", "--find-links=more"],
            ("-r requirements.txt", "--find-links=more"),
        ),
        (["zoo @ git+ssh://git@host/zoo@v1"], ("zoo @ git+ssh://git@host/zoo@v1",)),
    ],
)
def test_requirements_are_lines_or_the_file_that_has_them(given: Any, lines: Any) -> None:
    options = load({"service": {**JOB, "requirements": given}})
    assert packages({"requirements": given})[TaskRole.WORKER].requirements == lines
    assert load(effective(options)).service.requirements == list(lines)


@pytest.mark.parametrize(
    "line",
    [
        "--index-url=https://me:s3cret@index.example/simple",
        "zoo @ https://s3cret@host/zoo.whl",
        "zoo @ git+ssh://me:s3cret@host/zoo",
    ],
)
def test_a_password_or_a_token_is_refused_and_not_shown(line: str) -> None:
    with pytest.raises(OptionsError, match="holds a password or a token") as refused:
        load({"service": {**JOB, "requirements": [line]}})
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("named", [{}, {"python": "/opt/python"}])
def test_an_image_and_a_python_that_are_named_have_their_tensorflow(named: dict[str, str]) -> None:
    found = packages({"tensorflow_version": "2.15.1", **named})
    assert found[TaskRole.WORKER] == PackagesSpec()


def test_environments_are_shared_where_data_is() -> None:
    found = packages({"requirements": ["a"]}, data_cache={"directory": "/cache"})
    assert found[TaskRole.WORKER].directory == "/cache"


def test_a_container_sees_where_environments_are_shared() -> None:
    sections = {"data_cache": {"directory": "/cache"}, "parameter_server": {"count": 1}}
    service = {**JOB, "requirements": ["a"], "tf_image": "me/mine"}
    spec = service_spec(load({"service": service, "worker": {}, **sections}))
    assert {r.container and r.container.host_directories for r in spec.roles} == {("/cache",)}


def test_data_of_a_machine_needs_no_s3() -> None:
    data = [
        {"uri": "./images", "path": "images"},
        {"uri": "file:///mnt/my%20labels", "path": "labels"},
        {"uri": "~/more", "path": "more"},
    ]
    spec = service_spec(load({"service": JOB, "data": data}))
    assert spec.job.links == (
        LinkedData("./images", "images"),
        LinkedData("/mnt/my labels", "labels"),
        LinkedData("~/more", "more"),
    )
    assert not spec.storage.is_used
