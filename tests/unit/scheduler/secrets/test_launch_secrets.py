"""Where tasks' secrets come from, and what happens when one is missing."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.core.model.actions import Accept, Action, Decline, LaunchTask
from dcos_tensorflow.core.model.events import CallFailed, Event
from dcos_tensorflow.core.spec.container_spec import TaskSecret
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.core.spec.storage_spec import (
    CheckpointSpec,
    CredentialsReference,
    S3Spec,
    StorageSpec,
)
from dcos_tensorflow.core.spec.tracking_spec import TrackingSpec
from dcos_tensorflow.scheduler.gate import Allowed, Gate, GateError
from dcos_tensorflow.scheduler.secrets.launch_secrets import LaunchSecrets
from simulated.scheduler import small_job

VALUE = b"the-secret"
STORED = TaskSecret("team/db", env="DB", option="service.secrets.0")


ANYTHING = Allowed(everything=True)


def reader_of(environ: Mapping[str, str] | None = None) -> LaunchSecrets:
    return LaunchSecrets(Gate(ANYTHING, environ or {}))


def variable(name: str = "DB_PASSWORD") -> TaskSecret:
    return TaskSecret(f"env:{name}", env="DB", option="service.secrets.0")


def accept(*secrets: TaskSecret) -> Accept:
    launch = LaunchTask("t", "worker-0", "a", Resources(), (1,), "run", {}, secrets=secrets)
    return Accept(("o",), "a", (launch,), 5.0)


def values(reader: LaunchSecrets, *secrets: TaskSecret) -> dict[str, bytes]:
    action = reader.complete(accept(*secrets))
    assert isinstance(action, Accept)
    return dict(action.launches[0].secret_values)


def service(*secrets: TaskSecret, **changes: Any) -> ServiceSpec:
    spec = small_job(**changes)
    roles = tuple(dataclasses.replace(role, secrets=secrets) for role in spec.roles)
    return dataclasses.replace(spec, roles=roles)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_bytes(VALUE)
    return path


def in_file(path: Path) -> TaskSecret:
    return TaskSecret(f"file:{path}", env="DB", option="service.secrets.0")


def test_a_variable_of_the_scheduler_is_read() -> None:
    reader = reader_of({"DB_PASSWORD": "the-secret"})
    assert values(reader, variable()) == {"env:DB_PASSWORD": VALUE}


def test_a_file_is_read_as_it_is(file: Path) -> None:
    secret = TaskSecret(f"file:{file}", file="key", option="x")
    file.write_bytes(b"\x00\xff\n")
    assert values(reader_of(), secret) == {secret.source: b"\x00\xff\n"}


def test_a_file_is_read_again_for_each_launch(file: Path) -> None:
    reader = reader_of()
    values(reader, in_file(file))
    file.write_bytes(b"newer")
    assert list(values(reader, in_file(file)).values()) == [b"newer"]


def test_what_is_in_the_store_is_left_to_mesos() -> None:
    assert values(LaunchSecrets(Gate()), STORED) == {}


def test_a_folder_stands_for_the_store(tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "db").write_bytes(VALUE)
    assert values(LaunchSecrets(Gate(), tmp_path), STORED) == {"team/db": VALUE}


def test_without_a_store_its_paths_are_refused_with_what_to_do() -> None:
    (problem,) = LaunchSecrets(Gate(), store=False).problems(service(STORED))
    assert str(problem) == (
        "service.secrets.0: team/db is a path of a secret store, and this cluster has none: use "
        "file:/path or env:NAME, or name a folder with such files in --secrets-dir"
    )


def test_a_file_that_is_away_for_a_moment_does_not_hold_up_a_restart(file: Path) -> None:
    reader = reader_of()
    values(reader, in_file(file))
    file.unlink()
    assert list(values(reader, in_file(file)).values()) == [VALUE]


def test_the_secret_of_a_tracking_server_is_read_and_masked() -> None:
    reader = reader_of({"MLFLOW": "sesame-4711"})
    assert reader.tracking(TrackingSpec("https://m", "x", "env:MLFLOW")) == "sesame-4711"
    assert "sesame-4711" in reader.texts()
    assert reader.tracking(TrackingSpec("https://m", "x")) == ""


@pytest.mark.parametrize(
    ("token", "told"),
    [("env:MISSING", "MISSING"), ("team/mlflow", "which tasks alone can read; name file:/path")],
)
def test_a_secret_of_a_tracking_server_that_cannot_be_had_is_told_before_the_start(
    token: str, told: str
) -> None:
    spec = dataclasses.replace(small_job(), tracking=TrackingSpec("https://m", "x", token))
    (problem,) = reader_of().problems(spec)
    assert (problem.path, told in problem.message) == ("mlflow.token", True), problem


@pytest.mark.parametrize("value", ["ses\name", "s\u00e9same", " ", "a\x00b"])
def test_what_no_header_can_hold_is_no_secret_of_a_tracking_server(value: str) -> None:
    with pytest.raises(GateError, match=r"mlflow\.token: env:MLFLOW is no token") as refused:
        reader_of({"MLFLOW": value}).tracking(TrackingSpec("https://m", "x", "env:MLFLOW"))
    assert value.strip() not in str(refused.value) or not value.strip()


def test_only_launches_that_refer_to_credentials_get_some() -> None:
    keys = {"AWS_ACCESS_KEY_ID": "the-id", "AWS_SECRET_ACCESS_KEY": "the-secret"}
    (launch,) = accept().launches
    referring = dataclasses.replace(launch, credentials=CredentialsReference(env="AWS_"))
    action = reader_of(keys).complete(Accept(("o",), "a", (launch, referring), 5.0))
    assert isinstance(action, Accept)
    assert [each.secret_env for each in action.launches] == [{}, keys]


@pytest.mark.parametrize("action", [Decline(("o",), 5.0), accept()])
def test_what_refers_to_no_secret_stays_as_it_is(action: Action) -> None:
    assert LaunchSecrets(Gate()).complete(action) == action


def test_nothing_starts_without_its_secret() -> None:
    with pytest.raises(GateError, match=r"service\.secrets\.0: the scheduler has no variable"):
        reader_of().complete(accept(variable()))


def test_where_a_secret_is_missing_the_offers_go_back_and_the_core_hears_why() -> None:
    performed: list[Action] = []
    heard: list[Event] = []
    reader_of().perform(accept(variable("X")), performed.append, heard.append)
    assert performed == [Decline(("o",), 5.0)]
    why = "service.secrets.0: the scheduler has no variable X"
    assert heard == [CallFailed("ACCEPT", why, False, ("o",), ("t",))]


def test_what_the_first_task_would_fail_of_is_said_once_for_all_roles() -> None:
    (problem,) = reader_of().problems(service(variable("X")))
    assert (problem.path, problem.message) == (
        "service.secrets.0",
        "the scheduler has no variable X",
    )


def test_a_missing_credentials_file_that_is_a_secret_is_told_at_its_option() -> None:
    storage = StorageSpec(
        checkpoints=CheckpointSpec(uri="s3://b/j"),
        s3=S3Spec(credentials=CredentialsReference(secret="file:/no/such")),
    )
    (problem,) = reader_of().problems(service(storage=storage))
    assert problem.path == "s3.credentials.secret"


def test_a_variable_cannot_hold_a_nul_byte(file: Path) -> None:
    file.write_bytes(b"a\x00b")
    (problem,) = reader_of().problems(service(in_file(file)))
    assert "holds a NUL byte" in str(problem)


def test_a_file_that_is_no_secret_is_refused(file: Path) -> None:
    file.write_bytes(b"x" * 1_000_001)
    (problem,) = reader_of().problems(service(in_file(file)))
    assert "too large for a secret" in str(problem)


def test_no_value_shows_in_an_action_or_its_log(file: Path) -> None:
    action = reader_of().complete(accept(in_file(file)))
    assert "the-secret" not in repr(action)


PASSWORD = {"DB_PASSWORD": "the-secret"}


def refusal(secret: TaskSecret, allowed: Allowed, environ: Mapping[str, str]) -> str:
    (problem,) = LaunchSecrets(Gate(allowed, environ)).problems(service(secret)) or ("",)
    return str(problem)


class TestWhatTheOperatorAllows:
    def test_a_variable_reaches_tasks_where_it_is_named(self) -> None:
        named = Allowed(variables=frozenset(PASSWORD))
        assert refusal(variable(), named, PASSWORD) == ""

    def test_other_variables_do_not(self) -> None:
        told = refusal(variable(), Allowed(), PASSWORD)
        assert "--task-secret-env DB_PASSWORD" in told
        assert "the-secret" not in told

    def test_files_of_the_folder_reach_tasks(self, file: Path) -> None:
        assert refusal(in_file(file), Allowed(directory=file.parent), {}) == ""

    def test_other_files_do_not(self, file: Path, tmp_path: Path) -> None:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        allowed = Allowed(directory=elsewhere)
        assert "--task-secrets-dir" in refusal(in_file(file), allowed, {})

    def test_a_link_out_of_the_folder_is_what_it_means(self, file: Path, tmp_path: Path) -> None:
        folder = tmp_path / "allowed"
        folder.mkdir()
        (folder / "link").symlink_to(file)
        allowed = Allowed(directory=folder)
        assert "--task-secrets-dir" in refusal(in_file(folder / "link"), allowed, {})

    @pytest.mark.parametrize(
        "name", ["DCOS_SERVICE_ACCOUNT_CREDENTIAL", "DCOS_TENSORFLOW_API_TOKEN"]
    )
    def test_what_is_the_schedulers_own_reaches_no_task_even_where_all_else_does(
        self, name: str
    ) -> None:
        named = Allowed(variables=frozenset({name}), everything=True)
        assert "the scheduler's own" in refusal(variable(name), named, {name: "x"})

    @pytest.mark.parametrize("path", ["/proc/self/environ", "/dev/zero", "/sys/kernel/notes"])
    def test_nor_does_what_the_kernel_shows_of_it(self, path: str) -> None:
        assert "is the kernel's" in refusal(in_file(Path(path)), ANYTHING, {})

    def test_a_key_file_of_s3_is_a_file_like_any_other(self, file: Path) -> None:
        storage = StorageSpec(s3=S3Spec(credentials=CredentialsReference(file=str(file))))
        (problem,) = LaunchSecrets(Gate()).problems(service(storage=storage))
        assert "--task-secrets-dir" in str(problem)


def test_what_was_read_is_known_whole_and_by_its_lines(file: Path) -> None:
    file.write_bytes(b"first line\nsecond line\n")
    reader = reader_of()
    values(reader, in_file(file))
    assert reader.texts() == {"first line\nsecond line", "first line", "second line"}


def test_what_was_only_looked_at_is_known_too(file: Path) -> None:
    reader = reader_of()
    assert not reader.problems(service(in_file(file)))
    assert reader.texts() == {VALUE.decode()}


def test_what_tasks_were_launched_with_is_known_when_it_was_changed_since(file: Path) -> None:
    reader = reader_of()
    values(reader, in_file(file))
    file.write_bytes(b"another one")
    values(reader, in_file(file))
    assert reader.texts() == {VALUE.decode(), "another one"}
