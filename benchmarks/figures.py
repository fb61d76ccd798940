"""Where every benchmark writes what it has found: flat JSON, one number a name.

Used by the scripts beside it. ``bench.py`` puts the files of all of them together.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path


def add_option(parser: argparse.ArgumentParser) -> None:
    """Let ``--json FILE`` name the file."""
    parser.add_argument("--json", type=Path, help="where to write the figures, flat")


def write(path: Path | None, figures: Mapping[str, float]) -> None:
    """Write the figures, where a file is named."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    rounded = {name: float(f"{value:.4g}") for name, value in figures.items()}
    path.write_text(json.dumps(rounded, indent=2, sort_keys=True) + "\n")
