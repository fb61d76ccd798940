"""Wheels made on the spot: packages to install where no index can be asked."""

import zipfile
from collections.abc import Iterable
from pathlib import Path


def make_wheel(
    folder: Path, name: str, version: str, *, requires: Iterable[str] = (), code: str = ""
) -> Path:
    """Write a wheel with one module of the package's name; it knows its ``VERSION``."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    files = {
        f"{module}/__init__.py": f"VERSION = {version!r}\n{code}",
        f"{info}/METADATA": "".join(
            f"{line}\n"
            for line in (
                "Metadata-Version: 2.1",
                f"Name: {name}",
                f"Version: {version}",
                *(f"Requires-Dist: {other}" for other in requires),
            )
        ),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{file},,\n" for file in (*files, f"{info}/RECORD"))
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(file, text)
    return wheel
