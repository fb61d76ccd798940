"""The frame and the words of every picture: SVG that can be read on a light and on a dark page.

Used for every picture: a sweep, a bill. Pure; a PNG is made of it by ``cli.drawing``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape

from dcos_tensorflow.plugin.plain_text import escaped

#: Usual ones on Linux, too: not everything that draws SVG knows which of them is "sans-serif".
FONTS = "Arial, Liberation Sans, DejaVu Sans, Noto Sans, sans-serif"
#: From here on a number is written by its power of ten.
_LONG = 1e6
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


def ticks(low: float, high: float, count: int = 5) -> list[tuple[float, str]]:
    """Return some ``count`` round numbers from ``low`` to ``high``, and how each is written.

    Each as it is told from the next one; the only number that there is as it is.
    """
    if not 0 < high - low < math.inf:
        return [(value, f"{value:.4g}") for value in dict.fromkeys((low, high))]
    power = 10.0 ** math.floor(math.log10((high - low) / count))
    for step in (size * power for size in (10, 5, 2, 1)):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first + 1 >= count - 1:
            break
    found = [number * step for number in range(first, last + 1)]
    largest = max(map(abs, found))
    # So many digits that two beside each other differ, and no power of ten for common numbers.
    digits = max(1, math.ceil(math.log10(largest / step)) + 1)
    digits = max(digits, math.floor(math.log10(largest)) + 1) if largest < _LONG else digits
    return [(value, f"{0.0 if abs(value) < step / 2 else value:.{digits}g}") for value in found]


def share(value: float, low: float, high: float) -> float:
    """Return where a value is from ``low`` to ``high``, as 0 to 1; in the middle of nothing."""
    return (value - low) / (high - low) if high > low else 0.5


def upright(x: float, y: Iterable[tuple[float, str]], length: float = 4) -> Iterable[str]:
    """Yield the marks of an axis that stands at ``x``: their heights, and words left of them."""
    for height, text in y:
        yield f'<path class="axis" d="M{x:.1f} {height:.1f}h{-length:.1f}"/>'
        yield words(x - length - 4, height + 4, text, "end")


def level(y: float, x: Iterable[tuple[float, str]], length: float = 4) -> Iterable[str]:
    """Yield the marks of an axis that lies at ``y``: where they are along, and words below it."""
    for place, text in x:
        yield f'<path class="axis" d="M{place:.1f} {y:.1f}v{length:.1f}"/>'
        yield words(place, y + length + 14, text, "middle")


def words(x: float, y: float, text: str, anchor: str, size: int = 13) -> str:
    """Return words that begin, end or have their middle at ``x``: start, end, middle."""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
    return f"<text {place}>{escape(escaped(text))}</text>"
