"""The options of the service as a whole: its name, its job, its rules."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from dcos_tensorflow.options.sections.containers import (
    ProcessLimits,
    Secrets,
    SharedMemory,
    Source,
    SourceIfGiven,
)
from dcos_tensorflow.options.sections.section import Section, group
from dcos_tensorflow.options.sections.values import (
    Allowed,
    AutoOrBoolean,
    Checksum,
    Command,
    Environment,
    FetchedUri,
    Image,
    JobName,
    JobPath,
    KdcPortIfGiven,
    Line,
    LineIfGiven,
    MesosRole,
    ObjectText,
    RequirementLines,
    Seconds,
    SecretText,
    ServiceName,
    TensorFlowVersion,
    TextList,
    UriList,
    problem,
)

#: The published package says: k_0:v_0,k_1:v_1,...,k_n:v_n; values may be empty, keys not.
_EXAMPLE = "labels such as k_0:v_0,k_1:v_1, or empty text"


def network_labels(text: str) -> dict[str, str]:
    """Return the labels in ``text``. Raises ValueError that says what is wrong."""
    labels: dict[str, str] = {}
    for part in text.split(",") if text.strip() else ():
        key, colon, value = (piece.strip() for piece in part.partition(":"))
        if not key or not colon:
            raise ValueError(f"{part.strip()!r} is not of the form key:value")
        if key in labels:
            raise ValueError(f"the label {key} stands there more than once")
        labels[key] = value
    return labels


def _network_labels(value: str) -> str:
    try:
        network_labels(value)
    except ValueError as error:
        raise problem(str(error)) from None
    return value


NetworkLabels = Annotated[str, AfterValidator(_network_labels), Allowed(_EXAMPLE)]


class KeyDistributionCenter(Section):
    """Where the Kerberos KDC is."""

    hostname: LineIfGiven = Field(
        None, description="Name or address of the host that runs the realm's KDC."
    )
    port: KdcPortIfGiven = Field(None, description="Port of the realm's KDC.")


class Kerberos(Section):
    """Kerberos, handed to the tasks as SECURITY_KERBEROS_* variables and files."""

    enabled: bool = Field(
        False,
        description="Give every task the Kerberos settings: SECURITY_KERBEROS_* variables, a "
        "krb5.conf and, where the image has kinit and there is a keytab, a ticket, kept fresh.",
    )
    kdc: KeyDistributionCenter = group(KeyDistributionCenter, "The Kerberos KDC.")
    primary: Line = Field(
        "tensorflow", description="Primary of the tasks' principal <primary>@<realm>."
    )
    realm: LineIfGiven = Field(None, description="Realm of the tasks' principal.")
    keytab_secret: SourceIfGiven = Field(
        None,
        description="Secret store path of the keytab, file:/path on the scheduler's machine, or "
        "env:NAME of its environment. Tasks find the keytab in the file that KRB5_CLIENT_KTNAME "
        "and SECURITY_KERBEROS_KEYTAB name.",
    )
    debug: bool = Field(
        False,
        description="Let Kerberos' libraries, kinit and Java write debug output to each task's "
        "stderr.",
    )


class Security(Section):
    """Security settings."""

    kerberos: Kerberos = group(Kerberos, "Kerberos settings.")


class Hdfs(Section):
    """Where HDFS is described."""

    config_uri: FetchedUri = Field(
        "",
        title="HDFS Configuration Directory URI",
        description="URI of the directory that holds core-site.xml and hdfs-site.xml. Both are "
        "fetched into every task's sandbox, which HADOOP_CONF_DIR names, and HDFS_ENABLED=true is "
        "set. The Hadoop client must be in the image.",
    )


class Service(Section):
    """Options of the service as a whole."""

    name: ServiceName = Field(
        "tensorflow", description="Name of this instance of the service; a / separates groups."
    )
    user: Line = Field("nobody", description="User of the tasks. Empty: the scheduler's own user.")
    service_account: Line = Field(
        "", description="Principal that the framework registers with. Empty is none."
    )
    service_account_secret: Line = Field(
        "",
        description="Secret store path of the service account's credentials. DC/OS hands them to "
        "the scheduler, which logs in with them and renews its login.",
    )
    virtual_network_enabled: bool = Field(
        False, description="Let every task join the virtual network service.virtual_network_name."
    )
    virtual_network_name: Line = Field("dcos", description="Name of the virtual network (CNI).")
    virtual_network_plugin_labels: NetworkLabels = Field(
        "", description="Labels for the virtual network's plugin, as k_0:v_0,k_1:v_1."
    )
    virtual_network_addresses: Literal["container", "host"] = Field(
        "container",
        description="Where tasks on a virtual network listen. container: at the container's "
        "own address and the configured ports. host: at ports of the agent that are forwarded "
        "to the container, for bridges within one machine.",
    )
    mesos_api_version: Literal["V0", "V1"] = Field(
        "V1", description="Mesos scheduler API to use: V1 (HTTP). V0 is refused."
    )
    mesos_role: MesosRole = Field(
        "*", description="Mesos role of the service, with its quota and its reservations."
    )
    log_level: Literal["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL"] = Field(
        "INFO",
        description="Level of the scheduler's log. A change takes effect at the scheduler's "
        "next start.",
    )
    log_format: Literal["pretty", "json"] = Field(
        "pretty",
        description="Format of the scheduler's log: lines for people, or JSON for programs. A "
        "change takes effect at the scheduler's next start.",
    )
    security: Security = group(Security, "Security settings.")
    job_url: FetchedUri = Field(
        "",
        title="Job URL",
        description="The job's code: a file, a zip or a tar.gz, fetched into every task's sandbox "
        "and unpacked. A path without a scheme is one beside the options file. Empty: the code is "
        "already in the image or on the agents.",
    )
    job_sha256: Checksum = Field(
        "",
        title="Job Checksum (Optional)",
        description="SHA-256 of the file of job_url. Each task checks the fetched file before "
        "it unpacks or runs it; a different file is removed and ends the job.",
    )
    job_path: JobPath = Field(
        "",
        title="Job Path (Optional)",
        description="Directory below the sandbox that is put on PYTHONPATH, once job_url is "
        "unpacked.",
    )
    job_name: JobName = Field(
        "",
        title="Job Name",
        description="Module to run, without .py: its main(server, log_dir, context) when it has "
        "one, else as a script with TF_CONFIG. Exactly one of job_name and job_cmd is needed.",
    )
    job_cmd: Command = Field(
        "",
        title="Job Command",
        description="Command line to run in each training task, with TF_CONFIG in its "
        "environment. Exactly one of job_name and job_cmd is needed.",
    )
    job_args: TextList = Field(
        default=[],
        title="Job Arguments",
        description="Arguments of the module of job_name, in sys.argv: a list of texts. In a sweep "
        "{lr} is the trial's value of the parameter lr, and {{lr}} the text {lr}.",
    )
    parameters_as_arguments: AutoOrBoolean = Field(
        "auto",
        title="Parameters as arguments",
        description="Whether a script gets the parameters of a trial, hyperparameters and the "
        "values of job_context as arguments, each as --name value: auto passes those on that "
        "the code is seen to parse (argparse, absl, click, typer, fire), true all, false none.",
    )
    job_contract: Literal["auto", "function", "script", "command"] = Field(
        "auto",
        title="Job Contract",
        description="How the job is run: function calls main(server, log_dir, context), script "
        "runs the module, command runs job_cmd, auto finds out.",
    )
    job_context: ObjectText = Field(
        "{}",
        title="Job Context (Optional)",
        description="JSON text of an object for the job: main gets it as context, other jobs "
        "as JOB_CONTEXT. Empty text is {}.",
    )
    job_uris: UriList = Field(
        default=[],
        title="Further URIs",
        description="More files to fetch into every task's sandbox; archives are unpacked.",
    )
    requirements: RequirementLines = Field(
        default=[],
        title="Requirements",
        description="Python packages that the job needs besides TensorFlow: the path of a "
        "requirements file in the job's code, or a list of its lines. They are installed "
        "before the first start, by uv if it is there and else by pip, once for each machine "
        "and content; wheels in a folder named wheels beside the code come first.",
    )
    tf1_compat: bool = Field(
        False,
        title="TensorFlow 1 compatibility",
        description="Let a module that was written for TensorFlow 1 run on TensorFlow 2.",
    )
    legacy_keras: bool = Field(
        False,
        title="Legacy Keras",
        description="Set TF_USE_LEGACY_KERAS=1, so that model.fit works under a multi-worker "
        "strategy with TensorFlow 2.16 and later. Needs tf_keras of TensorFlow's own version "
        "installed beside it.",
    )
    under_strategy: bool = Field(
        False,
        title="Under a strategy",
        description="Train a Keras script that was written for one task on all workers together, "
        "unedited: its models are built and compiled under MultiWorkerMirroredStrategy, or with "
        "parameter servers and a chief under ParameterServerStrategy. Uses Keras 2 (tf_keras from "
        "TensorFlow 2.16 on).",
    )
    strategy: Literal[
        "auto", "parameter_server", "multi_worker", "between_graph", "independent"
    ] = Field(
        "auto",
        title="Strategy",
        description="How the job is distributed; decides the content of TF_CONFIG and the tasks "
        "that restart after a failure.",
    )
    outcome: Literal["chief", "all_workers"] = Field(
        "chief",
        title="Outcome",
        description="The task that decides the job's end: the chief (worker 0 without a chief), "
        "or all workers.",
    )
    outcome_grace_seconds: Seconds = Field(
        10.0,
        title="Outcome grace (seconds)",
        description="How long the other tasks may go on by themselves after the job's end. An "
        "evaluator that is at work has the time that its evaluations took, where that is longer.",
    )
    kill_grace_seconds: Seconds = Field(
        10.0,
        title="Kill grace (seconds)",
        description="Time between SIGTERM and SIGKILL when a task is stopped. It is 0.1 s for "
        "servers, and for a task that restarts because another one failed: it has nothing to "
        "save then.",
    )
    stall_seconds: Seconds = Field(
        300.0,
        title="Stall (seconds)",
        description="Time without a new training step after which a task has failed, if also "
        "ten times its longest step has passed. 0: never.",
    )
    freeze_seconds: Seconds = Field(
        10.0,
        title="Freeze (seconds)",
        description="Time after which a task has failed whose process is stopped (SIGSTOP), or "
        "runs with its gRPC port closed. 0: never.",
    )
    idle_seconds: Seconds = Field(
        1800.0,
        title="Idle (seconds)",
        description="Time after which a gang that trains together starts again, at the cost of "
        "a retry, if none of its processes has made a step, printed a line or used CPU time. "
        "0: never.",
    )
    replace_after_seconds: Seconds = Field(
        0.0,
        title="Replace after (seconds)",
        description="Time to wait for an agent that Mesos calls unreachable before its tasks "
        "start elsewhere.",
    )
    maintenance_lead_seconds: Seconds = Field(
        300.0,
        title="Maintenance lead (seconds)",
        description="Time before an agent's announced maintenance at which its tasks leave it.",
    )
    leave_on_rebalance: bool = Field(
        False,
        title="Leave on a rebalance recommendation",
        description="Move tasks from a spot machine for which EC2 gives a rebalance "
        "recommendation: they train on until all have another place. Each move costs the gang "
        "a restart, and most such machines stay. Off: the tasks stay until the machine goes.",
    )
    update_strategy: Literal["parallel", "serial", "canary"] = Field(
        "parallel",
        title="Update strategy",
        description="How changed options reach the tasks: parallel all at once, serial one "
        "after the other, canary one first and the others after an operator's approval.",
    )
    uninstall_give_up_seconds: Seconds = Field(
        900.0,
        title="Uninstall gives up (seconds)",
        description="Time for which an uninstall waits for agents that do not answer; then it "
        "lists them and ends.",
    )
    shared_filesystem: Line = Field(
        "",
        title="Shared Filesystem",
        description="Where all tasks read and write summaries and checkpoints, e.g. "
        "gs://your/directory or hdfs://default/your/directory. The job gets it unchanged as "
        "its log_dir; for s3://bucket/prefix it gets a directory on the task's machine, which "
        "is copied there. An absolute path must exist on all machines; containers see it too. "
        "Empty: the job's checkpoint directory.",
    )
    hdfs: Hdfs = group(Hdfs, "HDFS settings.")
    gcs_key: SecretText = Field(
        "",
        title="GCS Key",
        description="JSON key of a Google Cloud Storage service account. Refused when set: it "
        "would be stored in plain text. service.use_gcs_key_secret takes it from a secret.",
        repr=False,
    )
    use_gcs_key_secret: bool = Field(
        False,
        description="Give every task the key in service.gcs_key_secret as a file, which "
        "GOOGLE_APPLICATION_CREDENTIALS names.",
    )
    gcs_key_secret: Source = Field(
        "gcs_key",
        title="GCS key secret",
        description="Place of that key: secret store path, file:/path on the scheduler's "
        "machine, or env:NAME of its environment.",
    )
    use_tensorboard: bool = Field(
        False,
        description="Run a TensorBoard beside the job. It reads shared_filesystem or "
        "checkpoints.uri.",
    )
    tensorflow_version: TensorFlowVersion = Field(
        "",
        title="TensorFlow version",
        description="TensorFlow version of the tasks: chooses the package's image of it, else "
        "the official one. Without images (on the embedded cluster, or with python) it chooses "
        "an environment, such as .venvs/tensorflow-<version>; if there is none, the service "
        "makes one, once for each machine. 2.12 is the oldest supported version. An image of "
        "your own in tf_image or gpu_tf_image overrides it. Empty: tf_image, gpu_tf_image and "
        "python decide; if these are empty too, tasks run with the python3 of their agents.",
    )
    tf_image: Image = Field(
        "",
        title="TensorFlow Docker Image",
        description="Container image of tasks without GPUs (usr/img:version). Empty: that of "
        "tensorflow_version; no container if that is empty too.",
    )
    gpu_tf_image: Image = Field(
        "",
        title="TensorFlow GPU Docker Image",
        description="Container image of tasks with GPUs (usr/img:version). Empty: that of "
        "tensorflow_version; no container if that is empty too.",
    )
    containerizer: Literal["mesos", "docker"] = Field(
        "mesos",
        title="Containerizer",
        description="Engine that runs the image: Mesos itself, or Docker. GPUs need mesos.",
    )
    python: Line = Field(
        "",
        title="Python",
        description="Python interpreter or virtual environment of a TensorFlow version, found on "
        "every agent. When set, tasks run without a container image.",
    )
    env: Environment = Field(
        default={},
        title="Environment",
        description="Environment variables of every task. The service stores and shows them: "
        "do not put secrets here.",
    )
    secrets: Secrets = Field(
        default=[],
        title="Secrets",
        description="Secrets of every task: a list of objects with source (a path of the cluster's "
        "secret store, file:/path on the scheduler's machine, or env:NAME of its environment) and "
        "either env (a variable) or file (below the sandbox). They are never stored or shown.",
    )
    rlimits: ProcessLimits = Field(
        default=[],
        title="Process limits",
        description="Limits of every task's processes: a list of objects with name (such as "
        "RLIMIT_NOFILE), soft and hard. Without the two there is no limit.",
    )
    shm_size: SharedMemory = Field(
        0,
        title="Shared memory size (MB)",
        description="Size of every task's own /dev/shm, in MB. 0: the agents' default.",
    )
    region: Line = Field(
        "",
        description="Region that all tasks run in. Empty: the master's own region.",
        json_schema_extra={"media": {"type": "application/x-region+string"}},
    )
