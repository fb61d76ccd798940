"""The provider of machines that the options name. Each is imported when it is asked for.

Used by ``scheduler.capacity``, and by the command line for machines that no scheduler looks after.
"""

from __future__ import annotations

from dcos_tensorflow.capacity.provider import Denied, Provider
from dcos_tensorflow.core.model.capacity_spec import CapacitySpec, CommandSpec


def provider_for(spec: CapacitySpec, owner: str) -> Provider:
    """Return the provider, for machines of this owner. Raises ProviderError."""
    given = spec.provider
    if isinstance(given, CommandSpec):
        from dcos_tensorflow.capacity.providers.command import CommandProvider

        return CommandProvider(given.cmd, owner, timeout_seconds=given.timeout_seconds)
    from dcos_tensorflow.capacity.providers.agent_script import user_data
    from dcos_tensorflow.capacity.providers.ec2 import Ec2Provider, Ec2Settings

    script = ""
    if not given.launch_template:
        try:
            script = user_data(given.master, install=given.install, agent_flags=given.agent_flags)
        except ValueError as error:
            raise Denied(str(error)) from error
    settings = Ec2Settings(
        region=given.region,
        endpoint_url=given.endpoint_url,
        launch_template=given.launch_template,
        image_id=given.image_id,
        instance_profile=given.instance_profile,
        key_name=given.key_name,
        security_groups=given.security_groups,
        subnets=given.subnets,
        disk_gb=given.disk_gb,
        user_data=script,
        instance_types=frozenset(spec.instance_types),
        prices=given.prices,
    )
    return Ec2Provider(settings, owner)
