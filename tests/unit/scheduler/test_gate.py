"""What options may ask of the scheduler is the operator's to say, and asked in one place."""

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dcos_tensorflow
from dcos_tensorflow.capacity.provider import ProviderError
from dcos_tensorflow.client.work_directory import ServiceDirectory
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.core.spec.storage_spec import CredentialsReference, S3Spec, StorageSpec
from dcos_tensorflow.core.spec.tracking_spec import TrackingSpec
from dcos_tensorflow.core.spec.workload_spec import BatchSpec
from dcos_tensorflow.deploy.scheduler_settings import scheduler_config
from dcos_tensorflow.deploy.settings import PREFIX, collect
from dcos_tensorflow.options import OptionsError, load, service_spec
from dcos_tensorflow.scheduler.batch_inputs import InputsAway, list_inputs
from dcos_tensorflow.scheduler.configuration import SchedulerConfig
from dcos_tensorflow.scheduler.gate import NOTHING, Allowed, Gate, GateError
from dcos_tensorflow.scheduler.scheduler import Scheduler
from dcos_tensorflow.task.storage.s3.errors import StorageError
from servers.web_server import Handler, served
from simulated.scheduler import small_job

RACK = "/opt/rack/machines"
ELSEWHERE = "https://ec2.example.org"
OWN = {
    "AWS_ACCESS_KEY_ID": "the-own-key-id",
    "AWS_SECRET_ACCESS_KEY": "the-own-secret-key",
    "AWS_SESSION_TOKEN": "the-own-session-token",
}
BROUGHT = {"AWS_ACCESS_KEY_ID": "brought-id", "AWS_SECRET_ACCESS_KEY": "brought-key"}
SERVICE = {"name": "mnist", "job_url": "http://host/job.zip", "job_name": "train"}


def options_of(provider: str, **section: object) -> dict[str, Any]:
    """Return options that name a provider."""
    return {
        "service": SERVICE,
        "capacity": {"provider": provider, "budget": 10, provider: section},
    }


def machines(*named: str) -> Gate:
    return Gate(Allowed(machines=frozenset(named)))


def s3(*places: str) -> Gate:
    return Gate(Allowed(s3=frozenset(places)))


COMMAND = service_spec(load(options_of("command", cmd=[RACK, "--all"])))
EC2 = {"launch_template": "agents", "region": "us-east-1"}
ON_EC2 = service_spec(load(options_of("ec2", **EC2)))
ON_ANOTHER = service_spec(load(options_of("ec2", **EC2, endpoint_url=ELSEWHERE)))


class TestMachines:
    def test_a_program_that_is_not_allowed_is_refused_by_its_option(self) -> None:
        (problem,) = machines("ec2", "/opt/rack").problems(COMMAND)
        assert problem.path == "capacity.command.cmd"
        assert f"--machines-from {RACK}" in problem.message

    @pytest.mark.parametrize(
        "gate", [machines(RACK), machines("*"), Gate(Allowed(everything=True))]
    )
    def test_what_is_allowed_may_be_asked(self, gate: Gate) -> None:
        assert gate.problems(COMMAND) == []

    def test_an_endpoint_that_options_name_is_not_meant_by_ec2(self) -> None:
        assert machines("ec2").problems(ON_EC2) == []
        (problem,) = machines("ec2").problems(ON_ANOTHER)
        assert problem.path == "capacity.ec2.endpoint_url"
        assert machines("https://EC2.example.org:443/").problems(ON_ANOTHER) == []

    def test_options_without_machines_need_nothing(self) -> None:
        assert Gate().problems(small_job()) == []

    def test_what_is_stored_of_before_is_asked_for_no_machines_either(self) -> None:
        assert COMMAND.capacity is not None
        with pytest.raises(ProviderError, match="--machines-from"):
            Gate().provider(COMMAND.capacity, "owner")

    def test_an_update_may_not_name_another_program(self, tmp_path: Path) -> None:
        with pytest.raises(OptionsError, match="--machines-from /opt/rack/machines"):
            a_scheduler(tmp_path).change_configuration(options_of("command", cmd=[RACK]))


class TestTracking:
    SPEC = TrackingSpec("https://mlflow.example.org/team", "demo")

    @pytest.mark.parametrize("named", [(), ("https://other",), ("http://mlflow.example.org",)])
    def test_a_server_that_the_operator_has_not_named_hears_nothing(
        self, named: tuple[str, ...]
    ) -> None:
        gate = Gate(Allowed(tracking=frozenset(named)))
        (problem,) = gate.problems(replace(small_job(), tracking=self.SPEC))
        assert problem.path == "mlflow.tracking_uri"
        assert "--mlflow-servers https://mlflow.example.org/team" in problem.message
        with pytest.raises(GateError, match="--mlflow-servers"):
            gate.tracking_server(self.SPEC, "sesame")

    @pytest.mark.parametrize("named", ["https://mlflow.example.org:443", "*"])
    def test_one_that_is_named_by_its_host_or_any_may_be_told(self, named: str) -> None:
        gate = Gate(Allowed(tracking=frozenset({named})))
        assert gate.problems(replace(small_job(), tracking=self.SPEC)) == []
        assert gate.tracking_server(self.SPEC, "sesame").uri == self.SPEC.uri


