"""Options as JSON text, and the values that ``--set path=value`` lays over them.

Reads the one file that it is given and nothing else; knows nothing of which options there are.
Everything that Python's ``json`` lets pass and JSON does not (duplicate keys, NaN) is an
error here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from dcos_tensorflow.options.errors import HIDDEN, OptionProblem, OptionsError
from untrusted_input.json_text import read_json

#: More than any options file needs; a wrong file (a data set, a zip) is refused before it is read.
MAX_BYTES = 4_000_000
_SHOWN_CHARACTERS = 80


#: A key that begins so is a comment, whatever its value is.
COMMENT = "//"
#: What stands where a document has nothing.
MISSING = object()


class JsonObject(dict[str, Any]):
    """A JSON object that remembers which of its keys stood in it more than once."""

    duplicates: tuple[str, ...] = ()


def read_file(path: Path) -> str:
    """Return the text of the options file ``path``. Raises OptionsError."""
    try:
        if path.is_dir():
            _refuse("is a directory, not an options file", str(path))
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        _refuse("there is no such file", str(path))
    except OSError as error:
        _refuse(f"cannot be read: {error.strerror or error}", str(path))
    except ValueError as error:
        _refuse(f"is no file name: {error}", repr(str(path)))
    if len(content) > MAX_BYTES:
        _refuse(f"is too large for an options file: more than {MAX_BYTES} bytes", str(path))
    return decode(content, str(path))


def decode(content: bytes, source: str = "") -> str:
    """Return ``content`` as text, without a byte order mark. Raises OptionsError."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _refuse(
            f"is not UTF-8 text: byte 0x{content[error.start]:02x} at offset {error.start}", source
        )


def parse(text: str, source: str = "") -> JsonObject:
    """Return the JSON object in ``text``. Raises OptionsError that names line and column."""
    if not text.strip():
        _refuse("is empty; the least that options can be is {}", source)
    try:
        value = json_value(text)
    except json.JSONDecodeError as error:
        hint = _syntax_hint(text, error)
        if source.endswith(".py"):
            hint = "; run and validate take a script, and init makes an options file of one"
        _refuse(
            f"is not JSON: {error.msg} at line {error.lineno} column {error.colno}{hint}", source
        )
    except ValueError as error:
        _refuse(f"is not JSON: {error}", source)
    if not isinstance(value, JsonObject):
        _refuse(f"must be a JSON object, not {kind_of(value)}", source)
    return value


def json_value(text: str) -> Any:
    """Return the JSON value in ``text``; its objects are JsonObjects.

    Raises ValueError (json.JSONDecodeError for syntax) when it is not strictly JSON.
    """
    return read_json(text, object_pairs_hook=_object, parse_constant=_constant)


def text_flaw(text: str) -> str:
    """Return why ``text`` can be in no environment, file name or log; '' when it can."""
    if "\x00" in text:
        return "holds a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "holds half of a surrogate pair, which is no character"
    return ""


def walk(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every path and value below ``value``, itself first, in the order of the document."""
    yield path, value
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from walk(part, (*path, str(key)))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from walk(part, (*path, str(index)))


def at(document: Any, path: tuple[str, ...]) -> Any:
    """Return what stands at a path; MISSING where nothing does."""
    for key in path:
        if not isinstance(document, Mapping) or key not in document:
            return MISSING
        document = document[key]
    return document


def kind_of(value: object) -> str:
    """Return what a JSON value is, in words."""
    if value is None:
        return "null"
    names: dict[type, str] = {
        bool: "true or false",
        str: "text",
        int: "a number",
        float: "a number",
    }
    if type(value) in names:
        return names[type(value)]
    return "an object" if isinstance(value, Mapping) else "a list"


def shown(value: object) -> str:
    """Return ``value`` as it stands in a file: cut when it is long, passwords of URIs masked."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except (ValueError, RecursionError):
        return kind_of(value)
    text = re.sub(r"://[^/@\s\"]*@", f"://{HIDDEN}@", text)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."


def _object(pairs: list[tuple[str, Any]]) -> JsonObject:
    result = JsonObject(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        result.duplicates = tuple(key for key in result if keys.count(key) > 1)
    return result


def _constant(name: str) -> NoReturn:
    raise ValueError(f"JSON has no {name}")


def _syntax_hint(text: str, error: json.JSONDecodeError) -> str:
    before = text[: error.pos].rstrip()
    if before.endswith(",") and text[error.pos : error.pos + 1] in ("}", "]"):
        return "; the comma before it is one too many"
    if text[error.pos : error.pos + 1] == "'":
        return '; JSON wants double quotes (")'
    if text[error.pos : error.pos + 1] in ("#", "/"):
        return '; a comment is an entry whose name begins with //, such as "// why": "..."'
    if "\n" not in text and text.strip().endswith(".json"):
        return "; a file's name must be given as a path"
    return ""


def _refuse(message: str, source: str) -> NoReturn:
    raise OptionsError([OptionProblem("", message)], source)
