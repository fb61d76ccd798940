"""The lasting state of the local DC/OS: one JSON file, written whole.

``dcos`` opens it; ``marathon``, ``cosmos`` and ``uninstall`` each own one section. A write is
done when ``put`` returns: code that acts on something writes it before.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from embedded_mesos import write_json

Json = dict[str, Any]


class StateFileError(Exception):
    """The file cannot be read. The text says which and why."""


class StateFile:
    """Sections by name. Thread-safe."""

    def __init__(self, path: Path) -> None:
        """Read the file; a missing one is empty. Raises StateFileError."""
        self._path = path
        self._lock = threading.Lock()
        try:
            self._sections: Json = json.loads(path.read_text())
        except FileNotFoundError:
            self._sections = {}
        except (OSError, ValueError) as error:
            raise StateFileError(f"{path} cannot be read: {error}") from error

    def get(self, section: str, default: Any) -> Any:
        """Return a section as it was last put."""
        with self._lock:
            return self._sections.get(section, default)

    def put(self, section: str, value: Any) -> None:
        """Replace a section, on disk, before this returns."""
        with self._lock:
            self._sections[section] = value
            write_json(self._path, self._sections)
