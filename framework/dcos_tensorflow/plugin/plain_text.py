"""Text of tasks, masters and agents as a terminal or a log may be given it. Pure.

The output of a task can hold sequences that a terminal obeys: they clear it, rename it, write into
its input, or let a line read as another. Used by both command lines and by the scheduler's log.
"""

from __future__ import annotations

import json
import re
from typing import Any

#: Colours and weights, which Keras writes around its numbers: they say nothing without the colours.
_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")
#: Controls (but for the tab), what turns the direction of text, and halves of characters.
_UNSAFE = "\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_CONTROLS = re.compile(f"[{_UNSAFE}]")
_CONTROLS_IN_LINES = re.compile("[%s]" % _UNSAFE.replace("\x0a-\x1f", "\x0b-\x1f"))


def escaped(text: str, *, lines: bool = False) -> str:
    r"""Return ``text`` with colours left out and controls written as in ``\x1b``.

    ``lines`` lets it have line breaks of its own.
    """
    if text.isprintable():
        return text
    controls = _CONTROLS_IN_LINES if lines else _CONTROLS
    return controls.sub(_written, _COLOURS.sub("", text))


def json_text(document: Any, **how: Any) -> str:
    """Return JSON that reads back as ``document`` and that a terminal can be given."""
    return _CONTROLS_IN_LINES.sub(
        lambda found: f"\\u{ord(found[0]):04x}",
        json.dumps(document, indent=2, ensure_ascii=False, **how),
    )


def _written(found: "re.Match[str]") -> str:
    return found[0].encode("unicode_escape").decode("ascii")
