"""What a person says of a run: tags and a note. Pure.

Kept in the run's folder (``folder.RunFolder``) by the API of the service, and by the window for one
that no scheduler serves; shown with the run's record. Nothing of the run depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: A note, and each tag, is no longer; bytes.
NOTE_BYTES, TAG_BYTES = 2000, 50
MOST_TAGS = 20

Notes = Mapping[str, Any]
NONE: Notes = {"tags": [], "note": ""}

ALLOWED = (
    f'the body must be {{"tags": ["..."], "note": "..."}} with at most {MOST_TAGS} tags of'
    f" {TAG_BYTES} bytes each, without commas, and a note of {NOTE_BYTES} bytes"
)


def notes_of(given: Any) -> Notes:
    """Return tags and note of a document, each tag once. Raises ValueError, which says what fits.

    Names beside these two are passed over, so that a run's record may be given.
    """
    found = {**NONE, **given} if isinstance(given, dict) else {}
    tags: Any = found.get("tags")
    note: Any = found.get("note")
    if not isinstance(tags, list) or len(tags) > MOST_TAGS or not _fits(note, NOTE_BYTES):
        raise ValueError(ALLOWED)
    if not all(_fits(tag, TAG_BYTES) and "," not in tag and tag.strip() for tag in tags):
        raise ValueError(ALLOWED)
    return {"tags": list(dict.fromkeys(tag.strip() for tag in tags)), "note": note.strip()}


def _fits(text: Any, most: int) -> bool:
    return isinstance(text, str) and len(text.encode("utf-8", "replace")) <= most
