"""Keeps downloaded files, and asks the server each time whether they are still the newest.

Used for package repositories and for the artifacts that apps fetch with ``cache: true``. An entry
is used without asking only when the server cannot be reached. A server that says nothing by which
a copy can be compared (no ETag, no Last-Modified) is asked for the whole file again.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from embedded_mesos import read_json, write_json
from untrusted_input.downloads import save

#: Seconds without a byte until a download has failed.
_STALLED_SECONDS = 60.0
_NOT_MODIFIED = 304


class DownloadError(Exception):
    """A URL could not be downloaded. The text says which and why."""


class DownloadCache:
    """Files of http and https URLs below one folder. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, url: str, headers: Mapping[str, str] | None = None) -> Path:
        """Return a file with what the URL gives now; never to be changed by the caller.

        Raises DownloadError when it could not be downloaded, and there is no copy of it.
        """
        key = hashlib.sha256(url.encode()).hexdigest()
        with self._lock:
            own = self._locks.setdefault(key, threading.Lock())
        with own:
            return self._get(url, dict(headers or {}), self._folder / key)

    def _get(self, url: str, headers: dict[str, str], folder: Path) -> Path:
        known = read_json(folder / "about.json") or {}
        content = folder / str(known.get("file", ""))
        if not known or not content.is_file():
            known = {}
        for answer, question in (("etag", "If-None-Match"), ("modified", "If-Modified-Since")):
            if known.get(answer):
                headers[question] = known[answer]
        try:
            request = urllib.request.Request(url, headers=headers)
            with urllib.request.urlopen(request, timeout=_STALLED_SECONDS) as response:
                name = _saved(response, folder)
                about = {
                    "url": url,
                    "file": Path(name).name,
                    "etag": response.headers.get("ETag"),
                    "modified": response.headers.get("Last-Modified"),
                }
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == _NOT_MODIFIED and known:
                return content
            raise DownloadError(f"{url}: HTTP status {error.code}") from error
        except (OSError, ValueError, http.client.HTTPException) as error:
            if known:
                return content
            raise DownloadError(f"{url}: {error}") from error
        write_json(folder / "about.json", about)
        if known:
            with contextlib.suppress(FileNotFoundError):
                content.unlink()
        return Path(name)


def _saved(response: http.client.HTTPResponse, folder: Path) -> str:
    """Write a response to a file of its own, and return its path: the former may be in use.

    Raises OSError when the connection broke; nothing is left of the file then.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=folder)
    try:
        with open(descriptor, "wb") as out:
            save(response, out)
    except BaseException:
        os.unlink(name)
        raise
    return name


def file_path(url: str) -> Path | None:
    """Return the path of a ``file://`` URL, None for every other."""
    parsed = urllib.parse.urlparse(url)
    if parsed.scheme != "file" or parsed.netloc not in ("", "localhost"):
        return None
    return Path(urllib.parse.unquote(parsed.path))
