"""A training of whose checkpoints a mixture or a half one is noticed at once. Usage: MARKS.

Every step adds its number to each of several variables, which lie on different parameter servers
where there are some. Whatever is restored must hold the same sum in each, that of all steps up to
the restored one. ``saves`` and ``restored`` below MARKS tell what happened and when; the training
ends when there is a file ``finish``.
"""

import json
import os
import sys
import time
from pathlib import Path

import tensorflow as tf

VARIABLES = 4
STEPS_PER_CALL = 10
marks = Path(sys.argv[1])
config = json.loads(os.environ.get("TF_CONFIG", "{}"))
on_chief = tf.train.CheckpointOptions(experimental_io_device="/job:chief/replica:0/task:0/cpu:0")


def note(name: str, *words: object) -> None:
    with (marks / name).open("a") as file:
        file.write(" ".join(map(str, words)) + "\n")


class Model(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        first = tf.VariableAggregation.ONLY_FIRST_REPLICA
        self.sums = [
            tf.Variable(0, dtype=tf.int64, trainable=False, aggregation=first)
            for _ in range(VARIABLES)
        ]
        self.padding = tf.Variable(tf.zeros([250_000]), trainable=False, aggregation=first)
        self.count = tf.Variable(0, dtype=tf.int64, trainable=False, aggregation=first)

    @tf.function
    def call(self) -> None:
        for _ in range(STEPS_PER_CALL):
            self.count.assign_add(1)
            for total in self.sums:
                total.assign_add(self.count.read_value())


def restore(model: Model, manager: tf.train.CheckpointManager, options: object) -> None:
    if manager.latest_checkpoint:
        manager.checkpoint.restore(manager.latest_checkpoint, options).assert_consumed()
    step = int(model.count.numpy())
    found = [int(total.numpy()) for total in model.sums]
    assert found == [step * (step + 1) // 2] * VARIABLES, f"step {step}: {found}"
    note("restored", os.environ["TASK_NAME"], step)


def train(model: Model, manager: tf.train.CheckpointManager, options: object, call, saves) -> None:
    while True:
        call()
        time.sleep(0.1)
        step = int(model.count.numpy())
        finish = (marks / "finish").exists()
        if saves:
            manager.save(checkpoint_number=step, options=options)
            note("saves", time.time(), step)
            print(f"step {step}", flush=True)
        if finish and config.get("cluster", {}).get("ps"):
            return
        if finish and step >= int((marks / "finish").read_text()):
            return


def manager_of(model: Model) -> tf.train.CheckpointManager:
    checkpoint = tf.train.Checkpoint(model=model)
    return tf.train.CheckpointManager(checkpoint, os.environ["CHECKPOINT_DIR"], max_to_keep=3)


def with_parameter_servers() -> None:
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        tf.distribute.Server(
            resolver.cluster_spec(),
            job_name=resolver.task_type,
            task_index=resolver.task_id,
            protocol="grpc",
        ).join()
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        model = Model()
    manager = manager_of(model)
    restore(model, manager, on_chief)

    def call() -> None:
        coordinator.schedule(model.call)
        coordinator.join()

    train(model, manager, on_chief, call, saves=True)


def with_all_workers() -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model = Model()
    manager = manager_of(model)
    restore(model, manager, None)

    @tf.function
    def call() -> object:
        def step() -> object:
            context = tf.distribute.get_replica_context()
            total = context.all_reduce(tf.distribute.ReduceOp.SUM, tf.constant(1.0))
            for _ in range(STEPS_PER_CALL):
                model.count.assign_add(1)
                for value in model.sums:
                    value.assign_add(model.count.read_value())
            return total

        return strategy.run(step)

    train(model, manager, None, call, saves=config["task"]["index"] == 0)


def alone() -> None:
    model = Model()
    manager = manager_of(model)
    restore(model, manager, None)
    train(model, manager, None, model.call, saves=True)


if config.get("cluster", {}).get("ps"):
    with_parameter_servers()
elif len(config.get("cluster", {}).get("worker", ())) > 1:
    with_all_workers()
else:
    alone()
