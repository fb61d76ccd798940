"""The offers in hand as a service keeps them for placement, from one decision to the next.

``core.offers.desk`` has one beside its offers. The table of them (``core.placement.agent_table``)
is made when a decision looks at it, of the last one that was made: unseen, it needs no numpy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from dcos_tensorflow.core.model.offer import Offer

if TYPE_CHECKING:
    from dcos_tensorflow.core.placement.agent_table import AgentTable


class Offered:
    """Offers by their ids. It never changes."""

    def __init__(self, offers: Mapping[str, Offer], last: AgentTable | None = None) -> None:
        self.offers = offers
        self._last = last

    @classmethod
    def of_all(cls, offers: Iterable[Offer]) -> Offered:
        """Return these offers, and no table to begin with. An offer given twice counts once."""
        return cls({offer.offer_id: offer for offer in offers})

    def of(self, offers: Mapping[str, Offer]) -> Offered:
        """Return other offers, whose table is made of this one's."""
        if offers is self.offers:
            return self
        return Offered(offers, self.__dict__.get("table", self._last))

    @cached_property
    def table(self) -> AgentTable:
        """Return the table of the offers."""
        from dcos_tensorflow.core.placement.agent_table import AgentTable

        last, self._last = self._last, None
        return (last or AgentTable()).of(self.offers)
