"""Packs the plugin as one executable file for Linux and macOS.

Called by ``packaging/`` and by tests. The first line names the interpreter: by it the ``dcos``
command knows the file as a program and not as an archive. The same sources give the same bytes.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

#: Zip files begin in 1980; a fixed time keeps the bytes the same.
_TIME = (1980, 1, 1, 0, 0, 0)
_MAIN = """\
import sys

from dcos_tensorflow.plugin.main import main

sys.exit(main())
"""


def build_plugin(target: Path) -> Path:
    """Write the plugin to ``target`` and return it."""
    here = Path(__file__).resolve().parent
    sources = [file for file in here.glob("*.py") if file.name != Path(__file__).name]
    sources.append(here.parents[1] / "untrusted_input" / "package_options.py")
    contents = {"__main__.py": _MAIN}
    for source in sources:
        path = source.relative_to(here.parents[1])
        contents[str(path)] = source.read_text("utf-8")
        for folder in path.parents[:-1]:
            contents.setdefault(f"{folder}/__init__.py", "")
    with target.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in sorted(contents.items()):
                entry = zipfile.ZipInfo(name, _TIME)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, content)
    target.chmod(0o755)
    return target
