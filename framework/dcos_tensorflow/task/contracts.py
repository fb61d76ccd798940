"""Finds the user's code in the sandbox and decides how it is to be started.

``runner`` calls it once before the first start. Code is parsed, never imported: a module that
fails on import, or trains on import, must not do so inside the runner.
"""

from __future__ import annotations

import ast
import difflib
import json
import os
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Tuple

from dcos_tensorflow.core import contract
from dcos_tensorflow.task.spec import Job

#: How deep below a root an unpacked archive is searched, and how many directories at most.
SEARCH_DEPTH = 3
SEARCH_LIMIT = 2000
#: The role that is a member of no cluster (``core.model.spec.TaskRole.EVALUATOR``).
EVALUATOR = "evaluator"
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


@dataclass(frozen=True)
class Found:
    """How the job is started: one of the contracts of ``core.contract``, never ``auto``."""

    contract: str
    python_path: Tuple[str, ...]
    module: Optional[Module] = None
    command: str = ""


def find_contract(job: Job, sandbox: str, role: str = "") -> Found:
    """Return how ``job`` is to be started from ``sandbox`` by a task of ``role``.

    Raises JobUnusable: nothing to run, module missing or ambiguous or no Python, a contract that
    was asked for and is not fulfilled, a function for an evaluator, a context that is no JSON
    object.
    """
    python_path = _python_path(job, sandbox)
    kind = job.contract
    if kind == contract.CONTRACT_TENSORBOARD:
        return Found(kind, python_path)
    if kind == contract.CONTRACT_COMMAND or (kind == contract.CONTRACT_AUTO and job.command):
        if not job.command.strip():
            raise JobUnusable("The contract is command, but service.job_cmd is empty")
        return Found(contract.CONTRACT_COMMAND, python_path, command=job.command)
    module = find_module(job.name, python_path)
    python_path = tuple(dict.fromkeys((module.root, *python_path)))
    takes_three = main_takes_three(module, python_path)
    if kind == contract.CONTRACT_AUTO:
        kind = contract.CONTRACT_FUNCTION if takes_three else contract.CONTRACT_SCRIPT
    if kind == contract.CONTRACT_FUNCTION:
        if takes_three is False:
            raise JobUnusable(
                f"{os.path.relpath(module.file, sandbox)} has no main(server, log_dir, context), "
                "which the function contract calls",
                "define it, or leave service.job_contract at auto to run the file as a script",
            )
        if role == EVALUATOR:
            raise JobUnusable(
                f"An evaluator cannot run main(server, log_dir, context) of {module.name}: it is "
                "in nobody's cluster, so it would get a server of its own and train alone",
                "bring the job as a script or a command, whose code looks at the task's type in "
                "TF_CONFIG and evaluates where it is evaluator, or set evaluator.count to 0",
            )
        parse_context(job.context)
    return Found(kind, python_path, module)


def parse_context(text: str) -> Dict[str, Any]:
    """Return the job's context; empty text is an empty one. Raises JobUnusable otherwise."""
    try:
        context = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise JobUnusable(f"service.job_context is not JSON: {error}") from None
    if not isinstance(context, dict):
        raise JobUnusable('service.job_context must be a JSON object such as {"steps": 100}')
    return context


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
        module = _module_in(root, dotted)
        if module:
            return module
    for level in _levels(roots):
        matches = [m for m in (_module_in(directory, dotted) for directory in level) if m]
        if len(matches) == 1:
            return matches[0]
        if matches:
            places = ", ".join(os.path.relpath(m.file, roots[-1]) for m in matches)
            raise JobUnusable(
                f"The module {dotted!r} of service.job_name is there more than once: {places}",
                "set service.job_path to the directory that is meant",
            )
    raise _not_found(name, dotted, roots)


def main_takes_three(module: Module, roots: Tuple[str, ...], depth: int = 3) -> Optional[bool]:
    """Say whether the module has a ``main`` that three positional arguments can call.

    None when it has a ``main`` whose signature cannot be read without running it. Raises
    JobUnusable when the file is not Python.
    """
    definition = _last_main(_parse(module).body)
    if definition is None:
        return False
    if isinstance(definition, ast.FunctionDef):
        return _takes_three(definition.args)
    if isinstance(definition, ast.Assign):
        value = definition.value
        return _takes_three(value.args) if isinstance(value, ast.Lambda) else None
    if isinstance(definition, ast.ImportFrom):
        return _imported_takes_three(definition, module, roots, depth)
    return None


