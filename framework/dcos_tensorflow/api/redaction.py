"""Takes secrets out of answers: the last step of every body.

Called by ``api.answers`` for each answer, so that no view can forget it. Options hold references to
secrets, never secrets; but users put passwords into URLs, command lines and environments all the
same. Over-masking is accepted, the text ``<redacted>`` says that something was there.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dcos_tensorflow.core.model.service_state import ServiceState
from dcos_tensorflow.core.spec.service_spec import ServiceSpec
from dcos_tensorflow.options.errors import is_secret
from dcos_tensorflow.scheduler.secrets.masking import MIN_LENGTH, REDACTED, masked_text
from untrusted_input.json_text import read_json

_SECRET_NAME = re.compile(
    r"secret|passw(or)?d|passphrase|credential|(^|_)token$|(^|_)token_|._key$|signature$"
)
#: Options that say where a secret is. What must not be seen is hidden in options already.
_REFERENCES = frozenset({"gcs_key_secret", "keytab_secret", "service_account_secret"})
# No secret is what our own sentences put in the place of one: <token>, user:password.
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_USER_IN_URL = re.compile(r"(?<=://)(?!\[?user:password@)[^/@\s\"']+(?=@)")
_NAMED = r"(?:secret|passw(?:or)?d|passphrase|token|credential|signature|[_-]key)"
_NO_PLACEHOLDER = r"(?!<(?:token|secret|password|redacted)>(?:[\s`.,;:)]|$)|%s)"
_VALUE = r"(?:\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s&;,\"'{\[}\]]+)"
#: ``name=value``, ``"name": value`` as in JSON, ``--name value``, ``Bearer value``; ``name: value``
#: where a line is that alone, as in YAML, or where nothing follows: else it is a sentence.
_ASSIGNMENT = re.compile(
    rf"(?P<name>(?:{_NAMED}\w{{0,40}}(?:=|[\"']\s?:\s?)|--[\w-]{{0,40}}?{_NAMED}[ \t]+|bearer ))"
    rf"{_NO_PLACEHOLDER}{_VALUE}"
    rf"|(?P<line>^[ \t-]*[\w-]{{0,40}}?{_NAMED}\w{{0,40}}[ \t]*:[ \t]+){_NO_PLACEHOLDER}.+$"
    rf"|(?P<last>{_NAMED}\w{{0,40}}:[ \t]*){_NO_PLACEHOLDER}{_VALUE}(?=$|[,;)}}\]])",
    re.IGNORECASE | re.MULTILINE,
)
#: Without one of these in a text, nothing in it can match: most texts are looked at no further.
_MAY_ASSIGN = re.compile(r"[=:]|--|earer ")
#: How JSON, which has no such numbers, shows them.
_NOT_FINITE = {math.inf: "Infinity", -math.inf: "-Infinity"}


@functools.lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Say whether a field, variable or option of this name holds a secret."""
    words = _CAMEL.sub("_", name).replace("-", "_").replace(".", "_").lower()
    return _SECRET_NAME.search(words) is not None


def _is_secret_variable(name: str) -> bool:
    """Say so by our rule, and by the broader one that the options have for environments."""
    return is_secret_name(name) or is_secret(name)


def secret_values(state: ServiceState, read: Iterable[str] = ()) -> frozenset[str]:
    """Return the secrets to be masked wherever they appear: the state's own, and those ``read``."""
    found = {state.settings.token_key, *in_environments(state.spec), *read}
    return frozenset(value for value in found if len(value) >= MIN_LENGTH)


def in_environments(spec: ServiceSpec) -> Iterator[str]:
    """Yield what options have in variables of tasks whose names are those of secrets."""
    for role in spec.roles:
        yield from (value for name, value in role.env.items() if _is_secret_variable(name))


def redact(value: Any, secrets: Iterable[str] = ()) -> Any:
    """Return ``value`` (JSON-ready) without secrets, and with numbers that JSON can hold.

    A float that is no number (a loss can be NaN) becomes its name as text.
    """
    return _redact(value, tuple(sorted(secrets, key=len, reverse=True)))


def _redact(value: Any, secrets: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        return redact_text(str(value), secrets)
    if isinstance(value, float):
        return value if math.isfinite(value) else _NOT_FINITE.get(value, "NaN")
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, Mapping):
        return _redact_mapping(value, secrets)
    if isinstance(value, list | tuple):
        return [_redact(item, secrets) for item in value]
    return value


def _redact_mapping(value: Mapping[Any, Any], secrets: tuple[str, ...]) -> dict[str, Any]:
    named = value.get("name", value.get("key"))
    if isinstance(named, str) and "value" in value and is_secret_name(named):
        value = {**value, "value": REDACTED}
    return {
        masked_text(str(key), secrets): _redact_item(str(key), item, secrets)
        for key, item in value.items()
    }


def _redact_item(key: str, item: Any, secrets: tuple[str, ...]) -> Any:
    if key == "env" and isinstance(item, Mapping):
        hidden = {n: REDACTED if _is_secret_variable(str(n)) else v for n, v in item.items()}
        return _redact(hidden, secrets)
    is_secret_one = is_secret_name(key) and key not in _REFERENCES and _is_filled(item)
    return REDACTED if is_secret_one else _redact(item, secrets)


def _is_filled(value: Any) -> bool:
    # A number with a fraction is a measurement: token_accuracy is a metric of many.
    return value not in (None, "") and not isinstance(value, bool | float | Mapping | list | tuple)


def redact_text(text: str, secrets: Iterable[str] = ()) -> str:
    """Return ``text`` without the secrets in it: known ones, in URLs, behind the name of one.

    Text that is a JSON object (``job_context``) is redacted as one.
    """
    if text[:1] == "{" and text.rstrip()[-1:] == "}":
        try:
            plain = read_json(text, object_pairs_hook=_each_name_once)
        except ValueError:
            pass
        else:
            cleaned = _redact(plain, tuple(secrets))
            return text if cleaned == plain else json.dumps(cleaned)
    if "://" in text:
        text = _USER_IN_URL.sub(REDACTED, text)
    if _MAY_ASSIGN.search(text):
        text = _ASSIGNMENT.sub(lambda found: f"{found[found.lastgroup or 0]}{REDACTED}", text)
    return masked_text(text, secrets)


def _each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object's members. Raises ValueError where a name hides what stood there before."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice")
    return found


def redact_part(text: str, before: str, secrets: Iterable[str] = ()) -> str:
    """Return ``text``, a part of a file, without the secrets in it.

    ``before`` is what stands in front of it. A line that begins there is looked at whole: where
    what is asked for begins within a secret, or behind the name of one, all of the line is masked.
    """
    line = before.rpartition("\n")[2]
    if not line:
        return redact_text(text, secrets)
    secrets = tuple(secrets)
    rest, newline, more = text.partition("\n")
    whole, begin = redact_text(line + rest, secrets), redact_text(line, secrets)
    if whole == line + rest:
        shown = rest
    elif whole.startswith(begin) and not begin.endswith(REDACTED):
        shown = whole[len(begin) :]
    else:
        shown = REDACTED
    return shown + newline + redact_text(more, secrets)
