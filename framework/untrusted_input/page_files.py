"""The files of a page and the headers they are answered with.

Used for a service's dashboard and for the page of an embedded cluster. They hold nothing of any
service, and so need no token.
"""

from __future__ import annotations

import functools
from pathlib import Path

from untrusted_input import trees

_MEDIA_TYPES = {
    "css": "text/css",
    "html": "text/html",
    "js": "text/javascript",
    "svg": "image/svg+xml",
    "txt": "text/plain",
}
#: Scripts and styles are those of the package and no others; no page may show this one in a frame.
#: The browser asks each time whether a file is still the same: a new release is seen at once.
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
        " img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
}


@functools.cache
def files(folder: Path) -> dict[str, tuple[bytes, str]]:
    """Return content and media type of every file of a page's folder by its path in there."""
    return {
        file.relative_to(folder).as_posix(): (file.read_bytes(), _MEDIA_TYPES[file.suffix[1:]])
        for file in map(Path, trees.files_below(folder))
        if file.suffix[1:] in _MEDIA_TYPES
    }
