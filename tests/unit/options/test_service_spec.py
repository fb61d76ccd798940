import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from dcos_tensorflow.core.cluster.rendering import illegal_mix
from dcos_tensorflow.core.spec.resources import Resources
from dcos_tensorflow.core.spec.service_spec import (
    Addressing,
    ConstraintOperator,
    Container,
    Containerizer,
    Fitness,
    GangSpec,
    OutcomePolicy,
    PlacementConstraint,
    PlacementSpec,
    RetrySpec,
    RoleSpec,
    ServiceSpec,
    Strategy,
    TaskRole,
    UpdateStrategy,
    Uri,
)
from dcos_tensorflow.core.spec.volume_spec import VolumeSpec, VolumeType
from dcos_tensorflow.options import (
    OptionsError,
    as_given,
    effective,
    load,
    notes,
    service_spec,
)
from dcos_tensorflow.options.default_tasks import came_by_default
from dcos_tensorflow.plugin.update_check import merge

VERSION = "2.15.1"
IMAGE = f"tensorflow/tensorflow:{VERSION}"
IN_IMAGES = {"service": {"tensorflow_version": VERSION}}
EVERY_ROLE = {
    "service": {"use_tensorboard": True},
    "parameter_server": {"count": 1},
    "worker": {"count": 1},
    "chief": {"count": 1},
    "gpu_worker": {"count": 1},
    "evaluator": {"count": 1},
    "data_worker": {"count": 1},
}

Build = Callable[[Mapping[str, Any]], ServiceSpec]


