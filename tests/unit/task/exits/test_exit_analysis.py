"""What the end of a process meant. The texts are those that TensorFlow prints."""

import pytest

from dcos_tensorflow.task.exits.exit_analysis import CodeError, ExitVerdict, ProcessEnding, analyse
from dcos_tensorflow.task.exits.exit_class import ExitClass

TRACEBACK = ["Traceback (most recent call last):", '  File "job.py", line 3, in <module>']


def verdict(code, *lines, **ending):
    return analyse(ProcessEnding(return_code=code, **ending), list(lines))


def test_zero_is_success_whatever_was_printed():
    report = verdict(0, "ValueError: caught and printed")
    assert (report.exit_code, report.exit_class) == (0, ExitClass.SUCCESS)


def test_an_exception_is_told_by_its_line_and_its_place():
    report = verdict(1, *TRACEBACK, "KeyError: 'images'", "some more output")
    told = "KeyError: 'images' (job.py, line 3)"
    assert (report.exit_class, report.summary) == (ExitClass.USER_ERROR, told)


def test_where_in_a_graph_an_operation_is_is_left_out():
    error = (
        "tensorflow.python.framework.errors_impl.InvalidArgumentError: {{function_node"
        " __wrapped____MklMatMul_device_/job:localhost/replica:0/task:0/device:CPU:0}} Matrix"
        " size-incompatible: In[0]: [8,5], In[1]: [4,2] [Op:MatMul] name: "
    )
    told = "InvalidArgumentError: Matrix size-incompatible: In[0]: [8,5], In[1]: [4,2] [Op:MatMul]"
    assert verdict(1, *TRACEBACK, error).summary == f"{told} (job.py, line 3)"


def test_an_exit_code_without_any_text_is_told_as_such():
    assert verdict(3).summary == "The process ended with exit code 3 by itself"
    told = 'The process ended with exit code 3 by itself; the last that it said: "no data"'
    assert verdict(3, "reading", "no data", "").summary == told


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("FileNotFoundError: [Errno 2] No such file or directory: 'a/b.csv'", "below the task's"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/data/x'", "service.job_uris"),
        ("OSError: [Errno 28] No space left on device", "free some"),
        (
            "tensorflow.errors_impl.ResourceExhaustedError: /x; No space left on device",
            "free some",
        ),
        ("EOFError: EOF when reading a line", "JOB_CONTEXT"),
    ],
)
def test_what_the_code_asks_of_its_machine_is_told_with_what_to_do(line, hint):
    report = verdict(1, *TRACEBACK, line)
    assert "(job.py, line 3)" in report.summary
    assert hint in report.hint


NO_SERVER = "tensorflow.python.framework.errors_impl.UnknownError: Could not start gRPC server"
#: As TensorFlow 2.21 prints it; 2.15 names no port.
NO_PORT = (
    "E0000 00:00:1795773587.695753   25188 add_port.cc:83] Failed to add port to server: No address"
    " added out of total 1 resolved for '0.0.0.0:{}'"
)


def test_a_port_that_is_taken_and_none_of_the_tasks_is_the_codes_own_error():
    report = verdict(1, NO_PORT.format(12345), *TRACEBACK, NO_SERVER, grpc_port=31000)
    assert (report.exit_code, report.exit_class) == (1, ExitClass.USER_ERROR)
    assert "port 12345, which is taken on this machine and is not the task's own, 31000" in (
        report.summary
    )
    assert report.hint == "leave TF_CONFIG as you find it: it has the task's own port"
    assert report.error.line == 3


def test_a_port_that_no_line_names_is_not_the_tasks_where_the_code_assigns_tf_config():
    report = verdict(1, *TRACEBACK, NO_SERVER, grpc_port=31000, tf_config_at="job.py:2")
    assert report.exit_class is ExitClass.USER_ERROR
    assert "on a port, which is taken" in report.summary
    assert report.summary.endswith("the task's own, 31000: job.py:2 assigns TF_CONFIG")


@pytest.mark.parametrize("tf_config_at", ["", "job.py:2"])
def test_the_tasks_own_port_that_is_taken_is_no_error_of_the_code(tf_config_at):
    lines = (NO_PORT.format(31000), *TRACEBACK, NO_SERVER)
    report = verdict(1, *lines, grpc_port=31000, tf_config_at=tf_config_at)
    assert (report.exit_code, report.exit_class) == (75, ExitClass.PORT_TAKEN)


