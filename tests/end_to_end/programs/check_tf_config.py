"""Feed rendered TF_CONFIGs to TensorFlow's own resolver and to the checks of its strategies.

Run by ``test_tf_config_resolver.py`` with the Python of one TensorFlow version:

    python check_tf_config.py GOLDEN_FOLDER

Prints one JSON object: the TensorFlow version, how many configs were checked, and what was wrong.
Needs nothing but TensorFlow; no server is started and no port opened.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf
from tensorflow.python.distribute import (
    multi_worker_util,
    parameter_server_strategy_v2,
)

ESTIMATOR = getattr(tf, "estimator", None) if tf.__version__ < "2.16" else None


def check(strategy: str, config: dict[str, Any]) -> None:
    """Raise when TensorFlow understands ``config`` otherwise than it was meant."""
    os.environ["TF_CONFIG"] = json.dumps(config)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    cluster = resolver.cluster_spec()
    kind, index = config["task"]["type"], config["task"]["index"]
    expect("task_type", resolver.task_type, kind)
    expect("task_id", resolver.task_id, index)
    expect("cluster_spec", cluster.as_dict(), config["cluster"])
    multi_worker_util._validate_cluster_spec(cluster, kind, index)
    members = [(job, i) for job, peers in config["cluster"].items() for i in range(len(peers))]
    if kind == "evaluator":
        expect("is_chief of an evaluator", multi_worker_util.is_chief(cluster, kind, index), True)
        expect("evaluators listed", "evaluator" in cluster.jobs, False)
    else:
        address = config["cluster"][kind][index]
        expect("master", resolver.master(), "" if len(members) == 1 else address)
    if strategy == "parameter_server":
        check_parameter_server(resolver)
    if strategy == "multi_worker" and kind != "evaluator":
        check_multi_worker(cluster, kind, index, members)
    if ESTIMATOR is not None and "chief" in config["cluster"]:
        check_estimator(config, kind, index)


def check_parameter_server(resolver: Any) -> None:
    """Apply what ParameterServerStrategy itself checks before it connects."""
    strategy = parameter_server_strategy_v2.ParameterServerStrategyV2
    strategy._verify_args_and_config(None, resolver)
    jobs = set(resolver.cluster_spec().jobs)
    expect("jobs", jobs, {"chief", "worker", "ps"})


def check_multi_worker(cluster: Any, kind: str, index: int, members: list[tuple[str, int]]) -> None:
    """Apply what MultiWorkerMirroredStrategy works out before it starts its server."""
    expect("jobs beside chief and worker", set(cluster.jobs) - {"chief", "worker"}, set())
    order = sorted(members)
    expect("worker_count", multi_worker_util.worker_count(cluster, kind), len(members))
    position = multi_worker_util.id_in_cluster(cluster, kind, index)
    expect("id_in_cluster", position, order.index((kind, index)))
    chiefs = [m for m in members if multi_worker_util.is_chief(cluster, *m)]
    expect("chiefs", chiefs, [("chief", 0) if "chief" in cluster.jobs else ("worker", 0)])


def check_estimator(config: dict[str, Any], kind: str, index: int) -> None:
    """Let Estimator (TensorFlow up to 2.15) read the config."""
    run_config = ESTIMATOR.RunConfig()
    expect("RunConfig.task_type", run_config.task_type, kind)
    expect("RunConfig.task_id", run_config.task_id, index)
    expect("RunConfig.is_chief", run_config.is_chief, kind == "chief")
    workers = len(config["cluster"].get("worker", ())) + 1
    expected = 0 if kind == "evaluator" else workers
    expect("RunConfig.num_worker_replicas", run_config.num_worker_replicas, expected)
    if kind == "evaluator":
        expect("RunConfig.master", run_config.master, "")


def check_server(definition: dict[str, Any]) -> None:
    """Let TensorFlow build the ServerDef that ``tf.compat.v1.train.Server`` is made from."""
    cluster = tf.train.ClusterSpec(definition["cluster"])
    address = cluster.task_address(definition["job_name"], definition["task_index"])
    job, index = definition["job_name"], definition["task_index"]
    expect("task_address", address, definition["cluster"][job][index])
    expect("cluster", cluster.as_dict(), definition["cluster"])


def expect(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise AssertionError(f"{what} is {found!r}, should be {wanted!r}")


def main(folder: Path) -> None:
    checked, wrong = 0, []
    for path in sorted(folder.glob("*.json")):
        for mix, entry in json.loads(path.read_text()).items():
            for task, told in entry["tasks"].items():
                where = f"{path.name}: {mix}: {task}"
                config = told["distribute"]["tf_config"]
                try:
                    if config is not None:
                        check(entry["strategy"], config)
                        checked += 1
                    if told["server"] is not None:
                        check_server(told["server"])
                except Exception as error:
                    wrong.append(f"{where}: {type(error).__name__}: {error}")
    print(json.dumps({"version": tf.__version__, "checked": checked, "wrong": wrong}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
