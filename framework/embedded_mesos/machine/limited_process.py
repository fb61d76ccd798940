"""Becomes a command with limits of its own, as Mesos' isolator ``posix/rlimits`` does.

Run as ``python -I -S limited_process.py LIMITS COMMAND...`` by ``executor``: a process of its own
sets the limits, which are not the executor's, and becomes the command. Standard library only.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Mapping, Sequence
from typing import Any

#: Mesos' name for a limit -> Python's; those that this machine does not know are left out.
KNOWN = {
    f"RLMT_{name.removeprefix('RLIMIT_')}": getattr(resource, name)
    for name in dir(resource)
    if name.startswith("RLIMIT_") and name != "RLIMIT_OFILE"
}


def wrapped(command: Sequence[str], limits: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the command line that becomes ``command`` with these limits."""
    return [sys.executable, "-I", "-S", __file__, json.dumps(list(limits)), *command]


def main(arguments: Sequence[str]) -> None:
    """Become the command."""
    limits, command = json.loads(arguments[0]), arguments[1:]
    for limit in limits:
        none = resource.RLIM_INFINITY
        ends = (limit.get("soft", none), limit.get("hard", none))
        try:
            resource.setrlimit(KNOWN[limit["type"]], ends)
        except (OSError, ValueError) as error:
            sys.exit(f"Failed to set the limit {limit['type']} to {ends[0]}, {ends[1]}: {error}")
    try:
        os.execv(command[0], list(command[1:]))
    except OSError as error:
        sys.exit(f"Failed to execute '{command[0]}': {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
