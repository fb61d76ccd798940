"""Mesos' JSON and the core's types, there and back."""

import base64
import copy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcos_tensorflow.core.model.task import TaskState
from dcos_tensorflow.core.spec.resources import PortRanges, Resources
from dcos_tensorflow.core.spec.service_spec import (
    ConstraintOperator,
    Container,
    Containerizer,
    PlacementConstraint,
    RoleSpec,
    ServiceSpec,
    TaskRole,
    Uri,
)
from dcos_tensorflow.mesos.wire.convert import (
    ConversionError,
    framework_info,
    offer_from_json,
    update_from_json,
)
from samples.launched_tasks import a_launch, port_ranges, scalar, task_info, task_infos

ROLE = "team/tensorflow"
RESERVED = [{"type": "DYNAMIC", "role": ROLE, "principal": "tf", "labels": {"labels": []}}]


def offer(*resources, **more):
    return {
        "id": {"value": "O1"},
        "framework_id": {"value": "F"},
        "agent_id": {"value": "S1"},
        "hostname": "node1",
        "url": {
            "scheme": "http",
            "address": {"ip": "127.0.0.2", "port": 5051},
            "path": "/slave(1)",
        },
        "allocation_info": {"role": ROLE},
        "resources": [{**r, "allocation_info": {"role": ROLE}} for r in resources],
        **more,
    }


class TestOffers:
    def test_resources_of_one_kind_are_summed_and_ports_merged(self):
        raw = offer(
            scalar("cpus", 1.5),
            scalar("cpus", 0.5, reservations=RESERVED),
            scalar("mem", 1024),
            scalar("disk", 10),
            scalar("gpus", 2),
            port_ranges((31000, 31009)),
            port_ranges((31010, 31019), reservations=RESERVED),
        )
        read = offer_from_json(raw, 5.0)
        assert read.resources == Resources(2.0, 1024.0, 10.0, 2)
        assert read.ports == PortRanges(((31000, 31019),))
        assert (read.offer_id, read.agent_id, read.mesos_role) == ("O1", "S1", ROLE)
        assert (read.hostname, read.address, read.received_at) == ("node1", "127.0.0.2", 5.0)

    @pytest.mark.parametrize(
        "more",
        [
            {"reservations": [{"type": "STATIC", "role": "somebody"}]},
            {"role": "somebody"},
            {"revocable": {}},
            {"shared": {}},
            {"disk": {"persistence": {"id": "v"}, "volume": {"container_path": "d"}}},
            {"disk": {"source": {"type": "MOUNT"}}},
        ],
    )
    def test_what_cannot_be_used_is_not_counted(self, more):
        raw = offer(scalar("disk", 10, **more))
        assert offer_from_json(raw, 0).resources == Resources()
        with pytest.raises(ConversionError):
            task_info(a_launch(resources=Resources(disk=1)), [raw])

    def test_what_is_reserved_to_a_parent_role_counts(self):
        raw = offer(scalar("cpus", 3, reservations=[{"type": "STATIC", "role": "team"}]))
        assert offer_from_json(raw, 0).resources.cpus == 3

    def test_attributes_of_every_type_are_read(self):
        raw = offer(
            attributes=[
                {"name": "rack", "type": "TEXT", "text": {"value": "r1"}},
                {"name": "level", "type": "SCALAR", "scalar": {"value": 2.0}},
                {
                    "name": "slots",
                    "type": "RANGES",
                    "ranges": {"range": [{"begin": 1, "end": 3}, {"begin": 7, "end": 9}]},
                },
                {"name": "zones", "type": "SET", "set": {"item": ["a", "b"]}},
            ]
        )
        assert offer_from_json(raw, 0).attributes == {
            "rack": "r1",
            "level": 2.0,
            "slots": "[1-3, 7-9]",
            "zones": "{a, b}",
        }

    def test_fault_domain_and_maintenance_are_read(self):
        raw = offer(
            domain={"fault_domain": {"region": {"name": "eu"}, "zone": {"name": "eu-1"}}},
            unavailability={"start": {"nanoseconds": 1795235197868105728}},
        )
        read = offer_from_json(raw, 0)
        assert (read.region, read.zone) == ("eu", "eu-1")
        assert read.unavailable_from == pytest.approx(1795235197.868)

    @pytest.mark.parametrize("missing", ["id", "agent_id", "hostname"])
    def test_an_offer_without_its_required_fields_is_refused(self, missing):
        raw = offer()
        del raw[missing]
        with pytest.raises(ConversionError):
            offer_from_json(raw, 0)