def test_a_port_that_is_taken_has_its_own_exit_code():
    line = "tensorflow.python.framework.errors_impl.UnknownError: Could not start gRPC server"
    report = verdict(1, *TRACEBACK, line, grpc_port=31000)
    assert (report.exit_code, report.exit_class) == (75, ExitClass.PORT_TAKEN)
    assert "port 31000" in report.summary


@pytest.mark.parametrize(
    "line",
    [
        "tensorflow.python.framework.errors_impl.UnavailableError: Graph execution error:",
        "UnavailableError: failed to connect to all addresses; last error: UNKNOWN",
        "2026-01-01 E0000 Task /job:worker/task:1 stopped sending heartbeats",
        "NotFoundError: {{function_node}} Failed to get tasks: Unknown iteration client id 3000.",
    ],
)
def test_a_lost_peer_is_not_the_jobs_fault(line):
    assert verdict(1, *TRACEBACK, line).exit_class is ExitClass.PEER_LOST


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("ModuleNotFoundError: No module named 'tensorflow'", "service.python"),
        ("AttributeError: module 'tensorflow' has no attribute 'placeholder'", "tf1_compat"),
        ("AttributeError: module 'tensorflow' has no attribute 'Session'", "tf1_compat"),
        ("AttributeError: module 'tensorflow' has no attribute 'contrib'", "TensorFlow 1 image"),
        ("ModuleNotFoundError: No module named 'tensorflow.contrib'", "TensorFlow 1 image"),
        ("AttributeError: `dense` is not available with Keras 3.", "legacy_keras"),
        ("ModuleNotFoundError: No module named 'tf_keras'", "install tf_keras"),
        (
            "ImportError: `keras.optimizers.legacy` is not supported in Keras 3. When using",
            "legacy_keras",
        ),
        ("AttributeError: 'Mean' object has no attribute 'reset_states'. Did you", "rename it"),
        (
            "ImportError: libcublas.so.10.0: cannot open shared object file: No such file",
            "gpu_tf_image",
        ),
        ("UnimplementedError: File system scheme 's3' not implemented (file: 's3://b')", "CHECK"),
        (
            "tensorflow.python.framework.errors_impl.InvalidArgumentError: "
            "{{function_node}} path /sb/ckpt-1_temp/part-00000-of-00001 did not exist",
            "experimental_io_device",
        ),
        (
            "tensorflow.python.framework.errors_impl.InvalidArgumentError: Cannot assign a device "
            "for operation RestoreV2: {{node RestoreV2}} was explicitly assigned to "
            "/job:chief/replica:0/task:1/device:CPU:0 but available devices are [ /job:ps",
            "name the whole device",
        ),
    ],
)
def test_known_failures_are_told_with_what_helps(line, named):
    assert named in verdict(1, *TRACEBACK, line).hint


def test_a_python_without_tensorflow_can_never_run_the_job():
    report = verdict(1, "ModuleNotFoundError: No module named 'tensorflow'")
    assert (report.exit_code, report.exit_class) == (78, ExitClass.JOB_UNUSABLE)


@pytest.mark.parametrize(
    "line",
    [
        "python: Error while finding module specification for 'tensorboard.main' "
        "(ModuleNotFoundError: No module named 'tensorboard')",
        "tensorflow.python.summary.tb_summary.TBNotInstalledError: TensorBoard is not installed, "
        "missing implementation for tf.summary.scalar",
    ],
)
def test_a_python_without_tensorboard_is_told_how_to_get_one(line):
    report = verdict(1, line)
    assert (report.exit_code, report.exit_class) == (78, ExitClass.JOB_UNUSABLE)
    assert "tensorboard.python" in report.hint


@pytest.mark.parametrize("name", ["tensorboardX", "tensorflow_datasets"])
def test_a_package_with_tensorflow_or_tensorboard_in_its_name_is_another_one(name):
    report = verdict(1, f"ModuleNotFoundError: No module named '{name}'")
    assert f"There is no module {name}" in report.summary


PERMANENT = [
    "ModuleNotFoundError: No module named 'pandas'",
    "ModuleNotFoundError: No module named 'tf_keras'",
    "AttributeError: module 'tensorflow' has no attribute 'placeholder'",
    "ImportError: `keras.optimizers.legacy` is not supported in Keras 3. When using `tf.keras`",
    "AttributeError: 'Mean' object has no attribute 'reset_states'. Did you mean: 'reset_state'?",
    "ImportError: libcublas.so.10.0: cannot open shared object file: No such file or directory",
]


