"""The frame and the words of every picture: SVG that can be read on a light and on a dark page.

Used for every picture: a sweep, a bill. Pure; a PNG is made of it by ``cli.drawing``.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from dcos_tensorflow.plugin.plain_text import escaped

#: Usual ones on Linux, too: not everything that draws SVG knows which of them is "sans-serif".
FONTS = "Arial, Liberation Sans, DejaVu Sans, Noto Sans, sans-serif"
#: Colours that stand out from white and from black alike.
ORANGE, BLUE, GREEN = "#d9730d", "#2f7ed8", "#2e9e5b"


def framed(title: str, width: int, height: int, left: int, parts: Iterable[str]) -> str:
    """Return a whole picture, with its title ``left`` from the edge; lengths are dots."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
            f' font-family="{FONTS}" font-size="13"><title>{escape(escaped(title))}</title>',
            "<style>text{fill:#333}.axis{stroke:#888;stroke-opacity:.5}"
            "@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>",
            words(left, 26, title, "start", 16),
            *parts,
            "</svg>",
            "",
        ]
    )


def words(x: float, y: float, text: str, anchor: str, size: int = 13) -> str:
    """Return words that begin, end or have their middle at ``x``: start, end, middle."""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
    return f"<text {place}>{escape(escaped(text))}</text>"
