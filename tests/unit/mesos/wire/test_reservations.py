"""RESERVE, CREATE, DESTROY and UNRESERVE as Mesos' own recording has them."""

import json

import pytest

from data_files import MESOS_RECORDINGS
from dcos_tensorflow.core.model.actions import LaunchTask, Release, ReservationOrder
from dcos_tensorflow.core.spec.resources import PortRanges, Resources
from dcos_tensorflow.core.spec.volume_spec import VolumeSpec, VolumeType
from dcos_tensorflow.mesos.wire.convert import ConversionError, launch_operations, offer_from_json
from dcos_tensorflow.mesos.wire.reservation_calls import release_operations

ROLE = "tensorflow"
FRAMEWORK = "aa328114-5b42-4747-ae70-14e4bbe7f350-0007"
LABELS = {
    "labels": [
        {"key": "resource_id", "value": "r1"},
        {"key": "framework_id", "value": FRAMEWORK},
    ]
}
OURS = {"type": "DYNAMIC", "role": ROLE, "labels": LABELS}


def recorded():
    lines = (MESOS_RECORDINGS / "reserve_create.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def accepts():
    """Return the operations of the recorded ACCEPTs, without the ids that ask for feedback."""
    found = []
    for line in recorded():
        body = line.get("request", {}).get("body", {})
        if body.get("type") == "ACCEPT":
            operations = body["accept"]["operations"]
            found.append([{k: v for k, v in o.items() if k != "id"} for o in operations])
    return found


def offered(number):
    """Return the recorded offer with this number."""
    for line in recorded():
        if line.get("event", {}).get("type") == "OFFERS":
            for raw in line["event"]["offers"]["offers"]:
                if raw["id"]["value"].endswith(f"-O{number}"):
                    return raw
    raise AssertionError(f"no offer O{number}")


def by_name(resources):
    """Return resources by name and volume, whatever their order."""
    return {(r["name"], json.dumps(r.get("disk"), sort_keys=True)): r for r in resources}


def order(**changes):
    fields = {
        "resource_id": "r1",
        "framework_id": FRAMEWORK,
        "mesos_role": ROLE,
        "principal": "",
        "persistence_id": "vol-1",
        "volume": VolumeSpec(100, "data"),
    }
    return ReservationOrder(**{**fields, **changes})


def launch(task_id="on-vol", ports=(32000,), cpus=0.5, **changes):
    return LaunchTask(
        task_id=task_id,
        name=task_id,
        agent_id="S1",
        resources=Resources(cpus=cpus, mem=64),
        ports=ports,
        command="true",
        env={},
        reservation=order(**changes),
    )


def release(everything=(), but_volumes=()):
    return Release(("O1",), "S1", tuple(everything), tuple(but_volumes), 0.1)


def resource(name, value, *stack, **more):
    made = {
        "name": name,
        "type": "SCALAR",
        "scalar": {"value": value},
        "allocation_info": {"role": ROLE},
        **more,
    }
    return {**made, **({"reservations": list(stack)} if stack else {})}


def offer(*resources, role=ROLE):
    return {
        "id": {"value": "O1"},
        "agent_id": {"value": "S1"},
        "hostname": "node1",
        "allocation_info": {"role": role},
        "resources": list(resources),
    }


def mount(root, size, *stack):
    disk = {"source": {"type": "MOUNT", "mount": {"root": root}}}
    return resource("disk", size, *stack, disk=disk)


# -- as recorded ---------------------------------------------------------------------------------


def test_a_first_launch_is_the_recorded_accept():
    mine, theirs = launch_operations([launch()], [offered(42)]), accepts()[0]
    assert [o["type"] for o in mine] == ["RESERVE", "CREATE", "LAUNCH"]
    assert by_name(mine[0]["reserve"]["resources"]) == by_name(theirs[0]["reserve"]["resources"])
    assert mine[1] == theirs[1]
    launched = mine[2]["launch"]["task_infos"][0]["resources"]
    assert by_name(launched) == by_name(theirs[2]["launch"]["task_infos"][0]["resources"])


def test_a_launch_on_a_volume_that_is_there_makes_nothing_anew():
    (only,) = launch_operations([launch()], [offered(46)])
    launched = only["launch"]["task_infos"][0]["resources"]
    recorded_launch = accepts()[0][2]["launch"]["task_infos"][0]["resources"]
    assert by_name(launched) == by_name(recorded_launch)


def test_giving_everything_back_is_the_recorded_accept():
    mine = release_operations(release([(FRAMEWORK, "r1")]), [offered(46)])
    theirs = accepts()[1]
    assert [o["type"] for o in mine] == ["DESTROY", "UNRESERVE"]
    assert mine[0] == theirs[0]
    assert by_name(mine[1]["unreserve"]["resources"]) == by_name(
        theirs[1]["unreserve"]["resources"]
    )


def test_a_volume_can_stay_while_the_rest_goes_back():
    (only,) = release_operations(release((), [(FRAMEWORK, "r1")]), [offered(46)])
    assert {r["name"] for r in only["unreserve"]["resources"]} == {"cpus", "mem", "ports"}


# -- what else there is --------------------------------------------------------------------------


def test_the_principal_of_the_framework_is_in_reservation_and_volume():
    raw = offer(resource("cpus", 1), resource("mem", 128), resource("disk", 200))
    reserve, create, _ = launch_operations([launch(ports=(), principal="svc")], [raw])
    assert all(r["reservations"][-1]["principal"] == "svc" for r in reserve["reserve"]["resources"])
    assert create["create"]["volumes"][0]["disk"]["persistence"]["principal"] == "svc"


def test_a_task_that_wants_more_reserves_what_is_missing_and_less_gives_the_rest_back():
    raw = offered(46)
    more = launch_operations([launch(cpus=1.5)], [raw])
    assert [r["scalar"]["value"] for r in more[0]["reserve"]["resources"]] == [1.0]
    less = launch_operations([launch(cpus=0.2)], [raw])
    assert less[0]["type"] == "UNRESERVE"
    assert [r["scalar"]["value"] for r in less[0]["unreserve"]["resources"]] == [0.3]


def test_another_port_is_reserved_and_the_old_one_given_back():
    reserve, unreserve, _ = launch_operations([launch(ports=(32005,))], [offered(46)])
    ranges = reserve["reserve"]["resources"][0]["ranges"]["range"]
    assert ranges == [{"begin": 32005, "end": 32005}]
    ranges = unreserve["unreserve"]["resources"][0]["ranges"]["range"]
    assert ranges == [{"begin": 32000, "end": 32000}]


def test_reserved_disk_without_its_volume_gets_it():
    raw = offer(resource("cpus", 0.5, OURS), resource("mem", 64, OURS), resource("disk", 100, OURS))
    create, _ = launch_operations([launch(ports=())], [raw])
    assert create["type"] == "CREATE"


def test_tasks_of_one_accept_get_a_reservation_each():
    raw = offer(resource("cpus", 2), resource("mem", 256), resource("disk", 300))
    both = [
        launch("one", (), resource_id="r1", persistence_id="v1"),
        launch("two", (), resource_id="r2", persistence_id="v2"),
    ]
    reserve, create, _ = launch_operations(both, [raw])
    assert len(reserve["reserve"]["resources"]) == 6
    assert [v["disk"]["persistence"]["id"] for v in create["create"]["volumes"]] == ["v1", "v2"]


def test_the_smallest_whole_disk_that_will_do_is_taken_whole():
    raw = offer(
        resource("cpus", 1),
        resource("mem", 64),
        mount("/big", 900),
        mount("/small", 50),
        mount("/right", 400),
    )
    wanted = launch(ports=(), volume=VolumeSpec(100, "data", VolumeType.MOUNT))
    _, create, _ = launch_operations([wanted], [raw])
    volume = create["create"]["volumes"][0]
    assert volume["scalar"]["value"] == 400
    assert volume["disk"]["source"]["mount"]["root"] == "/right"
    assert volume["disk"]["volume"] == {"container_path": "data", "mode": "RW"}


def test_a_whole_disk_is_unreserved_with_its_source():
    source = {"source": {"type": "MOUNT", "mount": {"root": "/mnt"}}}
    info = {"persistence": {"id": "v"}, "volume": {"container_path": "data", "mode": "RW"}}
    raw = offer(resource("disk", 400, OURS, disk={**source, **info}))
    destroy, unreserve = release_operations(release([(FRAMEWORK, "r1")]), [raw])
    assert destroy["destroy"]["volumes"][0]["disk"] == {**source, **info}
    assert unreserve["unreserve"]["resources"][0]["disk"] == source


def test_without_room_for_the_volume_nothing_is_launched():
    raw = offer(resource("cpus", 1), resource("mem", 64), resource("disk", 99))
    with pytest.raises(ConversionError, match="100 MB of disk in one piece"):
        launch_operations([launch(ports=())], [raw])


def test_what_an_operator_reserved_to_a_parent_role_is_refined():
    parent = {"type": "STATIC", "role": ROLE}
    raw = offer(
        resource("cpus", 1, parent),
        resource("mem", 64, parent),
        resource("disk", 100, parent),
        role=f"{ROLE}/mnist",
    )
    reserve, *_ = launch_operations([launch(ports=(), mesos_role=f"{ROLE}/mnist")], [raw])
    for made in reserve["reserve"]["resources"]:
        assert [r["role"] for r in made["reservations"]] == [ROLE, f"{ROLE}/mnist"]


def test_what_is_reserved_to_the_role_itself_cannot_be_reserved_again():
    static = {"type": "STATIC", "role": ROLE}
    raw = offer(resource("cpus", 1, static), resource("mem", 64), resource("disk", 100))
    assert offer_from_json(raw, 0).fixed == Resources(cpus=1)
    with pytest.raises(ConversionError, match="cpus"):
        launch_operations([launch(ports=())], [raw])


@pytest.mark.parametrize(
    "labels",
    [
        {"resource_id": "r1", "framework_id": "another"},
        {"resource_id": "another", "framework_id": FRAMEWORK},
        {"resource_id": "r1"},
        {"framework_id": FRAMEWORK},
        {},
    ],
)
def test_nothing_is_given_back_that_does_not_carry_both_labels(labels):
    listed = {"labels": [{"key": k, "value": v} for k, v in labels.items()]}
    theirs = {"type": "DYNAMIC", "role": ROLE, "labels": listed}
    raw = offer(resource("cpus", 1, theirs))
    asked = [(FRAMEWORK, "r1"), ("", "r1"), (FRAMEWORK, ""), ("", "")]
    assert release_operations(release(asked), [raw]) == []


def test_what_carries_labels_is_no_room_for_any_other_task():
    raw = offered(46)
    read = offer_from_json(raw, 0)
    assert read.resources == Resources(cpus=3.5, mem=8128, disk=9900)
    assert read.ports == PortRanges(((32001, 32999),))
