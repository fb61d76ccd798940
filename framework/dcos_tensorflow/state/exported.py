"""The text that a service's state is exported as: every value, and a sum that tells of damage.

Written and read by the command line (``state export``, ``state import``). Pure: values in, text
out. The text holds the key that the service's tasks trust: a file of it is its owner's alone.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from dcos_tensorflow.records import dataclass
from dcos_tensorflow.state import errors, layout
from untrusted_input.json_text import read_json

_KIND = "dcos-tensorflow state"
_VERSION = 1


class NotExported(ValueError):
    """A text is no export, or is damaged; the message says which."""


@dataclass(frozen=True)
class Export:
    """All that a store keeps of a service, but for its own nodes."""

    service: str
    #: By path, as ``StateStore.load`` has them.
    values: Mapping[str, bytes]


def to_text(export: Export) -> str:
    """Return the text of an export: JSON, a value to a line."""
    values = {path: base64.b64encode(value).decode() for path, value in export.values.items()}
    document = {
        "kind": _KIND,
        "version": _VERSION,
        "service": export.service,
        "sha256": _sum(export),
        "values": dict(sorted(values.items())),
    }
    return json.dumps(document, indent=1) + "\n"


def from_text(text: str) -> Export:
    """Read what ``to_text`` wrote. Raises NotExported."""
    try:
        document = read_json(text)
    except ValueError as error:
        raise NotExported(f"it is not JSON: {error}") from None
    if not isinstance(document, dict) or document.get("kind") != _KIND:
        raise NotExported("it was not written by state export")
    if document.get("version") != _VERSION:
        raise NotExported(f"its version is {document.get('version')}, known is {_VERSION}")
    found = Export(str(document.get("service")), _values(document.get("values")))
    if _sum(found) != document.get("sha256"):
        raise NotExported("it is damaged: its content does not fit its sha256")
    return found


def _values(given: Any) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    try:
        for path, value in given.items():
            layout.check_path(path)
            found[path] = base64.b64decode(value, validate=True)
            layout.check_value(path, found[path])
    except (AttributeError, TypeError, binascii.Error, errors.StateError) as error:
        raise NotExported(f"its values are none: {error}") from None
    return found


def _sum(export: Export) -> str:
    found = hashlib.sha256(export.service.encode())
    for path, value in sorted(export.values.items()):
        # Lengths keep what belongs to the path apart from what belongs to the value.
        found.update(b"%d %d " % (len(path.encode()), len(value)) + path.encode() + value)
    return found.hexdigest()
