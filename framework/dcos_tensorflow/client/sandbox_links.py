"""The folder ``tasks`` of a service: a link for each task to where its output lies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def link(folder: Path, places: Mapping[str, Path]) -> None:
    """Make ``folder`` hold a link for each task, and none of before. Raises OSError."""
    folder.mkdir(mode=0o700, exist_ok=True)
    for before in folder.iterdir():
        if before.is_symlink():
            before.unlink()
    for name, place in places.items():
        (folder / name).symlink_to(place)
