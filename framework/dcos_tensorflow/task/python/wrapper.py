"""Runs inside the user's process: builds the Server, calls ``main(server, log_dir, context)``.

``runner`` starts it for the function contract, and for a script that needs ``tf1_compat``,
``under_strategy`` or ``live_workers``, and for the servers of tf.data. For the function contract it
imports TensorFlow, which takes seconds, while the runner still waits for the peers; then it waits
for the runner's word on standard input. It and ``under_strategy`` import TensorFlow by its public
interface alone; it uses only names that every version from 1.15 on has under
``tensorflow.compat.v1``.

For ``main(shard, context)`` it imports the job's module once, and calls that for each shard that
comes on standard input, one after the other; an error in one ends the process.
"""

from __future__ import annotations

import base64
import contextlib
import faulthandler
import functools
import importlib
import inspect
import json
import os
import runpy
import sys
import zlib
from dataclasses import asdict, field
from typing import Any, BinaryIO, Dict, List, Optional, Tuple

from dcos_tensorflow.core import contract
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.data_service.servers import DataServer, serve
from dcos_tensorflow.task.python import live_workers, tf1_compat, under_strategy
from dcos_tensorflow.task.wrapper_protocol import GO, WORDS_VARIABLE

#: How the runner hands over; taken out of the environment before user code runs.
VARIABLE = "TASK_WRAPPER_CALL"
#: A worker that finds the model not yet initialised looks again after this long (default: 30 s).
RECOVERY_WAIT_SECONDS = 1


@dataclass(frozen=True)
class WrapperCall:
    """What is to be called; the context is in the job's own JOB_CONTEXT.

    ``cluster`` None means a server of one task, without peers.
    ``pin_checkpoints``: no file system is shared, so checkpoints are saved by the chief alone.
    ``takes_shards``: ``main`` is called with shards, as they come.
    ``takes_workers``: the version of the cluster of a process that takes other workers while it
    runs; 0 for one that does not. ``data_server`` is what a server of tf.data is told: nothing else
    is called then.
    """

    module: str
    file: str
    as_script: bool
    root: str
    arguments: List[str] = field(default_factory=list)
    log_dir: str = ""
    cluster: Optional[Dict[str, List[str]]] = None
    job_name: str = ""
    task_index: int = 0
    gpus: int = 0
    tf1_compat: bool = False
    under_strategy: bool = False
    pin_checkpoints: bool = True
    takes_shards: bool = False
    takes_workers: int = 0
    data_server: Optional[Dict[str, Any]] = None

    def as_text(self) -> str:
        """Return the call as the value of an environment variable, which must not grow too long."""
        return base64.b64encode(zlib.compress(json.dumps(asdict(self)).encode())).decode()

    @staticmethod
    def of_text(text: str) -> "WrapperCall":
        """Return the call that ``text`` stands for."""
        return WrapperCall(**json.loads(zlib.decompress(base64.b64decode(text))))


