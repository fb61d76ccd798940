"""Failures with a known text: the meaning, the remedy, and whether a new start could mend it.

``exit_analysis`` looks an end up here. A table; the first rule that fits wins. Measured on
TensorFlow 2.15.1 and 2.21.0. An installer of packages reports
an unreachable network in the same words (``is_passing``).
"""

from __future__ import annotations

import re
from typing import Optional, Sequence, Tuple

from dcos_tensorflow.core import contract
from dcos_tensorflow.records import dataclass
from dcos_tensorflow.task.exits.exit_class import ExitClass

#: Words for something that was not reached: of pip, uv and what they call by, of Python and of the
#: libraries that load data and weights. An answer of 5xx, 408 or 429 is none, either.
_NOT_REACHED = re.compile(
    r"NewConnectionError|ConnectTimeoutError|ReadTimeoutError|ConnectionResetError|ProtocolError"
    r"|Temporary failure in name resolution|Name or service not known|Network is unreachable"
    r"|nodename nor servname provided|No address associated with hostname|No route to host"
    r"|Failed to resolve|could not resolve host|Max retries exceeded"
    r"|Connection (?:refused|reset|broken|aborted|timed out)|ProxyError|IncompleteRead|dns error"
    r"|error sending request|operation timed out|tcp connect error|request timed out"
    r"|The read operation timed out|urlopen error timed out|handshake operation timed out"
    r"|Remote end closed connection|retrieval incomplete|EOF occurred in violation of protocol"
    r"|Incomplete or corrupted file detected|Couldn't reach|We couldn't connect to"
    r"|(?:HTTP|Server) error:? \(?5\d\d|HTTP (?:status|error) (?:server error \()?5\d\d"
    r"|HTTP Error (?:408|429)\b|(?:HTTP code|Status code):? (?:5\d\d|408|429)\b"
    r"|\b(?:5\d\d Server Error|429 Client Error|408 Client Error|429 Too Many Requests)\b"
    r"|URL fetch failure on .*: (?:5\d\d|408|429|None -- (?!.*CERTIFICATE))",
    re.IGNORECASE,
)
#: Exceptions that by their name tell of another process: a peer, a server.
_OF_ANOTHER = re.compile(
    r"[Cc]onnect|[Tt]imeout|^(?:URLError|gaierror|BrokenPipeError|AbortedError|CancelledError"
    r"|DeadlineExceededError|Unavailable\w*|ServiceUnavailable|TooManyRequests|IncompleteRead"
    r"|ContentTooShortError|ProtocolError|ProxyError|MaxRetryError|RemoteProtocolError"
    r"|NameResolutionError|SSLEOFError)$"
)


def is_passing(line: str) -> bool:
    """Say whether a line tells of something that was not reached, and may be the next time."""
    return _NOT_REACHED.search(line) is not None


def is_of_other_process(exception: str) -> bool:
    """Say whether an exception of this type tells of another process, whatever its text says."""
    return _OF_ANOTHER.search(exception.rpartition(".")[2]) is not None


@dataclass(frozen=True)
class Rule:
    """A failure text that is known: what it means and what helps.

    ``pattern`` is looked for in each line of the failure; with ``beside``, that must be in some
    line that the start has printed, too. In ``summary`` and ``hint``, ``{error}`` is the
    exception's sentence, ``{port}`` the gRPC port, ``{peer}`` the task that went away, ``{python}``
    the Python that runs the task, ``{tf_keras}`` what is to be installed beside its TensorFlow, and
    ``{module}`` the group of that name.

    With ``permanent``, no new start can mend it where the process has ended of this very exception:
    the class is JOB_UNUSABLE then. One that it is only chained to may have been met and passed.
    """

    pattern: str
    exit_class: ExitClass
    summary: str
    hint: str
    exit_code: Optional[int] = None
    permanent: bool = False
    beside: str = ""


_IN_THE_PYTHON = "in the Python that runs the task, {python}"
# The setting changes tf.keras alone.
_LEGACY = (
    f"install {{tf_keras}} {_IN_THE_PYTHON} and set service.legacy_keras (where the code imports "
    "keras, it must import tf_keras)"
)

PORT_IS_TAKEN = Rule(
    r"Could not start gRPC server",
    ExitClass.PORT_TAKEN,
    "TensorFlow could not listen on port {port}: it is taken on this machine",
    "the task is started again on another port; nothing is to be done unless it repeats",
    contract.EXIT_PORT_TAKEN,
)

