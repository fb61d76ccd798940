"""The documentation as a site: Sphinx reads the pages as they lie here (``make docs``).

The pages are written to be read as files, too, with links that lead to files of the repository. The
site has no such files: there these links lead to ``SOURCE_URL``, an environment variable, or are
plain text without it.
"""

from __future__ import annotations

import os
import re
from typing import Any

SOURCE_URL = os.environ.get("SOURCE_URL", "").rstrip("/")

project = "dcos-tensorflow"
author = copyright = "the dcos-tensorflow authors"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 3
exclude_patterns = ["decisions/README.md"]
html_theme = "furo"
html_title = project
html_static_path: list[str] = []
html_show_copyright = html_show_sphinx = False
html_copy_source = False
nitpicky = True

_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+(?!docs/)([^)#\s]+)(#[^)]*)?\)")


def setup(app: Any) -> None:
    """Have each page pass through here before it is parsed."""
    app.connect("source-read", _read)


def _read(app: Any, name: str, source: list[str]) -> None:
    source[0] = _OUTSIDE.sub(_elsewhere, source[0])


def _elsewhere(link: re.Match[str]) -> str:
    text, path, anchor = link[1], link[2], link[3] or ""
    return f"[{text}]({SOURCE_URL}/{path}{anchor})" if SOURCE_URL else text
