"""The names in one file of a job: ways to distribute, a cluster, Keras, variables. Pure.

``facts`` reads each file with it. Comments, docstrings, type annotations and the types of
``isinstance`` do not count.
"""

from __future__ import annotations

import ast
import re
from dataclasses import field
from typing import Dict, List, Optional, Tuple

from dcos_tensorflow.core import contract
from dcos_tensorflow.job_code.arguments import options_in
from dcos_tensorflow.job_code.command_functions import options_of_functions
from dcos_tensorflow.records import dataclass

PARAMETER_SERVER = "parameter_server"
MULTI_WORKER = "multi_worker"
BETWEEN_GRAPH = "between_graph"
INDEPENDENT = "independent"

#: Names of TensorFlow that stand for one way to distribute; the clearest comes first.
STRATEGIES: Dict[str, str] = {
    "ParameterServerStrategy": PARAMETER_SERVER,
    "ParameterServerStrategyV2": PARAMETER_SERVER,
    "ClusterCoordinator": PARAMETER_SERVER,
    "MultiWorkerMirroredStrategy": MULTI_WORKER,
    "CollectiveAllReduceStrategy": MULTI_WORKER,
    "MonitoredTrainingSession": BETWEEN_GRAPH,
    "replica_device_setter": BETWEEN_GRAPH,
    "SyncReplicasOptimizer": BETWEEN_GRAPH,
    # Means a session's server only as a part of ``train``: ``tf.distribute.Server`` is another.
    "train.Server": BETWEEN_GRAPH,
    "MirroredStrategy": INDEPENDENT,
    "OneDeviceStrategy": INDEPENDENT,
}
#: Estimators train between graphs, with parameter servers as well.
ESTIMATOR = "train_and_evaluate"
#: By these, code makes a cluster of its own instead of taking the one it is told.
_OWN_CLUSTER = frozenset({"SimpleClusterResolver", "ClusterSpec", "ClusterDef"})
#: What else code has to name that looks beyond its own process.
_CLUSTER = _OWN_CLUSTER | {
    *("TFConfigClusterResolver", "GCEClusterResolver", "KubernetesClusterResolver"),
    *("SlurmClusterResolver", "UnionResolver", "UnionClusterResolver", "TPUClusterResolver"),
    *("Server", "TPUStrategy", "SidecarEvaluator", "estimator", "dtensor", "DataServiceOp"),
    *("DispatchServer", "WorkerServer", "distributed", "distribution", "device_filters"),
    *("connect_to_cluster", "connect_to_remote_host", "experimental_connect_to_cluster"),
    *("experimental_connect_to_host", "enable_collective_ops", "horovod", "grpc"),
}
#: What of ``tf.distribute`` stays within one process.
_ONE_MACHINE = frozenset(
    (
        *(
            "MirroredStrategy",
            "OneDeviceStrategy",
            "CentralStorageStrategy",
            "Strategy",
            "ReduceOp",
        ),
        *("get_strategy", "has_strategy", "get_replica_context", "in_cross_replica_context"),
        *("experimental_set_strategy", "ReplicaContext", "HierarchicalCopyAllReduce"),
        *("NcclAllReduce", "ReductionToOneDevice", "CrossDeviceOps"),
    )
)
_EVALUATOR = frozenset({"SidecarEvaluator", "checkpoints_iterator", "EVALUATOR", ESTIMATOR})
#: Variables that say which task a process is, and who the others are (docs/job-contract.md).
_TELLING = (
    *(contract.TF_CONFIG, contract.TF_EPOCH, contract.TASK_NAME, contract.TASK_INDEX),
    *(contract.JOB_NAME, contract.PS_HOSTS, contract.WORKER_HOSTS, contract.DATA_SHARD_INDEX),
    *(contract.DATA_SHARD_COUNT, "MESOS_TASK_ID", "MESOS_CONTAINER_NAME", "HOSTNAME"),
)
_TOLD = re.compile(rf"\b({'|'.join(_TELLING)})\b|(grpc)://")
#: Those that every task is told, or its machine's: they tell none from another.
_ALIKE = frozenset(
    (
        *(contract.LOG_DIR, contract.CHECKPOINT_DIR, contract.OUTPUT_DIR, contract.JOB_CONTEXT),
        *(contract.SERVICE_NAME, contract.PROGRESS_FILE, "MESOS_SANDBOX", "CUDA_VISIBLE_DEVICES"),
        *("HOME", "USER", "PATH", "PYTHONPATH", "PWD", "TMPDIR", "LANG"),
    )
)
#: A part of such a name is one, too: others are made of it.
_PARAMETERS = re.compile(rf"\b(?:{contract.JOB_CONTEXT}|PARAM_\w*)")
LEGACY_KERAS_VARIABLE = "TF_USE_LEGACY_KERAS"
_FIT_ARGUMENTS = frozenset(
    {"epochs", "validation_data", "steps_per_epoch", "callbacks", "batch_size", "initial_epoch"}
)
#: A text that may be the path of a file or folder; whether there is one, who asks can see.
_PATH = re.compile(r"(?:~|\.{0,2}/|[\w.-]+/)[^\n\0:]{1,300}|\.\./?|[\w-]{1,100}\.\w{1,10}")
_MOST_PATHS = 500
_ENVIRONMENT = frozenset({"environ", "environb", "getenv", "getenvb", "expandvars"})
_STARTS_PROGRAMS = re.compile(r"system|popen|exec\w+|spawn\w+|posix_spawn\w*|fork\w*|uname")
_RUNS_TEXT = frozenset({"eval", "exec", "__import__"})
#: Of ``importlib``: what is run then stands in no import.
_IMPORTS = frozenset(
    {"import_module", "reload", "spec_from_file_location", "module_from_spec", "entry_points"}
)
_TENSORFLOW = frozenset({"tensorflow", "keras", "tf_keras"})


