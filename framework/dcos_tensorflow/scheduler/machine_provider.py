"""The provider of machines that the options name, and whether the operator allows it.

Used by ``scheduler.capacity``, and by the command line for machines that no scheduler looks after.
Each is imported when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dcos_tensorflow.core.model.capacity_spec import CapacitySpec, CommandSpec
from dcos_tensorflow.options.errors import OptionProblem

if TYPE_CHECKING:
    from dcos_tensorflow.capacity.provider import Provider


#: Where machines come from, in the words of ``--machines-from``; a program is named by its path.
EC2 = "ec2"
ANYWHERE = "*"


def refusal(spec: CapacitySpec | None, allowed: frozenset[str] | None) -> tuple[OptionProblem, ...]:
    """Return why options may have no machines bought so; nothing where they may.

    The program runs as this process, and what is bought is on its operator's bill: who submits
    options is trusted with neither. None allows all.
    """
    if spec is None or allowed is None or ANYWHERE in allowed:
        return ()
    is_command = isinstance(spec.provider, CommandSpec)
    source = spec.provider.cmd[0] if isinstance(spec.provider, CommandSpec) else EC2
    if source in allowed:
        return ()
    option = "capacity.command.cmd" if is_command else "capacity.provider"
    text = f"the scheduler's operator allows that by --machines-from {source}"
    return (OptionProblem(option, f"{source} may be asked for no machines: {text}"),)


def provider_for(spec: CapacitySpec, owner: str) -> Provider:
    """Return the provider, for machines of this owner. Raises ProviderError."""
    given = spec.provider
    if isinstance(given, CommandSpec):
        from dcos_tensorflow.capacity.providers.command import CommandProvider

        return CommandProvider(given.cmd, owner, timeout_seconds=given.timeout_seconds)
    from dcos_tensorflow.capacity.providers.ec2 import Ec2Provider

    return Ec2Provider(given, owner, spec.instance_types)