def a_scheduler(folder: Path, allowed: Allowed = NOTHING) -> Scheduler:
    config = SchedulerConfig("m:1", "sqlite:///none", folder, allowed=allowed)
    return Scheduler(small_job(), config)


@pytest.mark.parametrize("local", [True, False])
def test_the_settings_say_what_is_allowed_and_on_the_embedded_cluster_all_is(
    tmp_path: Path, local: bool
) -> None:
    given = {
        "MACHINES_FROM": "ec2",
        "S3_PLACES": "s3://b/in, https://minio",
        "TASK_SECRET_ENV": "KEY",
        "MLFLOW_SERVERS": "https://mlflow",
    }
    settings = collect(None, {PREFIX + name: value for name, value in given.items()}, {})
    config = scheduler_config(settings, ServiceDirectory(tmp_path), local=local, folder=tmp_path)
    assert config.allowed == Allowed(
        variables=frozenset({"KEY"}),
        s3=frozenset({"s3://b/in", "https://minio"}),
        machines=frozenset({"ec2"}),
        tracking=frozenset({"https://mlflow"}),
        folder=tmp_path,
        lists=tmp_path / "inputs",
        everything=local,
    )


class Heard:
    """An endpoint of a stranger, who writes down all that comes."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.url = ""
        heard = self.requests

        class Refusing(Handler):
            def do_GET(self) -> None:
                heard.append(f"{self.path} {self.headers}")
                self.answer(403)

        self.handler = Refusing


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch) -> Iterator[Heard]:
    for name, value in OWN.items():
        monkeypatch.setenv(name, value)
    heard = Heard()
    with served(heard.handler) as address:
        heard.url = f"http://{address}"
        yield heard


def a_batch(
    endpoint: str = "", credentials: CredentialsReference | None = None, listing: str = ""
) -> ServiceSpec:
    work = BatchSpec(
        output="s3://bucket/out/{index}", per_shard=2, listing=listing or "s3://bucket/in/"
    )
    storage = StorageSpec(s3=S3Spec(endpoint, "us-east-1", credentials=credentials))
    return replace(small_job(), workload=work, storage=storage)


class TestS3:
    @pytest.mark.parametrize("gate", [s3(), s3("*"), s3("s3://bucket")])
    def test_an_endpoint_of_the_options_never_hears_the_schedulers_own_key(
        self, stranger: Heard, gate: Gate
    ) -> None:
        with pytest.raises(InputsAway, match="its own are for no endpoint"):
            list_inputs(a_batch(stranger.url), {}, gate)
        assert stranger.requests == []

    def test_nor_is_it_asked_with_keys_of_the_options_before_the_operator_has_named_it(
        self, stranger: Heard
    ) -> None:
        spec = a_batch(stranger.url)
        with pytest.raises(InputsAway, match=f"--s3-places {stranger.url}"):
            list_inputs(spec, BROUGHT, s3("https://other"))
        assert stranger.requests == []
        with pytest.raises(Exception, match="403"):
            list_inputs(spec, BROUGHT, s3(stranger.url))
        assert "brought-id" in stranger.requests[0]
        assert not any(secret in stranger.requests[0] for secret in OWN.values())

    @pytest.mark.parametrize("listing", ["s3://bucket/in/", "s3://bucket/in.txt"])
    @pytest.mark.parametrize("gate", [s3(), s3("s3://bucket/i"), s3("s3://buck", "https://x")])
    def test_what_the_author_may_not_read_is_not_read_with_the_schedulers_rights(
        self, gate: Gate, listing: str
    ) -> None:
        (told, *_) = gate.problems(a_batch(listing=listing))
        assert "--s3-places s3://bucket" in told.message
        with pytest.raises(StorageError, match="with its own rights"):
            gate.objects(a_batch().storage.s3, {}, listing)

    def test_the_operator_names_places_and_what_is_below_them_may_be_read(self) -> None:
        assert s3("s3://bucket/in", "s3://bucket/out/").problems(a_batch()) == []
        assert s3("s3://bucket").objects(a_batch().storage.s3, {}, "s3://bucket/in/").bucket == (
            "bucket"
        )

    def test_keys_of_the_options_need_nothing_at_aws(self) -> None:
        named = CredentialsReference(file="/etc/key")
        assert Gate().problems(a_batch(credentials=named)) == []

    def test_a_secret_that_mesos_alone_has_is_no_key_for_the_scheduler(self) -> None:
        stored = CredentialsReference(secret="team/key")
        assert len(Gate().problems(a_batch(credentials=stored))) == 2

    @pytest.mark.parametrize("place", ["/proc/self/environ", "/dev/zero", "/etc"])
    def test_certificates_are_in_a_plain_file(self, place: str) -> None:
        spec = replace(a_batch().storage.s3, ca_file=place)
        with pytest.raises(StorageError, match=r"s3\.ca_file"):
            s3("*").objects(spec, BROUGHT, "s3://bucket/in/")


class TestAnUpdate:
    """An author sends other options to the API of a scheduler."""

    def refused(self, scheduler: Scheduler, **section: Any) -> str:
        job = {"service": {"name": "job", "job_cmd": "run"}, **section}
        with pytest.raises(OptionsError) as refused:
            scheduler.change_configuration(job)
        return str(refused.value)

    def test_gets_no_key_of_the_schedulers_into_a_task(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name, value in OWN.items():
            monkeypatch.setenv(name, value)
        told = self.refused(
            a_scheduler(tmp_path),
            logs={"uri": "s3://bucket/logs"},
            s3={"credentials": {"env": "AWS_"}},
        )
        assert "s3.credentials: the scheduler's variable AWS_ACCESS_KEY_ID" in told

    @pytest.mark.parametrize(
        "inputs", [{"s3_prefix": "s3://bucket/in"}, {"manifest": "s3://bucket/in.txt"}]
    )
    def test_lists_no_bucket_with_the_schedulers_rights(
        self, tmp_path: Path, inputs: dict[str, str]
    ) -> None:
        batch = {"inputs": {**inputs, "per_shard": 1}, "output": "/shared/{index}"}
        assert f"batch.inputs.{next(iter(inputs))}: " in self.refused(
            a_scheduler(tmp_path), batch=batch
        )

    def test_reads_no_file_from_where_the_scheduler_runs(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        secret = tmp_path / "scheduler.token"
        secret.write_text("hush")
        monkeypatch.chdir(tmp_path)
        inputs = {"manifest": str(secret), "per_shard": 1}
        batch = {"inputs": inputs, "output": "/shared/{index}"}
        told = self.refused(a_scheduler(tmp_path), batch=batch)
        assert "is not beside the options" in told


class TestFiles:
    def test_a_manifest_lies_beside_the_options_also_when_it_is_read(self, tmp_path: Path) -> None:
        beside, other = tmp_path / "options", tmp_path / "other.txt"
        beside.mkdir()
        other.write_text("hush")
        (beside / "link.txt").symlink_to(other)
        for path in (other, beside / "link.txt"):
            with pytest.raises(GateError, match="not beside the options"):
                Gate(Allowed(folder=beside)).manifest(path, 100)

    def test_a_path_of_the_secret_store_stays_in_its_folder(self, tmp_path: Path) -> None:
        (tmp_path / "other").write_text("hush")
        (tmp_path / "store").mkdir()
        with pytest.raises(GateError, match="no path of a secret store"):
            Gate().stored(tmp_path / "store", "../other")

    def test_of_the_kernels_folders_no_output_is_seen(self) -> None:
        assert Gate().outputs("/proc/{index}/environ") == set()


ROOT = Path(dcos_tensorflow.__file__).parent
#: Who reads what is its own, in a room that works on behalf of options, and what that is.
_OWN_THINGS = {
    "scheduler/gate.py": "the gate",
    "scheduler/artifacts.py": "what this process has packed",
    "scheduler/loop/tracing.py": "where its operator has traces sent",
    "scheduler/machines/standing_machines.py": "a command whose options are the operator's",
    "api/audit.py": "the log of orders",
    "api/callers/dcos_tokens.py": "the keys that the operator names",
    "history/folder.py": "the runs that it keeps",
    "history/bucket.py": "bytes that the gate has let in",
    "history/mlflow.py": "a tracking server, which the gate opens",
    "capacity/providers/agent_script.py": "a file of the package",
    "capacity/providers/command.py": "a provider, which the gate opens",
    "capacity/providers/ec2.py": "a provider, which the gate opens",
}
_DOORS = {
    *("open", "read_text", "read_bytes", "environ", "getenv", "glob", "iglob", "rglob", "scandir"),
    *("listdir", "iterdir", "walk", "Popen", "urlopen", "provider_for", "connect"),
}
_DOOR_MODULES = {"boto3", "botocore", "subprocess", "urllib.request", "http.client", "glob"}


def opened(file: Path) -> Iterator[tuple[int, str]]:
    """Give the doors of a module: names of files, variables, programs and the network."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Attribute) and node.attr in _DOORS:
            yield node.lineno, node.attr
        elif isinstance(node, ast.Name) and node.id in _DOORS:
            yield node.lineno, node.id
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, n.name) for n in node.names if n.name in _DOOR_MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "") in _DOOR_MODULES:
            yield node.lineno, node.module or ""


@pytest.mark.parametrize("room", ["scheduler", "api", "history", "workloads", "capacity"])
def test_no_other_module_opens_a_door(room: str) -> None:
    found = {
        f"{name}:{line} {what}"
        for file in (ROOT / room).rglob("*.py")
        if (name := str(file.relative_to(ROOT))) not in _OWN_THINGS
        for line, what in opened(file)
    }
    assert found == set()
