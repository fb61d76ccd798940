"""The table of agents that is kept from one decision to the next."""

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from dcos_tensorflow.core.model.offer import Offer
from dcos_tensorflow.core.placement.agent_table import AgentTable
from dcos_tensorflow.core.spec.resources import PortRanges, Resources

FIELDS = ("hostname", "rack", "@zone", "")
PORTS = range(31000, 31008)


def offer(number: int, agent: int, mesos_role: str = "*", **changes: object) -> Offer:
    made = Offer(
        offer_id=f"o{number}",
        agent_id=f"a{agent}",
        hostname=f"h{agent}",
        address=f"10.0.0.{agent}",
        mesos_role=mesos_role,
        resources=Resources(1, 100),
        ports=PortRanges(((31000 + number % 4, 31004),)),
        attributes={"rack": f"r{agent % 2}"},
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def table_of(offers: Iterable[Offer]) -> AgentTable:
    return AgentTable().of(by_id(*offers))


def by_id(*offers: Offer) -> dict[str, Offer]:
    return {each.offer_id: each for each in offers}


def content(table: AgentTable) -> object:
    """Return all that can be asked of a table, in words that two tables share."""
    columns = []
    for name in FIELDS:
        column = table.column(name)
        texts = [*column.values.texts, None]
        columns.append([texts[code] for code in column.codes])
    return (
        [(agent.key, agent.offers, agent.ports, agent.mounts) for agent in table.agents],
        table.numbers.tolist(),
        columns,
        [table.offering_port(port).tolist() for port in PORTS],
    )


offers = st.builds(
    offer,
    st.integers(0, 9),
    st.integers(0, 4),
    st.sampled_from(("*", "training")),
    zone=st.sampled_from((None, "z1")),
    unavailable_from=st.sampled_from((None, 1e9)),
    mounts=st.sampled_from(((), (100.0,))),
)
hands = st.lists(st.lists(offers, max_size=8), min_size=1, max_size=6)


@given(hands)
def test_a_kept_table_is_what_it_would_be_from_nothing(hands: list[list[Offer]]) -> None:
    table = AgentTable()
    for hand in hands:
        table = table.of(by_id(*hand))
        assert content(table) == content(table_of(hand))


def test_only_the_rows_of_agents_whose_offers_changed_are_made_anew() -> None:
    before = by_id(offer(1, 1), offer(2, 2), offer(3, 3))
    table = table_of(before.values())
    later = table.of({**before, **by_id(offer(4, 2))})
    same = [old is new for old, new in zip(table.agents, later.agents, strict=True)]
    assert same == [True, False, True]


def test_an_agent_whose_last_offer_is_gone_has_no_row() -> None:
    table = table_of([offer(1, 1), offer(2, 2)])
    assert [agent.key for agent in table.of(by_id(offer(2, 2))).agents] == [("a2", "*")]


def test_the_table_before_stays_as_it_was() -> None:
    table = table_of([offer(1, 1), offer(2, 2)])
    seen = content(table)
    table.of(by_id(offer(2, 2), offer(5, 0, address="127.0.0.1")))
    assert content(table) == seen


def test_the_same_offers_are_the_same_table() -> None:
    held = by_id(offer(1, 1))
    table = AgentTable().of(held)
    assert table.of(held) is table


def test_names_of_machines_that_are_gone_are_forgotten() -> None:
    table = AgentTable()
    for number in range(3000):
        table = table.of(by_id(offer(number, number)))
        assert table.column("hostname").values.texts[-1] == f"h{number}"
    assert len(table.column("hostname").values) < 2000
