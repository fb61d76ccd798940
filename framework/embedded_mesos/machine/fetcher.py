"""Brings a task's URIs into its sandbox, as Mesos' fetcher does.

Runs inside ``executor``'s process, before the task starts. Plain paths, ``file://``, ``http://``
and ``https://``; archives are unpacked into the sandbox unless ``extract`` is false;
``executable`` files get their run bit instead. Other schemes are refused by name. ``cache``
changes nothing: a cache would only save a copy on the same machine. Modules that only some schemes
and archives need are imported for them.
"""

from __future__ import annotations

import os
import shutil
import stat
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any

from untrusted_input.archives import ArchiveRefused, is_archive, unpack
from untrusted_input.downloads import save

#: What it brings: the schemes of URIs, empty for a path.
SCHEMES = ("", "file", "http", "https")
#: Seconds without a byte until a download has failed.
_STALLED_SECONDS = 60.0


class FetchError(Exception):
    """A URI could not be brought. The text says which and why."""


def fetch(uris: Iterable[Mapping[str, Any]], sandbox: str) -> None:
    """Bring every URI into ``sandbox``. Raises FetchError; the rest was not tried then."""
    for uri in uris:
        try:
            _fetch_one(uri, sandbox)
        except FetchError:
            raise
        except ArchiveRefused as error:
            raise FetchError(f"Failed to fetch '{uri['value']}': the archive {error}") from error
        except Exception as error:
            # URIs are anything, and libraries refuse them in their own ways.
            told = str(error) or type(error).__name__
            raise FetchError(f"Failed to fetch '{uri['value']}': {told}") from error


def _fetch_one(uri: Mapping[str, Any], sandbox: str) -> None:
    source = uri["value"].strip()
    name = uri.get("output_file") or _base_name(source)
    target = os.path.join(sandbox, name)
    inside = os.path.realpath(target).startswith(os.path.realpath(sandbox) + os.sep)
    if os.path.isabs(name) or not inside:
        raise FetchError(f"Failed to fetch '{source}': '{name}' is outside of the sandbox")
    os.makedirs(os.path.dirname(target), exist_ok=True)
    _bring(source, target)
    if uri.get("executable", False):
        os.chmod(target, os.stat(target).st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    elif uri.get("extract", True):
        _unpack(target, sandbox)


def _base_name(source: str) -> str:
    path = urllib.parse.urlparse(source).path if "://" in source else source
    name = os.path.basename(urllib.parse.unquote(path))
    if not name:
        raise FetchError(f"Failed to fetch '{source}': it names no file")
    return name


def scheme_of(source: str) -> str:
    """Return the scheme of a URI in lower case, empty for a path."""
    return source.partition("://")[0].strip().lower() if "://" in source else ""


def _bring(source: str, target: str) -> None:
    scheme = scheme_of(source)
    if scheme in ("http", "https", "ftp", "ftps"):
        if scheme.startswith("ftp"):
            raise FetchError(f"Not supported by the embedded cluster: {scheme}:// ('{source}')")
        from urllib.request import urlopen

        request = urlopen(source, timeout=_STALLED_SECONDS)
        with request as response, open(target, "wb") as out:
            save(response, out)
        return
    if scheme == "file":
        source = urllib.parse.unquote(urllib.parse.urlparse(source).path)
    elif scheme:
        raise FetchError(f"Not supported by the embedded cluster: {scheme}:// ('{source}')")
    if not os.path.isabs(source):
        raise FetchError(
            f"Failed to fetch '{source}': a relative path needs the agent's frameworks_home"
        )
    shutil.copy(source, target)


def _unpack(path: str, sandbox: str) -> None:
    # Of a single file that is compressed, the file comes to lie beside it.
    name = os.path.basename(path)
    folder = sandbox if is_archive(name) else os.path.dirname(path)
    with open(path, "rb") as file:
        unpack(file, name, folder)