def _imported_takes_three(
    statement: ast.ImportFrom, module: Module, roots: Tuple[str, ...], depth: int
) -> Optional[bool]:
    original = next(a.name for a in statement.names if (a.asname or a.name) == "main")
    package = module.name.split(".")
    if statement.level:
        keep = len(package) - statement.level + (1 if module.is_package else 0)
        name = ".".join(package[: max(keep, 0)] + (statement.module or "").split("."))
    else:
        name = statement.module or ""
    if original != "main" or depth == 0:
        return None
    for root in roots:
        source = _module_in(root, name.strip("."))
        if source:
            return main_takes_three(source, roots, depth - 1)
    return None


def _takes_three(arguments: ast.arguments) -> bool:
    positional = len(arguments.posonlyargs) + len(arguments.args)
    required = positional - len(arguments.defaults)
    needs_keywords = any(default is None for default in arguments.kw_defaults)
    enough = positional >= 3 or arguments.vararg is not None
    return enough and required <= 3 and not needs_keywords


def _last_main(body: List[ast.stmt]) -> Optional[ast.stmt]:
    """Return the statement that binds ``main`` last at module level, branches included."""
    found: Optional[ast.stmt] = None
    for statement in body:
        if _binds_main(statement):
            found = statement
        for branch in ("body", "orelse", "finalbody"):
            if isinstance(statement, (ast.If, ast.Try, ast.With)):
                found = _last_main(getattr(statement, branch, [])) or found
    return found


def _binds_main(statement: ast.stmt) -> bool:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return statement.name == "main"
    if isinstance(statement, ast.Assign):
        return any(isinstance(t, ast.Name) and t.id == "main" for t in statement.targets)
    if isinstance(statement, ast.ImportFrom):
        return any((alias.asname or alias.name) == "main" for alias in statement.names)
    return False


def _parse(module: Module) -> ast.Module:
    try:
        with open(module.file, "rb") as file:
            return ast.parse(file.read(), module.file)
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        message = error.msg if isinstance(error, SyntaxError) else str(error)
        raise JobUnusable(
            f"{os.path.basename(module.file)}{line} is not Python: {message}"
        ) from None
    except OSError as error:
        raise JobUnusable(f"{module.file} cannot be read: {error.strerror}") from None


def _python_path(job: Job, sandbox: str) -> Tuple[str, ...]:
    wanted = os.path.normpath(os.path.join(sandbox, job.path)) if job.path else sandbox
    if not os.path.isdir(wanted) and job.contract != contract.CONTRACT_TENSORBOARD:
        raise JobUnusable(
            f"service.job_path is {job.path!r}, but the sandbox has no such directory",
            _offer(job.path, sorted(_subdirectories(sandbox))),
        )
    return tuple(dict.fromkeys((wanted, sandbox)))


def _dotted(name: str) -> str:
    name = name.strip()
    if name.endswith(".py"):
        name = name[: -len(".py")]
    return name.replace("/", ".").strip(".")


def _module_in(root: str, dotted: str) -> Optional[Module]:
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
            for name in sorted(_subdirectories(directory)):
                path = os.path.join(directory, name)
                if path not in seen and len(seen) < SEARCH_LIMIT:
                    seen.add(path)
                    below.append(path)
        level = below
        yield level


def _subdirectories(directory: str) -> List[str]:
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
    return JobUnusable(
        f"The job has no module {dotted!r} (service.job_name is {name!r})",
        _offer(dotted, known) if known else "service.job_url brought no Python file at all",
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


def _offer(name: str, known: List[str]) -> str:
    near = difflib.get_close_matches(name.rpartition(".")[2] or name, known, 5, 0.5)
    if near:
        return f"did you mean {' or '.join(near)}?"
    if not known:
        return "the sandbox is empty: see service.job_url"
    more = f" and {len(known) - 10} more" if len(known) > 10 else ""
    return f"there are {', '.join(known[:10])}{more}"
