"""What the user's process finds in its environment."""

import json

import pytest

from dcos_tensorflow.task.spec import JobCode, RunnerSpec, ServerCluster, TaskCluster
from dcos_tensorflow.task.supervise.environment import directories, user_environment

CLUSTER = TaskCluster(epoch=4, tf_config={"cluster": {"worker": ["a:1"]}})


def spec(**changes):
    values = {
        "service": "mnist",
        "task": "worker-1",
        "role": "worker",
        "index": 1,
        "attempt": 1,
        "cluster": CLUSTER,
        "job": JobCode(context='{"steps": 5}'),
        **changes,
    }
    return RunnerSpec(**values)


def build(the_spec=None, inherited=None, cluster=CLUSTER, room=1_700_000):
    the_spec = the_spec or spec()
    return user_environment(
        the_spec,
        cluster,
        inherited=inherited or {},
        where=directories(the_spec, "/sandbox"),
        python_path=("/sandbox/src", "/sandbox"),
        python="/venv/bin/python",
        mark="m",
        room=room,
    )


def test_the_contract_variables_are_set():
    variables, _ = build()
    expected = {
        "TF_EPOCH": "4",
        "TASK_NAME": "worker-1",
        "SERVICE_NAME": "mnist",
        "JOB_CONTEXT": '{"steps": 5}',
        "LOG_DIR": "/sandbox/logs",
        "CHECKPOINT_DIR": "/sandbox/checkpoints",
        "OUTPUT_DIR": "/sandbox/job-output",
        "PROGRESS_FILE": "/sandbox/progress.jsonl",
        "PYTHONUNBUFFERED": "1",
    }
    assert expected.items() <= variables.items()
    assert json.loads(variables["TF_CONFIG"]) == {"cluster": {"worker": ["a:1"]}}


def test_without_a_cluster_there_is_no_tf_config_even_if_one_is_inherited():
    variables, _ = build(inherited={"TF_CONFIG": "{}"}, cluster=TaskCluster(epoch=1))
    assert "TF_CONFIG" not in variables


def test_the_job_comes_first_on_the_python_path_and_what_was_there_stays():
    variables, _ = build(inherited={"PYTHONPATH": "/opt/lib:/sandbox"})
    known = "/sandbox/src:/sandbox:/opt/lib"
    assert variables["PYTHONPATH"] == f"{known}:/sandbox/.task-runner/in-reach"


def test_proxies_are_unset_in_any_case_and_the_log_says_so():
    proxies = {"http_proxy": "p", "HTTPS_PROXY": "p", "all_proxy": "p", "no_proxy": "n"}
    variables, notes = build(inherited=proxies)
    assert [name for name in variables if name.lower().endswith("_proxy")] == ["no_proxy"]
    assert "HTTPS_PROXY, all_proxy, http_proxy" in notes[0]


def test_the_token_the_port_and_the_spec_never_reach_the_user():
    secret = {"TASK_RUNNER_TOKEN": "t", "TASK_RUNNER_PORT": "1", "TASK_RUNNER_SPEC": "{}"}
    variables, _ = build(inherited=secret)
    assert not secret.keys() & variables.keys()


def test_what_the_agent_sets_is_kept():
    kept = {"DATA_SHARD_INDEX": "3", "DATA_SHARD_COUNT": "8", "HOME": "/home/a"}
    variables, _ = build(inherited=kept)
    assert kept.items() <= variables.items()


@pytest.mark.parametrize(("cpus", "threads"), [(0.1, "1"), (1.0, "1"), (1.5, "2"), (4.0, "4")])
def test_threads_follow_the_cpus(cpus, threads):
    variables, _ = build(spec(cpus=cpus))
    assert variables["TF_NUM_INTRAOP_THREADS"] == threads
    assert variables["OMP_NUM_THREADS"] == threads


def test_one_operation_that_waits_for_a_peer_never_takes_the_only_inter_op_thread():
    assert build(spec(cpus=0.5))[0]["TF_NUM_INTEROP_THREADS"] == "2"


def test_threads_that_the_user_has_set_stay():
    variables, _ = build(inherited={"TF_NUM_INTRAOP_THREADS": "7"})
    assert variables["TF_NUM_INTRAOP_THREADS"] == "7"


def test_a_chief_outlives_the_tries_of_a_worker_whose_ps_was_started_again():
    assert int(build()[0]["TF_COORDINATOR_IGNORE_TRANSIENT_PS_FAILURES"]) > 100


def test_patience_that_the_user_has_set_stays():
    variables, _ = build(inherited={"TF_COORDINATOR_IGNORE_TRANSIENT_PS_FAILURES": "0"})
    assert variables["TF_COORDINATOR_IGNORE_TRANSIENT_PS_FAILURES"] == "0"


