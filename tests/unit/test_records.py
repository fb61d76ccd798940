"""Records are dataclasses to every user of one."""

import ast
import copy
import dataclasses
import pickle
from pathlib import Path

import pytest

import dcos_tensorflow
from dcos_tensorflow.records import dataclass


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


@dataclass(frozen=True)
class Login:
    """A kind of which not everything is shown, and not everything counts."""

    user: str
    secret: str = dataclasses.field(default="", repr=False)
    asked: int = dataclasses.field(default=0, compare=False)


@dataclass(frozen=True)
class CheckedLogin(Login):
    """A kind of that kind, with more to it."""

    host: str = ""

    def __post_init__(self) -> None:
        if not self.user:
            raise ValueError("nobody")


@dataclass(frozen=True, eq=False)
class Itself:
    """A kind of which each is another."""

    name: str


@dataclass
class Counter:
    """A kind that changes."""

    count: int = 0


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


def test_what_is_not_to_be_shown_is_not() -> None:
    assert repr(Login("me", "hidden")) == "Login(user='me', asked=0)"


def test_what_does_not_count_makes_no_difference() -> None:
    assert Login("me", asked=1) == Login("me", asked=2) != Login("me", "secret")
    assert len({Login("me", asked=1), Login("me", asked=2)}) == 1


def test_what_a_class_says_itself_is_done() -> None:
    with pytest.raises(ValueError, match="nobody"):
        CheckedLogin("")


def test_a_kind_of_a_kind_has_the_fields_of_both() -> None:
    assert CheckedLogin("me", "s", 1, "here").host == "here"
    assert CheckedLogin("me") != Login("me")


def test_one_that_is_to_be_itself_alone_equals_no_other() -> None:
    assert Itself("a") != Itself("a")
    assert len({Itself("a"), Itself("a")}) == 2


def test_one_that_changes_is_compared_and_has_no_hash() -> None:
    counter = Counter()
    counter.count = 2
    assert counter == Counter(2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(counter)


def test_a_pattern_takes_its_fields_in_turn() -> None:
    match Login("me", "secret"):
        case Login(user, secret):
            assert (user, secret) == ("me", "secret")


def test_each_dataclass_of_the_product_is_made_here() -> None:
    """Those of the standard library cost ten times as much: every start waits for them."""
    product = Path(dcos_tensorflow.__file__).parent
    # The plugin is packed alone.
    modules = [path for path in product.rglob("*.py") if path.parent.name != "plugin"]
    others = {
        module.name
        for module in modules
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "dataclasses"
        if any(alias.name == "dataclass" for alias in node.names)
    }
    # It says so to type checkers.
    assert others == {"records.py"}
