"""The model of the TensorFlow 2 jobs: a linear regression whose answer is known."""

import journal
import tensorflow as tf

FEATURES, BATCH, LEARNING_RATE = 16, 32, 0.01


class Linear(tf.Module):
    """Weights and the number of steps that made them."""

    def __init__(self):
        super().__init__()
        self.weights = tf.Variable(tf.zeros([FEATURES, 1]), aggregation=tf.VariableAggregation.MEAN)
        self.count = tf.Variable(
            0,
            dtype=tf.int64,
            trainable=False,
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
        )

    def step(self):
        """Take one step of gradient descent on a fresh batch."""
        with tf.control_dependencies([burden()]):
            features = tf.random.normal([BATCH, FEATURES])
        wanted = tf.reduce_sum(features, axis=1, keepdims=True)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.matmul(features, self.weights) - wanted) ** 2)
        self.weights.assign_sub(LEARNING_RATE * tape.gradient(loss, self.weights))
        self.count.assign_add(1)
        return loss


def burden():
    """Return a useless number: it only takes time."""
    matrix = tf.random.normal([journal.MATRIX, journal.MATRIX])
    return tf.matmul(matrix, matrix)


def manager_of(model, directory):
    """Return the model's checkpoint manager."""
    return tf.train.CheckpointManager(tf.train.Checkpoint(model=model), directory, max_to_keep=5)


def resume(model, manager):
    """Restore the newest checkpoint if there is one, and note where the training goes on."""
    if manager.latest_checkpoint:
        manager.checkpoint.restore(manager.latest_checkpoint)
    journal.note("resumed", int(model.count.numpy()))


def train(model, manager, round_of_steps, *, saves):
    """Train until all steps are done, or the process is ended."""
    pace = journal.Pace()
    count = int(model.count.numpy())
    while count < journal.STEPS:
        round_of_steps()
        before, count = count, int(model.count.numpy())
        journal.note("step", count)
        if saves and (journal.asked_to_end or journal.passed_checkpoint(before, count)):
            manager.save(checkpoint_number=count)
            journal.note("saved", count)
        if journal.asked_to_end:
            raise SystemExit(0)
        pace.wait()


def evaluate(directory):
    """Look at each new checkpoint until the process is ended: the evaluator's work."""
    model = Linear()
    checkpoint = tf.train.Checkpoint(model=model)
    for path in tf.train.checkpoints_iterator(directory, min_interval_secs=0):
        try:
            checkpoint.restore(path).expect_partial()
        except (tf.errors.NotFoundError, tf.errors.OpError, ValueError):
            continue  # It was removed while it was read: a newer one is there.
        journal.note("evaluated", int(model.count.numpy()))
