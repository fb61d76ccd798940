"""What people are told of machines."""

from dcos_tensorflow.capacity.provider import Throttled
from dcos_tensorflow.capacity.status import document
from dcos_tensorflow.cli.commands.capacity import status_lines
from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec
from unit.capacity.simulated_market import Loop, MarketInMemory, gang, options


def shown(loop: Loop) -> dict:  # type: ignore[type-arg]
    waits = dict(loop.rounds[-1].waits)
    return document(loop.stored, waits, loop.rules.spec, loop.now)


def a_loop(demand: int = 2, limits: CapacitySpec | None = None) -> Loop:
    loop = Loop(MarketInMemory(), spec=limits)
    loop.demands = (gang(demand),)
    return loop


def states(loop: Loop) -> list[str]:
    return [machine["state"] for machine in shown(loop)["machines"]]


def test_a_machine_is_followed_from_its_order_to_its_end() -> None:
    loop = a_loop(1)
    loop.step()
    assert shown(loop)["ordered"][0]["count"] == 1
    loop.never = {"host-i-0"}
    loop.step()
    assert states(loop) == ["starting"]
    loop.never = set()
    loop.step()
    assert states(loop) == ["idle"]
    loop.place()
    loop.step()
    assert states(loop) == ["busy"]
    loop.end_job()
    loop.step()
    assert states(loop) == ["leaving"]
    loop.step()
    assert states(loop) == ["ending"]
    loop.step()
    assert states(loop) == []
    assert shown(loop)["ended"][0]["machine_id"] == "i-0"


def test_what_all_costs_is_told_with_the_budget() -> None:
    loop = a_loop(limits=options(budget=5.0))
    loop.until(loop.place)
    loop.step(3600.0)
    found = shown(loop)
    assert found["price_per_hour"] == 0.2
    assert 0.2 <= found["spent"] < 0.21
    first = next(status_lines(found, loop.now))
    assert first == "2 machines, 0.2 an hour; spent 0.20 of 5.00"


def test_what_is_spent_is_never_less_than_the_bill_for_a_machine_of_seconds_either() -> None:
    loop = a_loop()
    loop.step(1.0)
    loop.demands = ()
    loop.end_job()
    for _ in range(10):
        loop.step(1.0)
    found = shown(loop)
    assert loop.stored.left == 0
    assert loop.now - found["ended"][0]["ordered_at"] < 60
    # A minute of each is paid.
    assert found["spent"] == round(2 * 0.1 / 60, 6)


def test_the_bill_has_what_was_saved() -> None:
    loop = a_loop()
    loop.until(loop.place)
    loop.step()
    loop.step(3600.0)
    loop.end_job()
    loop.until(lambda: not loop.stored.left)
    total = shown(loop)["bill"]["total"]
    assert total["machines"] == 2
    assert total["paid"] == "0.20"
    assert total["on_demand"] == "0.60"


def test_why_nothing_comes_is_told_with_when_it_is_tried_again() -> None:
    loop = a_loop()
    loop.market.fails["buy"] = [Throttled("too many calls")]
    loop.step()
    loop.step()
    lines = list(status_lines(shown(loop), loop.now))
    assert "  ordered 2 spot machines of small in 1a: too many calls" in lines
    assert "  buying: again in 5 s: too many calls" in lines
    assert any(line.startswith("  nothing for main: ") for line in lines)
