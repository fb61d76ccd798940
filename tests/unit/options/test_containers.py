"""Secrets, limits, shared memory and users: from the options to what a role's containers get."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from dcos_tensorflow.core.spec.container_spec import ResourceLimit, TaskSecret
from dcos_tensorflow.core.spec.service_spec import RoleSpec, ServiceSpec, TaskRole
from dcos_tensorflow.options import load, service_spec

Build = Callable[[Mapping[str, Any]], ServiceSpec]
Problems = Callable[..., list[str]]


@pytest.fixture
def build(runnable: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Build:
    return lambda options: service_spec(load(runnable(options)))


def worker(spec: ServiceSpec) -> RoleSpec:
    role = spec.role(TaskRole.WORKER)
    assert role is not None
    return role


def test_every_task_gets_the_services_secrets(build: Build) -> None:
    spec = build({"service": {"secrets": [{"source": "team/db", "env": "DB"}]}})
    wanted = TaskSecret("team/db", env="DB", option="service.secrets.0")
    assert {role.secrets for role in spec.roles} == {(wanted,)}


def test_a_roles_own_secret_wins_over_the_services_of_the_same_variable(build: Build) -> None:
    spec = build(
        {
            "service": {"secrets": [{"source": "a", "env": "A"}, {"source": "b", "file": "b"}]},
            "worker": {"secrets": [{"source": "own", "env": "A"}]},
        }
    )
    assert [one.source for one in worker(spec).secrets] == ["b", "own"]


def test_secrets_may_be_json_text_as_a_package_has_them(build: Build) -> None:
    spec = build({"service": {"secrets": '[{"source": "file:///k", "file": "conf/key"}]'}})
    assert worker(spec).secrets[0] == TaskSecret(
        "file:/k", file="conf/key", option="service.secrets.0"
    )


def test_a_roles_own_limit_wins_over_the_services_of_the_same_name(build: Build) -> None:
    spec = build(
        {
            "service": {
                "rlimits": [
                    {"name": "RLIMIT_NOFILE", "soft": 1, "hard": 2},
                    {"name": "RLIMIT_CORE", "soft": 0, "hard": 0},
                ]
            },
            "worker": {"rlimits": [{"name": "RLIMIT_NOFILE"}]},
        }
    )
    assert worker(spec).rlimits == (
        ResourceLimit("RLIMIT_NOFILE"),
        ResourceLimit("RLIMIT_CORE", 0, 0),
    )


def test_shared_memory_is_the_roles_or_else_the_services(build: Build) -> None:
    spec = build({"service": {"shm_size": 64}, "parameter_server": {}, "worker": {"shm_size": 0}})
    assert (worker(spec).shm_size, spec.roles[0].shm_size) == (0, 64)


def test_a_role_has_a_user_of_its_own(build: Build) -> None:
    service = {"user": "nobody"}
    spec = build({"service": service, "parameter_server": {}, "worker": {"user": "tf"}})
    assert (worker(spec).user, spec.roles[0].user, spec.user) == ("tf", "", "nobody")


def test_the_key_for_google_storage_comes_as_a_file_that_tensorflow_is_told_of(
    build: Build,
) -> None:
    role = worker(build({"service": {"use_gcs_key_secret": True}}))
    (secret,) = role.secrets
    assert (secret.source, secret.option) == ("gcs_key", "service.gcs_key_secret")
    assert role.sandbox_env == {"GOOGLE_APPLICATION_CREDENTIALS": secret.file}
    assert role.env["USE_GCS_KEY"] == "true"


def test_the_keytab_comes_as_a_file(build: Build) -> None:
    kerberos = {
        "enabled": True,
        "kdc": {"hostname": "kdc", "port": 88},
        "realm": "LOCAL",
        "keytab_secret": "team/keytab",
    }
    role = worker(build({"service": {"security": {"kerberos": kerberos}}}))
    (secret,) = role.secrets
    assert secret.source == "team/keytab"
    assert role.sandbox_env == {"SECURITY_KERBEROS_KEYTAB": secret.file}


def test_hadoop_finds_its_configuration_in_the_sandbox(build: Build) -> None:
    role = worker(build({"service": {"hdfs": {"config_uri": "http://hdfs/v1/endpoints"}}}))
    assert role.sandbox_env == {"HADOOP_CONF_DIR": ""}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "must not be empty"),
        ("file:relative", "names no absolute path after file:"),
        ("file:/a/../b", "names no absolute path after file:"),
        ("env:1", "names no variable after env:"),
        ("http://vault/x", "is no place where a secret can be"),
        ("hush hush", "is no place where a secret can be"),
        ("a/../b", "is no place where a secret can be"),
    ],
)
def test_a_source_that_can_be_none_is_refused_and_not_shown(
    source: str, message: str, problems: Problems
) -> None:
    (line,) = problems({"worker": {"secrets": [{"source": source, "env": "A"}]}})
    assert line == f"worker.secrets.0.source: {message} (given: (hidden))"


def test_a_wrong_place_of_the_keytab_is_not_shown_either(problems: Problems) -> None:
    kerberos = {"keytab_secret": "hush hush"}
    (line,) = problems({"service": {"security": {"kerberos": kerberos}}})
    assert "given: (hidden)" in line
    assert "hush" not in line


@pytest.mark.parametrize(
    ("secret", "line"),
    [
        (
            {"source": "a", "file": "/abs"},
            "service.secrets.0.file: must be a path below the sandbox (given: (hidden))",
        ),
        (
            {"source": "a", "file": "../x"},
            "service.secrets.0.file: must be a path below the sandbox (given: (hidden))",
        ),
        (
            {"source": "a", "file": "x/"},
            "service.secrets.0.file: must name a file below the sandbox (given: (hidden))",
        ),
        (
            {"source": "a", "env": "A B"},
            "service.secrets.0.env: is not the name of an environment variable (given: (hidden))",
        ),
        (
            {"env": "A"},
            "service.secrets.0.source: is missing (allowed: an object with source, env, file)",
        ),
    ],
)
def test_a_wrong_part_of_a_secret_is_told_with_its_path(
    secret: dict[str, Any], line: str, problems: Problems
) -> None:
    assert problems({"service": {"secrets": [secret]}}) == [line]


@pytest.mark.parametrize(
    ("limit", "line"),
    [
        (
            {"name": "RLIMIT_CPU", "soft": "a"},
            'service.rlimits.0.soft: is not a value that it can have (given: "a"; allowed: a '
            "whole number from 0 to 1e+15)",
        ),
        (
            {"name": "RLIMIT_CPU", "soft": -1, "hard": 1},
            "service.rlimits.0.soft: is not a value that it can have (given: -1; allowed: a "
            "whole number from 0 to 1e+15)",
        ),
    ],
)
def test_a_wrong_limit_is_told_with_its_path(
    limit: dict[str, Any], line: str, problems: Problems
) -> None:
    assert problems({"service": {"rlimits": [limit]}}) == [line]


@pytest.mark.parametrize(
    "options",
    [
        {"service": {"tf_image": ""}},
        {"worker": {"python": "/opt/tf"}, "parameter_server": {"python": "/opt/tf"}},
        {"worker": {"count": 0}, "chief": {"count": 1, "python": "/opt/tf"}},
    ],
)
def test_secrets_of_tasks_without_an_image_do_not_mind_the_docker_containerizer(
    options: dict[str, Any], runnable: Callable[[Mapping[str, Any]], dict[str, Any]]
) -> None:
    secrets = [{"source": "team/token", "env": "TOKEN"}]
    given = {
        **options,
        "service": {"containerizer": "docker", **options.get("service", {})},
        "worker": {"secrets": secrets, **options.get("worker", {})},
    }
    assert load(runnable(given)).worker.secrets[0].env == "TOKEN"


def test_a_limit_that_docker_does_not_know_is_refused_with_it(problems: Problems) -> None:
    options = {
        "service": {"containerizer": "docker", "tf_image": "tf:1"},
        "worker": {"rlimits": [{"name": "RLIMIT_NOFILE"}, {"name": "RLIMIT_AS"}]},
    }
    assert problems(options) == [
        "worker.rlimits.1.name: Docker's engine knows no RLIMIT_AS (given: RLIMIT_AS; allowed: "
        "another limit, or service.containerizer mesos)"
    ]


def test_an_unknown_limit_is_told_with_those_there_are(problems: Problems) -> None:
    (line,) = problems({"service": {"rlimits": [{"name": "nofile"}]}})
    assert line.startswith("service.rlimits.0.name: is not a value that it can have (given: ")
    assert "RLIMIT_NOFILE" in line
