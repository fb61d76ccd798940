"""The first script of a new machine on EC2, which makes it an agent: ``start_agent.sh``.

Called by ``ec2``. Pure, but for reading the script of the package.
"""

from __future__ import annotations

import shlex
from importlib.resources import files

from dcos_tensorflow.capacity.provider import Denied
from dcos_tensorflow.core.spec.capacity_spec import Ec2Spec

#: More user data EC2 does not take, in bytes (EC2 User Guide, "User data").
MOST_BYTES = 16_384


def user_data(spec: Ec2Spec) -> str:
    """Return the script; it says itself what each word is for.

    Raises Denied where it is longer than EC2 takes it.
    """
    variables = {"MASTER": spec.master, "INSTALL": spec.install, "AGENT_FLAGS": spec.agent_flags}
    given = "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items() if value)
    script = files(__package__).joinpath("start_agent.sh").read_text()
    first, rest = script.split("\n", 1)
    text = f"{first}\n{given}{rest}"
    if len(text.encode()) > MOST_BYTES:
        raise Denied(
            f"the user data of a machine has {len(text.encode())} bytes, and EC2 takes {MOST_BYTES}"
        )
    return text
