"""The options that a command line was given: a file, or flags beside a script.

Used by ``run`` and ``validate``. Nothing is looked at before it is loaded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dcos_tensorflow.client.work_directory import ServiceDirectory
from dcos_tensorflow.records import dataclass

if TYPE_CHECKING:
    from dcos_tensorflow.options import Options


#: Where options without a file lie for a scheduler in the background.
_FILE = "options.json"


@dataclass(frozen=True)
class GivenOptions:
    """What there is to load, and how it is meant."""

    #: An options file, or the options themselves.
    source: Path | Mapping[str, Any]
    #: Single options that win over them.
    overrides: tuple[str, ...] = ()
    #: Where relative paths start when there is no file.
    folder: Path | None = None
    #: Whether sections that are not named bring tasks, as in the published package.
    published_defaults: bool = False
    #: What to say of them.
    notes: tuple[str, ...] = ()
    #: Whether they were made of a script, whose folder is then the whole truth of its code.
    is_script: bool = False

    def load(self) -> Options:
        """Return the options. Raises OptionsError."""
        # A tenth of a second, which a command that wants to begin something has before it.
        from dcos_tensorflow.options import load

        return load(
            self.source,
            overrides=self.overrides,
            published_defaults=self.published_defaults,
            folder=self.folder,
        )

    def as_published(self) -> GivenOptions:
        """Return the same with the counts of the published package."""
        return replace(self, published_defaults=True)

    def with_override(self, override: str) -> GivenOptions:
        """Return the same with one more option that wins over all before it."""
        return replace(self, overrides=(*self.overrides, override))

    def file(self, directory: ServiceDirectory) -> Path:
        """Return a file that holds them, for another process; one of ours where there is none."""
        if isinstance(self.source, Path):
            return self.source
        path = directory.path / _FILE
        path.write_text(json.dumps(self.source, indent=2) + "\n", encoding="utf-8")
        return path
