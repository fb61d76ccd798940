"""The packages that a job needs beside those of its Python: read and normalised.

``package_work`` asks here for the packages of a task, ``python_environments`` installs them.
Nothing here installs anything; the job's own files are read, and no others. ``task.spec`` reads
``Packages`` from the scheduler's spec. Modules that most tasks do not need are imported where they
are used.
"""

from __future__ import annotations

import os
import re
import site
import sys
from typing import Any, Iterator, List, Sequence, Tuple

from dcos_tensorflow.job_code.modules import JobUnusable
from dcos_tensorflow.records import dataclass
from untrusted_input import trees

#: The names under which TensorFlow is published.
TENSORFLOW_NAMES = ("tensorflow", "tensorflow-cpu", "tensorflow-rocm", "tf-nightly")
#: In the job: wheels that are taken before any index is asked.
WHEELS = "wheels"
#: From here on TensorFlow can bring CUDA along by ``[and-cuda]`` (its release notes).
_FIRST_WITH_CUDA = (2, 14)
_WHEEL_SUFFIXES = (".whl", ".tar.gz", ".zip")
#: What a package is built of; of a folder that is to be installed nothing else counts.
_SOURCE_SUFFIXES = (".py", ".toml", ".cfg", ".in", ".txt", ".c", ".cc", ".cpp", ".h", ".pyx")
_INCLUDED = re.compile(r"^(-r|--requirement|-c|--constraint)(?:\s+|\s*=\s*|(?=[^-\s]))(\S.*)$")
_EDITABLE = re.compile(r"^(?:-e|--editable)\b")
_OPTION = re.compile(r"\s--?[a-z]")
#: More files that include one another are a circle.
_MOST_FILES = 50


@dataclass(frozen=True)
class Packages:
    """What the scheduler says of a task's packages.

    ``requirements`` are the lines of a requirements file. ``tensorflow`` is the version that must
    be there, empty: whichever is. ``directory`` is where the tasks of a machine keep environments
    together; empty: each in its sandbox.
    """

    requirements: str = ""
    tensorflow: str = ""
    directory: str = ""

    @property
    def are_wanted(self) -> bool:
        """Say whether anything may have to be installed for the task."""
        return bool(self.lines or self.tensorflow)

    @property
    def lines(self) -> Tuple[str, ...]:
        """Return the lines that say something."""
        return tuple(_lines(self.requirements))


@dataclass(frozen=True)
class Base:
    """A Python, and the folders that its packages are in, in the order of its path."""

    python: str
    folders: Tuple[str, ...]

    def version_of(self, name: str) -> str:
        """Return the version of a package that is installed there; empty for none."""
        from importlib import metadata

        found = next(iter(metadata.distributions(name=name, path=list(self.folders))), None)
        return str(found.version) if found is not None else ""

    def tensorflow(self) -> Tuple[str, str]:
        """Return under which name TensorFlow is there, and its version; both empty for none."""
        for name in TENSORFLOW_NAMES:
            version = self.version_of(name)
            if version:
                return name, version
        return "", ""


@dataclass(frozen=True)
class EnvironmentSpec:
    """One environment: the packages in it, and how it is called.

    ``lines`` go into a requirements file, ``content`` is the same without what makes no
    difference, with all that it includes: the same content is the same environment. Installers
    run in ``folder``. ``wheels`` are folders of wheels that go first. ``alone``: of the Python it
    is made of, nothing is seen but the interpreter and its library.
    """

    title: str
    lines: Tuple[str, ...]
    content: Tuple[str, ...]
    folder: str
    wheels: Tuple[str, ...] = ()
    alone: bool = False


def this_python() -> Base:
    """Return the Python that runs this, with its packages."""
    folders = list(site.getsitepackages())
    if site.ENABLE_USER_SITE:
        folders.insert(0, site.getusersitepackages())
    return Base(sys.executable, tuple(path for path in folders if os.path.isdir(path)))


def tensorflow_wanted(version: str, gpus: int, folder: str) -> EnvironmentSpec:
    """Return an environment with TensorFlow of ``version``, for tasks with or without GPUs."""
    import platform

    lines = (tensorflow_requirement(version, gpus, platform.machine()), "tensorboard")
    return EnvironmentSpec(f"TensorFlow {version}", lines, lines, folder, alone=True)


def tensorflow_requirement(version: str, gpus: int, machine: str) -> str:
    """Return what is to be installed for TensorFlow of ``version`` on such a machine."""
    if gpus:
        with_cuda = tuple(map(int, version.split(".")[:2])) >= _FIRST_WITH_CUDA
        return f"tensorflow{'[and-cuda]' if with_cuda else ''}=={version}"
    # For other machines there are no builds without CUDA under a name of their own.
    return f"tensorflow{'-cpu' if machine == 'x86_64' else ''}=={version}"


def tf_keras_requirement(tensorflow: str) -> str:
    """Return the Keras 2 that fits to TensorFlow: another one would pull another TensorFlow in."""
    return f"tf_keras=={'.'.join(tensorflow.split('.')[:2])}.*"