@dataclass
class CodeNames:
    """What a file names, each with the line where it does so first.

    ``hides``: by what more may go on than can be read. ``variables``: of the environment, those
    that may be set for one role and not for another. ``own_cluster``: the code makes a cluster, or
    changes the one that it is told. ``assigns`` and ``reads`` are the lines where it first assigns
    TF_CONFIG, and asks for it. ``paths``: texts that may be one.
    """

    strategies: Dict[str, int] = field(default_factory=dict)
    cluster: Dict[str, int] = field(default_factory=dict)
    evaluator: Dict[str, int] = field(default_factory=dict)
    variables: Dict[str, int] = field(default_factory=dict)
    hides: Dict[str, int] = field(default_factory=dict)
    fit: Optional[int] = None
    keras: bool = False
    legacy_keras: bool = False
    own_cluster: bool = False
    assigns: Optional[int] = None
    reads: Optional[int] = None
    paths: Dict[str, int] = field(default_factory=dict)
    #: By which parameters reach the code: JOB_CONTEXT, variables of parameters, arguments.
    parameters: Dict[str, int] = field(default_factory=dict)
    options: Dict[str, str] = field(default_factory=dict)
    imports: List[ast.stmt] = field(default_factory=list)


def names_in(tree: ast.AST) -> CodeNames:
    """Return what the code of one file names. Raises RecursionError for code nested too deep."""
    reader = _Reader()
    reader.visit(tree)
    for option, kind in options_of_functions(tree, reader.names.imports):
        reader.names.options.setdefault(option, kind)
    return reader.names


def names_in_text(text: str) -> CodeNames:
    """Return what a text names that a shell fills variables into."""
    reader = _Reader()
    reader.text(text, 0)
    if re.search(rf"\b{contract.TF_CONFIG}=", text):
        reader.assigned(0)
    for variable in re.findall(r"\$\{?([A-Za-z_]\w*)", text):
        reader.variable(variable, 0)
    return reader.names


