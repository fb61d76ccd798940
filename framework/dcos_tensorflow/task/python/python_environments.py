"""Makes Python environments for jobs: once per machine and content, shared by all jobs.

``package_work`` calls ``ready``. An environment lies over the Python that it is made of, and sees
its packages behind its own: TensorFlow is not installed twice. It never changes once it is whole.
The folder that environments are shared in is this user's alone; another user's is not used.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Callable, Dict, Tuple

from dcos_tensorflow.task.python.package_installer import Installer, InstallFailed
from dcos_tensorflow.task.python.python_packages import Base, EnvironmentSpec, key_of
from dcos_tensorflow.task.python.shared_copies import (
    Copies,
    CopyHeld,
    Taken,
    UnsafeFolder,
    own_folder,
    users_folder,
)
from untrusted_input import trees

if TYPE_CHECKING:
    from importlib import metadata


#: What a machine keeps: above either bound go those that were not used for longest. One with CUDA
#: takes about 6 GB, one without about 1.5 GB, the requirements of a job mostly much less.
MAX_BYTES = 40_000_000_000
MAX_NUMBER = 24
#: In an environment: it is whole.
_WHOLE = ".whole"
_REQUIREMENTS = "requirements.txt"
#: The installer of packages that are not installed here at all.
_STAND_IN = "stand-in"


def shared_environments(
    directory: str, installer: Installer, log: Callable[[str], None], *, shared: bool = True
) -> Copies:
    """Return the environments in ``directory``, which are this user's alone.

    ``shared``: other users may come to where it lies. Raises InstallFailed where it cannot be had,
    or is not this user's.
    """
    try:
        directory = own_folder(directory, shared=shared)
    except OSError as error:
        raise InstallFailed(
            f"The folder {directory} for environments cannot be made: {error.strerror}",
            "name another in data_cache.directory, in which the tasks' user may write",
        ) from None
    except UnsafeFolder as error:
        raise InstallFailed(
            f"No environment is run from there: {error}",
            "remove it, or name another place in data_cache.directory",
        ) from None
    return Copies(
        directory,
        wait=installer.wait,
        log=log,
        max_bytes=MAX_BYTES,
        max_number=MAX_NUMBER,
        sign=_WHOLE,
    )


def users_directory(directory: str) -> str:
    """Return what is this user's of a folder in which all tasks of a machine share environments."""
    return users_folder(directory, "environments")


def is_ready(directory: str, base: Base, wanted: EnvironmentSpec) -> bool:
    """Say whether the environment is there, in the folder of one user or one task."""
    return os.path.isfile(os.path.join(directory, key_of(base, wanted), _WHOLE))


def ready(
    copies: Copies, base: Base, wanted: EnvironmentSpec, installer: Installer
) -> Tuple[Base, Taken]:
    """Return the environment, made if it is not there, and what keeps it there.

    Raises InstallFailed, and Stopped when the task ends meanwhile.
    """
    name = key_of(base, wanted)
    try:
        taken = copies.take(name, lambda path: _make(path, base, wanted, installer))
    except (OSError, CopyHeld) as error:
        raise InstallFailed(
            f"The environment for {wanted.title} cannot be made: {error}", retryable=True
        ) from None
    return _base_in(taken.path, base, wanted), taken


def _base_in(path: str, base: Base, wanted: EnvironmentSpec) -> Base:
    behind = () if wanted.alone else base.folders
    return Base(os.path.join(path, "bin", "python"), (_packages_in(path), *behind))


def _packages_in(path: str) -> str:
    version = ".".join(map(str, sys.version_info[:2]))
    return os.path.join(path, "lib", f"python{version}", "site-packages")


def _make(path: str, base: Base, wanted: EnvironmentSpec, installer: Installer) -> None:
    try:
        import venv
    except ImportError:
        raise InstallFailed(
            f"{sys.executable}, the Python that runs the task, has no module venv",
            "install the system's package for it, such as python3-venv",
        ) from None
    venv.EnvBuilder(symlinks=True).create(path)
    os.chmod(path, 0o700)
    packages = _packages_in(path)
    stand_ins: Dict[str, str] = {}
    if not wanted.alone:
        _see_behind(packages, base)
        stand_ins = _stand_in(packages, base, everything=installer.uv() is not None)
    file = os.path.join(path, _REQUIREMENTS)
    with open(file, "w", encoding="utf-8") as opened:
        opened.write("".join(f"{line}\n" for line in wanted.lines))
    installer.install(
        wanted.title,
        os.path.join(path, "bin", "python"),
        file,
        folder=wanted.folder,
        wheels=wanted.wheels,
    )
    for folder in stand_ins.values():
        if _is_stand_in(folder):
            trees.remove(folder, strictly=True)


def _see_behind(packages: str, base: Base) -> None:
    """Let the environment see the packages of ``base`` behind its own, with what they load."""
    with open(os.path.join(packages, "_behind.pth"), "w", encoding="utf-8") as opened:
        for folder in base.folders:
            opened.write(f"import site; site.addsitedir({folder!r})\n")


def _stand_in(packages: str, base: Base, *, everything: bool) -> Dict[str, str]:
    """Let installers take what ``base`` has for installed; return the folders that say so, by name.

    uv looks into the environment alone, and is told of ``everything``. pip sees what is behind, but
    not that ``tensorflow-cpu`` is the ``tensorflow`` that others require.
    """
    from importlib import metadata

    known = {}
    if everything:
        for found in metadata.distributions(path=list(base.folders)):
            name = found.metadata["Name"]
            if name and _plain(name) not in known:
                known[_plain(name)] = _write_stand_in(packages, name, found)
    published, _ = base.tensorflow()
    if published and published != "tensorflow":
        found = next(iter(metadata.distributions(name=published, path=list(base.folders))))
        known["tensorflow"] = _write_stand_in(packages, "tensorflow", found)
    return known


def _write_stand_in(packages: str, name: str, found: metadata.Distribution) -> str:
    stem = f"{_plain(name).replace('-', '_')}-{found.version}.dist-info"
    folder = os.path.join(packages, stem)
    described = found.read_text("METADATA") or found.read_text("PKG-INFO") or ""
    texts = {
        "METADATA": re.sub(r"(?m)^Name: .*$", f"Name: {name}", described, count=1),
        "INSTALLER": _STAND_IN,
        # A program that replaces it removes what is listed, and nothing else.
        "RECORD": "".join(f"{stem}/{file},,\n" for file in ("METADATA", "INSTALLER", "RECORD")),
    }
    os.makedirs(folder, exist_ok=True)
    for file, text in texts.items():
        with open(os.path.join(folder, file), "w", encoding="utf-8") as opened:
            opened.write(text)
    return folder


def _is_stand_in(folder: str) -> bool:
    try:
        with open(os.path.join(folder, "INSTALLER"), encoding="utf-8") as opened:
            return opened.read() == _STAND_IN
    except OSError:
        # Another version has taken its place.
        return False


def _plain(name: str) -> str:
    """Return a package's name as packages are compared by it."""
    return re.sub(r"[-_.]+", "-", name).lower()