@pytest.mark.parametrize("line", PERMANENT)
def test_what_no_new_start_can_mend_ends_the_job(line):
    report = verdict(1, *TRACEBACK, line)
    assert (report.exit_code, report.exit_class) == (78, ExitClass.JOB_UNUSABLE)


@pytest.mark.parametrize("line", PERMANENT)
def test_what_was_met_and_passed_before_another_error_does_not_end_the_job(line):
    chain = "During handling of the above exception, another exception occurred:"
    report = verdict(1, *TRACEBACK, line, "", chain, "", *TRACEBACK, "KeyError: 'x'")
    assert (report.exit_code, report.exit_class) == (1, ExitClass.USER_ERROR)


KERAS_3 = '  File "/v/site-packages/keras/src/utils/traceback_utils.py", line 122, in error_handler'


@pytest.mark.parametrize(
    "line",
    [
        "ValueError: Attempt to convert a value (PerReplica:{",
        "ValueError: To use this dataset, you need to pass this dataset to "
        "ClusterCoordinator.create_per_worker_dataset.",
        "ValueError: Cannot get the cardinality of a PerWorkerDataset",
    ],
)
def test_a_fit_that_keras_3_cannot_do_under_a_strategy_ends_the_job(line):
    report = verdict(1, *TRACEBACK, KERAS_3, line, tensorflow="2.19.1", python="/v/bin/python")
    assert (report.exit_code, report.exit_class) == (78, ExitClass.JOB_UNUSABLE)
    hint = "install tf_keras==2.19.* in the Python that runs the task, /v/bin/python"
    assert f"{hint} and set service.legacy_keras" in report.hint


def test_a_training_loop_of_the_jobs_own_is_no_fit_of_keras():
    report = verdict(1, *TRACEBACK, "ValueError: Attempt to convert a value (PerReplica:{")
    assert (report.exit_code, report.hint) == (1, "")


def test_legacy_keras_without_tf_keras_is_told_as_that():
    # TensorFlow 2.21.0: the reason is a warning before the traceback.
    warning = (
        "WARNING:tensorflow:Your environment has TF_USE_LEGACY_KERAS set to True, but you do not "
        "have the tf_keras package installed."
    )
    error = "ImportError: Keras cannot be imported. Check that it is installed."
    report = verdict(1, warning, *TRACEBACK, error, tensorflow="2.21.0", python="/v/bin/python")
    assert (report.exit_code, report.exit_class) == (78, ExitClass.JOB_UNUSABLE)
    assert report.summary.startswith("service.legacy_keras is set, and there is no tf_keras in ")
    assert report.hint == "install tf_keras==2.21.* there"


def test_an_exception_of_the_code_is_told_as_data():
    own = ['  File "/sandbox/job/train.py", line 7, in step', *KERAS_3.splitlines()]
    report = verdict(1, *TRACEBACK, *own, "job.BadRecord: x", sandbox="/sandbox", step=12)
    error = {"exception": "job.BadRecord", "file": "job/train.py", "line": 7, "step": 12}
    assert report.as_json()["error"] == error


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (1, "UnavailableError: failed to connect to all addresses"),
        (1, "MemoryError"),
        (1, "tensorflow.python.framework.errors_impl.DeadlineExceededError: too late"),
        (1, "ConnectionRefusedError: [Errno 111] Connection refused"),
        (1, "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure>"),
        (3, "ValueError: printed, and passed"),
        (-11, "ValueError: printed, and passed"),
    ],
)
def test_what_is_not_the_codes_own_is_not_told_as_an_error_of_it(code, line):
    assert verdict(code, *TRACEBACK, line).error is None


UNRESOLVED = (
    "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>"
)
CAUSED = "The above exception was the direct cause of the following exception:"
HANDLED = "During handling of the above exception, another exception occurred:"


@pytest.mark.parametrize(
    "lines",
    [
        [
            "Exception: URL fetch failure on https://data.example/mnist.npz: None -- [Errno -3]"
            " Temporary failure in name resolution"
        ],
        ["Exception: URL fetch failure on https://data.example/mnist.npz: 503 -- Unavailable"],
        ["urllib.error.HTTPError: HTTP Error 503: Service Unavailable"],
        ["urllib.error.ContentTooShortError: <urlopen error retrieval incomplete: got 5>"],
        ["http.client.RemoteDisconnected: Remote end closed connection without response"],
        ["OSError: [Errno 101] Network is unreachable"],
        ["requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://x"],
        ["OSError: We couldn't connect to 'https://hub.example' to load this file"],
        ["tensorflow_datasets.DownloadError: Failed to get url https://x. HTTP code: 502."],
        [UNRESOLVED, "", CAUSED, "", *TRACEBACK, "RuntimeError: no data"],
    ],
)
def test_a_download_that_may_pass_is_no_error_of_the_code_whatever_its_exception(lines):
    report = verdict(1, *TRACEBACK, *lines)
    assert (report.exit_class, report.error) == (ExitClass.USER_ERROR, None)
    assert report.hint.startswith("that may pass")


