"""boto3 and its dependencies, packed into the task runner (``bundle`` unpacks them there).

``pack`` asks for ``contents`` on the scheduler's machine; nothing inside the container does.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import json
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple, Union

from dcos_tensorflow.task.bundle import FOLDER, INDEX, BundleError

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


def contents() -> Dict[str, Union[str, bytes]]:
    """Return the files of the bundle by their names in the zipapp. Raises BundleError, OSError."""
    files = {f"{FOLDER}/{name}": content for name, content in sorted(_files())}
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name} {len(content)}\n".encode() + content)
    index = {
        "digest": digest.hexdigest()[:16],
        "requires_python": _requires_python(),
        "versions": versions(),
    }
    return {INDEX: json.dumps(index, indent=1, sort_keys=True), **files}


def versions() -> Dict[str, str]:
    """Return the version of each module that is packed. Raises BundleError."""
    return {module: _version(module) for module in sorted(_MODULES)}


def _files() -> Iterator[Tuple[str, bytes]]:
    for module in _MODULES:
        place = _place(module)
        sources = sorted(place.rglob("*")) if place.is_dir() else [place]
        for source in sources:
            name = str(source.relative_to(place.parent))
            if source.suffix == ".py" or _DATA.fullmatch(name):
                yield _packed(name, source.read_bytes())


def _packed(name: str, content: bytes) -> Tuple[str, bytes]:
    """Return under which name a file is packed, and what of it a task can need."""
    if name.endswith("/endpoints.json"):
        return name, _pruned(content)
    if name.endswith(".json.gz"):
        # Botocore reads either. The archive is compressed, and most of this is told to people.
        return name[: -len(".gz")], _compact(_without_texts(json.loads(gzip.decompress(content))))
    return name, content


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
    return _compact(document)


def _without_texts(described: Any) -> Any:
    """Return a service's description whose documentation is empty: botocore wants it to be there.

    A parameter may be called so, too, and is described by an object.
    """
    if isinstance(described, list):
        return [_without_texts(one) for one in described]
    if isinstance(described, dict):
        return {
            key: "" if key == "documentation" and isinstance(one, str) else _without_texts(one)
            for key, one in described.items()
        }
    return described


def _compact(document: Any) -> bytes:
    # In the order of its authors: XML is written in that of a shape's members.
    return json.dumps(document, separators=(",", ":")).encode()


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
    try:
        return metadata.version(_MODULES[module])
    except metadata.PackageNotFoundError:
        raise BundleError(f"{module} is not installed beside {sys.executable}") from None
