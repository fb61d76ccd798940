"""One input from another: JSON is changed as JSON, everything else as bytes.

Used by ``engine``, beside what atheris changes by itself. A change of bytes alone would be refused
by the parser at most doors, and reach nothing behind it.
"""

import json
from collections.abc import Sequence
from random import Random
from typing import Any

#: What programs trip over, as the JSON of it: edges of numbers, odd texts, other types.
_ODD = r"""
null true false 0 -1 1 0.5 -0.0 1e308 -1e308 5e-324 1e999 -1e999 NaN 2147483648 9223372036854775808
18446744073709551616 1000000000000000000000000000000 [] {} [[]] [{}] {"":null}
"" "\u0000" "\n" ".." "../../etc/passwd" "/" "\ud83d\ude00" "\ud800" "0" "-1" "NaN" "1e999" "%s%n"
"{{x}}" "${HOME}" "zk://a:b@c/d"
"""
ODD = [*_ODD.split(), f'"{"a" * 1000}"', "[" * 70 + "]" * 70]


def mutated(data: bytes, seeds: Sequence[bytes], random: Random) -> bytes:
    """Return another input: ``data`` with some changes, of others' parts too."""
    document = _document(data)
    if document is None:
        return _bytes_mutated(data, random)
    if random.random() < 0.05:
        return _bytes_mutated(data, random)
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        document = _mutated(document, seeds, random)
    return json.dumps(document).encode()


def _document(data: bytes) -> Any:
    """Return the JSON in an input; None where there is none."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return every container with each key or index in it."""
    if isinstance(value, dict):
        below = [place for each in value.values() for place in _places(each)]
        return [(value, key) for key in value] + below
    if isinstance(value, list):
        below = [place for each in value for place in _places(each)]
        return [(value, index) for index in range(len(value))] + below
    return []


def _mutated(document: Any, seeds: Sequence[bytes], random: Random) -> Any:
    places = _places(document)
    if not places or random.random() < 0.01:
        return json.loads(random.choice(ODD))
    inside, key = random.choice(places)
    match random.randrange(7):
        case 0 | 1 | 2:
            inside[key] = json.loads(random.choice(ODD))
        case 3:
            del inside[key]
        case 4:
            other, its_key = random.choice(places)
            if isinstance(other, dict | list) and other is not inside[key]:
                taken = json.loads(json.dumps(other[its_key])) if _has(other, its_key) else None
                inside[key] = taken
        case 5:
            _multiply(inside, key, random)
        case 6:
            donor = _places(_document(random.choice(seeds)))
            if donor:
                other, its_key = random.choice(donor)
                inside[key] = other[its_key]
    return document


def _has(inside: Any, key: Any) -> bool:
    return key in inside if isinstance(inside, dict) else key < len(inside)


def _multiply(inside: Any, key: Any, random: Random) -> None:
    if isinstance(inside, list):
        inside.extend([inside[key]] * random.choice((1, 2, 30)))
    else:
        inside[str(json.loads(random.choice(ODD)))[:50]] = inside[key]
    value = inside[key]
    if isinstance(value, int | float) and not isinstance(value, bool):
        inside[key] = random.choice((-value, value + 1, value * 1000, value / 3))
    elif isinstance(value, str) and value:
        at = random.randrange(len(value))
        inside[key] = value[:at] + chr(random.randrange(1, 0x300)) + value[at:]


def _bytes_mutated(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 2, 4, 16))):
        at = random.randrange(len(changed) + 1)
        match random.randrange(4):
            case 0:
                changed[at : at + 1] = random.randbytes(1)
            case 1:
                changed[at:at] = random.randbytes(random.choice((1, 2, 8)))
            case 2:
                del changed[at : at + random.choice((1, 4, 64))]
            case 3:
                begin = random.randrange(len(changed) + 1)
                changed[at:at] = changed[begin : begin + random.randrange(32)]
    return bytes(changed)
