"""The project's own package with this checkout's scheduler in it, without building anything.

For tests on a local DC/OS: the files of ``universe/`` as they are, and in the place of the
scheduler's artifact a script that starts the scheduler of this checkout.
"""

import io
import json
import stat
import sys
import tarfile
from pathlib import Path

import dcos_tensorflow
from dcos_tensorflow.package.definition import (
    Package,
    package_folder,
    read_folder,
    repository_document,
)

_ROOT = Path(dcos_tensorflow.__file__).resolve().parents[1]
_SCRIPT = f"""#!/bin/sh
PYTHONPATH={_ROOT} exec {sys.executable} -c \\
  'from dcos_tensorflow.cli.main import main; main()' "$@"
"""


def package_in(folder: Path) -> Package:
    """Write the artifact to ``folder``; return the package that names it."""
    places = {
        "package-version": "1.0.0",
        "artifact-dir": folder.as_uri(),
        "sha256:dcos-tensorflow-cli.pyz": "0" * 64,
    }
    found = read_folder(package_folder(), places)
    uri = found.resource["assets"]["uris"]["scheduler-tar-gz"]
    with tarfile.open(folder / uri.rpartition("/")[2], "w:gz") as archive:
        member = tarfile.TarInfo("dcos-tensorflow/bin/dcos-tensorflow")
        member.size, member.mode = len(_SCRIPT), stat.S_IRWXU
        archive.addfile(member, io.BytesIO(_SCRIPT.encode()))
    return found


def repository_of(package: Package, folder: Path) -> str:
    """Write a repository with ``package`` to ``folder``; return its address."""
    path = folder / "real.json"
    path.write_text(json.dumps(repository_document(package, last_updated=1)))
    return path.as_uri()
