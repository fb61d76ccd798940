"""Which strategy a job is recovered by.

``cluster_spec.rendered_strategy`` goes by the options alone, because a ClusterSpec is needed before
the code was seen. Recovery knows more: what a task runner recognised in the job's code.
"""

from __future__ import annotations

from dcos_tensorflow.core.cluster.cluster_spec import rendered_strategy
from dcos_tensorflow.core.model.spec import ServiceSpec, Strategy


def recovery_strategy(spec: ServiceSpec, seen: str) -> Strategy:
    """Return the strategy whose restart sets apply; never AUTO.

    What the options name is taken as it is; ``auto`` takes what was ``seen`` in the code, and
    where nothing was recognised what the ClusterSpec is rendered for.
    """
    if spec.strategy is not Strategy.AUTO:
        return spec.strategy
    rendered = rendered_strategy(spec)
    if rendered is Strategy.INDEPENDENT or not seen:
        return rendered
    try:
        return Strategy(seen)
    except ValueError:
        return rendered
