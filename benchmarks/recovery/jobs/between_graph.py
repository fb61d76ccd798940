"""Between-graph replication: MonitoredTrainingSession, and servers that share variables.

``main`` is the function contract. Started by hand, the file makes the server by itself, from
TF_CONFIG.
"""

import json
import os

import journal
import tensorflow.compat.v1 as tf

FEATURES, BATCH, LEARNING_RATE = 16, 32, 0.01


def main(server, log_dir, context):
    tf.disable_v2_behavior()
    journal.note("started")
    definition = server.server_def
    job, index = definition.job_name, definition.task_index
    device = f"/job:{job}/task:{index}"
    setter = tf.train.replica_device_setter(
        worker_device=device, cluster=tf.train.ClusterSpec(definition.cluster)
    )
    with tf.device(setter):
        step = tf.train.get_or_create_global_step()
        train = model(step)
        with tf.control_dependencies([train]):
            step_after = step.read_value()
    with tf.device("/job:worker/task:0/cpu:0"):
        saver = tf.train.Saver(sharded=False, save_relative_paths=True, max_to_keep=5)
    chief = index == 0
    saving = tf.train.CheckpointSaverHook(
        log_dir, save_steps=journal.SAVE_EVERY, saver=saver, listeners=[NotesSaves()]
    )
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=chief,
        checkpoint_dir=log_dir if chief else None,
        scaffold=tf.train.Scaffold(saver=saver),
        chief_only_hooks=[saving],
        save_checkpoint_steps=None,
        save_checkpoint_secs=None,
        save_summaries_steps=None,
        save_summaries_secs=None,
        log_step_count_steps=None,
    ) as session:
        count = session.run(step)
        journal.note("resumed", int(count))
        pace = journal.Pace()
        while count < journal.STEPS and not session.should_stop():
            _, count = session.run([train, step_after])
            journal.note("step", int(count))
            pace.wait()


class NotesSaves(tf.train.CheckpointSaverListener):
    """Notes each checkpoint."""

    def after_save(self, session, global_step_value):
        journal.note("saved", int(global_step_value))


def model(step):
    """Return the operation that takes one step of a linear regression."""
    features = tf.random_normal([BATCH, FEATURES])
    wanted = tf.reduce_sum(features, axis=1, keepdims=True)
    weights = tf.get_variable("weights", [FEATURES, 1], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(features, weights) - wanted))
    return tf.train.GradientDescentOptimizer(LEARNING_RATE).minimize(loss, global_step=step)


def by_hand():
    config = json.loads(os.environ["TF_CONFIG"])
    task = config["task"]
    server = tf.train.Server(config["cluster"], job_name=task["type"], task_index=task["index"])
    if task["type"] == "ps":
        server.join()
    main(server, os.environ["CHECKPOINT_DIR"], journal.CONTEXT)


if __name__ == "__main__":
    by_hand()
