"""A script and a few flags to the options of a job: the job of ``run train.py``.

Used by ``run``, ``validate`` and ``init``. The script's folder is the job's code, its name that of
the service, so that the second run of a script is the same service. Roles follow from the flags
alone, but for the chief that a ParameterServerStrategy in the code cannot do without.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from dcos_tensorflow.client.errors import UsageError
from dcos_tensorflow.core.contract import CONTRACT_SCRIPT
from dcos_tensorflow.core.spec.workload_spec import Goal
from dcos_tensorflow.deploy.job.given_options import GivenOptions
from dcos_tensorflow.job_code.facts import Facts, Named, read_facts
from dcos_tensorflow.job_code.modules import Found, Module
from dcos_tensorflow.job_code.names import PARAMETER_SERVER, STRATEGIES
from dcos_tensorflow.job_code.sources import CodeFiles
from dcos_tensorflow.records import dataclass

_SUFFIX = ".py"
#: What people call the script of a job; looked for where a folder is named.
_LIKELY = ("train.py", "main.py")
_YAML = (".yaml", ".yml")
_SHELL = (".sh", ".bash")


@dataclass(frozen=True)
class ScriptFlags:
    """What was said beside a script; None where nothing was."""

    workers: int | None = None
    ps: int | None = None
    gpus: int | None = None
    tensorflow: str | None = None
    name: str | None = None
    #: Puts code of one task under a strategy of all tasks: mirrored, or parameter_server.
    strategy: str | None = None
    #: The section of a search (``sweep_flags``).
    sweep: Mapping[str, Any] | None = None
    #: What stood behind ``--``.
    arguments: tuple[str, ...] | None = None

    @property
    def given(self) -> dict[str, Any]:
        """Return those that a flag has said."""
        return {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if getattr(self, one.name) is not None
        }


@dataclass(frozen=True)
class Script:
    """A script that is there, and what its code says."""

    #: Its file, links resolved.
    file: Path
    facts: Facts
    #: The folder of its job's code, links resolved: that which it lies in, or one above.
    folder: Path

    @property
    def module(self) -> str:
        """Return the name of its module in the job's code."""
        return ".".join(self.file.relative_to(self.folder).with_suffix("").parts)

    @property
    def parameter_server(self) -> Named | None:
        """Return where the code names ParameterServerStrategy, perhaps among others."""
        for named in (self.facts.named, self.facts.cluster):
            if named is not None and STRATEGIES.get(named.name) == PARAMETER_SERVER:
                return named
        return None


def given_options(
    path: Path,
    flags: ScriptFlags,
    overrides: tuple[str, ...] = (),
    *,
    published_defaults: bool = False,
) -> GivenOptions:
    """Return the options that ``path`` stands for: an options file, or a script with its flags.

    Raises UsageError for what is neither, with what to type.
    """
    if path.suffix == _SUFFIX and path.is_file():
        source, notes = options_of(read_script(path), flags)
        folder = path.resolve().parent
        return GivenOptions(source, overrides, folder, published_defaults, notes, is_script=True)
    _check_options_file(path)
    said = [name for name in flags.given if name != "name"]
    if said:
        raise UsageError(_not_beside_options(path, said[0]))
    if flags.name is not None:
        overrides = (*overrides, f"service.name={flags.name}")
    return GivenOptions(path, overrides, published_defaults=published_defaults)


def check_is_script(path: Path) -> None:
    """Raise UsageError for what is no script, with what was meant."""
    if path.suffix != _SUFFIX or not path.is_file():
        _check_options_file(path)
        raise UsageError(f"{path} is no script: a script's name ends in {_SUFFIX}.")


def only_script(folder: Path) -> Path:
    """Return the script that is meant where none is named. Raises UsageError."""
    scripts = sorted(folder.glob(f"*{_SUFFIX}"))
    likely = [folder / name for name in _LIKELY if folder / name in scripts]
    if likely or len(scripts) == 1:
        return [*likely, *scripts][0]
    there = ", ".join(str(script) for script in scripts[:5])
    raise UsageError(f"Which script? {f'There are {there}.' if there else 'There is none here.'}")


