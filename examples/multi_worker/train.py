"""Handwritten digits with MultiWorkerMirroredStrategy and a training loop of its own.

The script contract: every worker runs this file with its own TF_CONFIG; worker 0 is the chief,
keeps the checkpoints and exports the model. After a restart worker 0 gives its weights to all:
members that restored from their own disks would train on with different ones, silently.
"""

import json
import os

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

STEPS = 400
STEPS_PER_CALL = 20
BATCH_PER_WORKER = 64
LEARNING_RATE = 0.3


def main():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    resolver = strategy.cluster_resolver
    chief = resolver.task_type in (None, "", "chief") or (
        resolver.task_type == "worker"
        and resolver.task_id == 0
        and "chief" not in resolver.cluster_spec().jobs
    )
    (images, labels), test = data()
    with strategy.scope():
        model = Model()
    checkpoint = tf.train.Checkpoint(model=model)
    manager = tf.train.CheckpointManager(checkpoint, os.environ["CHECKPOINT_DIR"], max_to_keep=3)
    if chief and manager.latest_checkpoint:
        checkpoint.restore(manager.latest_checkpoint)
        print(f"goes on from {manager.latest_checkpoint}", flush=True)
    take_weights_of_chief(strategy, model, chief)

    def batches(context):
        dataset = tf.data.Dataset.from_tensor_slices((images, labels))
        dataset = dataset.shard(context.num_input_pipelines, context.input_pipeline_id)
        return dataset.shuffle(2000).repeat().batch(BATCH_PER_WORKER, drop_remainder=True)

    iterator = iter(strategy.distribute_datasets_from_function(batches))

    @tf.function
    def call(iterator):
        loss = 0.0
        for _ in range(STEPS_PER_CALL):
            loss = strategy.run(model.step, args=next(iterator))
        return strategy.reduce("MEAN", loss, axis=None)

    while int(model.count.numpy()) < STEPS:
        loss = float(call(iterator))
        count, accuracy = int(model.count.numpy()), model.accuracy(*test)
        print(f"step {count} loss {loss:.4f} accuracy {accuracy:.4f}", flush=True)
        if chief:
            manager.save(checkpoint_number=count)
    if chief:
        finish(model, test, manager)


def take_weights_of_chief(strategy, model, chief):
    """Give every member the chief's values: the sum over all, where only the chief's count."""

    @tf.function
    def share(value, mine):
        context = tf.distribute.get_replica_context()
        return context.all_reduce(tf.distribute.ReduceOp.SUM, value * tf.cast(mine, value.dtype))

    for variable in (*model.weights, model.count):
        value = strategy.run(share, args=(variable.read_value(), tf.constant(float(chief))))
        variable.assign(strategy.experimental_local_results(value)[0])


class Model(tf.Module):
    """One hidden layer, trained by gradient descent on the mean gradient of all workers."""

    def __init__(self):
        super().__init__()
        random = np.random.RandomState(0)
        self.weights = [
            tf.Variable(random.normal(0, 0.1, shape).astype("float32"))
            for shape in ((64, 64), (64,), (64, 10), (10,))
        ]
        self.count = tf.Variable(
            0,
            dtype=tf.int64,
            trainable=False,
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
        )

    def step(self, images, labels):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels, self.logits(images))
            )
        context = tf.distribute.get_replica_context()
        gradients = context.all_reduce(
            tf.distribute.ReduceOp.MEAN, tape.gradient(loss, self.weights)
        )
        context.merge_call(self.descend, args=(gradients,))
        return loss

    def descend(self, strategy, gradients):
        # AutoGraph of TensorFlow 2.12 knows no strict=True.
        for weight, gradient in zip(self.weights, gradients):  # noqa: B905
            strategy.extended.update(
                weight, lambda w, g: w.assign_sub(LEARNING_RATE * g), args=(gradient,)
            )
        strategy.extended.update(self.count, lambda count: count.assign_add(1))

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
    tf.saved_model.save(exported, path)
    print(f"test accuracy {accuracy:.4f}", flush=True)
    result = {
        "test_accuracy": round(accuracy, 4),
        "steps": int(model.count.numpy()),
        "model": path,
        "checkpoint": manager.latest_checkpoint,
    }
    print("result: " + json.dumps(result), flush=True)


def data():
    """Return ((images, labels) to train, (images, labels) to test), the same in every task."""
    digits = load_digits()
    order = np.random.RandomState(0).permutation(len(digits.target))
    images, labels = digits.data[order].astype("float32") / 16, digits.target[order]
    return (images[360:], labels[360:]), (images[:360], labels[:360])


if __name__ == "__main__":
    main()
