"""The same with sessions: ``main(server, log_dir, context)`` saves with a MonitoredTrainingSession.

Context: ``own_saver``, to bring a sharded Saver of its own, as TensorFlow's default one is.
"""

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()


def main(server, log_dir, context):
    definition = server.server_def
    chief = definition.task_index == 0
    cluster = tf.train.ClusterSpec(definition.cluster)
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        variables = [tf.get_variable(f"v{number}", initializer=1.0) for number in range(4)]
        step = tf.train.get_or_create_global_step()
        train = tf.group(*[v.assign_add(1.0) for v in variables], step.assign_add(1))
    saver = tf.train.Saver(sharded=True) if context.get("own_saver") else None
    for last in (5, 10):
        with tf.train.MonitoredTrainingSession(
            master=server.target,
            is_chief=chief,
            checkpoint_dir=log_dir if chief else None,
            scaffold=tf.train.Scaffold(saver=saver) if saver else None,
            hooks=[tf.train.StopAtStepHook(last_step=last)],
            save_checkpoint_steps=5,
            log_step_count_steps=None,
        ) as session:
            while not session.should_stop():
                session.run(train)
        # The second session of the chief goes on from what the first one has saved.
        if not chief:
            return
        tf.get_default_graph()._unsafe_unfinalize()
    print("went on from", tf.train.latest_checkpoint(log_dir), flush=True)