def read_script(path: Path, folder: Path | None = None) -> Script:
    """Return the script with what its code says. Raises UsageError for a name that is no module's.

    ``folder`` is that of the job's code, where it is not the one that the script lies in. Whether
    it is Python is looked at where all code is (``seen_code.inspect_code``).
    """
    file = path.resolve()
    code = file.parent if folder is None else folder.resolve()
    if not file.is_relative_to(code):
        raise UsageError(f"{path} does not lie in {folder}, which is to be the job's code.")
    if not re.fullmatch(r"\w[\w-]*", file.stem):
        raise UsageError(
            f"{path}: a script is called as a module, and {file.stem!r} is no module's name: name"
            " it with letters, digits and underscores."
        )
    beside = str(file.parent)
    module = Module(file.stem, str(file), beside)
    found = Found(CONTRACT_SCRIPT, tuple(dict.fromkeys((beside, str(code)))), module)
    return Script(file, read_facts(found, str(code)), code)


def options_of(script: Script, flags: ScriptFlags) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the options of a script, and what to say of them. Raises UsageError."""
    url, notes = _code(script)
    service: dict[str, Any] = {
        "name": flags.name or service_name(script.file),
        "job_url": url,
        "job_name": script.module if url == str(script.folder) else script.file.stem,
    }
    if flags.arguments:
        service["job_args"] = list(flags.arguments)
    if flags.tensorflow:
        service["tensorflow_version"] = flags.tensorflow
    if flags.strategy:
        service["under_strategy"] = True
    roles, more = roles_of(script, flags)
    if flags.sweep is None:
        return {"service": service, **roles}, (*notes, *more)
    return {"service": service, **roles, "sweep": dict(flags.sweep)}, (
        *(*notes, *more),
        _searched(**flags.sweep["objective"]),
    )


def _searched(metric: str, goal: str) -> str:
    most, other = ("most", "minimize") if goal == Goal.MAXIMIZE else ("least", "maximize")
    return f"The {most} {metric} is the best: --set sweep.objective.goal={other} turns that round."


def roles_of(script: Script, flags: ScriptFlags) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the sections of the tasks that flags and code ask for, and what to say of them.

    Raises UsageError for a strategy without the servers that it needs.
    """
    workers, named = 1 if flags.workers is None else flags.workers, script.parameter_server
    if script.facts.strategy == PARAMETER_SERVER and named is not None and not flags.ps:
        raise UsageError(
            f"{named.place} names {named.name}, which needs parameter servers: add --ps 1."
        )
    if flags.strategy and bool(flags.ps) is not (flags.strategy == PARAMETER_SERVER):
        needs = "parameter servers: add --ps 1" if not flags.ps else "no --ps"
        raise UsageError(f"--strategy {flags.strategy} needs {needs}.")
    found: dict[str, Any] = {}
    notes = []
    if flags.ps:
        found["parameter_server"] = {"count": flags.ps}
    if flags.strategy == PARAMETER_SERVER:
        found["chief"] = {"count": 1}
    elif flags.ps and named is not None:
        found["chief"] = {"count": 1}
        notes.append(f"{named.place} names {named.name}, which needs a chief: one comes.")
    if flags.gpus:
        found["gpu_worker"] = {"count": workers, "gpus": flags.gpus}
    else:
        found["worker"] = {"count": workers}
    return found, tuple(notes)


def service_name(script: Path) -> str:
    """Return the name of a script's service. Raises UsageError where there is none in its name."""
    name = re.sub("[^a-z0-9]+", "-", script.stem.lower()).strip("-")[:63].strip("-")
    if not name:
        raise UsageError(f"{script.name}: this is no name for a service; give --name NAME.")
    return name


