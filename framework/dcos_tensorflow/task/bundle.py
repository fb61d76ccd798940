"""boto3 and what it needs, as the task runner brings it along: packed here, unpacked there.

``pack`` asks for ``contents`` on the scheduler's machine; the runner calls ``activate`` before it
imports anything of ``storage.object_store``. botocore reads its descriptions of services from real
files, so all of it is unpacked into the sandbox at the first start. It goes on the runner's own
``sys.path`` and nowhere else: a job that imports boto3 gets that of its own environment.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import sys
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

#: What boto3 needs, all of it pure Python: module -> distribution.
_MODULES = {
    "boto3": "boto3",
    "botocore": "botocore",
    "dateutil": "python-dateutil",
    "jmespath": "jmespath",
    "s3transfer": "s3transfer",
    "six": "six",
    "urllib3": "urllib3",
}
#: Whose descriptions are needed: those of all other services are most of botocore's size. STS is
#: what roles of containers and profiles ask for their keys.
_SERVICES = ("logs", "s3", "sts")
_DATA = re.compile(
    rf"botocore/(cacert\.pem|data/([^/]+\.json|({'|'.join(_SERVICES)})/[^/]+/(?!examples)[^/]+))"
)
_SERVICES_OF_ENDPOINTS = ("logs", "s3", "s3-control", "sts")

_FOLDER = "libraries"
_INDEX = "libraries.json"
#: In the sandbox.
_UNPACKED = ".task-runner"


class BundleError(Exception):
    """boto3 cannot be packed or used here; the text says why, ``hint`` what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def contents() -> Dict[str, Union[str, bytes]]:
    """Return the files of the bundle by their names in the zipapp. Raises BundleError, OSError."""
    files = {f"{_FOLDER}/{name}": content for name, content in sorted(_files())}
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name} {len(content)}\n".encode() + content)
    index = {
        "digest": digest.hexdigest()[:16],
        "requires_python": _requires_python(),
        "versions": {module: _version(module) for module in sorted(_MODULES)},
    }
    return {_INDEX: json.dumps(index, indent=1, sort_keys=True), **files}


def activate(sandbox: str) -> str:
    """Make boto3 importable in this process and return which one, in words. Raises BundleError.

    Outside of a zipapp, in one without the bundle, and where the bundle needs a newer Python, it is
    that of this Python, if there is any.
    """
    archive = _archive()
    index = _index(archive) if archive else None
    own = importlib.util.find_spec("boto3") is not None
    if archive and index and (_runs_here(index) or not own):
        folder = _unpacked(archive, index, sandbox)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        return f"boto3 {index['versions']['boto3']}, which the task runner brings along"
    if not own:
        raise BundleError(
            "this Python has no boto3, and this task runner brings none along",
            "install boto3 (1.36 or newer) beside TensorFlow in the task's image or environment",
        )
    return f"boto3 of {sys.executable}"


def _archive() -> Optional[str]:
    archive = getattr(globals().get("__loader__"), "archive", None)
    return os.path.abspath(archive) if archive else None


def _index(archive: str) -> Optional[Dict[str, Any]]:
    with zipfile.ZipFile(archive) as packed:
        try:
            index: Dict[str, Any] = json.loads(packed.read(_INDEX))
        except KeyError:
            return None
    return index


def _needed(index: Dict[str, Any]) -> Tuple[int, ...]:
    return tuple(index["requires_python"])


def _runs_here(index: Dict[str, Any]) -> bool:
    return sys.version_info[:2] >= _needed(index)


def _unpacked(archive: str, index: Dict[str, Any], sandbox: str) -> str:
    """Return the folder with the libraries, unpacked if it was not there. Never half of it."""
    if not _runs_here(index):
        has, wants = (".".join(map(str, v)) for v in (sys.version_info[:2], _needed(index)))
        raise BundleError(
            f"S3 needs Python {wants} or newer in the task, and {sys.executable} is Python {has}",
            "use an image or environment of a newer Python, or one with a boto3 of its own",
        )
    top = os.path.join(sandbox, _UNPACKED)
    folder = os.path.join(top, f"libraries-{index['digest']}")
    if os.path.isdir(folder):
        return folder
    partial = f"{folder}.{os.getpid()}"
    try:
        os.makedirs(top, exist_ok=True)
        with zipfile.ZipFile(archive) as packed:
            names = [n for n in packed.namelist() if n.startswith(f"{_FOLDER}/")]
            packed.extractall(partial, names)
        os.rename(os.path.join(partial, _FOLDER), folder)
    except OSError as error:
        # Another start may have been first.
        if os.path.isdir(folder):
            return folder
        raise BundleError(
            f"boto3 cannot be unpacked into {top}: {error.strerror or error}",
            "give the task more disk, or a sandbox that it may write to",
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def _files() -> Iterator[Tuple[str, bytes]]:
    for module in _MODULES:
        place = _place(module)
        sources = sorted(place.rglob("*")) if place.is_dir() else [place]
        for source in sources:
            name = str(source.relative_to(place.parent))
            if source.suffix == ".py" or _DATA.fullmatch(name):
                content = source.read_bytes()
                yield name, _pruned(content) if name.endswith("/endpoints.json") else content


def _place(module: str) -> Path:
    found = importlib.util.find_spec(module)
    if found is None or not found.origin:
        raise BundleError(f"{module} is not installed beside {sys.executable}")
    origin = Path(found.origin)
    return origin.parent if found.submodule_search_locations else origin


def _pruned(endpoints: bytes) -> bytes:
    """Return botocore's endpoints.json with the services that are asked for, and all regions."""
    document = json.loads(endpoints)
    for partition in document["partitions"]:
        services = partition["services"]
        partition["services"] = {s: services[s] for s in _SERVICES_OF_ENDPOINTS if s in services}
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()


def _requires_python() -> List[int]:
    """Return the oldest Python that all of it runs on, as its distributions say."""
    oldest = (3, 8)
    for distribution in _MODULES.values():
        try:
            text = metadata.distribution(distribution).metadata["Requires-Python"] or ""
        except metadata.PackageNotFoundError:
            raise BundleError(f"{distribution} is not installed beside {sys.executable}") from None
        for major, minor in re.findall(r">=\s*(\d+)\.(\d+)", text):
            oldest = max(oldest, (int(major), int(minor)))
    return list(oldest)


def _version(module: str) -> str:
    return metadata.version(_MODULES[module])
