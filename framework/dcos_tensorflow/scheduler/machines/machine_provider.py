"""The provider of machines that options name.

Used by the gate, which says whether the operator allows it, and by the command line for machines
that no scheduler looks after: there the options are the operator's own. Each provider is imported
when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dcos_tensorflow.core.spec.capacity_spec import CapacitySpec, CommandSpec

if TYPE_CHECKING:
    from dcos_tensorflow.capacity.provider import Provider


def provider_for(spec: CapacitySpec, owner: str) -> Provider:
    """Return the provider, for machines of this owner. Raises ProviderError."""
    given = spec.provider
    if isinstance(given, CommandSpec):
        from dcos_tensorflow.capacity.providers.command import CommandProvider

        return CommandProvider(given.cmd, owner, timeout_seconds=given.timeout_seconds)
    from dcos_tensorflow.capacity.providers.ec2 import Ec2Provider

    return Ec2Provider(given, owner, spec.instance_types)
