"""The facts of a job's code: the strategy, whether it knows of a cluster, Keras.

``read_facts`` is the room's door. The task runner asks once before the first start: the tasks
that restart after a failure depend on the strategy. The command line asks before there is a task.
It states no doubtful fact.
"""

from __future__ import annotations

import os
import sys
from dataclasses import field, replace
from typing import Dict, FrozenSet, List, Mapping, Optional, Tuple

from dcos_tensorflow.core import contract
from dcos_tensorflow.job_code.command_line import read_command
from dcos_tensorflow.job_code.modules import Found, JobUnusable
from dcos_tensorflow.job_code.names import (
    BETWEEN_GRAPH,
    ESTIMATOR,
    INDEPENDENT,
    MULTI_WORKER,
    PARAMETER_SERVER,
    STRATEGIES,
    CodeNames,
    names_in,
    names_in_text,
)
from dcos_tensorflow.job_code.sources import CodeFile, CodeFiles
from dcos_tensorflow.records import dataclass

#: Libraries that train, read or show by themselves and never look for other tasks. TensorFlow and
#: Keras do when their names for it are used, and those are read.
_PLAIN = frozenset(
    (
        *("tensorflow", "keras", "tf_keras", "tensorboard", "tensorflow_datasets", "tensorflow_io"),
        *("tensorflow_hub", "tensorflow_text", "tensorflow_probability", "tensorflow_addons"),
        *("absl", "numpy", "pandas", "scipy", "sklearn", "matplotlib", "seaborn", "PIL", "cv2"),
        *("skimage", "imageio", "h5py", "pyarrow", "joblib", "tqdm", "yaml", "requests", "rich"),
        *("typing_extensions", "six"),
        # What a task has of it is ``report`` (``task.python.reach``).
        "dcos_tensorflow",
    )
)
#: Modules of Python's own by which code can start programs, run what is not seen here, or learn
#: which machine or process it is.
_HIDING = frozenset(
    (
        *("asyncio", "ctypes", "http", "imp", "pkgutil", "platform", "pty", "runpy"),
        *("socket", "socketserver", "subprocess", "xmlrpc", "zipimport"),
    )
)


def is_plain(name: str) -> bool:
    """Say whether the top-level module ``name`` is known to do nothing of a cluster by itself."""
    return name in _PLAIN or (name not in _HIDING and _is_pythons(name))


def _is_pythons(name: str) -> bool:
    known = getattr(sys, "stdlib_module_names", None)
    if known is not None:
        return name in known
    # Before Python 3.10.
    folder = os.path.join(os.path.dirname(os.__file__), name)
    return (
        name in sys.builtin_module_names or os.path.isdir(folder) or os.path.exists(f"{folder}.py")
    )


@dataclass(frozen=True)
class Named:
    """A name in the code, and where it stands first. ``line`` 0 is the command line itself."""

    name: str
    file: str
    line: int

    @property
    def place(self) -> str:
        """Return where it stands, e.g. ``train.py:12``."""
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True)
class Facts:
    """What the code of a job says, as far as it can be read.

    ``code`` is what the job begins at. ``strategy``: one of the constants of ``names``, or empty
    where it is not sure; ``named`` is what it was recognised by; ``strategies`` are all that are
    named. ``cluster``: a name by which the code looks beyond its own process; None where it names
    nothing of the kind. ``own_cluster``: it makes a cluster of its own, or changes the one that it
    is told. ``tf_config``: where it assigns TF_CONFIG without having asked for it. ``evaluator``:
    by what it knows of an evaluator. ``keras_fit``: where Keras' ``fit`` is called;
    ``legacy_keras``: it asks for Keras 2 itself. ``variables``: of the environment, which it asks
    for and which may differ from task to task. ``paths``: texts that may be a path.
    ``parameters``: names by which it reads parameters, JOB_CONTEXT and PARAM_*; ``options``: the
    arguments that it parses (``arguments``). ``hidden``: what may do more than can be read; empty
    where all of the code was read.
    """

    code: str = ""
    strategy: str = ""
    strategies: FrozenSet[str] = frozenset()
    named: Optional[Named] = None
    cluster: Optional[Named] = None
    own_cluster: bool = False
    tf_config: Optional[Named] = None
    evaluator: Optional[Named] = None
    keras_fit: Optional[Named] = None
    legacy_keras: bool = False
    variables: FrozenSet[str] = frozenset()
    paths: Tuple[Named, ...] = ()
    parameters: FrozenSet[str] = frozenset()
    options: Mapping[str, str] = field(default_factory=dict)
    hidden: str = "nothing was read"

    @property
    def is_plain(self) -> bool:
        """Say whether the code is sure to know of no other task, variables apart."""
        return self.cluster is None and not self.hidden


def read_facts(found: Found, sandbox: str) -> Facts:
    """Return what the code of a job says that is started as ``found``, from ``sandbox``."""
    if found.contract in contract.CONTRACTS_BESIDE:
        return Facts()
    gathered = _Gathered(sandbox)
    code = "service.job_cmd"
    if found.module is not None:
        main = os.path.join(os.path.dirname(found.module.file), "__main__.py")
        files = [found.module.file] + ([main] if found.module.is_package else [])
        code = os.path.relpath(found.module.file, sandbox)
    else:
        line = read_command(found.command, (*found.python_path, sandbox))
        files = list(line.files)
        gathered.add(names_in_text(found.command), code)
        if line.runs or not files:
            gathered.hidden.append(f"{code} runs {line.runs or 'no Python file'}")
    sources = CodeFiles(found.python_path)
    for source in sources.read(files):
        gathered.read(source, sources)
    facts = gathered.facts(code)
    if sources.is_too_much:
        return replace(facts, strategy="", named=None, hidden="there is too much of it")
    return facts


