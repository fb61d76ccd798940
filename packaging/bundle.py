"""Builds the scheduler's artifact: a folder that runs on any Linux x86-64, packed as a tar.gz.

Called by ``build.py``. The folder holds this Python, its standard library, the distributions that
dcos-tensorflow needs as they are installed here, and the C library with its loader: an agent needs
a kernel and a shell, and neither Python nor a C library of a certain age
(docs/decisions/0010-scheduler-artifact.md). The same inputs give the same bytes.
"""

from __future__ import annotations

import compileall
import gzip
import importlib.metadata
import json
import os
import platform
import py_compile
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import bill_of_materials

ROOT = Path(__file__).resolve().parents[1]
#: The folder in the archive; the Marathon template and the systemd units name it.
FOLDER = "dcos-tensorflow"
_DISTRIBUTION = "dcos-tensorflow"
_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
#: Where the interpreter looks for packages outside a virtual environment; that of Debian elsewhere.
_PACKAGES = "dist-packages" if "deb_system" in sysconfig.get_scheme_names() else "site-packages"

#: Parts of the standard library that no daemon needs: other people's tests, editors, build tools.
_LEFT_OUT_OF_LIBRARY = (
    *("__pycache__", "config-*", "dist-packages", "ensurepip", "idlelib", "lib2to3", "pydoc_data"),
    *("site-packages", "test", "tests", "tkinter", "turtledemo", "turtle.py", "venv"),
    *("sitecustomize.py", "EXTERNALLY-MANAGED", "LICENSE.txt"),
)
#: Extension modules that need libraries of terminals, databases and X, or are tests.
_LEFT_OUT_OF_EXTENSIONS = re.compile(
    r"(_tkinter|_curses|_curses_panel|readline|_dbm|_gdbm|_crypt|nis|ossaudiodev|_test\w*"
    r"|_ctypes_test|_xx\w+|xx\w+)\..*"
)
_LEFT_OUT_OF_DISTRIBUTIONS = re.compile(
    r"(^|/)(__pycache__|tests?|include)/|\.(pyc|pyi|pxd|h|a|c|hpp)$|^\.\./|direct_url\.json$"
    r"|(^|/)(INSTALLER|REQUESTED|RECORD)$"
)
#: What boto3 is used for here, and to log in; the descriptions of all other services of AWS are
#: most of its size. A client for one that is missing fails by name.
_AWS_SERVICES = ("ec2", "logs", "s3", "signin", "sso", "sso-oidc", "ssm", "sts")
_OTHER_AWS_SERVICES = re.compile(
    rf"^(botocore/data/(?!({'|'.join(_AWS_SERVICES)})/)[^/]+/|boto3/(data/(?!(ec2|s3)/)|examples/))"
)

_LAUNCHER = """\
#!/bin/sh
# {meaning}
# Nothing but the shell itself is used here: PATH may be empty.
self=$0
while [ -L "$self" ]; do
  # Only someone who has linked to this file needs readlink.
  link=$(readlink "$self") || exit 127
  case $link in /*) self=$link ;; *) self=${{self%/*}}/$link ;; esac
done
here=$(CDPATH= cd -- "${{self%/*}}/.." && pwd -P) || exit 127
exec "$here/lib/{loader}" --library-path "$here/lib" --argv0 "$here/bin/python3" \\
  "$here/libexec/python{version}" {arguments}"$@"
"""


class BuildError(Exception):
    """The artifact cannot be built on this machine; the text says why."""