@pytest.mark.parametrize(
    "lines",
    [
        ["Exception: URL fetch failure on https://data.example/mnist.npz: 404 -- Not Found"],
        [
            "Exception: URL fetch failure on https://data.example/mnist.npz: None -- [SSL:"
            " CERTIFICATE_VERIFY_FAILED] certificate verify failed"
        ],
        ["tarfile.ReadError: not a gzip file"],
        [UNRESOLVED, "", HANDLED, "", *TRACEBACK, "KeyError: 'fallback'"],
    ],
)
def test_a_download_that_fails_each_time_is_the_codes_own_error(lines):
    report = verdict(1, *TRACEBACK, *lines)
    assert report.error is not None
    assert report.hint == ""


def test_an_error_on_import_is_told_with_the_module():
    report = verdict(1, "task-runner: importing digits failed", *TRACEBACK, "NameError: no x")
    assert report.summary == "digits cannot be imported: NameError: no x (job.py, line 3)"


@pytest.mark.parametrize(
    "lines",
    [
        ["MemoryError"],
        ["MemoryError: Unable to allocate 5 GiB"],
        ["numpy.core._exceptions._ArrayMemoryError: Unable to allocate 1.5 TiB for an array"],
        ["numpy._core._exceptions._ArrayMemoryError: Unable to allocate 1.5 TiB for an array"],
    ],
)
def test_a_memory_error_is_a_lack_of_memory(lines):
    assert verdict(1, *TRACEBACK, *lines).exit_class is ExitClass.OUT_OF_MEMORY


@pytest.mark.parametrize("code", [-9, 137])
def test_a_kill_while_the_kernel_killed_for_memory_is_a_lack_of_memory(code):
    report = verdict(code, "UnavailableError: an old one", out_of_memory=True)
    assert (report.exit_code, report.exit_class) == (137, ExitClass.OUT_OF_MEMORY)


@pytest.mark.parametrize("code", [-9, 137])
def test_any_other_kill_that_we_did_not_ask_for_is_an_interruption(code):
    report = verdict(code, "UnavailableError: an old one")
    assert (report.exit_code, report.exit_class) == (137, ExitClass.INTERRUPTED)
    assert "SIGKILL" in report.summary
    assert "the script or the machine's memory killer" in report.summary


def test_a_process_that_we_have_stopped_is_interrupted():
    report = verdict(-15, "UnavailableError: x", stop_reason="the task got SIGTERM")
    assert (report.exit_code, report.signal) == (143, 15)
    assert (report.exit_class, report.summary) == (
        ExitClass.INTERRUPTED,
        "Stopped: the task got SIGTERM",
    )


def test_a_signal_from_elsewhere_is_an_interruption_too():
    assert verdict(143).exit_class is ExitClass.INTERRUPTED


@pytest.mark.parametrize("reason", ["", "the task got SIGTERM"])
def test_a_saved_checkpoint_is_told_even_when_we_have_stopped_it(reason):
    assert verdict(42, stop_reason=reason).exit_class is ExitClass.CHECKPOINTED


def test_a_crash_is_told_by_its_signal():
    report = verdict(-11)
    assert (report.exit_code, report.summary) == (139, "The process crashed with SIGSEGV")


def test_a_command_that_the_shell_does_not_find_can_never_run():
    report = verdict(127, "sh: 1: trian: not found", contract="command")
    assert report.exit_class is ExitClass.JOB_UNUSABLE
    assert "trian: not found" in report.summary


def test_the_last_forty_lines_are_reported():
    report = verdict(1, *[f"line {number}" for number in range(100)])
    assert report.as_json()["last_lines"] == [f"line {number}" for number in range(60, 100)]


def test_an_exception_is_among_the_lines_whatever_was_printed_after_it():
    report = verdict(1, *TRACEBACK, "KeyError: 'x'", *["W0000 cancelled"] * 500)
    assert "KeyError: 'x'" in report.last_lines[-15:]


