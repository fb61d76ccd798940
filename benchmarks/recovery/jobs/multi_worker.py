"""MultiWorkerMirroredStrategy with a training loop of its own; the first member saves."""

import json
import os

import journal

journal.note("started")

import linear
import tensorflow as tf

journal.note("imported")


def main():
    task = json.loads(os.environ["TF_CONFIG"])["task"]
    if task["type"] == "evaluator":
        linear.evaluate(os.environ["CHECKPOINT_DIR"])
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model = linear.Linear()
    manager = linear.manager_of(model, os.environ["CHECKPOINT_DIR"])
    # The directory is shared, and no task saves before all have restored: a step takes all.
    linear.resume(model, manager)

    @tf.function
    def step():
        return strategy.run(model.step)

    linear.train(model, manager, step, saves=task["type"] == "chief")


main()
