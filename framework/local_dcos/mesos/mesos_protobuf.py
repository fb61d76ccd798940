"""The two answers that the ``dcos`` CLI takes only as protobuf (mesos.v1.master.Response). Pure.

``mesos_calls`` asks. Fields that the client does not read are left out.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

CONTENT_TYPE = "application/x-protobuf"
#: The values of mesos.v1.master.Call.Type.
GET_AGENTS = 10
GET_FRAMEWORKS = 11
_LENGTH_DELIMITED = 2
#: The values of mesos.v1.DrainState, in their order.
_DRAIN_STATES = ("UNKNOWN", "DRAINING", "DRAINED")


class NoSuchCall(Exception):
    """The bytes are no call that is answered. The text says what they are."""


def call_type(body: bytes) -> int:
    """Return the type of a call: field 1, a varint. Raises NoSuchCall."""
    if len(body) < 2 or body[0] != 0x08 or body[1] & 0x80:
        raise NoSuchCall("the protobuf does not begin with the type of a call")
    return body[1]


def agents(slaves: list[Json]) -> bytes:
    """Return the answer to GET_AGENTS, from the ``slaves`` of the master's state."""
    listed = b"".join(_message(1, _agent(one)) for one in slaves)
    return _number(1, 9) + _message(10, listed)


def frameworks(found: list[Json]) -> bytes:
    """Return the answer to GET_FRAMEWORKS, from the ``frameworks`` of the master's state."""
    listed = b"".join(_message(1, _framework(one)) for one in found)
    return _number(1, 10) + _message(11, listed)


def _agent(slave: Json) -> bytes:
    info = _text(1, slave["hostname"]) + _message(6, _text(1, slave["id"]))
    domain = slave.get("domain", {}).get("fault_domain")
    if domain is not None:
        region, zone = domain["region"]["name"], domain["zone"]["name"]
        fault_domain = _message(1, _text(1, region)) + _message(2, _text(1, zone))
        info += _message(10, _message(1, fault_domain))
    return (
        _message(1, info)
        + _number(2, int(bool(slave.get("active", True))))
        + _text(3, slave["version"])
        + _text(4, slave["pid"])
        + _number(12, int(bool(slave.get("deactivated", False))))
        + _drain_info(slave.get("drain_info"))
    )


def _drain_info(drain: Json | None) -> bytes:
    """Return field 13 of an agent: state and config of its draining; nothing where there is none.

    ``dcos node drain --wait`` waits for the state DRAINED.
    """
    if drain is None:
        return b""
    config = b""
    grace = drain["config"].get("max_grace_period")
    if grace is not None:
        config += _message(1, _number(1, int(grace["nanoseconds"])))
    config += _number(2, int(bool(drain["config"].get("mark_gone", False))))
    state = _number(1, _DRAIN_STATES.index(drain["state"]))
    return _message(13, state + _message(2, config))


def _framework(found: Json) -> bytes:
    info = _text(1, found["user"]) + _text(2, found["name"]) + _message(3, _text(1, found["id"]))
    return (
        _message(1, info)
        + _number(2, int(bool(found.get("active", True))))
        + _number(3, int(bool(found.get("connected", found.get("active", True)))))
        + _number(11, int(bool(found.get("recovered", False))))
    )


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | _LENGTH_DELIMITED) + _varint(len(content)) + content


def _text(field: int, value: str) -> bytes:
    return _message(field, value.encode())
