"""What of a machine's life is paid, and what its loss has cost, as ledger and provider know it."""

from dataclasses import replace

import pytest

from dcos_tensorflow.capacity import mirror
from dcos_tensorflow.capacity.billing.bill import Amounts
from dcos_tensorflow.capacity.billing.usage import Tariff
from dcos_tensorflow.capacity.billing.uses import bill_of
from dcos_tensorflow.capacity.ledger import Ledger
from dcos_tensorflow.capacity.losses import Pause
from dcos_tensorflow.capacity.provider import Machine, MachineState
from unit.capacity.machine_lives import (
    GONE,
    HERE,
    NEW,
    STARTED,
    TAKEN,
    WRITTEN,
    bought,
    heard,
    seen,
)
from unit.capacity.simulated_market import OWNER, SPOT


def total(ledger: Ledger, after: float = 90_000.0) -> Amounts:
    return bill_of(ledger, Tariff(), WRITTEN + after).total


def lost(ledger: Ledger, after: float = 90_000.0) -> float:
    return float(total(ledger, after).lost_seconds)


def test_a_machine_is_paid_for_the_time_that_its_provider_names() -> None:
    ended = replace(NEW, state=MachineState.ENDED, ended_at=STARTED + 5000)
    ledger = heard(heard(bought(), NEW, 100), ended, 5060)
    assert total(ledger).seconds == 5000
    assert float(total(ledger).paid) == 5000 * SPOT.price / 3600


def test_it_lived_from_its_start_even_if_it_was_not_heard_of_for_long() -> None:
    """The answer of the purchase was lost, and the scheduler with it."""
    late = bought(replace(NEW, told_at=STARTED + 3000))
    ended = replace(NEW, state=MachineState.ENDED, ended_at=STARTED + 5000)
    assert total(heard(late, ended, 5000)).seconds == 5000


def test_an_end_that_the_provider_gives_no_time_of_is_when_it_first_said_so() -> None:
    ledger = heard(bought(), TAKEN, 5002)
    ledger = heard(ledger, TAKEN, 5100)
    assert total(ledger).seconds == 5000


def test_a_machine_that_is_missing_had_ended_when_it_was_first_missed() -> None:
    ledger = heard(bought(), NEW, 100)
    for after in (502, 600, 700):
        ledger = heard(ledger, None, after)
    assert not ledger.left
    assert total(ledger).seconds == 500


def test_a_machine_that_runs_is_paid_until_now() -> None:
    assert total(bought(), after=1002).seconds == 1000


def test_a_price_holds_from_when_it_was_seen() -> None:
    ledger = mirror.prices_seen(bought(), [replace(SPOT, price=0.2)], WRITTEN + 1002)
    ended = replace(NEW, state=MachineState.ENDED, ended_at=STARTED + 5000)
    paid = total(heard(ledger, ended, 5002)).paid
    assert paid * 3600 * 10 == 1000 * 1 + 4000 * 2


def test_a_provider_without_a_clock_is_gone_by_with_ours() -> None:
    untold = replace(NEW, started_at=0.0, told_at=0.0)
    ended = replace(untold, state=MachineState.ENDED)
    ledger, _ = mirror.listed(bought(untold), [ended], OWNER, WRITTEN + 502)
    assert total(ledger).seconds == 500


@pytest.mark.parametrize(
    ("machine", "is_free"),
    [
        pytest.param(TAKEN, True, id="taken back by its provider"),
        pytest.param(replace(TAKEN, taken_back=False), False, id="ended by a user"),
    ],
)
def test_the_first_hour_is_free_of_a_spot_machine_that_was_taken_back(
    machine: Machine, is_free: bool
) -> None:
    assert (total(heard(bought(), machine, 3000)).paid == 0) == is_free


def test_a_machine_that_is_not_listed_any_more_was_not_taken_back() -> None:
    ledger = heard(bought(), NEW, 10)
    for after in (500, 700):
        ledger = heard(ledger, None, after)
    assert total(ledger).paid > 0


def test_what_a_loss_cost_is_until_the_gang_trains_again() -> None:
    ledger = seen(bought(), HERE, 100)
    ledger = seen(ledger, GONE, 1010, Pause(WRITTEN + 1008, None))
    assert lost(ledger, 1020) == 12
    ledger = seen(heard(ledger, TAKEN, 1030), GONE, 1060, Pause(WRITTEN + 1008, WRITTEN + 1055))
    assert lost(ledger) == 47


def test_with_a_notice_it_is_the_restart_alone() -> None:
    ledger = seen(bought(), HERE, 100)
    noticed = replace(HERE, noticed=HERE.known)
    ledger = seen(ledger, noticed, 1000)
    assert lost(ledger, 1030) == 0
    ledger = seen(ledger, replace(noticed, busy=frozenset()), 1040, Pause(WRITTEN + 1030, None))
    ledger = seen(ledger, noticed, 1045, Pause(WRITTEN + 1030, WRITTEN + 1041))
    assert lost(heard(ledger, TAKEN, 1120)) == 11


def test_a_pause_that_was_over_before_costs_nothing() -> None:
    before = Pause(WRITTEN + 200, WRITTEN + 300)
    ledger = seen(seen(bought(), HERE, 100), GONE, 1000, before)
    assert lost(ledger) == 0


def test_a_pause_long_after_it_has_another_cause() -> None:
    ledger = heard(seen(seen(bought(), HERE, 100), GONE, 1000), TAKEN, 1010)
    assert lost(seen(ledger, GONE, 9000, Pause(WRITTEN + 8000, None))) == 0


def test_a_planned_change_is_no_loss() -> None:
    ledger = seen(seen(bought(), HERE, 100), HERE, 1000, Pause(WRITTEN + 990, None))
    assert lost(ledger) == 0


def test_who_was_out_of_reach_and_came_back_has_cost_nothing() -> None:
    ledger = seen(seen(bought(), HERE, 100), GONE, 1000)
    ledger = seen(ledger, HERE, 1010)
    assert lost(seen(ledger, HERE, 1100, Pause(WRITTEN + 1090, None))) == 0
