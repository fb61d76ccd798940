"""Arithmetic of Mesos resources."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedded_mesos.resources import InvalidResource, Resources


def scalar(name: str, value: float, **more: object) -> dict[str, object]:
    return {"name": name, "type": "SCALAR", "scalar": {"value": value}, **more}


def ports(*ranges: tuple[int, int]) -> dict[str, object]:
    pairs = [{"begin": first, "end": last} for first, last in ranges]
    return {"name": "ports", "type": "RANGES", "ranges": {"range": pairs}}


def test_thousandths_make_point_one_plus_point_two_point_three() -> None:
    total = Resources.parse([scalar("cpus", 0.1)]) + Resources.parse([scalar("cpus", 0.2)])
    assert total == Resources.parse([scalar("cpus", 0.3)])


def test_ports_are_cut_out_of_ranges() -> None:
    left = Resources.parse([ports((10, 20))]) - Resources.parse([ports((12, 13), (20, 20))])
    assert left.ports().pairs == ((10, 11), (14, 19))


def test_amounts_of_different_reservations_are_not_added() -> None:
    reserved = scalar("cpus", 1, reservations=[{"type": "DYNAMIC", "role": "a"}])
    total = Resources.parse([scalar("cpus", 1), reserved])
    assert len(total.to_json()) == 2
    assert not total.contains(Resources.parse([scalar("cpus", 2)]))


def test_text_is_that_of_mesos() -> None:
    allocation = {"allocation_info": {"role": "r"}}
    found = Resources.parse([scalar("cpus", 3.9, **allocation), scalar("mem", 32.0, **allocation)])
    assert str(found) == "cpus(allocated: r):3.9; mem(allocated: r):32"


@pytest.mark.parametrize("bad", [scalar("gpus", 0.5), scalar("cpus", -1), ports((5, 4))])
def test_what_is_no_amount_is_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InvalidResource):
        Resources.parse([bad])


def test_format_before_refinement_names_the_role() -> None:
    reserved = scalar("cpus", 1, reservations=[{"type": "DYNAMIC", "role": "a", "labels": {}}])
    (found,) = Resources.parse([reserved]).to_json(refined=False)
    assert (found["role"], found["reservation"]) == ("a", {"labels": {}})
    assert Resources.parse([found]) == Resources.parse([reserved])


_RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=4)


@given(_RANGES, _RANGES)
def test_difference_of_ports_is_that_of_sets(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    def numbers(ranges: list[tuple[int, int]]) -> set[int]:
        return {port for first, size in ranges for port in range(first, first + size + 1)}

    def parsed(ranges: list[tuple[int, int]]) -> Resources:
        return Resources.parse([ports(*((first, first + size) for first, size in ranges))])

    left = parsed(one) - parsed(other)
    assert set(left.ports()) == numbers(one) - numbers(other)


MOUNT = {
    "name": "disk",
    "type": "SCALAR",
    "scalar": {"value": 100},
    "disk": {"source": {"type": "MOUNT", "mount": {"root": "/mnt/1"}}},
}


def test_a_whole_disk_is_taken_whole_or_not_at_all():
    whole = Resources.parse([MOUNT])
    assert whole.contains(whole)
    assert not whole.contains(Resources.parse([{**MOUNT, "scalar": {"value": 50}}]))


def test_a_whole_disk_is_another_kind_than_the_agents_disk():
    plain = {key: value for key, value in MOUNT.items() if key != "disk"}
    assert not Resources.parse([MOUNT]).contains(Resources.parse([plain]))
    assert "disk[MOUNT:/mnt/1]:100" in str(Resources.parse([MOUNT]))
