"""Finds the module of a job below the directories that its code may lie in.

Called by ``task.python.contracts``, which decides how the job is started, and for the
module of a ``main``. Nothing here runs code or knows TensorFlow.
"""

from __future__ import annotations

import os
from typing import Iterator, List, Optional, Tuple

from dcos_tensorflow.records import dataclass

#: How deep below a root an unpacked archive is searched, and how many directories at most.
SEARCH_DEPTH = 3
SEARCH_LIMIT = 2000
_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "logs", "checkpoints"})


class JobUnusable(Exception):
    """The job as given can never run; the message is one sentence for the user."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Module:
    """A module of the user's job: its dotted name, its file, and the directory it starts from."""

    name: str
    file: str
    root: str

    @property
    def is_package(self) -> bool:
        """Say whether the module is a directory with ``__init__.py``."""
        return os.path.basename(self.file) == "__init__.py"


def find_module(name: str, roots: Tuple[str, ...]) -> Module:
    """Return the module ``name`` (``.py`` and ``/`` tolerated) below one of ``roots``.

    The roots come first, in order; then the nearest sub-directory in which it can be found alone,
    because archives often unpack into a directory of their own. Raises JobUnusable.
    """
    dotted = _dotted(name)
    if not dotted:
        raise JobUnusable(
            "Neither service.job_name nor service.job_cmd is set: nothing to run",
            "set service.job_name to the module of your job",
        )
    for root in roots:
        module = module_in(root, dotted)
        if module:
            return module
    for level in _levels(roots):
        matches = [m for m in (module_in(directory, dotted) for directory in level) if m]
        if len(matches) == 1:
            return matches[0]
        if matches:
            places = ", ".join(os.path.relpath(m.file, roots[-1]) for m in matches)
            raise JobUnusable(
                f"The module {dotted!r} of service.job_name is there more than once: {places}",
                "set service.job_path to the directory that is meant",
            )
    raise _not_found(name, dotted, roots)


def _dotted(name: str) -> str:
    name = name.strip()
    if name.endswith(".py"):
        name = name[: -len(".py")]
    return name.replace("/", ".").strip(".")


def module_in(root: str, dotted: str) -> Optional[Module]:
    """Return the module ``dotted`` of the directory ``root``; None where it has none."""
    base = os.path.join(root, *dotted.split("."))
    for file in (base + ".py", os.path.join(base, "__init__.py")):
        if os.path.isfile(file):
            return Module(dotted, file, root)
    return None


def _levels(roots: Tuple[str, ...]) -> Iterator[List[str]]:
    """Yield the directories below ``roots``, level by level, nearest first."""
    level, seen = list(roots), set(roots)
    for _ in range(SEARCH_DEPTH):
        below = []
        for directory in level:
            for name in sorted(subdirectories(directory)):
                path = os.path.join(directory, name)
                if path not in seen and len(seen) < SEARCH_LIMIT:
                    seen.add(path)
                    below.append(path)
        level = below
        yield level


def subdirectories(directory: str) -> List[str]:
    """Return the names of the directories in ``directory`` that may hold code."""
    try:
        with os.scandir(directory) as entries:
            return [entry.name for entry in entries if _worth_searching(entry)]
    except OSError:
        # A directory that cannot be read holds no module that could be run either.
        return []


def _worth_searching(entry: "os.DirEntry[str]") -> bool:
    if entry.name.startswith(".") or entry.name in _SKIPPED:
        return False
    is_directory = entry.is_dir(follow_symlinks=False)
    return is_directory and not os.path.exists(os.path.join(entry.path, "pyvenv.cfg"))


def _not_found(name: str, dotted: str, roots: Tuple[str, ...]) -> JobUnusable:
    known = sorted(set(_module_names(roots)))
    if name.strip().endswith(".ipynb"):
        return JobUnusable(
            f"service.job_name is {name!r}, and a notebook cannot be run",
            f"make a script of it: jupyter nbconvert --to script {os.path.basename(name)}",
        )
    return JobUnusable(
        f"The job has no module {dotted!r} (service.job_name is {name!r})",
        offer(dotted, known) if known else "service.job_url brought no Python file at all",
    )


def _module_names(roots: Tuple[str, ...]) -> Iterator[str]:
    for level in ([*roots], *_levels(roots)):
        for directory in level:
            try:
                names = sorted(os.listdir(directory))
            except OSError:
                continue
            for name in names:
                if name.endswith(".py") and name != "__init__.py":
                    yield name[: -len(".py")]
                elif os.path.isfile(os.path.join(directory, name, "__init__.py")):
                    yield name


def offer(name: str, known: List[str]) -> str:
    """Return a hint with what of ``known`` is nearest to ``name``, or what there is at all."""
    import difflib

    near = difflib.get_close_matches(name.rpartition(".")[2] or name, known, 5, 0.5)
    if near:
        return f"did you mean {' or '.join(near)}?"
    if not known:
        return "the sandbox is empty: see service.job_url"
    more = f" and {len(known) - 10} more" if len(known) > 10 else ""
    return f"there are {', '.join(known[:10])}{more}"


@dataclass(frozen=True)
class Found:
    """How the job is started: one of the contracts of ``core.contract``, never ``auto``.

    ``guess`` is a sentence where the code leaves that open, with the option that decides it.
    """

    contract: str
    python_path: Tuple[str, ...]
    module: Optional[Module] = None
    command: str = ""
    guess: str = ""
