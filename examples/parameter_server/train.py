"""Handwritten digits with ParameterServerStrategy and a ClusterCoordinator.

The script contract: every task runs this file with its own TF_CONFIG. Workers and parameter
servers serve until they are ended; the chief trains, keeps the checkpoints, exports the model.
"""

import json
import os

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

STEPS = 960
STEPS_PER_CALL = 20
CALLS_PER_ROUND = 6
BATCH = 64
# A sweep may choose another one.
LEARNING_RATE = float(os.environ.get("PARAM_LEARNING_RATE", "0.3"))
# Everything lands on the chief's disk; by default each parameter server writes on its own. The
# whole device: with the job alone, the number of the variable's parameter server would be taken.
CHIEF = "/job:chief/replica:0/task:0/cpu:0"
ON_CHIEF = tf.train.CheckpointOptions(experimental_io_device=CHIEF)


def main():
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        server = tf.distribute.Server(
            resolver.cluster_spec(),
            job_name=resolver.task_type,
            task_index=resolver.task_id,
            protocol="grpc",
        )
        print(f"{resolver.task_type} {resolver.task_id} is serving", flush=True)
        server.join()
    train(resolver)


def train(resolver):
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    (images, labels), test = data()
    with strategy.scope():
        model = Model()
    directory = os.environ["CHECKPOINT_DIR"]
    checkpoint = tf.train.Checkpoint(model=model)
    manager = tf.train.CheckpointManager(checkpoint, directory, max_to_keep=3)
    if manager.latest_checkpoint:
        checkpoint.restore(manager.latest_checkpoint, ON_CHIEF)
        print(f"goes on from {manager.latest_checkpoint}", flush=True)

    def batches():
        dataset = tf.data.Dataset.from_tensor_slices((images, labels))
        return dataset.shuffle(2000).repeat().batch(BATCH, drop_remainder=True)

    @tf.function
    def call(iterator):
        loss = 0.0
        for _ in range(STEPS_PER_CALL):
            loss = strategy.run(model.step, args=next(iterator))
        return loss

    iterator = iter(coordinator.create_per_worker_dataset(batches))
    while int(model.count.numpy()) < STEPS:
        losses = [coordinator.schedule(call, args=(iterator,)) for _ in range(CALLS_PER_ROUND)]
        coordinator.join()
        loss = np.mean([value.fetch() for value in losses])
        count, accuracy = int(model.count.numpy()), model.accuracy(*test)
        manager.save(checkpoint_number=count, options=ON_CHIEF)
        print(f"step {count} loss {loss:.4f} accuracy {accuracy:.4f}", flush=True)
    finish(model, test, manager)


class Model(tf.Module):
    """One hidden layer, trained by gradient descent; its variables live on the servers."""

    def __init__(self):
        super().__init__()
        random = np.random.RandomState(0)
        self.weights = [
            tf.Variable(random.normal(0, 0.1, shape).astype("float32"))
            for shape in ((64, 64), (64,), (64, 10), (10,))
        ]
        self.count = tf.Variable(0, dtype=tf.int64, trainable=False)

    def step(self, images, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels, self.logits(images))
            )
        gradients = tape.gradient(loss, self.weights)
        # AutoGraph of TensorFlow 2.12 knows no strict=True.
        for weight, gradient in zip(self.weights, gradients):  # noqa: B905
            weight.assign_sub(LEARNING_RATE * gradient)
        self.count.assign_add(1)
        return loss

    def logits(self, images):
        w1, b1, w2, b2 = self.weights
        return tf.matmul(tf.nn.relu(tf.matmul(images, w1) + b1), w2) + b2

    def accuracy(self, images, labels):
        return float(np.mean(np.argmax(self.logits(images).numpy(), 1) == labels))


def finish(model, test, manager):
    accuracy = model.accuracy(*test)
    exported = tf.Module()
    exported.weights = [tf.Variable(weight.numpy()) for weight in model.weights]

    @tf.function(input_signature=[tf.TensorSpec([None, 64], tf.float32)])
    def predict(images):
        w1, b1, w2, b2 = exported.weights
        return tf.argmax(tf.matmul(tf.nn.relu(tf.matmul(images, w1) + b1), w2) + b2, 1)

    exported.predict = predict
    path = os.path.join(manager.directory, "model")
    tf.saved_model.save(
        exported, path, options=tf.saved_model.SaveOptions(experimental_io_device=CHIEF)
    )
    print(f"test accuracy {accuracy:.4f}", flush=True)
    print(
        "result: "
        + json.dumps(
            {
                "test_accuracy": round(accuracy, 4),
                "steps": int(model.count.numpy()),
                "model": path,
                "checkpoint": manager.latest_checkpoint,
            }
        ),
        flush=True,
    )


def data():
    """Return ((images, labels) to train, (images, labels) to test), the same in every task."""
    digits = load_digits()
    order = np.random.RandomState(0).permutation(len(digits.target))
    images, labels = digits.data[order].astype("float32") / 16, digits.target[order]
    return (images[360:], labels[360:]), (images[:360], labels[:360])


if __name__ == "__main__":
    main()
