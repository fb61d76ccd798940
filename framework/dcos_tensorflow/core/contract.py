"""The contract between scheduler and task runner: names and numbers only.

Plain data, shared by ``core`` (which writes it into a task) and ``task`` (which reads it inside
the container). It must stay importable by Python 3.8 without anything installed.
"""

# The task runner's own environment.
RUNNER_SPEC_VARIABLE = "TASK_RUNNER_SPEC"
RUNNER_TOKEN_VARIABLE = "TASK_RUNNER_TOKEN"
RUNNER_PORT_VARIABLE = "TASK_RUNNER_PORT"
#: JSON of {path below the sandbox: base64}: the secrets that the runner writes as files.
RUNNER_SECRETS_VARIABLE = "TASK_RUNNER_SECRET_FILES"
#: Names the folder of those files, for the runner's guard.
RUNNER_SECRETS_DIRECTORY_VARIABLE = "TASK_RUNNER_SECRETS_DIR"
#: The members' addresses, one a line, each member at its place: zlib, then base64. The spec refers
#: to some of them by [start, end].
RUNNER_ADDRESSES_VARIABLE = "TASK_RUNNER_ADDRESSES"
RUNNER_SPEC_VERSION = 2

#: What JSON has no numbers for is written as these texts, which ``float`` reads.
NOT_FINITE = ("NaN", "Infinity", "-Infinity")

#: No process can be passed a variable of more bytes, its name, ``=`` and the final zero included:
#: MAX_ARG_STRLEN of Linux, with pages of 4 KiB.
VARIABLE_BYTES = 131_072

# What the user's process finds in its environment (docs/job-contract.md).
TF_CONFIG = "TF_CONFIG"
TF_DATA_SERVICE = "TF_DATA_SERVICE"
TF_EPOCH = "TF_EPOCH"
LOG_DIR = "LOG_DIR"
CHECKPOINT_DIR = "CHECKPOINT_DIR"
OUTPUT_DIR = "OUTPUT_DIR"
JOB_CONTEXT = "JOB_CONTEXT"
DATA_SHARD_INDEX = "DATA_SHARD_INDEX"
DATA_SHARD_COUNT = "DATA_SHARD_COUNT"
SHARD_INPUTS = "SHARD_INPUTS"
SHARD_OUTPUT = "SHARD_OUTPUT"
TASK_NAME = "TASK_NAME"
SERVICE_NAME = "SERVICE_NAME"
PROGRESS_FILE = "PROGRESS_FILE"
# The same cluster for scripts of TensorFlow 1, which take it by flags.
PS_HOSTS = "PS_HOSTS"
WORKER_HOSTS = "WORKER_HOSTS"
JOB_NAME = "JOB_NAME"
TASK_INDEX = "TASK_INDEX"

#: The inputs of a job that was begun from Python: the variable, and the folder that it leads to.
INPUT_PREFIX = "INPUT_"
INPUT_FOLDER = "input"
# What SageMaker's container calls the same: the output, the hyperparameters, the inputs, the tasks.
SM_MODEL_DIR = "SM_MODEL_DIR"
SM_OUTPUT_DATA_DIR = "SM_OUTPUT_DATA_DIR"
SM_HPS = "SM_HPS"
SM_HOSTS = "SM_HOSTS"
SM_CURRENT_HOST = "SM_CURRENT_HOST"
SM_CHANNEL_PREFIX = "SM_CHANNEL_"

# Kerberos, as the published package's tasks know it; the keytab is a secret in the sandbox.
KERBEROS_VARIABLE = "SECURITY_KERBEROS_"
KERBEROS_KEYTAB_VARIABLE = "SECURITY_KERBEROS_KEYTAB"
KERBEROS_KEYTAB_FILE = ".secrets/keytab"

# The runner's HTTP interface. Every request carries TOKEN_HEADER: the hex HMAC-SHA256 of
# "<METHOD> <path>\n<unix seconds>\n<body>" under the task's token, and the seconds in TIME_HEADER.
STATUS_PATH = "/v1/status"
CLUSTER_PATH = "/v1/cluster"
STOP_PATH = "/v1/stop"
#: A command of an operator: begun, asked for what it prints, and ended.
COMMAND_PATH = "/v1/command"
COMMAND_OUTPUT_PATH = "/v1/command/output"
COMMAND_END_PATH = "/v1/command/end"
#: How long a command may run at most.
COMMAND_SECONDS = 3600.0
TOKEN_HEADER = "X-Task-Signature"
TIME_HEADER = "X-Task-Time"
TOKEN_MAX_AGE_SECONDS = 300

# Job contracts, as the runner finds them.
CONTRACT_AUTO = "auto"
CONTRACT_FUNCTION = "function"
#: ``main(shard, context)``: one process is handed one shard of a batch after the other.
CONTRACT_SHARDS = "shards"
CONTRACT_SCRIPT = "script"
CONTRACT_COMMAND = "command"
CONTRACT_TENSORBOARD = "tensorboard"
CONTRACT_DATA_SERVICE = "data_service"
#: Those of tasks that run a program of ours beside the job's code.
CONTRACTS_BESIDE = (CONTRACT_TENSORBOARD, CONTRACT_DATA_SERVICE)

