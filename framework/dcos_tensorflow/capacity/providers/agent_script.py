"""What a new machine on EC2 runs first, so that it becomes an agent: ``start_agent.sh``.

Called by whoever makes ``Ec2Settings``. Pure, but for reading the script of the package.
"""

from __future__ import annotations

import shlex
from importlib.resources import files

#: More user data EC2 does not take, in bytes (EC2 User Guide, "User data").
MOST_BYTES = 16_384


def user_data(
    master: str, *, install: str = "", agent_flags: str = "", fault_domain: bool = False
) -> str:
    """Return the script for machines of a cluster; the script itself says what each word is for.

    Raises ValueError where ``install`` is longer than EC2 takes it.
    """
    variables = {
        "MASTER": master,
        "INSTALL": install,
        "AGENT_FLAGS": agent_flags,
        "FAULT_DOMAIN": "yes" if fault_domain else "",
    }
    given = "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items() if value)
    script = files(__package__).joinpath("start_agent.sh").read_text()
    first, rest = script.split("\n", 1)
    text = f"{first}\n{given}{rest}"
    if len(text.encode()) > MOST_BYTES:
        raise ValueError(
            f"the user data of a machine has {len(text.encode())} bytes, and EC2 takes {MOST_BYTES}"
        )
    return text