def main() -> int:
    """Do what the environment says and return the exit code; exceptions of the user's code pass."""
    call = WrapperCall.of_text(os.environ.pop(VARIABLE))
    _tell_crashes()
    if call.data_server:
        return serve(DataServer(**call.data_server))
    _take_the_place_of_a_script(call)
    if call.as_script:
        if call.takes_workers:
            live_workers.follow(*_conversation(), call.takes_workers)
        if call.tf1_compat:
            tf1_compat.install()
        if call.under_strategy and not _entered():
            return contract.EXIT_JOB_UNUSABLE
        if _is_package(call):
            runpy.run_module(call.module, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(call.file, run_name="__main__")
        return 0
    if call.takes_shards:
        return _run_shards(call)
    return _run_function(call)


def _tell_crashes() -> None:
    """Let a crash in native code (SIGSEGV, SIGABRT) print where the job was, for its report."""
    # A job whose stderr is closed has nowhere to print it.
    with contextlib.suppress(OSError, ValueError, RuntimeError):
        faulthandler.enable()


def _entered() -> bool:
    try:
        under_strategy.enter()
    except under_strategy.CannotEnter as error:
        print(f"task-runner: {error}", file=sys.stderr, flush=True)
        return False
    return True


def _is_package(call: WrapperCall) -> bool:
    return os.path.basename(call.file) == "__init__.py"


def _take_the_place_of_a_script(call: WrapperCall) -> None:
    """Make ``sys.argv`` and ``sys.path`` what they would be had Python been started on the file."""
    sys.argv = [call.file, *call.arguments]
    # The first entry is the runner's own archive, which is none of the user's business.
    alone = call.as_script and not _is_package(call)
    sys.path[0] = os.path.dirname(call.file) if alone else call.root


def _run_function(call: WrapperCall) -> int:
    v1 = importlib.import_module("tensorflow").compat.v1
    is_ps = call.job_name == "ps"
    if not is_ps:
        _look_again_sooner(v1)
        if call.pin_checkpoints and call.cluster and call.cluster.get("ps"):
            _save_on_chief(v1, _chief_device(call))
        if call.tf1_compat:
            tf1_compat.install()
    if not _released():
        print("task-runner: the task runner is gone", file=sys.stderr, flush=True)
        return contract.EXIT_RUNNER_FAILED
    server = _server(v1, call)
    if is_ps:
        print(f"task-runner: parameter server {call.task_index} is serving", flush=True)
        server.join()
        return 0
    # The runner has seen that it is an object.
    context = json.loads(os.environ[contract.JOB_CONTEXT].strip() or "{}")
    _main_of(call)(server, call.log_dir, context)
    return 0


def _run_shards(call: WrapperCall) -> int:
    units, words = _conversation()
    main_function: Any = None
    before: Dict[str, str] = {}
    # The first is read at once: its writer waits where it is long.
    for line in iter(units.readline, b""):
        unit = json.loads(line)
        for name in before.keys() - unit["variables"].keys():
            os.environ.pop(name, None)
        before = unit["variables"]
        os.environ.update(before)
        if main_function is None:
            if call.tf1_compat:
                tf1_compat.install()
            main_function = _main_of(call)
        main_function(unit["shard"], json.loads(os.environ[contract.JOB_CONTEXT].strip() or "{}"))
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os.write(words, b"%d\n" % unit["start"])
    # The runner is gone.
    return contract.EXIT_RUNNER_FAILED


def _conversation() -> Tuple[BinaryIO, int]:
    """Return the pipe from the runner and the one to it.

    Neither is the business of user code, or of what that starts.
    """
    words = int(os.environ.pop(WORDS_VARIABLE))
    os.set_inheritable(words, False)
    orders = os.fdopen(os.dup(0), "rb")
    _give_empty_input()
    return orders, words


def _released() -> bool:
    """Wait for the runner's word; False when it is gone. User code then finds an empty input."""
    word = b""
    while word != GO:
        more = os.read(0, len(GO) - len(word))
        if not more:
            return False
        word += more
    _give_empty_input()
    return True


def _give_empty_input() -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def _main_of(call: WrapperCall) -> Any:
    try:
        module = importlib.import_module(call.module)
    except BaseException:
        print(f"task-runner: importing {call.module} failed", file=sys.stderr, flush=True)
        raise
    main_function = getattr(module, "main", None)
    if not callable(main_function):
        wanted = "shard, context" if call.takes_shards else "server, log_dir, context"
        raise TypeError(f"{call.module} has no main({wanted})")
    return main_function


def _server(v1: Any, call: WrapperCall) -> Any:
    # Jobs read the number of their GPUs from server.server_def.default_session_config.
    config = v1.ConfigProto(device_count={"GPU": call.gpus})
    if call.cluster is None:
        return v1.train.Server.create_local_server(config=config)
    return v1.train.Server(
        v1.train.ClusterSpec(call.cluster),
        job_name=call.job_name,
        task_index=call.task_index,
        config=config,
    )


def _chief_device(call: WrapperCall) -> str:
    job = "chief" if call.cluster and call.cluster.get("chief") else "worker"
    return f"/job:{job}/task:0/cpu:0"


def _look_again_sooner(v1: Any) -> None:
    """Lower SessionManager's default of 30 s between two looks at a model not yet initialised."""
    session_manager = getattr(v1.train, "SessionManager", None)
    if session_manager is None:
        return
    original = session_manager.__init__
    parameters = list(inspect.signature(original).parameters)
    if "recovery_wait_secs" not in parameters:
        return
    position = parameters.index("recovery_wait_secs") - 1

    @functools.wraps(original)
    def initialise(self: Any, *args: Any, **kwargs: Any) -> None:
        if len(args) <= position:
            kwargs.setdefault("recovery_wait_secs", RECOVERY_WAIT_SECONDS)
        original(self, *args, **kwargs)

    session_manager.__init__ = initialise


def _save_on_chief(v1: Any, device: str) -> None:
    """Make MonitoredTrainingSession's default Saver write whole checkpoints on the chief's disk.

    The default one is sharded: each parameter server writes its part on its own disk, and the
    chief's merge fails. A Scaffold without a saver takes the one in the graph's SAVERS collection
    (documented), so one that is put there is used; a job that brings its own saver keeps it.
    """
    original = v1.train.MonitoredTrainingSession

    @functools.wraps(original)
    def session(*args: Any, **kwargs: Any) -> Any:
        given = inspect.signature(original).bind_partial(*args, **kwargs).arguments
        if _needs_saver(v1, given.get("scaffold"), given.get("checkpoint_dir")):
            with v1.device(None), v1.device(device):
                saver = v1.train.Saver(sharded=False, save_relative_paths=True, allow_empty=True)
            v1.add_to_collection(v1.GraphKeys.SAVERS, saver)
        return original(*args, **kwargs)

    v1.train.MonitoredTrainingSession = session


def _needs_saver(v1: Any, scaffold: Any, checkpoint_dir: Optional[str]) -> bool:
    if not checkpoint_dir or (scaffold is not None and scaffold.saver is not None):
        return False
    graph = v1.get_default_graph()
    return not graph.finalized and not graph.get_collection(v1.GraphKeys.SAVERS)