def test_a_task_without_gpus_sees_none():
    assert build(inherited={"CUDA_VISIBLE_DEVICES": "0,1"})[0]["CUDA_VISIBLE_DEVICES"] == ""


def test_a_task_with_gpus_keeps_what_the_agent_has_chosen():
    variables, _ = build(spec(gpus=1), inherited={"CUDA_VISIBLE_DEVICES": "3"})
    assert variables["CUDA_VISIBLE_DEVICES"] == "3"


def test_legacy_keras_is_asked_for_only_where_the_job_wants_it():
    assert "TF_USE_LEGACY_KERAS" not in build()[0]
    assert build(spec(job=JobCode(legacy_keras=True)))[0]["TF_USE_LEGACY_KERAS"] == "1"


def test_port_sharing_is_never_asked_for():
    assert "TF_GRPC_REUSE_PORT" not in build()[0]


def test_python_in_a_command_is_the_interpreter_of_the_task():
    assert build(inherited={"PATH": "/usr/bin:/bin"})[0]["PATH"] == "/venv/bin:/usr/bin:/bin"


def test_a_search_path_that_has_the_interpreter_stays_in_its_order():
    assert build(inherited={"PATH": "/bin:/venv/bin"})[0]["PATH"] == "/bin:/venv/bin"


def test_a_shared_file_system_takes_logs_checkpoints_and_the_jobs_log_dir():
    where = directories(spec(shared_filesystem="gs://bucket/run"), "/sandbox")
    assert {where.log_dir, where.checkpoint_dir, where.job_log_dir} == {"gs://bucket/run"}
    assert where.watched() == ()
    assert where.local() == ("/sandbox/job-output",)


def test_without_one_the_jobs_log_dir_is_the_checkpoint_directory():
    where = directories(spec(checkpoint_dir="/mnt/ckpt", log_dir="$MESOS_SANDBOX/l"), "/sandbox")
    assert where.job_log_dir == "/mnt/ckpt"
    assert where.local() == ("/sandbox/l", "/mnt/ckpt", "/sandbox/job-output")


LISTS = ("PS_HOSTS", "WORKER_HOSTS", "JOB_NAME", "TASK_INDEX")


def served(ps=("p:1",), workers=("a:1", "b:1")):
    """Return the cluster of worker 1."""
    return TaskCluster(epoch=1, server=ServerCluster({"ps": ps, "worker": workers}, "worker", 1))


def lists(**arguments):
    variables, notes = build(**arguments)
    return [variables.get(name) for name in LISTS], notes


def test_a_script_of_tensorflow_1_finds_the_cluster_for_its_flags():
    assert lists(cluster=served()) == (["p:1", "a:1,b:1", "worker", "1"], [])


def test_without_parameter_servers_their_list_is_empty():
    assert lists(cluster=served(ps=()))[0] == ["", "a:1,b:1", "worker", "1"]


def test_a_task_that_is_no_member_of_the_cluster_gets_no_lists():
    assert lists(cluster=CLUSTER) == ([None] * 4, [])


def test_lists_that_the_user_has_set_stay():
    found, _ = lists(cluster=served(), inherited={"WORKER_HOSTS": "mine", "JOB_NAME": "x"})
    assert found == ["p:1", "mine", "x", "1"]


@pytest.mark.parametrize(
    ("hosts", "room"),
    [(["worker.example:2222"] * 10_000, 1_700_000), (["worker.example:2222"] * 1000, 10_000)],
    ids=["one variable", "all variables"],
)
def test_lists_that_are_too_long_for_a_process_are_left_out_and_the_log_says_so(hosts, room):
    found, notes = lists(cluster=served(workers=hosts), room=room)
    assert found == [None] * 4
    assert "too long" in notes[0]


def test_a_script_for_sagemaker_finds_its_places_and_hyperparameters():
    context = '{"epochs": 3}'
    inherited = {"INPUT_TRAIN": "input/train", "INPUT_SIZE": "28"}
    environment, _ = build(spec(job=JobCode(name="job", context=context)), inherited)
    found = {name: value for name, value in environment.items() if name.startswith("SM_")}
    assert found == {
        "SM_MODEL_DIR": environment["OUTPUT_DIR"],
        "SM_OUTPUT_DATA_DIR": environment["OUTPUT_DIR"],
        "SM_HPS": context,
        "SM_CHANNEL_TRAIN": "/sandbox/input/train",
        "SM_HOSTS": '["algo-1"]',
        "SM_CURRENT_HOST": "algo-1",
    }


def test_a_place_for_the_model_that_the_user_has_set_stays():
    environment, _ = build(inherited={"SM_MODEL_DIR": "/models"})
    assert environment["SM_MODEL_DIR"] == "/models"
