"""A script of TensorFlow 1's time, unedited: service.tf1_compat makes it run on TensorFlow 2."""
from __future__ import print_function

import json
import os

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits


def main(server, log_dir, context):
    server_def = server.server_def
    is_chief = server_def.task_index == 0
    digits = load_digits()
    order = np.random.RandomState(1).permutation(len(digits.target))
    images, labels = digits.data[order] / 16.0, np.eye(10)[digits.target[order]]

    device = tf.train.replica_device_setter(
        worker_device="/job:%s/task:%d" % (server_def.job_name, server_def.task_index),
        cluster=server_def.cluster)
    with tf.device(device):
        x = tf.placeholder(tf.float32, [None, 64])
        y = tf.placeholder(tf.float32, [None, 10])
        w1 = tf.Variable(tf.truncated_normal([64, 48], stddev=0.1), name="w1")
        b1 = tf.Variable(tf.zeros([48]), name="b1")
        w2 = tf.Variable(tf.truncated_normal([48, 10], stddev=0.1), name="w2")
        b2 = tf.Variable(tf.zeros([10]), name="b2")
        logits = tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2) + b2
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=logits))
        correct = tf.equal(tf.argmax(logits, 1), tf.argmax(y, 1))
        accuracy = tf.reduce_mean(tf.to_float(correct))
        global_step = tf.train.get_or_create_global_step()
        train_op = tf.train.AdamOptimizer(0.003).minimize(loss, global_step=global_step)

    hooks = [tf.train.StopAtStepHook(last_step=context.get("steps", 800))]
    with tf.train.MonitoredTrainingSession(
            master=server.target, is_chief=is_chief, checkpoint_dir=log_dir,
            hooks=hooks, save_checkpoint_steps=200, log_step_count_steps=None) as session:
        random = np.random.RandomState(server_def.task_index)
        test = {x: images[:360], y: labels[:360]}
        test_accuracy, step = session.run([accuracy, global_step], test)
        while not session.should_stop():
            batch = random.randint(360, len(images), 64)
            _, step, value = session.run(
                [train_op, global_step, loss], {x: images[batch], y: labels[batch]})
            if is_chief and step % 50 < 2 and not session.should_stop():
                test_accuracy = session.run(accuracy, test)
                print("step %d loss %.4f accuracy %.4f" % (step, value, test_accuracy))
    if is_chief:
        print("result: " + json.dumps({
            "test_accuracy": round(float(test_accuracy), 4), "steps": int(step),
            "checkpoint": os.path.join(log_dir, "checkpoint")}))
