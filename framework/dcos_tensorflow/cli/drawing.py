"""Pictures that a command draws into a file: SVG as it is, PNG by resvg.

Used by the commands with ``--plot``. Other rooms make the content of a picture.
"""

from __future__ import annotations

from pathlib import Path

from dcos_tensorflow.client.errors import CliError, UsageError
from dcos_tensorflow.client.output import say
from dcos_tensorflow.svg import FONTS

#: Drawn with and without text, to see whether there is any font.
_PROBE = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20">'
    f'<text y="15" font-family="{FONTS}">{{}}</text></svg>'
)


def check_picture_file(path: Path | None) -> None:
    """Raise UsageError for a file whose name asks for no kind of picture that there is."""
    if path is not None and path.suffix.lower() not in (".svg", ".png"):
        raise UsageError(f"{path} cannot be drawn: name a file that ends in .svg or .png.")


def draw(svg: str, path: Path, *, tell: bool = True) -> None:
    """Write a picture, and say so. Raises CliError where it cannot be drawn or written."""
    try:
        path.write_bytes(picture_bytes(svg, path))
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error.strerror}.") from error
    if tell:
        say(f"{path} is drawn.")


def picture_bytes(svg: str, path: Path) -> bytes:
    """Return a picture as the file's name asks for it. Raises CliError where it cannot be had."""
    if path.suffix.lower() == ".svg":
        return svg.encode()
    try:
        from resvg_py import svg_to_bytes
    except ImportError:
        raise CliError(
            f"{path}: a PNG is drawn by resvg-py, which is not installed: pip install resvg-py,"
            " or name another file, which ends in .svg."
        ) from None
    blank, letter = (svg_to_bytes(svg_string=_PROBE.format(text)) for text in ("", "x"))
    if blank == letter:
        raise CliError(
            f"{path}: this machine has no font to write with: install one (Debian: apt install"
            " fonts-dejavu-core), or name another file, which ends in .svg."
        )
    drawn: bytes = svg_to_bytes(svg_string=svg, background="white", zoom=2)
    return drawn
