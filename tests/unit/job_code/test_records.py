"""Records are frozen dataclasses, to whoever uses one."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest

from dcos_tensorflow.job_code.records import dataclass


@dataclass(frozen=True)
class Place:
    """A place with a default, and one that is made for each."""

    name: str
    size: int = 3
    found: dict[str, int] = dataclasses.field(default_factory=dict)
    checked: int = dataclasses.field(default=1, metadata={"check": "a number"})


@dataclass(frozen=True)
class OtherPlace:
    """Another kind with the same fields."""

    name: str
    size: int = 3
    found: dict[str, int] = dataclasses.field(default_factory=dict)
    checked: int = 1


@dataclass(frozen=True)
class Nothing:
    """A kind without fields."""


def test_fields_come_by_place_by_name_and_by_default() -> None:
    place = Place("a", checked=2)
    assert (place.name, place.size, place.found, place.checked) == ("a", 3, {}, 2)
    assert place.found is not Place("b").found


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ((), {}),
        ((), {"size": 1, "other": 2}),
        (("a",), {"name": "b"}),
        (("a",), {"other": 1}),
        (("a", 1, {}, 2, 3), {}),
    ],
    ids=["missing", "missing and unknown", "twice", "unknown", "too many"],
)
def test_other_fields_are_refused(given: tuple[object, ...], named: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="Place"):
        Place(*given, **named)  # type: ignore[arg-type]


def test_it_equals_another_of_its_kind_with_the_same_values() -> None:
    assert Place("a") == Place("a")
    assert Place("a") != Place("b")
    assert Place("a") != OtherPlace("a")
    assert Nothing() == Nothing() != ()


def test_equal_ones_have_one_hash() -> None:
    assert len({Nothing(), Nothing()}) == 1


def test_it_cannot_be_changed() -> None:
    place = Place("a")
    with pytest.raises(dataclasses.FrozenInstanceError):
        place.name = "b"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del place.name
    assert place.name == "a"


def test_dataclasses_know_it() -> None:
    place = dataclasses.replace(Place("a"), size=5)
    assert dataclasses.asdict(place) == {"name": "a", "size": 5, "found": {}, "checked": 1}
    assert dataclasses.fields(Place)[3].metadata == {"check": "a number"}
    assert repr(place) == "Place(name='a', size=5, found={}, checked=1)"


def test_it_is_copied_and_sent() -> None:
    place = Place("a", found={"b": 1})
    assert copy.deepcopy(place) == pickle.loads(pickle.dumps(place)) == place
