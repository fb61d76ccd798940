"""The S3 credentials of tasks: the references of the options, followed when something is launched.

Used by ``launch_secrets``, which adds them to an ACCEPT on its way out. They are read again for
each, so rotated keys reach the next launch; they are never stored, logged or part of the state.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from dcos_tensorflow.core.spec.storage_spec import CredentialsReference
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.scheduler.gate import Gate, GateError
from untrusted_input.json_text import read_json

log = logging.getLogger(__name__)

#: What boto3 reads (boto3 guide, "Credentials"), and what each is called in files and variables.
_ID, _KEY, _TOKEN = "ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN"
_NEEDED = (_ID, _KEY)
_MOST_BYTES = 100_000


@dataclass(frozen=True)
class S3Credentials:
    """An access key of AWS or of what speaks its protocol. Never printed."""

    access_key_id: str = field(repr=False)
    secret_access_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)

    def variables(self) -> dict[str, str]:
        """Return the environment variables that boto3 reads."""
        found = {f"AWS_{_ID}": self.access_key_id, f"AWS_{_KEY}": self.secret_access_key}
        return found | ({f"AWS_{_TOKEN}": self.session_token} if self.session_token else {})


class CredentialsReader:
    """Follows references, as far as the gate lets it.

    Of the scheduler's environment nothing but the variables of a key is read, whatever prefix the
    options name.
    """

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._last: dict[CredentialsReference, S3Credentials] = {}

    def read(self, reference: CredentialsReference) -> S3Credentials:
        """Return what ``reference`` stands for now. Raises GateError."""
        if reference.file:
            content = self._gate.file(Path(reference.file), _MOST_BYTES)
            return _of(_in_file(content, Path(reference.file), reference.profile), str(reference))
        values = {name: self._gate.variable(reference.env + name) for name in _NEEDED}
        # Keys of a session are none without its token: one that may not be had is no missing one.
        if self._gate.has_variable(reference.env + _TOKEN):
            values[_TOKEN] = self._gate.variable(reference.env + _TOKEN)
        return _of(values, str(reference))

    def values(self) -> tuple[str, ...]:
        """Return the secret parts of what was read so far. From any thread."""
        known = tuple(self._last.values())
        return tuple(part for c in known for part in (c.secret_access_key, c.session_token) if part)

    def problem(self, reference: CredentialsReference | None) -> str:
        """Return why ``reference`` cannot be followed now; '' when it can, or when it is None."""
        try:
            if reference is not None:
                self.read(reference)
        except GateError as error:
            return str(error)
        return ""

    def variables(self, reference: CredentialsReference) -> dict[str, str]:
        """Return the environment variables of a launch that refers to credentials.

        Where they cannot be read now, those of the launch before are used: a key file that is being
        replaced must not hold up a restart. Where there were none either, tasks are launched
        without, and say themselves what they cannot reach.
        """
        try:
            self._last[reference] = self.read(reference)
        except GateError as error:
            if reference not in self._last:
                log.error("tasks are launched without S3 credentials: %s", error)
                return {}
            log.warning("tasks get the S3 credentials of the launch before: %s", error)
        return self._last[reference].variables()


def _of(values: Mapping[str, Any], where: str) -> S3Credentials:
    missing = [name for name in _NEEDED if not values.get(name)]
    if missing:
        raise GateError(f"{where} have no {' and no '.join(missing)}")
    for name, value in values.items():
        if value and (not isinstance(value, str) or not value.isprintable() or " " in value):
            raise GateError(f"{where}: {name} is no text that a key can be")
    return S3Credentials(values[_ID], values[_KEY], values.get(_TOKEN) or "")


def _in_file(content: bytes, path: Path, profile: str) -> dict[str, Any]:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise GateError(f"{path} is not UTF-8 text") from None
    return _from_json(text, path) if text.lstrip()[:1] == "{" else _from_ini(text, path, profile)


def _from_json(text: str, path: Path) -> dict[str, Any]:
    """Read what ``aws sts``, a credential process or the instance metadata give."""
    try:
        document = read_json(text)
    except ValueError:
        # Never the parser's own words, nor a cause: they show the file.
        raise GateError(f"{path} is not JSON") from None
    inner = document.get("Credentials", document)
    if not isinstance(inner, dict):
        raise GateError(f"{path}: Credentials is not an object")
    plain = {str(key).lower().replace("_", "").removeprefix("aws"): v for key, v in inner.items()}
    spelled = {name: name.lower().replace("_", "") for name in (_ID, _KEY, _TOKEN)}
    values = {name: plain.get(key) for name, key in spelled.items()}
    values[_TOKEN] = values[_TOKEN] or plain.get("token")
    return values


def _from_ini(text: str, path: Path, profile: str) -> dict[str, Any]:
    """Read a profile (AWS CLI guide, "Configuration and credential file settings")."""
    import configparser

    parser = configparser.RawConfigParser(default_section="", strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        raise GateError(f"{path} is no credentials file of AWS, and no JSON") from None
    for section in (profile, f"profile {profile}"):
        if parser.has_section(section):
            found = parser[section]
            return {name: found.get(f"aws_{name.lower()}", "") for name in (_ID, _KEY, _TOKEN)}
    raise GateError(f"{path} has no profile {profile}")
