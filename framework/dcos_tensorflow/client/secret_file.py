"""Secrets that stand in files of their own. The content is never part of an error's text.

Used by ``settings`` for a scheduler's secrets, and by the commands that ask one elsewhere.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from dcos_tensorflow.client.errors import UsageError
from untrusted_input.json_text import read_json


def secret_in(path: str, origin: str) -> str:
    """Return the secret in a file: its text, or ``secret`` of a Mesos credential in JSON.

    ``origin`` says who named the file. Raises UsageError.
    """
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{origin}: {path} cannot be read: {error}.") from error
    try:
        document = read_json(text)
    except ValueError:
        document = None
    if isinstance(document, dict):
        text = str(document.get("secret", ""))
    if not text or "\n" in text:
        raise UsageError(f"{origin}: {path} must hold one line, the secret, and nothing else.")
    return text


def private_secret_in(path: str, origin: str) -> str:
    """Return the secret in a file that only its owner, and its group, may read.

    Raises UsageError.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise UsageError(f"{origin}: {path} cannot be read: {error.strerror}.") from error
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        raise UsageError(
            f"{origin}: every user of this machine may read or write {path}, which holds a token:"
            f" run chmod 600 {path}, and take another token where others may have read it."
        )
    return secret_in(path, origin)
