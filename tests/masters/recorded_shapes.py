"""Compares what a real Mesos once said with what another master says now.

Used by ``mesos_recording`` and by the conformance tests. Ids, uuids and ports are bound at first
sight; every other text must be equal, every object must have the recorded keys.
"""

import json
import re
from typing import Any

#: A text that differs from run to run: an id of Mesos, or a port.
TOKEN = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?:-[OS]\d+|-\d{4})?"
    r"|(?<=\.\d:)\d{4,5}\b"  # the port after an address
)
_BASE64_UUID = re.compile(r"[A-Za-z0-9+/]{22}==")
# Numbers that differ from run to run: only their types are compared.
_FREE_NUMBERS = frozenset({"timestamp", "port", "executor_pid", "nanoseconds"})


class Mismatch(AssertionError):
    """What came is not what was recorded."""


class Ids:
    """Recorded ids and the live ones that they stand for."""

    def __init__(self) -> None:
        self._live: dict[str, str] = {}

    def bind(self, recorded: str, live: str) -> None:
        """Say that ``recorded`` is ``live``."""
        if self._live.setdefault(recorded, live) != live:
            raise Mismatch(f"{recorded} is {self._live[recorded]}, not {live}")

    def known(self, recorded: str) -> str | None:
        """Return the live id of ``recorded``."""
        return self._live.get(recorded)

    def translate(self, value: Any) -> Any:
        """Return ``value`` with all ids that are known replaced."""
        if isinstance(value, dict):
            return {key: self.translate(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.translate(one) for one in value]
        if isinstance(value, str):
            if _BASE64_UUID.fullmatch(value):
                return self._live.get(value, value)
            return TOKEN.sub(lambda found: self._live.get(found[0], found[0]), value)
        return value

    def compare_text(self, recorded: str, live: str, where: str) -> None:
        """Compare texts but for the ids in them.

        Raises:
            Mismatch: they differ.
        """
        if _BASE64_UUID.fullmatch(recorded) and _BASE64_UUID.fullmatch(live):
            self.bind(recorded, live)
            return
        if TOKEN.sub("<id>", recorded) != TOKEN.sub("<id>", live):
            raise Mismatch(f"{where}: recorded {recorded!r}, came {live!r}")
        for one, other in zip(TOKEN.findall(recorded), TOKEN.findall(live), strict=True):
            self.bind(one, other)

    def compare(self, recorded: Any, live: Any, where: str = "") -> None:
        """Compare values as the module says.

        Raises:
            Mismatch: they differ.
        """
        if type(recorded) is not type(live):
            raise Mismatch(f"{where}: recorded {recorded!r}, came {live!r}")
        if isinstance(recorded, dict):
            if set(recorded) != set(live):
                missing, extra = set(recorded) - set(live), set(live) - set(recorded)
                raise Mismatch(f"{where}: missing {sorted(missing)}, extra {sorted(extra)}")
            for key in recorded:
                if key in _FREE_NUMBERS and type(recorded[key]) is type(live[key]):
                    continue
                self.compare(recorded[key], live[key], f"{where}.{key}")
        elif isinstance(recorded, list):
            if len(recorded) != len(live):
                raise Mismatch(f"{where}: recorded {recorded!r}, came {live!r}")
            unordered = where.rpartition(".")[2] in ("resources", "attributes", "agents")
            order = by_name if unordered or where.endswith("_resources") else None
            ours = sorted(recorded, key=order) if order else recorded
            theirs = sorted(live, key=order) if order else live
            for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
                self.compare(one, other, f"{where}[{index}]")
        elif isinstance(recorded, str):
            self.compare_text(recorded, live, where)
        elif recorded != live:
            raise Mismatch(f"{where}: recorded {recorded!r}, came {live!r}")


def by_name(one: Any) -> str:
    """Return what a list whose order has no meaning is sorted by."""
    if not isinstance(one, dict):
        return str(one)
    if "agent_info" in one:
        return str(one["agent_info"]["hostname"])
    return str(one.get("name")) + json.dumps(one.get("reservations", ""), sort_keys=True)


def compare_shape(recorded: Any, live: Any, where: str = "") -> None:
    """Compare keys and types only; of lists the first items, when both have one.

    Raises:
        Mismatch: they differ.
    """
    if type(recorded) is not type(live):
        raise Mismatch(f"{where}: recorded {recorded!r}, came {live!r}")
    if isinstance(recorded, dict):
        if set(recorded) != set(live):
            missing, extra = set(recorded) - set(live), set(live) - set(recorded)
            raise Mismatch(f"{where}: missing {sorted(missing)}, extra {sorted(extra)}")
        for key in recorded:
            compare_shape(recorded[key], live[key], f"{where}.{key}")
    elif isinstance(recorded, list) and recorded and live:
        one, other = recorded[0], live[0]
        if isinstance(one, dict) and one.get("type") in ("SCALAR", "RANGES"):
            # The order of resources has no meaning.
            one, other = min(recorded, key=by_name), min(live, key=by_name)
        compare_shape(one, other, f"{where}[0]")