def build(folder: Path) -> dict[str, str]:
    """Make the bundle in ``folder``, which must not exist. Return the versions that are in it.

    Raises BuildError.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise BuildError("the scheduler's artifact is built on Linux x86-64, as it runs there")
    library = folder / "lib" / f"python{_VERSION}"
    _copy_library(library)
    versions = _copy_distributions(library / _PACKAGES)
    interpreter = folder / "libexec" / f"python{_VERSION}"
    interpreter.parent.mkdir(parents=True)
    shutil.copyfile(Path(sys.executable).resolve(), interpreter)
    interpreter.chmod(0o755)
    loader = _copy_shared_libraries(folder)
    _strip([interpreter, *sorted((folder / "lib").glob("libpython*")), *_extensions(library)])
    _write_launchers(folder, loader)
    _compile(folder)
    versions = {"python": platform.python_version(), "libc": platform.libc_ver()[1], **versions}
    manifest = json.dumps(versions, indent=2, sort_keys=True) + "\n"
    (folder / "versions.json").write_text(manifest, encoding="utf-8")
    shutil.copyfile(ROOT / "LICENSE", folder / "LICENSE")
    bill_of_materials.write(folder, _needed())
    return versions


def pack(folder: Path, target: Path, time: int) -> None:
    """Write ``folder`` to the tar.gz ``target``: sorted, owned by root, all of one ``time``."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        member.mtime = time
        executable = member.isdir() or member.mode & stat.S_IXUSR
        member.mode = 0o755 if executable else 0o644
        return member

    with (
        open(target, "wb") as file,
        gzip.GzipFile("", "wb", 6, file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in sorted(folder.rglob("*")):
            name = f"{FOLDER}/{path.relative_to(folder)}"
            archive.add(path, name, recursive=False, filter=plain)


def _copy_library(target: Path) -> None:
    ignored = shutil.ignore_patterns(*_LEFT_OUT_OF_LIBRARY, "*.pyc")

    def ignore(folder: str, names: list[str]) -> set[str]:
        found = set(ignored(folder, names))
        if Path(folder).name == "lib-dynload":
            found |= {name for name in names if _LEFT_OUT_OF_EXTENSIONS.fullmatch(name)}
        return found

    shutil.copytree(sysconfig.get_path("stdlib"), target, ignore=ignore)


def _copy_distributions(target: Path) -> dict[str, str]:
    """Copy what dcos-tensorflow needs, and itself, from where they are installed."""
    versions = {}
    for distribution in _needed():
        name = distribution.metadata["Name"]
        versions[name] = distribution.version
        if name == _DISTRIBUTION:
            continue
        for file in distribution.files or ():
            left_out = _LEFT_OUT_OF_DISTRIBUTIONS.search(str(file))
            if not left_out and not _OTHER_AWS_SERVICES.match(str(file)):
                _copy(Path(str(distribution.locate_file(file))), target / str(file))
    for package in (ROOT / "framework").glob("*/__init__.py"):
        shutil.copytree(
            package.parent,
            target / package.parent.name,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    return dict(sorted(versions.items()))


def _needed() -> Iterator[importlib.metadata.Distribution]:
    """Yield dcos-tensorflow and all that it needs, without extras."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    wanted, seen = [_DISTRIBUTION], set()
    while wanted:
        name = canonicalize_name(wanted.pop())
        if name in seen:
            continue
        seen.add(name)
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError as error:
            raise BuildError(f"{name} is needed and not installed beside this Python") from error
        yield distribution
        for text in distribution.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                wanted.append(requirement.name)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755 if os.access(source, os.X_OK) else 0o644)


def _copy_shared_libraries(folder: Path) -> str:
    """Copy the libraries that the binaries ask for, and the loader. Return the loader's name."""
    loader = ""
    binaries = [folder / "libexec" / f"python{_VERSION}", *sorted(folder.rglob("*.so*"))]
    for path in sorted(_asked_for(binaries)):
        if path.is_relative_to(folder):
            continue
        _copy(path, folder / "lib" / path.name)
        (folder / "lib" / path.name).chmod(0o755)
        if path.name.startswith("ld-linux"):
            loader = path.name
    if not loader:
        raise BuildError("the C library here has no loader of its own (ld-linux)")
    return loader


def _asked_for(binaries: Iterable[Path]) -> set[Path]:
    """Return the libraries that ``ldd`` finds for ``binaries``, under the names they ask for."""
    found = set()
    for binary in binaries:
        told = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, check=False)
        for line in told.stdout.splitlines():
            if "not found" in line:
                raise BuildError(f"{binary.name} asks for {line.strip()}")
            match = re.search(r"(/\S+) \(0x", line)
            if match:
                found.add(Path(match[1]))
    return found


def _extensions(library: Path) -> list[Path]:
    return sorted((library / "lib-dynload").glob("*.so"))


def _strip(binaries: list[Path]) -> None:
    """Take Python's debugging symbols out: more than half of its size.

    The libraries of wheels stay as they are: they were changed after they were linked, and strip
    can break such files.
    """
    try:
        subprocess.run(["strip", "--strip-unneeded", *map(str, binaries)], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BuildError(f"strip is needed (the package binutils): {error}") from error


def _write_launchers(folder: Path, loader: str) -> None:
    launchers = {
        "dcos-tensorflow": (
            "The command dcos-tensorflow, with all that it needs beside it.",
            "-I -X utf8 -m dcos_tensorflow ",
        ),
        "python3": ("The Python of this folder.", ""),
    }
    for name, (meaning, arguments) in launchers.items():
        path = folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        text = _LAUNCHER.format(
            meaning=meaning, loader=loader, version=_VERSION, arguments=arguments
        )
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)


def _compile(folder: Path) -> None:
    """Compile all modules, so that a scheduler in a new sandbox starts at once."""
    done = compileall.compile_dir(
        folder / "lib" / f"python{_VERSION}",
        maxlevels=20,
        quiet=2,
        stripdir=str(folder),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    if not done:
        raise BuildError("some modules cannot be compiled")