class _Reader(ast.NodeVisitor):
    def __init__(self) -> None:
        self.names = CodeNames()

    def visit_Import(self, node: ast.Import) -> None:
        self.names.imports.append(node)
        for alias in node.names:
            self._module(alias.name.split("."), node.lineno)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.names.imports.append(node)
        if node.level:
            return
        module = (node.module or "").split(".")
        for alias in node.names:
            parts = [*module, alias.name]
            if module == ["os"] and alias.name in _ENVIRONMENT and alias.asname:
                _add(self.names.hides, f"{alias.name} by another name", node.lineno)
            if alias.name == "*" and module[0] in _TENSORFLOW:
                _add(self.names.hides, f"from {node.module} import *", node.lineno)
            if module[0] == "importlib" and alias.name in (*_IMPORTS, "*"):
                _add(self.names.hides, alias.name, node.lineno)
            if module == ["os"] and _STARTS_PROGRAMS.fullmatch(alias.name):
                _add(self.names.hides, f"os.{alias.name}", node.lineno)
            self._module(parts, node.lineno)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        parts, root = _dotted(node)
        self._parts(parts, node.lineno)
        if root is not None:
            self.visit(root)

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in _ENVIRONMENT or node.id in _RUNS_TEXT:
            _add(self.names.hides, node.id, node.lineno)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        key = _text_of(getattr(node.slice, "value", node.slice), node.slice)
        if key is not None and _is_environment(node.value):
            self.text(key, node.lineno)
            if not isinstance(node.ctx, ast.Store):
                self.variable(key, node.lineno, asked=isinstance(node.ctx, ast.Load))
            elif key == contract.TF_CONFIG:
                self.assigned(node.lineno)
        else:
            self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        key = _text_of(node.left)
        if key is not None and len(node.comparators) == 1 and _is_environment(node.comparators[0]):
            self.variable(key, node.lineno)
        else:
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        if isinstance(function, ast.Name) and function.id in ("isinstance", "issubclass"):
            # Asks what a strategy is, and uses none.
            for argument in node.args[:1]:
                self.visit(argument)
            return
        if self._asks_environment(node):
            return
        for option, kind in options_in(node):
            self.names.options.setdefault(option, kind)
        if isinstance(function, ast.Attribute) and function.attr == "putenv":
            assigned = [_text_of(name) for name in node.args[:1]]
            if assigned == [contract.TF_CONFIG]:
                self.assigned(node.lineno)
        if isinstance(function, ast.Attribute) and function.attr == "fit":
            self._fit(node, function)
        if isinstance(function, ast.Name) and function.id == "getattr":
            self._getattr(node)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.text(node.value, node.lineno)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)):
            self.visit(node.value)

    def visit_arg(self, node: ast.arg) -> None:
        """Pass over an argument: all it holds is its annotation."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for part in (node.args, *node.decorator_list, *node.body):
            self.visit(part)

    def text(self, text: str, line: int) -> None:
        for found in _TOLD.finditer(text):
            _add(self.names.cluster, found.group(1) or found.group(2), line)
        if text == "evaluator":
            _add(self.names.evaluator, text, line)
        for found in _PARAMETERS.finditer(text):
            _add(self.names.parameters, found.group(), line)
        if LEGACY_KERAS_VARIABLE in text:
            self.names.legacy_keras = True
        if _PATH.fullmatch(text) and len(self.names.paths) < _MOST_PATHS:
            _add(self.names.paths, text, line)

    def assigned(self, line: int) -> None:
        """Note that the code makes a TF_CONFIG of its own."""
        self.names.own_cluster = True
        if self.names.assigns is None:
            self.names.assigns = line

    def variable(self, name: str, line: int, *, asked: bool = True) -> None:
        """Note a variable that the code asks for, or removes."""
        self.text(name, line)
        if name == contract.TF_CONFIG and asked and self.names.reads is None:
            self.names.reads = line
        if name not in _TELLING and name not in _ALIKE:
            _add(self.names.variables, name, line)

    def _asks_environment(self, node: ast.Call) -> bool:
        """Take ``os.environ.get("X")``, ``os.getenv("X")`` and the like; say whether it is one."""
        function = node.func
        if isinstance(function, ast.Attribute) and _is_environment(function.value):
            if function.attr == "update":
                wanted = node.args
                keys = [keyword.arg for keyword in node.keywords]
                keys += [_text_of(k) for a in wanted for k in getattr(a, "keys", None) or ()]
                if contract.TF_CONFIG in keys:
                    self.assigned(node.lineno)
            elif function.attr in ("get", "pop", "setdefault") and node.args:
                wanted = node.args[1:]
            else:
                return False
        elif _is_environment(function, "getenv") and node.args:
            wanted = node.args[1:]
        else:
            return False
        if wanted is not node.args:
            key = _text_of(node.args[0])
            if key is None:
                return False
            self.variable(key, node.lineno, asked=getattr(function, "attr", "") != "pop")
        for part in (*wanted, *(k.value for k in node.keywords)):
            self.visit(part)
        return True

    def _fit(self, node: ast.Call, function: ast.Attribute) -> None:
        called = function.value
        name = getattr(called, "attr", getattr(called, "id", ""))
        given = {keyword.arg for keyword in node.keywords}
        if self.names.fit is None and ("model" in name.lower() or given & _FIT_ARGUMENTS):
            self.names.fit = node.lineno

    def _getattr(self, node: ast.Call) -> None:
        if len(node.args) < 2 or _text_of(node.args[1]) is not None:
            return
        if isinstance(node.args[0], ast.Name) and node.args[0].id in ("tf", "tensorflow", "os"):
            _add(self.names.hides, f"getattr({node.args[0].id}, ...)", node.lineno)

    def _module(self, parts: List[str], line: int) -> None:
        if parts[0] in _TENSORFLOW:
            self.names.keras |= parts[0] != "tensorflow"
            self.names.legacy_keras |= parts[0] == "tf_keras"
            self._parts(parts, line)

    def _parts(self, parts: List[str], line: int) -> None:
        """Take the parts of a dotted name, ``["tf", "distribute", "Server"]``."""
        names = self.names
        names.keras |= "keras" in parts
        for before, name in zip(parts, parts[1:]):
            if (before, name) == ("train", "Server"):
                _add(names.strategies, "train.Server", line)
            if name in STRATEGIES or name == ESTIMATOR:
                _add(names.strategies, name, line)
            if name in _CLUSTER or STRATEGIES.get(name, INDEPENDENT) != INDEPENDENT:
                _add(names.cluster, name, line)
            names.own_cluster |= name in _OWN_CLUSTER
            if name in _EVALUATOR:
                _add(names.evaluator, name, line)
            if name in _ENVIRONMENT | _IMPORTS or (
                before == "os" and _STARTS_PROGRAMS.fullmatch(name)
            ):
                _add(names.hides, f"{before}.{name}", line)
        if "distribute" in parts:
            after = [p for p in parts[parts.index("distribute") + 1 :] if p != "experimental"]
            if not after:
                _add(names.hides, "tf.distribute", line)
            elif after[0] not in _ONE_MACHINE:
                _add(names.cluster, after[-1], line)


def _add(into: Dict[str, int], name: str, line: int) -> None:
    into.setdefault(name, line)


def _dotted(node: ast.Attribute) -> Tuple[List[str], Optional[ast.expr]]:
    """Return the parts of ``a.b.c``, and what they begin at where that is no name."""
    parts: List[str] = []
    at: ast.expr = node
    while isinstance(at, ast.Attribute):
        parts.insert(0, at.attr)
        at = at.value
    if isinstance(at, ast.Name):
        return [at.id, *parts], None
    return ["", *parts], at


def _is_environment(node: ast.expr, name: str = "environ") -> bool:
    """Say whether ``node`` is ``os.environ`` or ``environ``, or another thing of ``os``."""
    return name in (getattr(node, "attr", ""), getattr(node, "id", ""))


def _text_of(*nodes: object) -> Optional[str]:
    """Return the text that the first of ``nodes`` that is a constant holds; None where none is."""
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
    return None
