"""What became of the offers: ``/v2/debug/offers``, in the SDK's form."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from dcos_tensorflow.core.model.service_state import OfferVerdict, ServiceState

if TYPE_CHECKING:
    from dcos_tensorflow.api import schemas


def offers(state: ServiceState) -> schemas.Offers:
    """Return counts since the start of this scheduler, and the newest verdicts, newest last.

    ``failureReasons`` and ``rejectedAgents`` count over those verdicts only.
    """
    log = state.desk.log
    failed = [verdict for verdict in log.verdicts if not verdict.passed]
    return {
        "acceptedCount": log.accepted,
        "rejectedCount": log.rejected,
        "failureReasons": dict(Counter(verdict.explanation for verdict in failed)),
        "rejectedAgents": dict(Counter(verdict.agent_id for verdict in failed)),
        "offers": [verdict_body(verdict) for verdict in log.verdicts],
    }


def verdict_body(verdict: OfferVerdict) -> schemas.Offer:
    """Return one verdict; ``timestamp`` is unix milliseconds, as everywhere in the SDK."""
    return {
        "timestamp": round(verdict.at * 1000),
        "pod-instance-name": ",".join(verdict.tasks),
        "outcome": "pass" if verdict.passed else "fail",
        "explanation": [verdict.explanation],
        "offer": {
            "id": {"value": verdict.offer_id},
            "slaveId": {"value": verdict.agent_id},
            "hostname": verdict.hostname,
        },
    }
