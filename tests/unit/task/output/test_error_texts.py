"""Many kinds of output: what tells of errors in it tells no numbers of the training."""

import pytest

from dcos_tensorflow.task.output.error_texts import ErrorTexts
from dcos_tensorflow.task.output.logs import LineScanner
from dcos_tensorflow.task.output.progress import numbers_of
from dcos_tensorflow.task.output.progress_log import ProgressLog

TRACEBACK = """Traceback (most recent call last):
  File "/job/train.py", line 12, in <module>
    model.fit(data, steps_per_epoch=60, verbose=2, loss=0.5)
    ^^^^^^^^^
  File "/job/train.py", line 7, in fit
    raise ValueError("step 3 loss 0.5 learning_rate=0.5")
"""
PROGRESS = {
    "Keras' bar": "Epoch 2/3\n10/10 - 1s - 9ms/step - loss: 0.25 - accuracy: 0.5\n",
    "Keras 3's bar on a terminal": "Epoch 1/3\n\r\x1b[1m 1/10\x1b[0m \x1b[32m━━\x1b[0m\x1b[37m━━━"
    "\x1b[0m \x1b[1m1s\x1b[0m 9ms/step - loss: 9.0\x08\x08\r\x1b[1m10/10\x1b[0m \x1b[32m━━━\x1b[0m"
    "\x1b[37m\x1b[0m \x1b[1m0s\x1b[0m 9ms/step - accuracy: 0.5 - loss: 0.25 - val_loss: 0.5\n",
    "Keras 2's bar": "Epoch 1/3\n 1/10 [=>....] - ETA: 5s - loss: 9\x08\x08\x08\r"
    "10/10 [======] - 1s 9ms/step - loss: 0.25 - lr: 0.001\n",
    "Keras' bar that grows": " 1/10 [>...] - loss: 9\r10/10 [====] - loss: 0.25\n",
    "tqdm": "100%|####| 10/10 [00:01<00:00, 9it/s, loss=0.25]\n",
    "tqdm with the epoch": "Epoch 1:  10%|#  | 1/10 [00:00<00:05,  1.9it/s, loss=9]\r"
    "Epoch 1: 100%|####| 10/10 [00:05<00:00,  1.9it/s, loss=0.25]\n",
    "lines that end as on Windows": "step 10 loss 0.25\r\n",
    "plain words": "step 10 loss 0.25\n",
    "print of pairs": "step=10, loss=0.25, auc=0.5\n",
    "JSON lines": '{"step": 10, "loss": 0.25}\n',
    "an Estimator": "INFO:tensorflow:loss = 0.25, step = 10 (0.5 sec)\n",
    "logging": "INFO:root:step 10 loss 0.25\n",
    "logging with the time": "2026-11-27 10:00:00,123 INFO train: step 10, loss 0.25\n",
    "logging with the name": "2026-11-27 10:00:00,123 - train - INFO - step 10 loss 0.25\n",
    "loguru": "2026-11-27 10:00:00.123 | INFO     | train:main:9 - step 10 loss 0.25\n",
    "a log in JSON": '{"level": "INFO", "message": "step 10 loss 0.25"}\n',
    "absl": "I1127 10:00:00.123456 7 train.py:9] step 10 loss 0.25\n",
    "terminal codes": "\x1b[32mstep 10\x1b[0m loss 0.25\n",
    "a PyTorch-like loop": "Train Epoch: 1 [10/60] Loss: 0.25\n",
    "indented": "    step 10: loss 0.25\n",
}
ERRORS = {
    "a traceback": TRACEBACK + "ValueError: step 3 loss 0.5 learning_rate=0.5\n",
    "a traceback whose text has lines": TRACEBACK
    + "ValueError: Exception encountered\n\nArguments received by fit():\n  verbose: 2\n"
    "  - loss 0.5\nstep_size 60\n",
    "two tracebacks": TRACEBACK
    + "ValueError: x\n\nDuring handling of the above exception, another exception occurred:\n\n"
    + TRACEBACK
    + "KeyError: 'loss'\n",
    "a frame without its head": '  File "/job/t.py", line 3, in f\n    fit(steps=60, loss=0.5)\n',
    "an exception's line alone": "tensorflow.errors.InvalidArgumentError: loss : 0.5, step 60\n",
    "the module warnings": "/job/t.py:3: UserWarning: loss 0.5 is large\n  fit(step=60, loss=1)\n",
    "a log record of a warning": "WARNING:tensorflow:step 60 is slow, loss 0.5\n",
    "a dated log record of an error": "2026-11-27 10:00:00,1 ERROR train: step 60 loss 0.5\n",
    "absl's warning": "W1127 10:00:00.1 7 train.py:9] step 60, loss 0.5\n",
    "a log record with the name": "2026-11-27 10:00:00,123 - train - WARNING - step 60 loss 0.5\n",
    "a log record with the hour": "10:00:00 ERROR step 60 loss 0.5\n",
    "a log in JSON": '{"time": 1, "severity": "ERROR", "message": "step 60 loss 0.5"}\n',
    "a warning in colour": "\x1b[33mWARNING\x1b[0m: step 60 loss 0.5\n",
    "TensorFlow's own INFO": "INFO:tensorflow:Saving checkpoints for 60 into /x/model.ckpt.\n",
    "arguments that were refused": "usage: t.py [-h] [--steps STEPS]\nt.py: error: argument"
    " --steps: invalid int value: 'x60'\n",
    "arguments as Python shows them": "Namespace(steps=60, lr=0.5, loss='mse')\n",
    "a line of code": "    model.compile(steps=60, loss=0.5)\n",
    "a group of exceptions": "  + Exception Group Traceback (most recent call last):\n"
    '  |   File "/t.py", line 3, in f\n  |     fit(steps=60, loss=0.5)\n'
    "  | ExceptionGroup: two (2 sub-exceptions)\n  +-+---------------- 1 ----------------\n"
    "    | ValueError: step 60, loss 0.5\n    +------------------------------------\n",
    "glog's error": "E0000 00:00:1795331357.616110   21188 cuda_dnn.cc:8310] step 60 loss 0.5\n",
    "TensorFlow's C++": "2026-11-27 10:00:00.123456: I tensorflow/util.cc:1] step 60 loss 0.5\n",
}


def told(text: str) -> tuple[object, dict[str, float]]:
    log = ProgressLog()
    log.read_block(LineScanner().feed(text.encode()))
    return log.known.step, numbers_of(log.known)


@pytest.mark.parametrize("kind", PROGRESS)
def test_progress_counts(kind: str) -> None:
    assert told(PROGRESS[kind])[1]["loss"] == 0.25


@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_tells_no_numbers(kind: str) -> None:
    assert told(ERRORS[kind]) == (None, {})


@pytest.mark.parametrize("progress", PROGRESS)
def test_progress_counts_after_an_error_that_was_caught(progress: str) -> None:
    error = ERRORS["a traceback whose text has lines"]
    assert told(error + PROGRESS[progress])[1] == told(PROGRESS[progress])[1]


def test_a_traceback_that_comes_in_parts_is_one() -> None:
    texts = ErrorTexts()
    lines = ERRORS["a traceback"].encode().splitlines(keepends=True)
    assert b"".join(texts.taken_out(line) for line in lines) == b""
