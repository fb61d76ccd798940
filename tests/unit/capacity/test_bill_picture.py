"""A bill as a person sees it: a table, a sentence, a picture."""

from typing import Any
from xml.etree import ElementTree

import pytest

from dcos_tensorflow.capacity.billing.bill import bill_of, document, reckoned
from dcos_tensorflow.capacity.billing.bill_picture import picture
from dcos_tensorflow.capacity.billing.usage import MachineUse, PriceChange, Tariff
from dcos_tensorflow.capacity.market import Market
from dcos_tensorflow.client.bill_lines import bill_lines, savings

HOUR = 3600.0


def a_document(*markets: Market) -> dict[str, Any]:
    """Return the bill of machines that were there for an hour each, one after the other."""
    uses = [
        MachineUse(
            *(f"i-{turn}", "purchase", "p3.2xlarge", "us-east-1a", market),
            *(turn * HOUR, (turn + 1) * HOUR, (PriceChange(0, 0.918),), 3.06),
            busy_seconds=3000.0,
        )
        for turn, market in enumerate(markets)
    ]
    return document(bill_of([reckoned(uses, Tariff(), 10 * HOUR)], 10 * HOUR))


def paths(text: str) -> list[ElementTree.Element]:
    """Return what is drawn beside the axes."""
    found = ElementTree.fromstring(text).findall(".//{http://www.w3.org/2000/svg}path")
    return [path for path in found if path.get("class") != "axis"]


def test_a_bill_is_a_table_with_a_line_for_each_market_and_a_sentence() -> None:
    assert list(bill_lines(a_document(Market.SPOT, Market.ON_DEMAND, Market.SPOT))) == [
        "                      machines  time       idle        lost  paid  on demand  saved",
        "p3.2xlarge spot       2         2 h 0 min  20 min 0 s  0 s   1.83  6.12       4.29",
        "p3.2xlarge on-demand  1         1 h 0 min  10 min 0 s  0 s   0.92  3.06       2.14",
        "all                   3         3 h 0 min  30 min 0 s  0 s   2.75  9.18       6.43",
        "The machines have cost 2.75, 70% less than the 9.18 of on-demand ones.",
    ]


def test_where_nothing_was_bought_the_bill_says_so() -> None:
    assert list(bill_lines(a_document())) == ["No machine was bought."]


@pytest.mark.parametrize(
    ("paid", "on_demand", "sentence"),
    [
        ("4.00", "3.00", "The machines have cost 4.00, 33% more than the 3.00 of on-demand ones."),
        ("0.00", "0.00", "The machines have cost 0.00."),
    ],
)
def test_machines_that_cost_more_are_not_called_savings(
    paid: str, on_demand: str, sentence: str
) -> None:
    assert savings({"paid": paid, "on_demand": on_demand}) == sentence


def test_the_picture_has_both_markets_and_what_was_paid() -> None:
    assert len(paths(picture(a_document(Market.SPOT, Market.ON_DEMAND), "a & b"))) == 3
    assert len(paths(picture(a_document(Market.SPOT), "no on-demand machine"))) == 2


def test_a_bill_without_machines_is_an_empty_picture() -> None:
    assert paths(picture(a_document(), "nothing yet")) == []