# Exit codes with a meaning. Everything else is the user's process speaking.
EXIT_SUCCESS = 0
#: The job as given can never run (no such module, no main): sysexits.h EX_CONFIG. Not retried.
EXIT_JOB_UNUSABLE = 78
#: The runner itself could not work: sysexits.h EX_OSERR.
EXIT_RUNNER_FAILED = 71
#: TensorFlow or the runner could not listen on its port: another port, and no retry is charged.
EXIT_PORT_TAKEN = 75
#: The start would restore another checkpoint than its gang: sysexits.h EX_DATAERR.
EXIT_CHECKPOINT_MISMATCH = 65
#: What a start needs could not be brought, or a newer attempt has taken the task's place in S3.
EXIT_STORAGE = 74
#: PreemptionCheckpointHandler saved and left (TensorFlow guide: fault tolerance).
EXIT_CHECKPOINTED = 42

#: Where the fetcher puts a job whose sum is still to be checked: no module is looked for there.
UNCHECKED_JOB_FILE = "job.unchecked"

#: What the task prints to both streams, in the order in which it comes; beside the runner's other
#: files.
CONSOLE_FILE = "task-console.log"
#: The same of one unit of work, by its number.
UNIT_FILE = "unit-{}.log"
#: The runner writes here, in its working directory, why the user's process ended.
EXIT_REPORT_FILE = "task-exit.json"
#: The same of every start that failed, one JSON object per line.
EXIT_HISTORY_FILE = "task-exits.jsonl"

#: What a report tells of a training: of each task so many metrics at most, with names no longer.
MOST_METRICS = 50
METRIC_NAME_LENGTH = 100
#: No training makes more steps. TensorFlow numbers its single runs at random, mostly with 16 or 17
#: digits, and its messages call those numbers steps too ("Step 7564124229747301 cancelled").
MOST_STEPS = 10**12

# Mesos labels on everything that this framework creates.
LABEL_FRAMEWORK_ID = "framework_id"
LABEL_RESOURCE_ID = "resource_id"
LABEL_SERVICE = "dcos_tensorflow_service"
LABEL_TASK = "dcos_tensorflow_task"
LABEL_EPOCH = "dcos_tensorflow_epoch"

# What a runner says of itself in GET /v1/status under ``state`` (docs/task-runner.md).
RUNNER_PREPARING = "preparing"
RUNNER_WAITING = "waiting"
RUNNER_RUNNING = "running"
RUNNER_STOPPING = "stopping"
RUNNER_HELD = "held"
RUNNER_FAILED = "failed"
RUNNER_EXITED = "exited"
#: The process of a unit has ended with 0: its container stays, for the next one.
RUNNER_DONE = "done"

#: An agent's attribute ``market`` says so of a machine that may be taken back.
SPOT = "spot"
# What a machine says of its own end, in GET /v1/status under ``notice.kind``: it goes, or it may.
NOTICE_INTERRUPTION = "interruption"
NOTICE_REBALANCE = "rebalance"
#: A machine that goes says so for no longer (EC2 User Guide, "Spot Instance interruption notices").
NOTICE_SECONDS = 120.0

#: A unit's result is kept with thousands of others: it has no more bytes as JSON.
UNIT_RESULT_BYTES = 1024

#: The role that hands out the work of a tf.data service.
DATA_DISPATCHER_ROLE = "data-dispatcher"
#: Roles that only serve where the code uses a ParameterServerStrategy.
WORKER_ROLES = ("worker", "gpu-worker")
#: The role whose process coordinates the others under a ParameterServerStrategy.
CHIEF_ROLE = "chief"
#: Seconds between SIGTERM and SIGKILL for a process that has nothing to save.
NOTHING_TO_SAVE_SECONDS = 0.1

# Classes of an end of the user's process that the scheduler's recovery goes by.
EXIT_CLASS_USER_ERROR = "user_error"
EXIT_CLASS_PEER_LOST = "peer_lost"
EXIT_CLASS_OUT_OF_MEMORY = "out_of_memory"
EXIT_CLASS_INTERRUPTED = "interrupted"
EXIT_CLASS_CHECKPOINTED = "checkpointed"
EXIT_CLASS_FROZEN = "frozen"
EXIT_CLASS_STALLED = "stalled"
EXIT_CLASS_CHECKPOINT_MISMATCH = "checkpoint_mismatch"
EXIT_CLASS_STORAGE = "storage"
#: The same where every machine is refused alike, until an operator changes something.
EXIT_CLASS_STORAGE_REFUSED = "storage_refused"

#: Why a runner cannot reach a peer: its name means nothing there; packets get no answer; no way
#: leads there; the port refuses, as it does while nothing listens there.
UNREACHABLE_NAME = "unknown name"
UNREACHABLE_SILENT = "no answer"
UNREACHABLE_ROUTE = "no route"
UNREACHABLE_REFUSED = "refused"
