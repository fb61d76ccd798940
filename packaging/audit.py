"""Tells known vulnerabilities of locked requirements: ``audit.py PIP-AUDIT LOCK [--needed]``.

Called by ``make lint`` and, with ``--needed``, by ``make audit``. pip-audit asks the network. Where
the data cannot be had, one line says so, and that is a failure only where it is needed: an offline
user is not held up. A finding is always one. It changes nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

#: pip-audit gives up by itself before, unless something on the way holds it.
_SECONDS = 300


class NoData(Exception):
    """No server answered. The text says why."""


def audited(pip_audit: str, lock: str) -> Mapping[str, Any]:
    """Return what pip-audit found, as its JSON. Raises NoData."""
    # What is asked for is locked with its hashes: nothing has to be resolved, or installed.
    flags = ("--disable-pip", "--require-hashes", "--progress-spinner=off", "--format=json")
    try:
        ended = subprocess.run(
            (pip_audit, *flags, "--requirement", lock),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        found: dict[str, Any] = json.loads(ended.stdout)
    except FileNotFoundError as error:
        raise NoData("pip-audit could not be installed") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoData(str(error)) from error
    except ValueError as error:
        raise NoData((ended.stderr.strip() or "no answer").splitlines()[-1]) from error
    return found


def findings(found: Mapping[str, Any]) -> list[str]:
    """Return a line for each vulnerability."""
    return [
        f"{part['name']} {part['version']}: {known['id']}, mended in "
        f"{', '.join(known['fix_versions']) or 'no release'}"
        for part in found["dependencies"]
        for known in part.get("vulns", ())
    ]


def unknown(found: Mapping[str, Any]) -> list[str]:
    """Return the names of which nothing could be said; pip-audit itself ends well with these."""
    return [part["name"] for part in found["dependencies"] if "skip_reason" in part]


def main(arguments: Sequence[str]) -> int:
    """Audit, print what there is to say, and return the exit status."""
    pip_audit, lock, *more = arguments
    try:
        found = audited(pip_audit, lock)
    except NoData as error:
        print(f"{lock} is not audited: {error}")
        return int("--needed" in more)
    for line in findings(found):
        print(line)
    missing = unknown(found)
    if missing:
        all_of_them = f"{len(missing)} of {len(found['dependencies'])}"
        print(f"{lock} is not audited: nothing is known here of {all_of_them} requirements")
    return int(bool(findings(found)) or (bool(missing) and "--needed" in more))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
