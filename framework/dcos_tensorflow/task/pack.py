"""Packs the task runner as one file that any Python >= 3.8 can run.

The scheduler and the tests call ``build_zipapp``; nothing inside the container does. There are two
of it: the small one, and for jobs that keep things in S3 one with the storage engine and boto3 in
it (``pack_libraries``). The same sources always give the same bytes, so the fetcher's cache and a
checksum can rely on it.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Dict, Mapping, Union

from dcos_tensorflow.task import pack_libraries

#: What packs has no use where it was packed.
_NOT_PACKED = ("pack.py", "pack_libraries.py")
#: Zip files begin in 1980; a fixed time keeps the bytes the same.
_TIME = (1980, 1, 1, 0, 0, 0)
_MAIN = """\
import sys

from dcos_tensorflow.task.program import main

sys.exit(main(sys.argv[1:]))
"""


def build_zipapp(target: Path, storage: bool = False) -> Path:
    """Write the runner to ``target`` (replaced at once, never half written) and return it.

    ``storage`` puts the storage engine and boto3 in. Raises OSError, and bundle.BundleError where
    boto3 is not installed beside this Python.
    """
    contents: Dict[str, Union[str, bytes]] = dict(_contents())
    if storage:
        contents.update(_storage_contents())
        contents.update(pack_libraries.contents())
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    with temporary.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            _write(archive, contents)
    temporary.chmod(0o755)
    temporary.replace(target)
    return target


def _write(archive: zipfile.ZipFile, contents: Mapping[str, Union[str, bytes]]) -> None:
    for name, content in sorted(contents.items()):
        entry = zipfile.ZipInfo(name, _TIME)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = 0o644 << 16
        archive.writestr(entry, content)


def _contents() -> Dict[str, str]:
    package = Path(__file__).resolve().parents[1]
    contents = {
        "__main__.py": _MAIN,
        "dcos_tensorflow/__init__.py": "",
        "dcos_tensorflow/core/__init__.py": "",
        "dcos_tensorflow/core/contract.py": (package / "core" / "contract.py").read_text("utf-8"),
    }
    for room in ("job_code", "task"):
        for source in (package / room).glob("*.py"):
            if source.name not in _NOT_PACKED:
                contents[f"dcos_tensorflow/{room}/{source.name}"] = source.read_text("utf-8")
    return contents


def _storage_contents() -> Dict[str, str]:
    here = Path(__file__).resolve().parent
    return {
        f"dcos_tensorflow/task/{folder}/{source.name}": source.read_text("utf-8")
        for folder in ("storage", "log_shipping")
        for source in (here / folder).glob("*.py")
    }
