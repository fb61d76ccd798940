"""Draws the package's icons: a few workers around what they share. Called by ``build.py``.

The pictures are made here and not kept as files, so that what is in the repository is text.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np

#: Universe's sizes, in pixels.
SIZES = {"icon-small.png": 48, "icon-medium.png": 96, "icon-large.png": 256}

_GROUND = (255, 255, 255, 0)
_LINE = (90, 98, 110, 255)
_WORKER = (245, 130, 32, 255)
_SERVER = (38, 70, 108, 255)
_FINER = 4


def draw(folder: Path) -> None:
    """Write all icons to ``folder``."""
    for name, size in SIZES.items():
        (folder / name).write_bytes(_png(_picture(size)))


def _picture(size: int) -> np.ndarray:
    """Return the picture as an array of red, green, blue and opacity."""
    fine = size * _FINER
    rows, columns = np.mgrid[0:fine, 0:fine] / fine
    picture = np.empty((fine, fine, 4))
    picture[:] = _GROUND
    center = (0.5, 0.5)
    workers = [
        (0.5 + 0.36 * np.sin(turn), 0.5 + 0.36 * np.cos(turn))
        for turn in np.linspace(0.0, 2 * np.pi, 6, endpoint=False)
    ]
    for place in workers:
        picture[_near_line(rows, columns, center, place) < 0.018] = _LINE
    for place in workers:
        picture[np.hypot(rows - place[0], columns - place[1]) < 0.105] = _WORKER
    picture[np.hypot(rows - center[0], columns - center[1]) < 0.16] = _SERVER
    blocks = picture.reshape(size, _FINER, size, _FINER, 4)
    opacity = blocks[..., 3:].mean(axis=(1, 3))
    weighted = (blocks[..., :3] * blocks[..., 3:]).mean(axis=(1, 3))
    colour = weighted / np.maximum(opacity, 1e-9)
    return np.concatenate([colour, opacity], axis=2).round().astype(np.uint8)


def _near_line(
    rows: np.ndarray, columns: np.ndarray, start: tuple[float, float], end: tuple[float, float]
) -> np.ndarray:
    """Return the distance of each point to the line between two places."""
    across, along = end[0] - start[0], end[1] - start[1]
    share = ((rows - start[0]) * across + (columns - start[1]) * along) / (across**2 + along**2)
    share = share.clip(0.0, 1.0)
    return np.hypot(rows - start[0] - share * across, columns - start[1] - share * along)


def _png(picture: np.ndarray) -> bytes:
    height, width, _ = picture.shape
    lines = b"".join(b"\0" + line.tobytes() for line in picture)
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines, 9)),
        (b"IEND", b""),
    )
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
