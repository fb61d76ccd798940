"""ParameterServerStrategy with a ClusterCoordinator and a training loop of its own."""

import os

import journal

journal.note("started")

import linear
import tensorflow as tf

journal.note("imported")


def main():
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        server = tf.distribute.Server(
            resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id
        )
        journal.note("serving")
        server.join()
    if resolver.task_type == "evaluator":
        linear.evaluate(os.environ["CHECKPOINT_DIR"])
    coordinate(resolver)


def coordinate(resolver):
    workers = resolver.cluster_spec().num_tasks("worker")
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        model = linear.Linear()
    manager = linear.manager_of(model, os.environ["CHECKPOINT_DIR"])
    linear.resume(model, manager)

    @tf.function
    def step():
        # On the worker, in its own directory: tells that this worker takes part.
        tf.io.write_file("trained", tf.strings.as_string(tf.timestamp()))
        return strategy.run(model.step)

    def round_of_steps():
        for _ in range(workers):
            coordinator.schedule(step)
        coordinator.join()

    linear.train(model, manager, round_of_steps, saves=True)


main()