@pytest.fixture
def build(runnable: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Build:
    return lambda options: service_spec(load(runnable(options)))


def role_of(spec: ServiceSpec, role: TaskRole) -> RoleSpec:
    found = spec.role(role)
    assert found is not None
    return found


def test_the_defaults_are_those_of_the_core(build: Build) -> None:
    plain, spec = ServiceSpec("tensorflow", ()), build({})
    differing = {
        f.name for f in fields(ServiceSpec) if getattr(spec, f.name) != getattr(plain, f.name)
    }
    assert differing == {"roles", "job", "user"}


def test_what_reads_knows_of_the_data_service_if_there_is_one(build: Build) -> None:
    for count, readers in ((0, set()), (2, {"chief", "gpu-worker", "evaluator", "data-worker"})):
        given = {"chief": {"count": 1}, "gpu_worker": {"count": 1}, "evaluator": {"count": 1}}
        servers = {"parameter_server": {"count": 1}, "data_worker": {"count": count}}
        roles = build(given | servers).roles
        assert {str(role.role) for role in roles if role.data_service} == readers


PUBLISHED = ("ps-0", "ps-1", "worker-0", "worker-1", "worker-2")


def test_the_published_defaults_are_two_ps_and_three_workers(build: Build) -> None:
    least = {"service": {"job_name": "train"}}
    assert service_spec(load(least, published_defaults=True)).task_names() == PUBLISHED
    assert build({"parameter_server": {}, "worker": {"cpus": 2}}).task_names() == PUBLISHED


@pytest.mark.parametrize(
    ("options", "tasks"),
    [
        ({}, ("worker-0",)),
        ({"worker": {"count": 1}}, ("worker-0",)),
        ({"gpu_worker": {"count": 1}}, ("gpu-worker-0",)),
        ({"chief": {"count": 1}}, ("chief-0",)),
        ({"parameter_server": {"count": 1}}, ("ps-0", "worker-0")),
        ({"parameter_server": {}, "worker": {"count": 1}}, ("ps-0", "ps-1", "worker-0")),
        ({"data_worker": {"count": 1}}, ("worker-0", "data-dispatcher-0", "data-worker-0")),
        ({"data_dispatcher": {"mem": 900}}, ("worker-0",)),
    ],
)
def test_only_named_roles_run(
    build: Build, options: dict[str, Any], tasks: tuple[str, ...]
) -> None:
    assert build(options).task_names() == tasks


def test_the_only_worker_stays_the_only_one_when_its_options_change(build: Build) -> None:
    given = as_given(load({"service": {"job_name": "train"}}))
    assert build(merge(given, {"worker": {"cpus": 2}})).task_names() == ("worker-0",)


def test_a_section_that_was_not_named_is_not_named_by_reading_it(build: Build) -> None:
    given = as_given(load({"service": {"job_name": "train"}}))
    assert "parameter_server" not in given
    named = merge(given, {"parameter_server": {"cpus": 2}})
    assert build(named).task_names() == ("ps-0", "ps-1", "worker-0")


def test_who_comes_by_the_published_default_is_counted() -> None:
    def told(options: dict[str, Any], *, published: bool = False) -> str:
        given = {"service": {"job_name": "train"}, **options}
        return came_by_default(load(given, published_defaults=published))

    assert told({}, published=True).startswith("2 parameter servers and 3 workers come by the pub")
    assert told({"parameter_server": {}, "worker": {"count": 1}}).startswith(
        "2 parameter servers c"
    )
    assert told({}) == told({"parameter_server": {"count": 2}}) == ""


def test_roles_come_in_a_fixed_order(build: Build) -> None:
    assert [role.role for role in build(EVERY_ROLE).roles] == [
        TaskRole.PS,
        TaskRole.CHIEF,
        TaskRole.WORKER,
        TaskRole.GPU_WORKER,
        TaskRole.EVALUATOR,
        TaskRole.TENSORBOARD,
        TaskRole.DATA_DISPATCHER,
        TaskRole.DATA_WORKER,
    ]


def test_roles_without_tasks_are_left_out(build: Build) -> None:
    spec = build({"parameter_server": {"count": 0}, "worker": {"count": 1}})
    assert [role.role for role in spec.roles] == [TaskRole.WORKER]


def test_a_role_has_what_its_options_say(build: Build) -> None:
    spec = build(
        {
            **IN_IMAGES,
            "worker": {
                "count": 2,
                "cpus": 0.5,
                "mem": 1024,
                "disk": 10,
                "disk_type": "MOUNT",
                "port": 3000,
                "placement_constraint": "hostname:max_per:2",
                "env": {"A": "b"},
            },
        }
    )
    assert role_of(spec, TaskRole.WORKER) == RoleSpec(
        role=TaskRole.WORKER,
        count=2,
        resources=Resources(cpus=0.5, mem=1024, disk=10, gpus=0),
        port=3000,
        constraints=(PlacementConstraint("hostname", ConstraintOperator.MAX_PER, "2"),),
        env={"A": "b"},
        container=Container(IMAGE),
        disk_type="MOUNT",
    )


VOLUME = {"count": 1, "disk": 500, "persistent_volume": True}


def test_the_disk_of_a_role_can_be_a_persistent_volume(build: Build) -> None:
    role = role_of(build({"worker": {**VOLUME, "disk_type": "MOUNT"}}), TaskRole.WORKER)
    assert role.volume == VolumeSpec(500.0, "tf-volume", VolumeType.MOUNT)
    assert role.resources.disk == 0


def test_without_being_asked_no_role_has_a_volume(build: Build) -> None:
    assert all(role.volume is None for role in build({}).roles)


@pytest.mark.parametrize(
    ("service", "mesos_role"),
    [
        ({"name": "mnist"}, "mnist-role"),
        ({"name": "/team/mnist"}, "team__mnist-role"),
        ({"name": "mnist", "mesos_role": "training"}, "training"),
    ],
)
def test_a_service_with_volumes_has_a_mesos_role_that_can_reserve(
    service: dict[str, Any], mesos_role: str, build: Build
) -> None:
    assert build({"service": service, "worker": VOLUME}).mesos_role == mesos_role


def test_the_volumes_of_a_role_without_tasks_ask_for_nothing(build: Build) -> None:
    options = {"worker": {"count": 1}, "parameter_server": {**VOLUME, "count": 0}}
    assert build(options).mesos_role == "*"


def test_a_whole_number_may_be_written_with_a_point(build: Build) -> None:
    assert role_of(build({"worker": {"count": 2.0}}), TaskRole.WORKER).count == 2


def test_gpu_workers_have_whole_gpus_and_their_own_image(build: Build) -> None:
    options = {**IN_IMAGES, "gpu_worker": {"count": 1, "gpus": 4}}
    role = role_of(build(options), TaskRole.GPU_WORKER)
    assert role.resources.gpus == 4
    assert role.container == Container(IMAGE + "-gpu")


@pytest.mark.parametrize(("gpus", "image"), [(0, IMAGE), (1, IMAGE + "-gpu")])
def test_a_chief_takes_the_gpu_image_when_it_has_gpus(gpus: int, image: str, build: Build) -> None:
    spec = build({**IN_IMAGES, "chief": {"count": 1, "gpus": gpus}})
    assert role_of(spec, TaskRole.CHIEF).container == Container(image)


def test_gpu_workers_use_the_port_of_workers_unless_they_have_one(build: Build) -> None:
    options = {"gpu_worker": {"count": 1}, "worker": {"port": 4000}}
    assert role_of(build(options), TaskRole.GPU_WORKER).port == 4000
    options["gpu_worker"]["port"] = 5000
    assert role_of(build(options), TaskRole.GPU_WORKER).port == 5000


def test_port_0_is_any_port(build: Build) -> None:
    assert role_of(build({"worker": {"port": 0}}), TaskRole.WORKER).port is None


def test_tensorboard_runs_when_asked_for(build: Build) -> None:
    spec = build({"service": {"use_tensorboard": True}, "tensorboard": {"mem": 512}})
    role = role_of(spec, TaskRole.TENSORBOARD)
    assert (role.count, role.port, role.resources) == (1, 6006, Resources(cpus=1.0, mem=512))


def test_a_python_of_the_service_means_no_container(build: Build) -> None:
    spec = build({**EVERY_ROLE, "service": {"python": "/opt/tf", "use_tensorboard": True}})
    assert {(role.python, role.container) for role in spec.roles} == {("/opt/tf", None)}


def test_a_python_of_a_role_wins_and_means_no_container_for_it(build: Build) -> None:
    spec = build({**IN_IMAGES, "parameter_server": {}, "worker": {"python": "/opt/tf2"}})
    worker, ps = role_of(spec, TaskRole.WORKER), role_of(spec, TaskRole.PS)
    assert (worker.python, worker.container) == ("/opt/tf2", None)
    assert (ps.python, ps.container) == ("", Container(IMAGE))


def test_where_nothing_names_an_image_there_is_no_container(build: Build) -> None:
    assert {role.container for role in build(EVERY_ROLE).roles} == {None}


def test_the_docker_containerizer_can_be_chosen(build: Build) -> None:
    spec = build({"service": {"containerizer": "docker", "tf_image": IMAGE}})
    assert role_of(spec, TaskRole.WORKER).container == Container(IMAGE, Containerizer.DOCKER)


def test_gpus_without_a_container_do_not_mind_the_docker_containerizer(build: Build) -> None:
    options = {
        "service": {"containerizer": "docker", "python": "/opt/tf"},
        "gpu_worker": {"count": 1},
    }
    assert role_of(build(options), TaskRole.GPU_WORKER).container is None


def test_the_environment_of_a_role_wins_over_that_of_the_service(build: Build) -> None:
    service = {"env": {"A": "1", "B": "1"}}
    spec = build({"service": service, "parameter_server": {}, "worker": {"env": {"B": "2"}}})
    assert role_of(spec, TaskRole.WORKER).env == {"A": "1", "B": "2"}
    assert role_of(spec, TaskRole.PS).env == {"A": "1", "B": "1"}


def test_structures_may_be_written_as_json_text(build: Build) -> None:
    spec = build(
        {"service": {"env": '{"A": "1"}', "job_uris": '["/a.zip"]'}, "worker": {"env": ""}}
    )
    assert role_of(spec, TaskRole.WORKER).env == {"A": "1"}
    assert spec.job.extra_uris == (Uri("/a.zip"),)


def test_a_module_is_passed_on_as_it_is_given(build: Build) -> None:
    job = build(
        {
            "service": {
                "job_url": " http://host/job.zip ",
                "job_path": "/job/src/",
                "job_name": "pkg.train",
                "job_context": '{"a": 1}',
                "job_contract": "function",
                "tf1_compat": True,
                "legacy_keras": True,
                "shared_filesystem": "gs://bucket/run",
            }
        }
    ).job
    assert (job.uri, job.path, job.name, job.command) == (
        "http://host/job.zip",
        "job/src",
        "pkg.train",
        "",
    )
    assert (job.context, job.contract) == ('{"a": 1}', "function")
    assert (job.tf1_compat, job.legacy_keras) == (True, True)
    assert job.shared_filesystem == "gs://bucket/run"


def test_a_command_is_its_own_contract(build: Build) -> None:
    job = build({"service": {"job_cmd": "python3 train.py --steps 3"}}).job
    assert (job.name, job.command, job.contract) == ("", "python3 train.py --steps 3", "command")


@pytest.mark.parametrize("context", ["", "  ", "{}"])
def test_an_empty_context_is_an_empty_object(context: str, build: Build) -> None:
    assert build({"service": {"job_context": context}}).job.context == "{}"


@pytest.mark.parametrize(
    ("uri", "directory"),
    [
        ("", ""),
        ("/mnt/run", "/mnt/run"),
        ("file:///mnt/my%20run", "/mnt/my run"),
        ("file://localhost/mnt", "/mnt"),
    ],
)
def test_checkpoints_are_a_directory(uri: str, directory: str, build: Build) -> None:
    assert build({"checkpoints": {"uri": uri}}).job.checkpoint_dir == directory


def test_the_rules_of_a_service_reach_the_core(build: Build) -> None:
    spec = build(
        {
            "service": {
                "name": "/team/mnist",
                "user": "ml",
                "mesos_role": "research/ml",
                "service_account": "tf-account",
                "strategy": "parameter_server",
                "kill_grace_seconds": 3,
                "outcome_grace_seconds": 4,
                "region": "eu",
            },
            "parameter_server": {"count": 1},
            "chief": {"count": 1},
            "worker": {"count": 1},
            "gang": {"hold_seconds": 1, "retry_seconds": 2, "max_retry_seconds": 3},
            "retry": {"limit": 0},
            "cluster_spec": {"addressing": "dns", "dns_domain": "example.org"},
            "logs": {"max_bytes": 10_000, "keep": 5},
        }
    )
    assert (spec.name, spec.user, spec.mesos_role) == ("/team/mnist", "ml", "research/ml")
    assert (spec.principal, spec.region) == ("tf-account", "eu")
    assert (spec.strategy, spec.outcome) == (Strategy.PARAMETER_SERVER, OutcomePolicy.CHIEF)
    assert (spec.kill_grace_seconds, spec.outcome_grace_seconds) == (3, 4)
    assert spec.gang == GangSpec(1, 2, 3, 600)
    assert spec.retry == RetrySpec(limit=0)
    assert (spec.addressing, spec.dns_domain) == (Addressing.DNS, "example.org")
    assert (spec.log_max_bytes, spec.log_keep) == (10_000, 5)


def test_the_rules_of_recovery_reach_the_core(build: Build) -> None:
    spec = build(
        {
            "service": {
                "stall_seconds": 1,
                "freeze_seconds": 2,
                "idle_seconds": 10,
                "replace_after_seconds": 3,
                "maintenance_lead_seconds": 4,
                "update_strategy": "canary",
                "uninstall_give_up_seconds": 5,
            },
            "gang": {"wait_seconds": 6, "grow_seconds": 7},
            "retry": {
                "out_of_memory_limit": 8,
                "fruitless_limit": 9,
                "same_failure_limit": 7,
            },
        }
    )
    assert (spec.stall_seconds, spec.freeze_seconds, spec.replace_after_seconds) == (1, 2, 3)
    assert spec.idle_seconds == 10
    assert (spec.maintenance_lead_seconds, spec.uninstall_give_up_seconds) == (4, 5)
    assert spec.update_strategy is UpdateStrategy.CANARY
    assert spec.gang == GangSpec(wait_seconds=6, grow_seconds=7)
    assert spec.retry == RetrySpec(out_of_memory_limit=8, fruitless_limit=9, same_failure_limit=7)


def test_what_is_preferred_reaches_the_core(build: Build) -> None:
    weighted = {"fitness": "weighted", "weights": {"cpus": 0, "gpus": -2.5}}
    assert build({}).placement == PlacementSpec(Fitness.PACK_GPU)
    assert build({"placement": {"fitness": "spread"}}).placement == PlacementSpec(Fitness.SPREAD)
    assert build({"placement": weighted}).placement == PlacementSpec(
        Fitness.WEIGHTED, cpus=0, mem=1, gpus=-2.5
    )


def test_a_job_is_started_once_at_least() -> None:
    with pytest.raises(OptionsError, match=r"retry\.same_failure_limit: is too small"):
        load({"service": {"job_name": "m"}, "retry": {"same_failure_limit": 0}})


def test_fewest_counts_and_limits_of_roles_reach_the_core(build: Build) -> None:
    spec = build(
        {
            "chief": {"count": 1, "retry_limit": 0},
            "worker": {"count": 4, "min_count": 1},
            "gpu_worker": {"count": 2, "min_count": 0, "retry_limit": 1},
            "parameter_server": {"retry_limit": 2},
        }
    )
    found = {role.role: (role.min_count, role.retry_limit) for role in spec.roles}
    assert found == {
        TaskRole.PS: (None, 2),
        TaskRole.CHIEF: (None, 0),
        TaskRole.WORKER: (1, None),
        TaskRole.GPU_WORKER: (0, 1),
    }


def test_all_workers_may_be_done_without_where_a_chief_trains_with_sessions(build: Build) -> None:
    spec = build(
        {
            "service": {"strategy": "between_graph"},
            "chief": {"count": 1},
            "worker": {"count": 2, "min_count": 0},
        }
    )
    assert role_of(spec, TaskRole.WORKER).min_count == 0


def test_a_limit_that_another_comes_before_is_noted(build: Build) -> None:
    options = load(
        {"service": {"job_name": "m"}, "worker": {"mem": 4096, "retry_limit": 4}},
    )
    assert notes(options) == (
        "worker.retry_limit: 4 has no effect: retry.limit, which holds for all tasks together, "
        "is 3.",
    )


def test_hdfs_settings_are_fetched_by_every_task(build: Build) -> None:
    spec = build({"service": {"hdfs": {"config_uri": "http://hdfs/v1/endpoints/"}}})
    assert spec.job.extra_uris == (
        Uri("http://hdfs/v1/endpoints/core-site.xml", extract=False),
        Uri("http://hdfs/v1/endpoints/hdfs-site.xml", extract=False),
    )
    assert {role.env["HDFS_ENABLED"] for role in spec.roles} == {"true"}


def test_kerberos_settings_are_in_the_environment_of_every_task(build: Build) -> None:
    kerberos = {
        "enabled": True,
        "kdc": {"hostname": "kdc.local", "port": 2500},
        "realm": "LOCAL",
        "keytab_secret": "tf_keytab",
        "debug": True,
    }
    spec = build({"service": {"security": {"kerberos": kerberos}}})
    for role in spec.roles:
        assert role.env == {
            "SECURITY_KERBEROS_ENABLED": "true",
            "SECURITY_KERBEROS_PRIMARY": "tensorflow",
            "SECURITY_KERBEROS_REALM": "LOCAL",
            "SECURITY_KERBEROS_KDC_HOSTNAME": "kdc.local",
            "SECURITY_KERBEROS_KDC_PORT": "2500",
            "SECURITY_KERBEROS_KEYTAB_SECRET": "tf_keytab",
            "SECURITY_KERBEROS_DEBUG": "true",
        }


@pytest.mark.parametrize(
    ("options", "note"),
    [
        ({"worker": {"disk_type": "MOUNT"}}, "worker.disk_type: MOUNT has no effect without"),
        ({"worker": {"volume_path": "v"}}, "worker.volume_path: has no effect without"),
        (
            {"service": {"env": {"HTTPS_PROXY": "http://proxy"}}},
            "service.env.HTTPS_PROXY: has no effect: gRPC between the tasks would go through",
        ),
        (
            {"worker": {"env": {"CUDA_VISIBLE_DEVICES": "0"}}},
            "worker.env.CUDA_VISIBLE_DEVICES: has no effect: tasks without GPUs see none.",
        ),
        ({"gpu_worker": {"mem": 8192}}, "gpu_worker: has no effect: gpu_worker.count is 0."),
        (
            {"tensorboard": {"keep_running": True}},
            "tensorboard: has no effect: service.use_tensorboard is false.",
        ),
        ({"data_dispatcher": {"cpus": 2}}, "data_dispatcher: has no effect: data_worker.count is"),
        (
            {
                "data_worker": {"count": 1},
                "checkpoints": {"uri": "/mnt/shared"},
                "worker": {"env": {"TF_DATA_SERVICE": "grpc://mine:1"}},
            },
            "worker.env.TF_DATA_SERVICE: has no effect: data_worker.count gives the job a service",
        ),
        (
            {"service": {"python": "/opt/tf", "tf_image": "me/mine"}},
            "service.tf_image: has no effect: with service.python tasks run without",
        ),
        ({"service": {"containerizer": "docker"}}, "service.containerizer: has no effect"),
        (
            {"service": {"security": {"kerberos": {"realm": "LOCAL"}}}},
            "service.security.kerberos.realm: has no effect without",
        ),
        ({"service": {"gcs_key_secret": "mine"}}, "service.gcs_key_secret: has no effect without"),
        (
            {"service": {"virtual_network_name": "calico"}},
            "service.virtual_network_name: has no effect without",
        ),
        (
            {"cluster_spec": {"dns_domain": "example.org"}},
            "cluster_spec.dns_domain: has no effect unless cluster_spec.addressing is dns.",
        ),
        (
            {"placement": {"fitness": "spread", "weights": {"mem": 2}}},
            "placement.weights.mem: has no effect unless placement.fitness is weighted.",
        ),
        (
            {
                "service": {"outcome": "all_workers"},
                "parameter_server": {},
                "chief": {"count": 1},
                "worker": {"count": 1},
            },
            "service.outcome: with a ParameterServerStrategy",
        ),
        ({"worker": {"mem": 256}}, "worker.mem: 256 MB is little"),
        ({"service": {"use_tensorboard": True}}, "service.use_tensorboard: without"),
        ({"worker": {"env": {"API_TOKEN": "x"}}}, "worker.env.API_TOKEN: looks like a secret"),
    ],
)
def test_what_may_not_be_meant_gets_a_note(
    options: dict[str, Any],
    note: str,
    runnable: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> None:
    (found,) = notes(load(runnable(options)))
    assert found.startswith(note)


@pytest.mark.parametrize(
    ("given", "shares", "is_noted"),
    [
        ({}, False, True),
        ({}, True, False),
        ({"checkpoints": {"uri": "/mnt/shared"}}, False, False),
        ({"checkpoints": {"uri": "s3://bucket/run"}}, True, True),
        ({"data_dispatcher": {"persistent_volume": True}}, False, False),
    ],
)
def test_a_journal_that_is_lost_with_its_machine_gets_a_note(
    runnable: Callable[[Mapping[str, Any]], dict[str, Any]],
    given: dict[str, Any],
    shares: bool,
    is_noted: bool,
) -> None:
    options = load(runnable({"data_worker": {"count": 1}, **given}))
    told = notes(options, shares_directory=shares)
    assert any("journal" in note for note in told) is is_noted


@pytest.mark.parametrize(("version", "told"), [("2.11.1", True), ("2.12.1", False), ("", False)])
def test_a_tensorflow_that_is_older_than_the_oldest_supported_gets_a_note(
    version: str, told: bool
) -> None:
    service = {"job_name": "m", "tensorflow_version": version}
    found = [note for note in notes(load({"service": service})) if "oldest supported" in note]
    assert bool(found) is told


def test_the_gpus_that_tasks_with_some_may_see_are_theirs_to_choose() -> None:
    options = {
        "service": {"job_name": "m", "env": {"CUDA_VISIBLE_DEVICES": "0"}},
        "gpu_worker": {"count": 1},
    }
    assert notes(load(options)) == ()


def test_what_only_repeats_a_default_gets_no_note(
    runnable: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> None:
    """The app of a DC/OS package carries every option."""
    usual = load(runnable({}))
    assert notes(load(effective(usual))) == ()


def test_usual_options_get_no_note(
    runnable: Callable[[Mapping[str, Any]], dict[str, Any]],
) -> None:
    assert notes(load(runnable({}))) == ()


MIXES = [
    (strategy, ps, chief, worker, gpu_worker)
    for strategy in ("parameter_server", "multi_worker", "between_graph", "independent", "auto")
    for ps in (0, 1)
    for chief in (0, 1)
    for worker in (0, 2)
    for gpu_worker in (0, 1)
]


@pytest.mark.parametrize("mix", MIXES, ids=lambda mix: "-".join(map(str, mix)))
def test_a_mix_of_roles_is_accepted_when_the_core_can_run_it(
    mix: tuple[str, int, int, int, int],
) -> None:
    strategy, ps, chief, worker, gpu_worker = mix
    counts = {
        TaskRole.PS: ps,
        TaskRole.CHIEF: chief,
        TaskRole.WORKER: worker,
        TaskRole.GPU_WORKER: gpu_worker,
    }
    roles = tuple(RoleSpec(role, count, Resources()) for role, count in counts.items())
    why = illegal_mix(ServiceSpec("mix", roles, strategy=Strategy(strategy)))
    options = {
        "service": {"job_name": "train", "strategy": strategy},
        "parameter_server": {"count": ps},
        "chief": {"count": chief},
        "worker": {"count": worker},
        "gpu_worker": {"count": gpu_worker},
    }
    if why is None:
        assert illegal_mix(service_spec(load(options))) is None
    else:
        with pytest.raises(OptionsError):
            load(options)


@pytest.mark.parametrize("document", ["README.md", "docs/options.md"])
def test_what_is_shown_first_runs_on_two_cores(document: str, repository: Path) -> None:
    text = (repository / document).read_text()
    (first, *_) = re.findall(r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    spec = service_spec(load(first))
    assert spec.task_names() == ("worker-0",)
    assert sum(role.count * role.resources.cpus for role in spec.roles) <= 2
