"""One task of a training whose steps are counted. Usage: STRATEGY STEPS; TF_CONFIG says the rest.

``benchmarks.strategies`` starts it. The chief (worker 0 where there is none) prints how many
seconds STEPS took, after a warm-up. All train the same model on the same batches.
"""

import importlib.util
import itertools
import json
import os
import sys
import time

if importlib.util.find_spec("tf_keras"):
    os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf

WIDTHS = (784, 512, 512, 10)
BATCH = 128
WARM_UP = 40
STEPS_PER_CALL = 20

strategy_name, steps = sys.argv[1], int(sys.argv[2])
task = json.loads(os.environ.get("TF_CONFIG") or "{}").get("task", {"type": "worker", "index": 0})
random = np.random.RandomState(0)
images = random.normal(size=(BATCH, WIDTHS[0])).astype("float32")
labels = random.randint(0, WIDTHS[-1], BATCH)


def say(seconds):
    print(json.dumps({"steps": steps, "seconds": seconds}), flush=True)


def batches():
    return tf.data.Dataset.from_tensors((images, labels)).repeat()


def fit(strategy, data):
    """Train with Keras; an epoch is STEPS_PER_CALL steps."""
    with strategy.scope():
        layers = [tf.keras.layers.Dense(WIDTHS[1], activation="relu", input_shape=WIDTHS[:1])]
        layers += [tf.keras.layers.Dense(WIDTHS[2], activation="relu")]
        model = tf.keras.Sequential([*layers, tf.keras.layers.Dense(WIDTHS[3])])
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("sgd", loss)
    ends = []
    model.fit(
        data,
        epochs=(WARM_UP + steps) // STEPS_PER_CALL,
        steps_per_epoch=STEPS_PER_CALL,
        verbose=0,
        callbacks=[
            tf.keras.callbacks.LambdaCallback(
                on_epoch_end=lambda epoch, logs: ends.append(time.monotonic())
            )
        ],
    )
    say(ends[-1] - ends[WARM_UP // STEPS_PER_CALL - 1])


def coordinate(strategy):
    """Train with a ClusterCoordinator and a loop of our own: STEPS_PER_CALL steps at a time."""
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        weights = [tf.Variable(value) for value in initial()]

    def step(batch_images, batch_labels):
        with tf.GradientTape() as tape:
            loss = loss_of(weights, batch_images, batch_labels)
        for weight, gradient in zip(weights, tape.gradient(loss, weights)):  # noqa: B905
            weight.assign_sub(0.01 * gradient)

    @tf.function
    def call(iterator):
        for _ in range(STEPS_PER_CALL):
            strategy.run(step, args=next(iterator))

    iterator = iter(coordinator.create_per_worker_dataset(batches))

    def run(count):
        for _ in range(count // STEPS_PER_CALL):
            coordinator.schedule(call, args=(iterator,))
        coordinator.join()

    run(WARM_UP)
    began = time.monotonic()
    run(steps)
    say(time.monotonic() - began)


def sessions(cluster):
    """Train between graphs: each worker in a session of its own, as in TensorFlow 1."""
    v1 = tf.compat.v1
    v1.disable_v2_behavior()
    server = v1.train.Server(cluster, job_name=task["type"], task_index=task["index"])
    if task["type"] == "ps":
        server.join()
    first = task["index"] == 0
    place = v1.train.replica_device_setter(
        worker_device=f"/job:worker/task:{task['index']}", cluster=cluster
    )
    with v1.device(place):
        weights = [v1.Variable(value) for value in initial()]
        count = v1.train.get_or_create_global_step()
        loss = loss_of(weights, tf.constant(images), tf.constant(labels))
        train = v1.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=count)
    with v1.train.MonitoredTrainingSession(
        server.target, is_chief=first, log_step_count_steps=None
    ) as session:
        for _ in range(WARM_UP):
            session.run(train)
        began = time.monotonic()
        now = before = session.run(count)
        while now < before + steps or not first:
            _, now = session.run([train, count])
        say((time.monotonic() - began) * steps / (now - before))


def initial():
    values = np.random.RandomState(1)
    for rows, columns in itertools.pairwise(WIDTHS):
        yield values.normal(0, 0.05, (rows, columns)).astype("float32")


def loss_of(weights, batch_images, batch_labels):
    values = batch_images
    for weight in weights[:-1]:
        values = tf.nn.relu(tf.matmul(values, weight))
    logits = tf.matmul(values, weights[-1])
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(batch_labels, logits))


def main():
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if strategy_name == "between_graph":
        sessions(resolver.cluster_spec())
    elif strategy_name == "independent":
        fit(tf.distribute.get_strategy(), batches())
    elif strategy_name == "multi_worker":
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        fit(strategy, strategy.distribute_datasets_from_function(lambda context: batches()))
    elif task["type"] != "chief":
        spec = resolver.cluster_spec()
        tf.distribute.Server(spec, job_name=task["type"], task_index=task["index"]).join()
    elif strategy_name == "parameter_server, fit":
        fit(tf.distribute.ParameterServerStrategy(resolver), batches())
    else:
        coordinate(tf.distribute.ParameterServerStrategy(resolver))


main()