#: The order matters: causes before what they entail.
RULES: Tuple[Rule, ...] = (
    PORT_IS_TAKEN,
    Rule(
        r"No module named '?tensorflow'?(?!\w|\.)",
        ExitClass.JOB_UNUSABLE,
        "There is no TensorFlow in the Python that runs the task",
        "set service.python to a Python or virtual environment that has it, or service.tf_image "
        "(service.gpu_tf_image) to a container image that has it",
        contract.EXIT_JOB_UNUSABLE,
    ),
    Rule(
        r"No module named '?tensorboard'?(?!\w|\.)|TensorBoard is not installed",
        ExitClass.JOB_UNUSABLE,
        "There is no TensorBoard in the Python that runs the task; tf.summary needs it, and "
        "TensorFlow brings none from 2.21 on",
        "install tensorboard there; for the task tensorboard, tensorboard.python may name another "
        "environment that has it",
        contract.EXIT_JOB_UNUSABLE,
    ),
    Rule(
        r"No module named '?tensorflow\.contrib|has no attribute 'contrib'",
        ExitClass.USER_ERROR,
        "The job uses tf.contrib, which TensorFlow 2 does not have in any form",
        "replace its use of tf.contrib, or run it in a TensorFlow 1 image",
        permanent=True,
    ),
    Rule(
        r"tf\.device does not support functions",
        ExitClass.USER_ERROR,
        "The job passes replica_device_setter to TensorFlow 2's tf.device",
        "use tf.compat.v1.device, or set service.tf1_compat to run a TensorFlow 1 script unedited",
        permanent=True,
    ),
    Rule(
        r"TF_CONFIG, it must have one \"chief\" node",
        ExitClass.USER_ERROR,
        "An Estimator needs a chief: {error}",
        'set "chief": {{"count": 1}}, which trains as a worker does, and one worker fewer',
        permanent=True,
    ),
    Rule(
        r"module 'tensorflow[\w.]*' has no attribute 'estimator'|No module named"
        r" '?tensorflow_estimator",
        ExitClass.USER_ERROR,
        "The job uses an Estimator, which TensorFlow has no more from 2.16 on: {error}",
        "set service.tensorflow_version to 2.15.1",
        permanent=True,
    ),
    Rule(
        r"is not available with Keras 3|is not supported in Keras 3",
        ExitClass.USER_ERROR,
        "The job uses a part of Keras that Keras 3 does not offer: {error}",
        _LEGACY,
        permanent=True,
    ),
    Rule(
        r"AttributeError: .* has no attribute 'reset_states'",
        ExitClass.USER_ERROR,
        "The job calls reset_states, which is reset_state in Keras 3: {error}",
        f"rename it, or {_LEGACY}",
        permanent=True,
    ),
    Rule(
        r"module 'tensorflow[\w.]*' has no attribute '(?:placeholder\w*|Session|InteractiveSession"
        r"|app|flags|get_variable|variable_scope|global_variables_initializer|logging|gfile"
        r"|train_op|layers|ConfigProto|reset_default_graph|log|set_random_seed"
        r"|replica_device_setter|MonitoredTrainingSession|get_or_create_global_step|GPUOptions"
        r"|GradientDescentOptimizer|AdamOptimizer|Server|Saver|Supervisor|ClusterSpec"
        r"|SyncReplicasOptimizer|truncated_normal|to_float|summary\.FileWriter)'"
        r"|tf\.placeholder\(\) is not compatible with eager",
        ExitClass.USER_ERROR,
        "The job is written for TensorFlow 1: {error}",
        "set service.tf1_compat to run it unedited",
        permanent=True,
    ),
    Rule(
        r"PerReplica|create_per_worker_dataset|Cannot get the cardinality",
        ExitClass.USER_ERROR,
        "model.fit does not work under this tf.distribute strategy with Keras 3: {error}",
        f"{_LEGACY}, or write the training loop yourself",
        permanent=True,
        beside=r"/keras/src/",
    ),
    Rule(
        r"Keras cannot be imported",
        ExitClass.USER_ERROR,
        f"service.legacy_keras is set, and there is no tf_keras {_IN_THE_PYTHON}",
        "install {tf_keras} there",
        permanent=True,
        beside=r"has TF_USE_LEGACY_KERAS set",
    ),
    Rule(
        r"Keras cannot be imported",
        ExitClass.USER_ERROR,
        f"There is no Keras {_IN_THE_PYTHON}",
        "install TensorFlow there with all that it requires",
        permanent=True,
    ),
    Rule(
        r"ModuleNotFoundError: No module named 'tf_keras'",
        ExitClass.USER_ERROR,
        f"There is no tf_keras {_IN_THE_PYTHON}",
        "install {tf_keras} there",
        permanent=True,
    ),
    Rule(
        r"(?:ModuleNotFoundError|^\S*python[\d.]*): No module named '?(?P<module>[\w.]+)",
        ExitClass.USER_ERROR,
        f"There is no module {{module}} {_IN_THE_PYTHON}, nor in the job",
        "name its package in service.requirements, install it there, or bring it with the job "
        "(service.job_path)",
        permanent=True,
    ),
    Rule(
        r"^(?:ImportError|OSError): lib(?:cu\w+|nccl|nvinfer\w*|nvrtc|nvJitLink)\S*: cannot open"
        r"|^Could not load library libcudnn|DNN library is not found|libdevice not found at",
        ExitClass.USER_ERROR,
        "A library of CUDA is missing where the task runs: {error}",
        "use the GPU image of the TensorFlow version (service.gpu_tf_image), or install "
        "tensorflow[and-cuda] in {python}",
        permanent=True,
    ),
    Rule(
        r"scheme '?s3'? not implemented",
        ExitClass.USER_ERROR,
        "TensorFlow has no file system for s3://",
        "write to CHECKPOINT_DIR and LOG_DIR instead of s3://, or use gs:// or a mounted directory",
        permanent=True,
    ),
    Rule(
        r"(?:_temp/part-|part-\d{5}-of-\d{5}|\.data-\d{5}-of-\d{5}|_temp).*"
        r"(?:did not exist|No such file|not found)"
        r"|(?:did not exist|No such file|NotFoundError).*_temp"
        r"|MergeV2Checkpoints.*(?:did not exist|No such file)",
        ExitClass.USER_ERROR,
        "A checkpoint was written in parts to the private disks of several tasks",
        "save on the chief: "
        'tf.train.CheckpointOptions(experimental_io_device="/job:chief/replica:0/task:0/cpu:0") '
        "on save and restore, or with compat.v1 a Saver(sharded=False) made under "
        'tf.device("/job:chief/task:0/cpu:0") (worker, where there is no chief); or set '
        "service.shared_filesystem",
    ),
    Rule(
        r"Cannot assign a device for operation (?:Restore|Save|MergeV2)\w*:.*/task:[1-9]",
        ExitClass.USER_ERROR,
        "A checkpoint is to be read or written on a device that does not exist",
        'name the whole device: experimental_io_device="/job:chief/replica:0/task:0/cpu:0"; '
        "the job alone takes the task's number from the parameter server of each variable",
    ),
    Rule(
        # TensorFlow calls this a ResourceExhaustedError, too.
        r"No space left on device",
        ExitClass.USER_ERROR,
        "There was no space left to write to: {error}",
        "free some on the machine that ran the task, or let the job write less",
    ),
    Rule(
        # NumPy's is numpy.core._exceptions._ArrayMemoryError.
        r"ResourceExhaustedError|\bOOM when allocating|std::bad_alloc|"
        r"^(?:[\w.]+\._Array)?MemoryError\b",
        ExitClass.OUT_OF_MEMORY,
        "The job ran out of memory: {error}",
        "give the role more memory (worker.mem, gpu_worker.mem, parameter_server.mem), or use "
        "smaller batches",
    ),
    Rule(
        r"^FileNotFoundError: .*: '(?!/)[^']+'$",
        ExitClass.USER_ERROR,
        "{error}",
        "a relative path is one below the task's sandbox, where the folder of service.job_url is "
        "unpacked: put the file into that folder",
    ),
    Rule(
        r"^FileNotFoundError: .*: '/[^']*'$",
        ExitClass.USER_ERROR,
        "{error}",
        "the path must be there on the machine that runs the task: bring the file with the job "
        "(service.job_url, service.job_uris)",
    ),
    Rule(
        r"^EOFError: EOF when reading a line",
        ExitClass.USER_ERROR,
        "The job reads from standard input, which is empty: {error}",
        "read the value from JOB_CONTEXT (service.job_context) or from service.env",
        permanent=True,
    ),
    Rule(
        r"Unknown iteration client id|Iteration client id not found",
        ExitClass.PEER_LOST,
        "The dispatcher of the tf.data service has come back without its journal: {error}",
        "name a directory that all machines share in checkpoints.uri or service.shared_filesystem: "
        "the dispatcher finds its journal there on another machine, too",
    ),
    Rule(
        r"UnavailableError|PSUnavailable|\bUNAVAILABLE:|failed to connect to all addresses"
        r"|stopped sending heartbeats|Socket closed|Connection reset by peer"
        r"|task is already disconnected|unhealthy tasks|Collective ops is aborted by",
        ExitClass.PEER_LOST,
        "Another task of the cluster went away ({peer}): {error}",
        "look at the task that failed first; this one only noticed it",
    ),
    Rule(
        r"incarnation doesn't match|worker has restarted|Collective .*different incarnation",
        ExitClass.PEER_LOST,
        "Another task of the cluster was restarted without this one: {error}",
        "look at the task that failed first; this one only noticed it",
    ),
)


#: How TensorFlow names the address on which it could not listen, from 2.16 on.
_LISTENED = re.compile(r"No address added out of total \d+ resolved for '\S*:(\d+)'")


def listened_port(printed: Sequence[str]) -> int:
    """Return the port on which TensorFlow could not listen; 0 where no line says which."""
    found = next(filter(None, map(_LISTENED.search, reversed(printed))), None)
    return int(found.group(1)) if found else 0


def first_match(
    lines: Sequence[str], printed: Sequence[str]
) -> "Optional[Tuple[Rule, re.Match[str]]]":
    """Return the first rule that fits a failure, with what its pattern has found.

    ``lines`` are those of the failure, ``printed`` all of the start.
    """
    for rule in RULES:
        if rule.beside and not any(re.search(rule.beside, line) for line in printed):
            continue
        for line in reversed(lines):
            found = re.search(rule.pattern, line)
            if found:
                return rule, found
    return None