def requirements_wanted(
    lines: Sequence[str], base: Base, roots: Sequence[str], sandbox: str
) -> EnvironmentSpec:
    """Return the environment of a job's requirements over ``base``.

    ``roots`` are the folders of the job's code: what is named by a path is looked for there. The
    TensorFlow of ``base`` stays as it is, and what it needs is needed of the others, too. Raises
    JobUnusable.
    """
    roots = [root for root in roots if os.path.isdir(root)] or [sandbox]
    given, content = [], []
    for line in lines:
        included = _INCLUDED.match(line)
        if included:
            file = _find(included.group(2), roots)
            given.append(f"{included.group(1)} {file}")
            content += _content_of_file(file, included.group(1), 0)
        else:
            given.append(line)
            content += _content_of(line, roots[0], 0)
    _, version = base.tensorflow()
    if version:
        given.append(f"tensorflow=={version}")
    wheels = tuple(dict.fromkeys(p for p in _below(roots, WHEELS) if os.path.isdir(p)))
    content += [line for folder in wheels for line in _wheels_in(folder)]
    return EnvironmentSpec(
        "service.requirements",
        tuple(given),
        tuple(sorted(set(content))),
        # What an include names is relative to its file; all else, to where the installer runs.
        roots[0],
        wheels,
    )


def key_of(base: Base, wanted: EnvironmentSpec) -> str:
    """Return the name of an environment: another one for all that could make a difference."""
    import hashlib
    import platform

    digest = hashlib.sha256()
    known: List[Any] = [sys.version, sys.implementation.cache_tag, platform.platform()]
    known += [platform.libc_ver(), sys.base_prefix, wanted.content]
    if not wanted.alone:
        known += [base.folders, sorted(_distributions(base))]
    digest.update(repr(known).encode("utf-8", "backslashreplace"))
    return digest.hexdigest()[:32]


def _distributions(base: Base) -> Iterator[Tuple[str, str]]:
    from importlib import metadata

    for found in metadata.distributions(path=list(base.folders)):
        name = found.metadata["Name"]
        if name:
            yield name, found.version


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a requirements file without comments, each as one (pip's rules)."""
    joined = re.sub(r"\\\r?\n", "", text)
    for line in joined.splitlines():
        said = re.sub(r"(^|\s+)#.*$", "", line).strip()
        if said:
            yield said


def _find(name: str, roots: Sequence[str]) -> str:
    for path in _below(roots, name.strip()):
        if os.path.isfile(path):
            return path
    raise JobUnusable(
        f"service.requirements names {name}, and the job has no such file",
        "put it into the folder of the job's code, and name it by its path there",
    )


def _below(roots: Sequence[str], name: str) -> Iterator[str]:
    for root in roots:
        yield os.path.normpath(os.path.join(root, name))


def _content_of_file(file: str, option: str, depth: int) -> List[str]:
    if depth > _MOST_FILES:
        raise JobUnusable(f"service.requirements: {file} includes itself")
    try:
        with open(file, encoding="utf-8-sig") as opened:
            lines = list(_lines(opened.read()))
    except (OSError, UnicodeDecodeError) as error:
        raise JobUnusable(f"service.requirements: {file} cannot be read: {error}") from None
    found = [one for line in lines for one in _content_of(line, os.path.dirname(file), depth)]
    return [f"constraint {one}" for one in found] if "-c" in option else found


def _content_of(line: str, folder: str, depth: int) -> List[str]:
    """Return what a line comes to, told without what makes no difference."""
    included = _INCLUDED.match(line)
    if included:
        file = os.path.join(folder, included.group(2).strip())
        return _content_of_file(file, included.group(1), depth + 1)
    if _EDITABLE.match(line):
        raise JobUnusable(
            f"service.requirements: {line} would install files of the sandbox, and the "
            "environment outlives it",
            "leave it out: the job's own folder is on PYTHONPATH, and service.job_path names one "
            "below it; or name the folder without -e",
        )
    what, _, marker = line.partition(";")
    path = os.path.join(folder, _OPTION.split(what)[0].partition("[")[0].strip())
    if os.path.exists(path) and (os.sep in line or path.endswith(_WHEEL_SUFFIXES)):
        return [f"{line} {_digest(path)}"]
    if line.startswith("-"):
        return [" ".join(_words(line))]
    # Blanks make no difference, nor do capitals in a package's name.
    what = re.sub(r"^[\w.-]+", lambda name: name.group().lower(), re.sub(r"\s+", "", what))
    return [f"{what};{' '.join(marker.split())}"]


def _words(line: str) -> List[str]:
    import shlex

    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _wheels_in(folder: str) -> List[str]:
    names = sorted(name for name in os.listdir(folder) if name.endswith(_WHEEL_SUFFIXES))
    return [f"wheel {name} {_digest(os.path.join(folder, name))}" for name in names]


def _digest(path: str) -> str:
    import hashlib

    digest = hashlib.sha256()
    files = [path]
    if os.path.isdir(path):
        files = sorted(f for f in trees.files_below(path) if f.endswith(_SOURCE_SUFFIXES))
    for file in files:
        digest.update(os.path.relpath(file, path).encode("utf-8", "backslashreplace"))
        with open(file, "rb") as opened:
            for part in iter(lambda: opened.read(1 << 20), b""):
                digest.update(part)
    return digest.hexdigest()


_PINNED = re.compile(r"tensorflow(?:-cpu)?(?:\[[\w,-]*\])?\s*==\s*(\d+\.\d+\.\d+)\s*(?:;|$)")


def pinned_tensorflow(content: Sequence[str]) -> str:
    """Return the version of TensorFlow that requirements name exactly; empty for none.

    ``content`` is that of a ``EnvironmentSpec``: what files include is in it.
    """
    return next((m.group(1) for m in map(_PINNED.match, content) if m), "")
