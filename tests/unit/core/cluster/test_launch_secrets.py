"""What a launch says of secrets, limits and files of the sandbox; never a secret itself."""

import dataclasses
import subprocess

from dcos_tensorflow.core.cluster.launch import launch_command
from dcos_tensorflow.core.model.actions import LaunchTask
from dcos_tensorflow.core.spec.container_spec import ResourceLimit, TaskSecret
from dcos_tensorflow.core.spec.service_spec import ServiceSpec, TaskRole
from dcos_tensorflow.core.spec.storage_spec import (
    CheckpointSpec,
    CredentialsReference,
    S3Spec,
    StorageSpec,
)
from simulated.scheduler import small_job, started

PASSWORD = TaskSecret("team/password", env="PASSWORD", option="service.secrets.0")


def launched(spec: ServiceSpec, task: str = "worker-0") -> LaunchTask:
    scheduler = started(spec)
    launch: LaunchTask = scheduler.cluster.tasks[scheduler.cluster.id_of(task)].launch
    return launch


def with_roles(**changes: object) -> ServiceSpec:
    spec = small_job()
    return dataclasses.replace(
        spec, roles=tuple(dataclasses.replace(role, **changes) for role in spec.roles)
    )


def with_credentials(**fields: str) -> ServiceSpec:
    storage = StorageSpec(
        checkpoints=CheckpointSpec(uri="s3://bucket/job"),
        s3=S3Spec(credentials=CredentialsReference(**fields)),
    )
    return small_job(storage=storage)


def print_variable(name: str, command: str, sandbox: str) -> str:
    script = f'{command.partition("python=")[0]} printf %s "${name}"'
    found = subprocess.run(
        ["sh", "-c", script],
        env={"MESOS_SANDBOX": sandbox},
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout


def test_the_roles_secrets_limits_and_user_are_in_its_launches() -> None:
    limit = ResourceLimit("RLIMIT_NOFILE", 1024, 4096)
    launch = launched(with_roles(secrets=(PASSWORD,), rlimits=(limit,), shm_size=64, user="tf"))
    assert (launch.secrets, launch.rlimits, launch.shm_size, launch.user) == (
        (PASSWORD,),
        (limit,),
        64,
        "tf",
    )


def test_no_launch_of_the_core_holds_a_value() -> None:
    assert launched(with_roles(secrets=(PASSWORD,))).secret_values == {}


def test_a_role_without_a_user_runs_as_the_services() -> None:
    assert launched(dataclasses.replace(small_job(), user="nobody")).user == "nobody"


def test_the_shell_finds_what_a_variable_names_in_the_sandbox() -> None:
    command = launch_command("", {"KEY": "a b/key.json"})
    assert print_variable("KEY", command, "/sand box") == "/sand box/a b/key.json"


def test_an_empty_path_is_the_sandbox_itself() -> None:
    assert print_variable("CONF", launch_command("", {"CONF": ""}), "/s") == "/s"


def test_credentials_that_are_a_secret_come_as_a_file_that_boto3_is_told_of() -> None:
    launch = launched(with_credentials(secret="team/aws", profile="training"))
    (secret,) = launch.secrets
    assert (secret.source, launch.credentials) == ("team/aws", None)
    assert launch.env["AWS_PROFILE"] == "training"
    found = print_variable("AWS_SHARED_CREDENTIALS_FILE", launch.command, "/sandbox")
    assert found == f"/sandbox/{secret.file}"


def test_a_parameter_server_that_keeps_nothing_in_s3_gets_no_such_secret() -> None:
    assert launched(with_credentials(secret="team/aws"), "ps-0").secrets == ()


def test_the_same_secret_at_another_place_of_the_options_needs_none() -> None:
    one = with_roles(secrets=(PASSWORD,))
    other = with_roles(secrets=(dataclasses.replace(PASSWORD, option="worker.secrets.3"),))
    assert one.fingerprints[TaskRole.WORKER] == other.fingerprints[TaskRole.WORKER]
