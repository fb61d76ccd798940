"""The documentation as a site: Sphinx reads the pages as they lie here (``make docs``).

The pages are written to be read as files, too, with links that lead to files of the repository. The
site has no such files: there these links lead to ``SOURCE_URL``, an environment variable, or are
plain text without it. The reference of the HTTP API is made from its OpenAPI document on the way.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
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
_OPERATIONS = "<!-- operations -->"
_OPENAPI = HERE.parent / "config-schemas" / "openapi.json"


def setup(app: Any) -> None:
    """Have each page pass through here before it is parsed."""
    app.connect("source-read", _read)


def _read(app: Any, name: str, source: list[str]) -> None:
    text = _OUTSIDE.sub(_elsewhere, source[0])
    if _OPERATIONS in text:
        text = text.replace(_OPERATIONS, "\n".join(_operations(json.loads(_OPENAPI.read_text()))))
    source[0] = text


def _elsewhere(link: re.Match[str]) -> str:
    text, path, anchor = link[1], link[2], link[3] or ""
    return f"[{text}]({SOURCE_URL}/{path}{anchor})" if SOURCE_URL else text


def _operations(document: dict[str, Any]) -> Iterator[str]:
    """Yield the reference, line by line: each path's methods by tag, what they take and answer."""
    by_tag: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            by_tag.setdefault(operation["tags"][0], []).append((path, method, operation))
    for tag in document["tags"]:
        yield f"\n## {tag['name'].capitalize()}\n\n{tag.get('description', '')}\n"
        for path, method, operation in by_tag.get(tag["name"], ()):
            yield f"### `{method.upper()} {path}`\n\n{operation['summary']}.\n"
            parameters = operation.get("parameters", [])
            if parameters:
                yield "| parameter | in | what |\n|---|---|---|"
                yield from (f"| `{p['name']}` | {p['in']} | {_told(p)} |" for p in parameters)
                yield ""
            yield "| status | answer |\n|---|---|"
            for status, answer in operation["responses"].items():
                yield f"| {status} | {_told(answer)} |"
            yield ""


def _told(thing: dict[str, Any]) -> str:
    return " ".join(str(thing.get("description", "")).split()).replace("|", "\\|")