class TestUpdates:
    @pytest.mark.parametrize(
        ("mesos_state", "state"),
        [
            ("TASK_STAGING", TaskState.STAGING),
            ("TASK_STARTING", TaskState.STARTING),
            ("TASK_RUNNING", TaskState.RUNNING),
            ("TASK_KILLING", TaskState.RUNNING),
            ("TASK_FINISHED", TaskState.FINISHED),
            ("TASK_FAILED", TaskState.FAILED),
            ("TASK_KILLED", TaskState.KILLED),
            ("TASK_UNREACHABLE", TaskState.UNREACHABLE),
            ("TASK_ERROR", TaskState.LOST),
            ("TASK_LOST", TaskState.LOST),
            ("TASK_DROPPED", TaskState.LOST),
            ("TASK_GONE", TaskState.LOST),
            ("TASK_GONE_BY_OPERATOR", TaskState.LOST),
            ("TASK_UNKNOWN", TaskState.LOST),
        ],
    )
    def test_every_state_of_mesos_has_its_place(self, mesos_state, state):
        update = update_from_json({"task_id": {"value": "t"}, "state": mesos_state})
        assert (update.state, update.mesos_state) == (state, mesos_state)
        assert (update.agent_id, update.uuid) == ("", "")

    def test_a_state_that_mesos_has_not_is_refused_by_name(self):
        with pytest.raises(ConversionError, match="TASK_DREAMING"):
            update_from_json({"task_id": {"value": "t"}, "state": "TASK_DREAMING"})

    def test_the_containers_address_is_read(self):
        networks = [{"ip_addresses": []}, {"ip_addresses": [{"ip_address": "9.0.0.4"}]}]
        update = update_from_json(
            {
                "task_id": {"value": "t"},
                "state": "TASK_RUNNING",
                "container_status": {"network_infos": networks},
            }
        )
        assert update.container_address == "9.0.0.4"


class TestFrameworkInfo:
    SPEC = ServiceSpec("/team/mnist", (RoleSpec(TaskRole.WORKER, 1, Resources(1, 1)),), user="tf")

    def test_it_survives_failovers_and_partitions(self):
        info = framework_info(self.SPEC, "F-1", "host", "http://host:1")
        assert info["checkpoint"] is True
        assert info["failover_timeout"] == 1209600.0
        assert info["id"] == {"value": "F-1"}
        assert info["roles"] == ["*"]
        assert info["user"] == "tf"
        assert [c["type"] for c in info["capabilities"]] == [
            "MULTI_ROLE",
            "PARTITION_AWARE",
            "TASK_KILLING_STATE",
            "RESERVATION_REFINEMENT",
        ]

    def test_agents_of_other_regions_are_asked_for_only_when_a_region_is_named(self):
        worker = RoleSpec(TaskRole.WORKER, 1, Resources(1, 1))
        rule = PlacementConstraint("@region", ConstraintOperator.IS, "west")
        named = ServiceSpec("s", (worker,), region="west")
        ruled = ServiceSpec("s", (replace(worker, constraints=(rule,)),))
        asked = [
            {"type": "REGION_AWARE"} in framework_info(spec, None, "host", "")["capabilities"]
            for spec in (self.SPEC, named, ruled)
        ]
        assert asked == [False, True, True]

    def test_gpus_are_asked_for_only_when_wanted(self):
        worker = RoleSpec(TaskRole.GPU_WORKER, 1, Resources(1, 1, gpus=1))
        info = framework_info(ServiceSpec("s", (worker,)), None, "host", "")
        assert {"type": "GPU_RESOURCES"} in info["capabilities"]
        assert "id" not in info
        assert "webui_url" not in info

    def test_principal_and_a_default_user_are_filled_in(self):
        info = framework_info(ServiceSpec("s", (), principal="tf"), None, "host", "")
        assert info["principal"] == "tf"
        assert info["user"]