def _code(script: Script) -> tuple[str, tuple[str, ...]]:
    """Return what is packed: the script's folder, or the script where that is a shared folder."""
    if not _is_everybodys(script.folder):
        return str(script.folder), ()
    beside = [os.path.relpath(file, script.folder) for file in _imported(script.file)]
    if beside:
        raise UsageError(
            f"{script.file.name} imports {beside[0]}, which lies beside it in {script.folder}, and"
            " that is not the folder of a job: put the files of the job into a folder of their own,"
            " and run the script there."
        )
    note = f"Of {script.folder} only {script.file.name} is brought to the tasks."
    return str(script.file), (note,)


def _is_everybodys(folder: Path) -> bool:
    """Say whether a folder holds much more than one job: a home, what is around it, /tmp."""
    try:
        home = Path.home().resolve()
    except RuntimeError:
        home = Path("/")
    return folder in (home, *home.parents, Path("/tmp"), Path("/var/tmp"))


def _imported(script: Path) -> Iterator[str]:
    """Yield the files beside a script that it imports, and that these import."""
    sources = CodeFiles((str(script.parent),))
    for source in sources.read([str(script)]):
        if source.file != str(script):
            yield source.file
        for node in ast.walk(source.tree) if source.tree is not None else ():
            if isinstance(node, ast.Import | ast.ImportFrom):
                sources.follow(node, source.file)


def _check_options_file(path: Path) -> None:
    """Raise UsageError for what is no options file, with what was meant."""
    if path.suffix == ".ipynb":
        raise UsageError(
            f"{path} is a notebook, and tasks run scripts. Make one of it: jupyter nbconvert --to"
            f" script {path}; then: dcos-tensorflow run {path.with_suffix(_SUFFIX)}"
        )
    if path.suffix in _SHELL and path.is_file():
        raise UsageError(
            f"{path} is no Python. A command line is run by an options file beside it:"
            f' {{"service": {{"job_url": ".", "job_cmd": "sh {path.name}"}}}}'
        )
    if path.suffix in _YAML and path.is_file():
        raise UsageError(
            f"{path} is YAML, and options are JSON. docs/migration.md shows the options of a TFJob,"
            " field by field; dcos-tensorflow init writes a first options file."
        )
    if path.is_dir():
        raise UsageError(f"{path} is a folder. {_in_folder(path)}")
    if not path.exists():
        raise UsageError(f"There is no file {path}{_near(path)}")


def _in_folder(folder: Path) -> str:
    known = sorted(folder.glob("*.json")) + sorted(folder.glob(f"*{_SUFFIX}"))
    likely = [folder / name for name in ("options.json", *_LIKELY) if folder / name in known]
    scripts = [file for file in known if file.suffix == _SUFFIX]
    meant = [*likely, *(scripts if len(scripts) == 1 else [])]
    if meant:
        return f"Name the file: dcos-tensorflow run {meant[0]}"
    return "Name a script in it, or an options file."


def _near(path: Path) -> str:
    module = path.parent / f"{path.name.replace('.', '/')}{_SUFFIX}"
    if module.is_file():
        return f"; a module is named by its file: {module}"
    try:
        names = [one.name for one in path.parent.iterdir() if one.is_file()]
    except OSError:
        return f", nor a folder {path.parent}."
    near = get_close_matches(path.name, names, n=1)
    return f"; did you mean {path.parent / near[0]}?" if near else "."


def _not_beside_options(path: Path, said: str) -> str:
    if said == "arguments":
        return f"Arguments after -- are for a script; {path} has service.job_args for that."
    options = {
        "workers": "worker.count",
        "ps": "parameter_server.count",
        "gpus": "gpu_worker.gpus",
        "tensorflow": "service.tensorflow_version",
        "strategy": "service.under_strategy",
        "sweep": "sweep.parameters",
    }
    return f"--{said} is for a script; with {path} say --set {options[said]}=..."
