"""One task that trains alone."""

import os

import journal

journal.note("started")

import linear
import tensorflow as tf

journal.note("imported")

model = linear.Linear()
manager = linear.manager_of(model, os.environ["CHECKPOINT_DIR"])
linear.resume(model, manager)
linear.train(model, manager, tf.function(model.step), saves=True)
