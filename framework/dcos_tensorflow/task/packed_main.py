"""The first that runs of the packed task runner, its ``__main__.py``: where modules come from.

Python's own way to import from an archive unpacks each module twice, once to find and once to run
it: a quarter of the runner's time until the user's process starts. Here all are unpacked at
once, as compiled by the Python that packed them. Any other takes the sources, by
Python's own way.
"""

from __future__ import annotations

import importlib.util
import marshal
import sys
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple

if TYPE_CHECKING:
    from types import ModuleType
    from zipimport import zipimporter

#: The file in the archive: what tells Pythons apart that compile to something else, and behind it
#: the code of each module, and whether it is a package, by name.
COMPILED = "compiled.marshal"


class Compiled:
    """Finds and loads them, as ``sys.meta_path`` wants it."""

    def __init__(self, archive: zipimporter, modules: Dict[str, Tuple[bool, bytes]]) -> None:
        #: The archive's path, as Python's own loader calls it.
        self.archive = archive.archive
        self._get_data = archive.get_data
        self._modules = modules

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        """Return where a module comes from; None for one that is none of ours."""
        if name not in self._modules:
            return None
        is_package, _ = self._modules[name]
        origin = self._source(name)
        spec = ModuleSpec(name, self, origin=origin, is_package=is_package)  # type: ignore[arg-type]
        # What sets ``__file__``.
        spec.has_location = True
        if is_package:
            spec.submodule_search_locations = [self._place(name)]
        return spec

    def create_module(self, spec: ModuleSpec) -> Optional[ModuleType]:
        """Leave it to Python."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Run a module's code."""
        _, code = self._modules[module.__name__]
        exec(marshal.loads(code), vars(module))

    def get_source(self, name: str) -> str:
        """Return a module's source, for code that copies it or reports an error."""
        return self._get_data(self._source(name)).decode("utf-8")

    def _place(self, name: str) -> str:
        return "/".join((self.archive, *name.split(".")))

    def _source(self, name: str) -> str:
        is_package, _ = self._modules[name]
        return self._place(name) + ("/__init__.py" if is_package else ".py")


def take_what_is_compiled(archive: zipimporter) -> None:
    """Let modules of the archive come from what was compiled, where this Python can read that."""
    content = archive.get_data("/".join((archive.archive, COMPILED)))
    magic = importlib.util.MAGIC_NUMBER
    if content.startswith(magic):
        sys.meta_path.insert(0, Compiled(archive, marshal.loads(content[len(magic) :])))


if __name__ == "__main__":
    take_what_is_compiled(__loader__)  # type: ignore[name-defined]
    from dcos_tensorflow.task.program import main

    sys.exit(main(sys.argv[1:]))
