"""The package ``dcos-core-cli``, which ``dcos cluster setup`` asks every cluster for.

``dcos`` adds it to the packages of the repositories. With a plugin file of the user's it is that
one; else it is an archive without commands, with which the set-up ends well: the real plugin is
added beside it with ``dcos plugin add -u FILE``, and stays when the cluster is set up again.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path
from typing import Any

from local_dcos.cosmos.repositories import Package

Json = dict[str, Any]

PATH = "/artifacts/dcos-core-cli.zip"
_NAME = "dcos-core-cli"
# The client installs an archive under the name in it: under another one than the real plugin's it
# never takes that one's place.
_PLUGIN = 'schema_version = 1\nname = "local-dcos"\n'
_PLATFORMS = ("linux", "darwin", "windows")


def archive(plugin: Path | None) -> bytes:
    """Return the plugin's bytes. Raises OSError when the user's file cannot be read."""
    if plugin is not None:
        return plugin.read_bytes()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        # A fixed date: the checksum stays the same from one start to the next.
        packed.writestr(zipfile.ZipInfo("plugin.toml", (2020, 1, 1, 0, 0, 0)), _PLUGIN)
    return out.getvalue()


def package(content: bytes, address: str, dcos_version: str) -> Package:
    """Return the package; ``address`` is ``host:port`` of the local DC/OS."""
    release = ".".join(dcos_version.split(".")[:2])
    binary: Json = {
        "kind": "zip",
        "url": f"http://{address}{PATH}",
        "contentHash": [{"algo": "sha256", "value": hashlib.sha256(content).hexdigest()}],
    }
    document: Json = {
        "packagingVersion": "4.0",
        "name": _NAME,
        "version": f"{release}-patch.0",
        "releaseVersion": 0,
        "maintainer": "local",
        "description": "DC/OS core CLI plugin",
        "tags": ["cli"],
        "minDcosReleaseVersion": "1.10",
        "resource": {"cli": {"binaries": {name: {"x86-64": binary} for name in _PLATFORMS}}},
    }
    return Package(document, f"http://{address}/")