def put_under_strategy(facts: Facts, *, has_servers: bool) -> Facts:
    """Return what is true of code of one task that trains under a strategy of all tasks.

    Raises JobUnusable for code that makes a strategy or a cluster itself, or trains without Keras.
    """
    hint = "set service.under_strategy to false"
    own = facts.cluster or facts.named
    if own is not None:
        raise JobUnusable(
            f"{own.name} ({own.place}) is of code that distributes its training itself, and"
            " service.under_strategy is for code of one task",
            hint,
        )
    if facts.keras_fit is None and not facts.hidden:
        raise JobUnusable(
            f"{facts.code} calls no fit of Keras, and service.under_strategy can distribute no"
            " other training",
            hint,
        )
    strategy = PARAMETER_SERVER if has_servers else MULTI_WORKER
    named = Named("service.under_strategy", "service.under_strategy", 0)
    return replace(
        facts, strategy=strategy, strategies=frozenset({strategy}), named=named, cluster=named
    )


def job_strategy(found: Found, facts: Facts, *, has_servers: bool = False) -> str:
    """Return the strategy that the job recovers by; empty where it is not sure.

    A function is given a server for sessions, whatever its code names. Code that names several
    strategies chooses by its cluster: in one that ``has_servers``, parameter servers and a chief,
    it can use no other than that of parameter servers.
    """
    if found.contract == contract.CONTRACT_FUNCTION:
        return BETWEEN_GRAPH
    if not facts.strategy and has_servers and PARAMETER_SERVER in facts.strategies:
        return PARAMETER_SERVER
    return facts.strategy


def judge(names: FrozenSet[str]) -> str:
    """Return the strategy that these names of TensorFlow mean together.

    Code that names both a parameter server's and a mirrored strategy chooses when it runs: empty.
    """
    kinds = {STRATEGIES[name] for name in names if name in STRATEGIES}
    if "ClusterCoordinator" in names:
        kinds.discard(BETWEEN_GRAPH)
    elif ESTIMATOR in names and MULTI_WORKER not in kinds:
        return BETWEEN_GRAPH
    if kinds - {INDEPENDENT}:
        # Beside a strategy for a cluster, one for a single machine is the fall-back.
        kinds.discard(INDEPENDENT)
    return kinds.pop() if len(kinds) == 1 else ""


class _Gathered:
    """What the files read so far name, each with its first place."""

    def __init__(self, sandbox: str) -> None:
        self.hidden: List[str] = []
        self._sandbox = sandbox
        self._strategies: Dict[str, Named] = {}
        self._cluster: Dict[str, Named] = {}
        self._evaluator: Dict[str, Named] = {}
        self._variables: Dict[str, Named] = {}
        self._paths: Dict[str, Named] = {}
        self._parameters: Dict[str, Named] = {}
        self._options: Dict[str, str] = {}
        self._fit: Optional[Named] = None
        self._keras = False
        self._legacy_keras = False
        self._own_cluster = False
        self._tf_config: Optional[Named] = None

    def read(self, source: CodeFile, sources: CodeFiles) -> None:
        """Take what ``source`` names; what it imports of the job is read later."""
        file = os.path.relpath(source.file, self._sandbox)
        try:
            names = names_in(source.tree) if source.tree is not None else None
        except RecursionError:
            names = None
        if names is None:
            self.hidden.append(f"{file} cannot be read as Python")
            return
        self.add(names, file)
        for statement in names.imports:
            for module in sources.follow(statement, source.file):
                if not is_plain(module):
                    what = f"imports {module}" if module else "imports a missing module"
                    self.hidden.append(f"{file}:{statement.lineno} {what}")

    def add(self, names: CodeNames, file: str) -> None:
        for into, found in (
            (self._strategies, names.strategies),
            (self._cluster, names.cluster),
            (self._evaluator, names.evaluator),
            (self._variables, names.variables),
            (self._paths, names.paths),
            (self._parameters, names.parameters),
        ):
            for name, line in found.items():
                into.setdefault(name, Named(name, file, line))
        for name, line in names.hides.items():
            self.hidden.append(f"{Named(name, file, line).place} has {name}")
        if names.fit is not None and self._fit is None:
            self._fit = Named("fit", file, names.fit)
        self._options.update(names.options)
        self._keras |= names.keras
        self._legacy_keras |= names.legacy_keras
        self._own_cluster |= names.own_cluster
        assigns, reads = names.assigns, names.reads
        if assigns is not None and (reads is None or assigns < reads):
            self._tf_config = self._tf_config or Named(contract.TF_CONFIG, file, assigns)

    def facts(self, code: str) -> Facts:
        strategy = judge(frozenset(self._strategies))
        meant = [name for name in STRATEGIES if STRATEGIES[name] == strategy]
        return Facts(
            code=code,
            strategy=strategy,
            strategies=frozenset(STRATEGIES.get(name, BETWEEN_GRAPH) for name in self._strategies),
            named=_first(self._strategies, [*meant, ESTIMATOR] if strategy else []),
            cluster=_first(self._cluster, [*STRATEGIES, *self._cluster]),
            own_cluster=self._own_cluster,
            tf_config=self._tf_config,
            evaluator=_first(self._evaluator, list(self._evaluator)),
            keras_fit=self._fit if self._keras else None,
            legacy_keras=self._legacy_keras,
            variables=frozenset(self._variables),
            paths=tuple(self._paths.values()),
            parameters=frozenset(self._parameters),
            options=dict(self._options),
            hidden=self.hidden[0] if self.hidden else "",
        )


def _first(found: Dict[str, Named], names: List[str]) -> Optional[Named]:
    return next((found[name] for name in names if name in found), None)