class TestTaskInfo:
    def test_reserved_resources_are_used_first_and_named_as_offered(self):
        raw = offer(scalar("cpus", 4), scalar("cpus", 1, reservations=RESERVED), scalar("mem", 256))
        resources = task_info(a_launch(resources=Resources(1.5, 128.0)), [raw])["resources"]
        role = {"allocation_info": {"role": ROLE}}
        assert resources == [
            scalar("cpus", 1.0, reservations=RESERVED, **role),
            scalar("cpus", 0.5, **role),
            scalar("mem", 128.0, **role),
        ]

    def test_tasks_of_one_accept_share_nothing(self):
        raw = offer(
            scalar("cpus", 1, reservations=RESERVED), scalar("cpus", 1), port_ranges((1, 4))
        )
        first, second = task_infos(
            [
                a_launch(resources=Resources(1.0), ports=(1, 3)),
                a_launch(task_id="b", resources=Resources(1.0), ports=(2, 4)),
            ],
            [raw],
        )
        assert first["resources"][0]["reservations"] == RESERVED
        assert "reservations" not in second["resources"][0]
        with pytest.raises(ConversionError, match="task b: needs 1 cpus, the offers have 0 left"):
            task_infos(
                [
                    a_launch(resources=Resources(2.0)),
                    a_launch(task_id="b", resources=Resources(1.0)),
                ],
                [raw],
            )

    def test_ports_are_ranges(self):
        raw = offer(port_ranges((31000, 31010)))
        info = task_info(a_launch(resources=Resources(), ports=(31005, 31000, 31001)), [raw])
        assert info["resources"][0]["ranges"] == {
            "range": [{"begin": 31000, "end": 31001}, {"begin": 31005, "end": 31005}]
        }
        names = {p["number"]: p["name"] for p in info["discovery"]["ports"]["ports"]}
        assert names == {31005: "grpc", 31000: "port-1", 31001: "runner"}

    @pytest.mark.parametrize("wanted", [(5,), (1, 1)])
    def test_ports_not_offered_or_wanted_twice_are_refused(self, wanted):
        with pytest.raises(ConversionError, match="port"):
            task_info(a_launch(resources=Resources(), ports=wanted), [offer(port_ranges((1, 4)))])

    def test_resources_of_several_offers_are_combined(self):
        raw = [offer(scalar("cpus", 1)), offer(scalar("cpus", 1), scalar("mem", 64))]
        info = task_info(a_launch(resources=Resources(2.0, 64.0)), raw)
        assert [r["scalar"]["value"] for r in info["resources"]] == [1.0, 1.0, 64.0]

    def test_command_environment_files_and_user(self):
        info = task_info(
            a_launch(
                resources=Resources(),
                command="./run",
                env={"A": "1"},
                secret_env={"TOKEN": "s3cret"},
                uris=(Uri("http://f/job.zip"), Uri("/r", False, True, True, "runner")),
                user="tf",
                kill_grace_seconds=2.5,
                labels={"k": "v"},
            ),
            [],
        )
        command = info["command"]
        assert (command["shell"], command["value"], command["user"]) == (True, "./run", "tf")
        data = base64.b64encode(b"s3cret").decode()
        assert command["environment"]["variables"] == [
            {"name": "A", "value": "1"},
            {
                "name": "TOKEN",
                "type": "SECRET",
                "secret": {"type": "VALUE", "value": {"data": data}},
            },
        ]
        assert [uri["value"] for uri in command["uris"]] == ["http://f/job.zip", "/r"]
        assert command["uris"][1]["output_file"] == "runner"
        assert info["kill_policy"] == {"grace_period": {"nanoseconds": 2_500_000_000}}
        assert info["labels"] == {"labels": [{"key": "k", "value": "v"}]}
        assert "container" not in info

    def test_an_image_is_run_by_the_mesos_containerizer(self):
        info = task_info(
            a_launch(resources=Resources(), container=Container("tf:2", force_pull=True)), []
        )
        image = {"type": "DOCKER", "docker": {"name": "tf:2"}, "cached": False}
        assert info["container"] == {"type": "MESOS", "mesos": {"image": image}}

    def test_a_directory_of_the_agent_is_mounted_where_it_is(self):
        container = Container("tf:2", host_directories=("/c",))
        info = task_info(a_launch(resources=Resources(), container=container), [])
        assert info["container"]["volumes"] == [
            {"container_path": "/c", "host_path": "/c", "mode": "RW"}
        ]

    def test_an_image_is_run_by_docker_with_secrets_as_plain_values(self):
        container = Container("tf:2", Containerizer.DOCKER)
        info = task_info(
            a_launch(resources=Resources(), container=container, secret_env={"TOKEN": "s"}), []
        )
        assert info["container"]["docker"]["network"] == "HOST"
        variables = info["command"]["environment"]["variables"]
        assert variables == [{"name": "TOKEN", "value": "s"}]

    def test_gpus_in_docker_are_refused_by_name(self):
        raw = offer(scalar("gpus", 1))
        container = Container("tf:2", Containerizer.DOCKER)
        with pytest.raises(ConversionError, match="GPUs need the Mesos containerizer"):
            task_info(a_launch(resources=Resources(gpus=1), container=container), [raw])


thousandths = st.integers(0, 64_000).map(lambda n: n / 1000)
amounts = st.lists(st.tuples(thousandths, st.booleans()), min_size=1, max_size=5)


@given(amounts, st.lists(thousandths, min_size=1, max_size=6))
def test_whatever_is_taken_and_left_adds_up_to_what_was_offered(offered, wanted):
    raw = offer(
        *(
            scalar("cpus", value, **({"reservations": RESERVED} if reserved else {}))
            for value, reserved in offered
        )
    )
    untouched = copy.deepcopy(raw)
    total = offer_from_json(raw, 0).resources.cpus
    launches = [a_launch(task_id=str(i), resources=Resources(w)) for i, w in enumerate(wanted)]
    if round(sum(wanted), 3) > total:
        with pytest.raises(ConversionError):
            task_infos(launches, [raw])
    else:
        infos = task_infos(launches, [raw])
        for info, share in zip(infos, wanted, strict=True):
            taken = sum(r["scalar"]["value"] for r in info["resources"])
            assert taken == pytest.approx(share, abs=1e-9)
        reserved = sum(value for value, is_reserved in offered if is_reserved)
        used_reserved = sum(
            r["scalar"]["value"] for info in infos for r in info["resources"] if "reservations" in r
        )
        assert used_reserved == pytest.approx(min(reserved, sum(wanted)), abs=1e-6)
    assert raw == untouched
