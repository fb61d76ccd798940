"""The spec that the scheduler writes: what is read, and how a wrong one is refused."""

import json

import pytest

from dcos_tensorflow.task.spec import SpecError, StartOrder, parse_order, parse_spec


def document(**changes):
    spec = {
        "version": 1,
        "service": "mnist",
        "task": "worker-0",
        "role": "worker",
        "index": 0,
        "attempt": 3,
        "cluster": {
            "epoch": 2,
            "distribute": {
                "tf_config": {"cluster": {"worker": ["127.0.0.2:1"]}},
                "wait_for": ["127.0.0.2:31000"],
            },
            "server": {
                "cluster": {"ps": ["10.0.0.1:1"], "worker": ["10.0.0.2:1", "10.0.0.2:2"]},
                "job_name": "worker",
                "task_index": 1,
                "wait_for": ["10.0.0.1:1"],
            },
        },
        "job": {"contract": "auto", "name": "digits", "context": "{}", "tf1_compat": True},
        "cpus": 1.5,
        "gpus": 0,
        "grpc_port": 31000,
        "wait_seconds": 300,
        "grace_seconds": 10,
    }
    spec.update(changes)
    return json.dumps(spec)


def test_a_complete_spec_is_read():
    spec = parse_spec(document())
    assert (spec.task, spec.attempt, spec.cpus) == ("worker-0", 3, 1.5)
    assert spec.cluster.server.cluster["worker"] == ("10.0.0.2:1", "10.0.0.2:2")
    assert spec.cluster.wait_for == ("127.0.0.2:31000",)
    assert spec.job.tf1_compat


def test_the_arguments_of_a_module_are_any_texts():
    arguments = ["--epochs", "3", "two words", ""]
    spec = parse_spec(document(job={"name": "train", "arguments": arguments}))
    assert spec.job.arguments == tuple(arguments)


def test_a_single_task_has_neither_tf_config_nor_server():
    cluster = {"epoch": 1, "distribute": {"tf_config": None, "wait_for": []}, "server": None}
    spec = parse_spec(document(cluster=cluster))
    assert spec.cluster.tf_config is None
    assert spec.cluster.server is None


def test_without_a_word_about_it_nothing_is_held_and_freezing_is_watched():
    spec = parse_spec(document())
    assert (spec.held, spec.hold_on_failure) == (False, False)
    assert (spec.stall_seconds, spec.freeze_seconds) == (0.0, 10.0)
    assert spec.first_order == StartOrder(1, True, spec.cluster)


def test_a_spec_may_hold_and_watch():
    changes = {"held": True, "hold_on_failure": True, "stall_seconds": 60, "freeze_seconds": 0}
    spec = parse_spec(document(**changes))
    assert (spec.hold_on_failure, spec.stall_seconds, spec.freeze_seconds) == (True, 60.0, 0.0)
    assert spec.first_order == StartOrder(1, False, spec.cluster)


def order_of(**changes):
    body = {"epoch": 7, "distribute": None, "server": None, "start": 2, "run": True, **changes}
    return parse_order(json.dumps(body))


def test_an_order_is_read():
    order = order_of()
    assert (order.start, order.run, order.cluster.epoch) == (2, True, 7)
    assert (order.grace_seconds, order.expects_restore_step) == (None, False)


@pytest.mark.parametrize("step", [None, 0, 1200])
def test_an_order_may_expect_a_checkpoint_or_none(step):
    order = order_of(restore_step=step, expects_restore_step=True, grace_seconds=2)
    assert (order.restore_step, order.expects_restore_step) == (step, True)
    assert order.grace_seconds == 2.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"start": None}, "start must be a whole number of at least 0, got null"),
        ({"start": 0}, "start must be a whole number of at least 1, got 0"),
        ({"start": True}, "start must be a whole number of at least 0, got true or false"),
        ({"run": 1}, "run must be true or false, got 1"),
        ({"grace_seconds": -1}, "grace_seconds must be a number of at least 0, got -1"),
        ({"grace_seconds": 10**400}, "grace_seconds must be a number of at most 1e+09"),
        ({"grace_seconds": float("inf")}, "grace_seconds must be a number of at most 1e+09"),
        ({"restore_step": "new"}, "restore_step must be a whole number of at least 0, got a text"),
        ({"expects_restore_step": "yes"}, "expects_restore_step must be true or false"),
    ],
)
def test_a_wrong_value_of_an_order_is_refused(changes, message):
    with pytest.raises(SpecError, match=r".*") as error:
        order_of(**changes)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 3}, "version is 3, but this task runner reads version 2"),
        ({"service": 5}, "service must be a text, got 5"),
        ({"cpus": "one"}, "cpus must be a number of at least 0, got a text"),
        ({"gpus": 0.5}, "gpus must be a whole number of at least 0, got 0.5"),
        ({"gpus": True}, "gpus must be a whole number of at least 0, got true or false"),
        ({"grace_seconds": -1}, "grace_seconds must be a number of at least 0, got -1"),
        ({"job": []}, "job must be an object, got a list"),
        ({"job": {"contract": "magic"}}, "job.contract must be one of auto, function"),
        ({"cluster": {}}, "cluster.epoch is missing"),
        (
            {"cluster": {"epoch": 1, "distribute": {"wait_for": ["here:\u00b21"]}}},
            "cluster.distribute.wait_for must be a list of host:port, got a text",
        ),
        (
            {"cluster": {"epoch": 1, "distribute": {"wait_for": ["nowhere"]}}},
            "cluster.distribute.wait_for must be a list of host:port, got a text",
        ),
        (
            {
                "cluster": {
                    "epoch": 1,
                    "server": {"cluster": {"ps": []}, "job_name": "worker", "task_index": 0},
                }
            },
            "cluster.server.task_index is 0, but job 'worker' of the cluster has 0 members",
        ),
    ],
)
def test_a_wrong_value_is_refused_with_its_path(changes, message):
    with pytest.raises(SpecError, match=r".*") as error:
        parse_spec(document(**changes))
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"'])
def test_what_is_no_json_object_is_refused(text):
    with pytest.raises(SpecError, match="TASK_RUNNER_SPEC"):
        parse_spec(text)