def test_a_peer_that_was_lost_long_before_is_not_the_cause():
    before = [*TRACEBACK, "UnavailableError: failed to connect to all addresses", "went on"]
    report = verdict(1, *before, *TRACEBACK, "KeyError: 'x'")
    told = "KeyError: 'x' (job.py, line 3)"
    assert (report.exit_class, report.summary) == (ExitClass.USER_ERROR, told)


def test_the_cause_of_a_chained_exception_counts():
    cause = [*TRACEBACK, "UnavailableError: failed to connect to all addresses", ""]
    chain = "During handling of the above exception, another exception occurred:"
    report = verdict(1, *cause, chain, "", *TRACEBACK, "RuntimeError: training failed")
    assert report.exit_class is ExitClass.PEER_LOST


def test_a_known_text_counts_where_there_is_no_traceback():
    assert verdict(-6, "F0000 task:1 stopped sending heartbeats").exit_class is ExitClass.PEER_LOST


GRAPH_ERROR = [
    *TRACEBACK,
    "tensorflow.python.framework.errors_impl.UnavailableError: Graph execution error:",
    "",
    "Detected at node MatMul_7/ReadVariableOp/_54 defined at (most recent call last):",
    "<stack traces unavailable>",
    "2 root error(s) found.",
    "  (0) UNAVAILABLE:  failed to connect to all addresses",
    "Additional GRPC error information from remote target /job:ps/replica:0/task:0:",
    "Additional GRPC error information from remote target /job:worker/replica:0/task:1:",
]


def test_the_task_that_tensorflow_names_first_is_the_one_that_was_lost():
    assert "went away (/job:ps/task:0)" in verdict(1, *GRAPH_ERROR).summary


def test_a_graph_execution_error_is_told_with_what_is_below_it():
    summary = verdict(1, *GRAPH_ERROR).summary
    error = "UnavailableError: Graph execution error: (0) UNAVAILABLE:"
    assert f"{error}  failed to connect to all addresses" in summary


def test_braces_in_an_error_are_told_as_they_are():
    line = "UnavailableError: {created: {x}} failed to connect to all addresses"
    assert "{created: {x}}" in verdict(1, *TRACEBACK, line).summary


def test_what_the_watchdog_has_killed_is_told_by_its_verdict():
    condemned = ExitVerdict(ExitClass.FROZEN, "It was stopped", "a user did")
    report = verdict(-9, "KeyError: 'x'", condemned=condemned, stop_reason="the task got SIGTERM")
    assert (report.exit_code, report.exit_class) == (137, ExitClass.FROZEN)
    assert (report.summary, report.hint) == ("It was stopped", "a user did")


@pytest.mark.parametrize(
    ("code", "lines", "told"),
    [
        (
            2,
            ["usage: arg.py [-h] [--lr LR]", "arg.py: error: unrecognized arguments: --rate 0.1"],
            "unrecognized arguments: --rate 0.1",
        ),
        (
            2,
            ["Usage: cli.py [OPTIONS]", "Try 'cli.py --help'.", "", "Error: No such option: --x"],
            "No such option: --x",
        ),
        (
            1,
            ["FATAL Flags parsing error:", "  Unknown command line flag 'rate'", "Pass --help"],
            "Unknown command line flag 'rate'",
        ),
    ],
)
def test_arguments_that_a_script_refuses_are_an_error_of_its_own(code, lines, told):
    report = analyse(ProcessEnding(code), lines)
    assert report.exit_class is ExitClass.USER_ERROR
    assert report.summary == f"The script refuses its arguments: {told}"
    assert report.error == CodeError("SystemExit", "", 0, None)


@pytest.mark.parametrize(
    ("code", "lines"),
    [(2, ["worker: error: no more data"]), (3, ["usage: a.py", "a.py: error: no more data"])],
)
def test_an_error_that_is_printed_without_usage_is_no_refusal_of_arguments(code, lines):
    assert analyse(ProcessEnding(code), lines).error is None


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        (
            'ValueError: If "cluster" is set in TF_CONFIG, it must have one "chief" node.',
            'set "chief": {"count": 1}, which trains as a worker does, and one worker fewer',
        ),
        (
            "AttributeError: module 'tensorflow' has no attribute 'estimator'",
            "set service.tensorflow_version to 2.15.1",
        ),
    ],
)
def test_an_estimator_that_cannot_run_is_told_with_what_it_needs(line, hint):
    report = verdict(1, *TRACEBACK, line)
    assert (report.exit_class, report.hint) == (ExitClass.JOB_UNUSABLE, hint)
