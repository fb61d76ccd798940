"""The cluster that the ``dcos`` command is attached to, where that does not tell its plugins.

Newer ones set ``DCOS_URL``; that of DC/OS 1.11 leaves it to the plugin to read the command's own
files. Called by ``main``.
"""

from __future__ import annotations

import glob
import os
import re
from typing import Dict, Mapping

_LINE = re.compile(r"""^\s*(\w+)\s*=\s*(?:"([^"\\]*)"|'([^']*)'|(true|false))\s*$""")


def with_cluster(environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return ``environ``, with address and token of the attached cluster where it has none."""
    folder = environ.get("DCOS_DIR") or os.path.join(environ.get("HOME", ""), ".dcos")
    if environ.get("DCOS_URL") or not os.path.isabs(folder):
        return environ
    attached = glob.glob(os.path.join(glob.escape(folder), "clusters", "*", "attached"))
    if len(attached) != 1:
        return environ
    try:
        path = os.path.join(os.path.dirname(attached[0]), "dcos.toml")
        with open(path, encoding="utf-8") as file:
            core = _core(file.read())
    except (OSError, ValueError):
        return environ
    found = {
        "DCOS_URL": core.get("dcos_url", ""),
        "DCOS_ACS_TOKEN": core.get("dcos_acs_token", ""),
    }
    verify = core.get("ssl_verify", "")
    if verify == "false":
        found["DCOS_TLS_INSECURE"] = "1"
    elif verify not in ("", "true"):
        found["DCOS_TLS_CA_PATH"] = verify
    return {**environ, **found}


def _core(text: str) -> Dict[str, str]:
    """Return the plain values of the section ``core``."""
    found: Dict[str, str] = {}
    section = ""
    for line in text.splitlines():
        if line.strip().startswith("["):
            section = line.strip().strip("[]").strip()
            continue
        match = _LINE.match(line)
        if section == "core" and match:
            found[match[1]] = match[2] or match[3] or match[4] or ""
    return found
