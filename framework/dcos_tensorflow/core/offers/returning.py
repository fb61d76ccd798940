"""Handing offers back, and the log of the use of every offer.

Used by the rest of ``core.offers``; /v2/debug/offers shows the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.draft import Draft
from dcos_tensorflow.core.model.actions import Decline
from dcos_tensorflow.core.model.service_state import OfferLog, OfferUse, OfferVerdict

VERDICTS_KEPT = 100
#: An offer of these was used.
_PASSED = frozenset({OfferUse.LAUNCHED, OfferUse.RELEASED})


def decline(
    draft: Draft, offer_ids: tuple[str, ...], seconds: float, why: str, use: OfferUse
) -> None:
    """Hand offers back, not to be offered again for ``seconds``, and note why."""
    if not offer_ids:
        return
    draft.act(
        Decline(offer_ids, round(seconds, 3)),
        f"declining {counted(len(offer_ids), 'offer')} for {seconds:.0f} s: {why}",
    )
    note_offers(draft, offer_ids, use, why, {})
    draft.drop_offers(offer_ids)


def note_offers(
    draft: Draft,
    offer_ids: tuple[str, ...],
    use: OfferUse,
    why: str,
    used: Mapping[str, Sequence[str]],
) -> None:
    """Note what became of offers that are still in the state."""
    desk = draft.state.desk
    log, offers = desk.log, desk.offers
    passed = use in _PASSED
    new = tuple(
        OfferVerdict(
            offer_id=offer_id,
            agent_id=offers[offer_id].agent_id,
            hostname=offers[offer_id].hostname,
            at=draft.now,
            passed=passed,
            tasks=tuple(used.get(offer_id, ())),
            explanation=why,
        )
        for offer_id in offer_ids[-VERDICTS_KEPT:]
        if offer_id in offers
    )
    noted = OfferLog(
        accepted=log.accepted + (len(offer_ids) if passed else 0),
        rejected=log.rejected + (0 if passed else len(offer_ids)),
        by_use={**log.by_use, use: log.by_use.get(use, 0) + len(offer_ids)},
        verdicts=(*log.verdicts, *new)[-VERDICTS_KEPT:],
    )
    draft.state = replace(draft.state, desk=replace(desk, log=noted))
