"""The id of a configuration: the same options always have the same one.

Asked wherever configurations are compared or named; worked out once for each set of options.
"""

from __future__ import annotations

import uuid

from dcos_tensorflow.core.kept import codec
from dcos_tensorflow.core.model.spec import RetrySpec, ServiceSpec


def configuration_id(spec: ServiceSpec) -> str:
    """Return the id of a configuration, a UUID.

    It is taken from what a reader of the store gets, so that 64 MB and 64.0 MB are the same.
    """
    known = spec.remembered.get("configuration")
    if known is None:
        known = spec.remembered["configuration"] = _worked_out(spec)
    return known


def _worked_out(spec: ServiceSpec) -> str:
    stored = codec.decode(ServiceSpec, codec.encode(spec))
    plain = codec.to_plain(stored)
    # What came later: what was stored before keeps its id.
    if stored.retry.same_failure_limit == RetrySpec().same_failure_limit:
        del plain["retry"]["same_failure_limit"]
    if not stored.job.arguments:
        del plain["job"]["arguments"]
    return str(uuid.uuid5(uuid.NAMESPACE_OID, codec.encode(plain).decode()))
