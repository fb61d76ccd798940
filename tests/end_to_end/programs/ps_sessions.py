"""The same with sessions: ``main(server, log_dir, context)`` saves with a MonitoredTrainingSession.

Twice with TensorFlow's own saver, the second time going on from the first. When there is a file
``go`` of the context, with a sharded Saver of the job's own, as TensorFlow's default one is.
"""

import os
import time

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()


def main(server, log_dir, context):
    train(server, log_dir, 5)
    train(server, log_dir, 10)
    print("went on from", tf.train.latest_checkpoint(log_dir), flush=True)
    while not os.path.exists(context["go"]):
        time.sleep(0.1)
    train(server, os.path.join(log_dir, "sharded"), 5, sharded=True)


def train(server, folder, last_step, sharded=False):
    cluster = tf.train.ClusterSpec(server.server_def.cluster)
    with tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(cluster=cluster)):
        variables = [tf.get_variable(f"v{number}", initializer=1.0) for number in range(4)]
        step = tf.train.get_or_create_global_step()
        add = tf.group(*[v.assign_add(1.0) for v in variables], step.assign_add(1))
        saver = tf.train.Saver(sharded=True) if sharded else None
        with tf.train.MonitoredTrainingSession(
            master=server.target,
            checkpoint_dir=folder,
            scaffold=tf.train.Scaffold(saver=saver) if saver else None,
            hooks=[tf.train.StopAtStepHook(last_step=last_step)],
            save_checkpoint_steps=5,
            log_step_count_steps=None,
        ) as session:
            while not session.should_stop():
                session.run(add)
