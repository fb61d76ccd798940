"""The recordings of the real clients: reads them, plays them, compares what comes back.

An answer must have the recorded status and media type. Its JSON must have every recorded member
with a value of the same kind; more members are welcome, for clients look past what they do not
know. What the local DC/OS merely passes on from a service must come back byte for byte.
"""

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from data_files import DCOS_CLI_RECORDINGS

from .world import Reply

Json = dict[str, Any]

#: Members whose names are data.
_FREE_NAMES = re.compile(r"/(env|versions|results|contentHash|assets|attributes)$")
#: Members of the logging server's Mesos state that a real Mesos 1.12 leaves out (the recordings of
#: Mesos itself): no client needs them.
_NOT_OF_MESOS = re.compile(
    r"^/domain$|^/slaves\[\d+\]/TASK_RUNNING$"
    r"|^/frameworks\[\d+\]/(role|pid|reregistered_time|tasks\[\d+\]/labels)$"
    r"|^/completed_frameworks\[\d+\]/(role|pid|reregistered_time)$"
)
#: What clients read of the two protobuf answers (mesos.v1.master.Response), by field number.
_RESPONSE: Json = {
    10: {1: {1: {1: {}, 6: {1: {}}, 10: {1: {1: {1: {}}, 2: {1: {}}}}}, 2: {}, 3: {}, 4: {}}},
    11: {1: {1: {1: {}, 2: {}, 3: {1: {}}}, 2: {}, 3: {}, 11: {}}},
}


@dataclass(frozen=True)
class Exchange:
    """One request and the answer that the real client got."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    status: int
    media_type: str | None
    answer: Any


def names() -> list[str]:
    """Return the names of all recordings."""
    return sorted(path.stem for path in DCOS_CLI_RECORDINGS.glob("*.jsonl"))


def read(name: str) -> list[Exchange]:
    """Return a recording's exchanges."""
    found = []
    for line in (DCOS_CLI_RECORDINGS / f"{name}.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if "request" in entry:
            request, response = entry["request"], entry["response"]
            found.append(
                Exchange(
                    request["method"],
                    request["path"],
                    request["headers"],
                    request["body"],
                    response["status"],
                    response["headers"].get("Content-Type"),
                    response["body"],
                )
            )
    return found


def to_service(exchange: Exchange) -> bool:
    """Say whether a request goes to an installed service."""
    return exchange.path.startswith("/service/") and not exchange.path.startswith(
        "/service/marathon"
    )


def body_of(exchange: Exchange) -> bytes | None:
    """Return the request's body."""
    body = exchange.body
    if body is None:
        return None
    if isinstance(body, dict) and set(body) == {"base64"}:
        return base64.b64decode(body["base64"])
    return b"null" if body == "null" else json.dumps(body).encode()


def check(exchange: Exchange, reply: Reply) -> None:
    """Compare an answer with the recorded one; raises AssertionError naming the difference."""
    __tracebackhide__ = True
    where = f"{exchange.method} {exchange.path}"
    assert reply.status == exchange.status, (where, reply)
    assert reply.headers.get("content-type") == exchange.media_type, (where, reply.headers)
    recorded = exchange.answer
    if recorded is None:
        assert reply.body == b"", (where, reply.body)
    elif to_service(exchange) or (isinstance(recorded, str) and exchange.status != 200):
        expected = recorded.encode() if isinstance(recorded, str) else text_of(recorded)
        assert reply.body == expected, where
    elif exchange.media_type == "application/x-protobuf":
        wanted = _fields(base64.b64decode(recorded["base64"]), _RESPONSE)
        assert wanted <= _fields(reply.body, _RESPONSE), where
    elif isinstance(recorded, str) or _is_binary(recorded):
        assert reply.body, where
    else:
        found = list(_differences(recorded, reply.json(), ""))
        differences = [one for one in found if not _NOT_OF_MESOS.match(one.partition(" ")[0])]
        assert not differences, (where, differences)
        if exchange.status >= 400:
            _check_error(recorded, reply.json())


def text_of(recorded: Any) -> bytes:
    """Return the bytes in which a recorded JSON body is served to the proxy."""
    return json.dumps(recorded).encode()


def _is_binary(recorded: Any) -> bool:
    return isinstance(recorded, dict) and (set(recorded) & {"base64", "sha256"}) != set()


def _fields(message: bytes, known: Json, path: str = "") -> set[str]:
    """Return the paths of the known fields that a protobuf message has."""
    found: set[str] = set()
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        value, at = _varint(message, at) if tag & 7 in (0, 2) else (0, at + 8)
        content = b""
        if tag & 7 == 2:
            content, at = message[at : at + value], at + value
        if (tag >> 3) in known:
            own = f"{path}/{tag >> 3}"
            found |= {own, *_fields(content if known[tag >> 3] else b"", known[tag >> 3], own)}
    return found


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (message[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not message[at - 1] & 0x80:
            return value, at


def _check_error(recorded: Json, actual: Json) -> None:
    if "type" in recorded:
        assert actual["type"] == recorded["type"]
    # The logging server had no words of its own for this one.
    if recorded["message"] != "bad version":
        assert actual["message"].startswith(recorded["message"]), actual


def _differences(recorded: Any, actual: Any, path: str) -> Iterator[str]:
    if recorded is None:
        return
    if isinstance(recorded, bool) or isinstance(actual, bool):
        if not (isinstance(recorded, bool) and isinstance(actual, bool)):
            yield f"{path}: {actual!r} instead of {recorded!r}"
    elif isinstance(recorded, float):
        if not isinstance(actual, int | float):
            yield f"{path}: {actual!r} is no number"
    elif type(recorded) is not type(actual):
        yield f"{path}: {actual!r:.80} instead of {recorded!r:.80}"
    elif isinstance(recorded, dict):
        yield from _member_differences(recorded, actual, path)
    elif isinstance(recorded, list) and recorded:
        if not actual:
            yield f"{path}: nothing instead of {recorded!r:.80}"
        for index, one in enumerate(actual):
            tries = [list(_differences(like, one, f"{path}[{index}]")) for like in recorded]
            yield from min(tries, key=len)


def _member_differences(recorded: Json, actual: Json, path: str) -> Iterator[str]:
    if _FREE_NAMES.search(path) or all(name.startswith("/frameworks/") for name in recorded):
        like = next(iter(recorded.values()), None)
        for name, value in actual.items():
            yield from _differences(like, value, f"{path}/{name}")
        return
    for name, value in recorded.items():
        if name not in actual:
            yield f"{path}/{name} is missing"
        else:
            yield from _differences(value, actual[name], f"{path}/{name}")
