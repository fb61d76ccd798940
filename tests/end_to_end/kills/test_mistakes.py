"""The mistakes that people make: how soon each is told, and what a person reads of it.

Each has one sentence that names the place and what to do, so that no log need be read. They are in
the last table of docs/troubleshooting.md; those that are refused at once are in ``unit/options``,
``unit/cli/test_preparation`` and ``test_bad_jobs``.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from command_line import NEWEST, NO_KERAS, CommandLine, write_options

pytestmark = pytest.mark.timeout(300)

SMALL = {"cpus": 0.1, "mem": 64, "disk": 10}
SHOWN_ELSEWHERE = pytest.mark.soak


@dataclass(frozen=True)
class Mistake:
    """What a user got wrong, and the message."""

    #: In words.
    what: str
    #: Of the sentence that a person reads.
    says: tuple[str, ...]
    #: How ``run`` ends.
    code: int
    #: The module ``train``.
    text: str = "print('trains')\n"
    service: dict[str, Any] = field(default_factory=dict)
    sections: dict[str, Any] = field(default_factory=dict)
    tensorflow: bool = False


LATE_SHAPE = """
import tensorflow as tf
weights = tf.Variable(tf.zeros([4, 2]))
for step in range(200):
    batch = tf.zeros([8, 4 if step < 100 else 5])
    loss = tf.reduce_sum(tf.matmul(batch, weights))
    print(f"step {step} loss {float(loss)}", flush=True)
"""
WRONG_METRIC = """
import numpy, tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse", metrics=["acuracy"])
model.fit(numpy.zeros([8, 4]), numpy.zeros([8, 1]), verbose=0)
"""
NO_TRACE = "(train.py, line "

MISTAKES = (
    Mistake(
        "a TensorFlow that there is not",
        ("TensorFlow 2.20.9 cannot be installed: No matching distribution", "name a version in"),
        78,
        service={"python": "", "tensorflow_version": "2.20.9"},
    ),
    # What the code needs.
    Mistake(
        "an import that is not installed",
        ("There is no module pandaz in the Python that runs the task", "bring it with the job"),
        78,
        text="import pandaz\n",
    ),
    Mistake(
        "a file that was not packed, a relative path from another folder",
        ("'data/labels.csv'", NO_TRACE, "put the file into that folder"),
        1,
        text="open('data/labels.csv')\n",
    ),
    Mistake(
        "data that does not exist",
        ("'/data/mnist/train'", NO_TRACE, "the path must be there on the machine"),
        1,
        text="open('/data/mnist/train')\n",
    ),
    Mistake(
        "no space",
        ("There was no space left to write to", NO_TRACE, "free some"),
        1,
        text="open('/dev/full', 'w').write('x' * 100_000)\n",
    ),
    Mistake(
        "more memory than a limit allows",
        ("The job ran out of memory: MemoryError", "give the role more memory (worker.mem"),
        1,
        text="print('step 1')\nx = bytearray(4 << 30)\n",
        sections={
            "retry": {"out_of_memory_limit": 0},
            "worker": {
                "rlimits": [{"name": "RLIMIT_AS", "soft": 2 << 30, "hard": 2 << 30}],
                **SMALL,
            },
        },
    ),
    Mistake(
        "a question to the keyboard",
        ("The job reads from standard input, which is empty", "JOB_CONTEXT"),
        78,
        text="name = input('data set? ')\n",
    ),
    # How the code ends.
    Mistake(
        "sys.exit(3)",
        ("ended with exit code 3 by itself", 'said: "no data set is given"', "retry is used up"),
        3,
        text="import sys\nprint('no data set is given')\nsys.exit(3)\n",
        sections={"retry": {"limit": 1}},
    ),
    Mistake(
        "a crash",
        ("The process crashed with SIGSEGV", "retry is used up"),
        139,
        text="import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n",
        sections={"retry": {"limit": 1}},
    ),
    Mistake(
        "a script that defines its training and does not call it",
        (
            "has succeeded",
            "It reported no step and left no file: check that the code calls its training",
        ),
        0,
        text="def train():\n    print('step 1')\n",
    ),
    # With TensorFlow.
    Mistake(
        "a shape that is wrong from step 100 on",
        ("InvalidArgumentError", "(train.py, line 6)", "2 times the same error"),
        1,
        text=LATE_SHAPE,
        service=dict(NO_KERAS),
        tensorflow=True,
    ),
    Mistake(
        "a metric that does not exist",
        ("acuracy", NO_TRACE),
        1,
        text=WRONG_METRIC,
        tensorflow=True,
    ),
)
#: In the gate those that nothing else shows and that start no TensorFlow.
IN_THE_GATE = (
    "a file that was not packed, a relative path from another folder",
    "no space",
    "more memory than a limit allows",
    "a question to the keyboard",
    "a script that defines its training and does not call it",
)


@pytest.mark.parametrize(
    "mistake",
    [
        pytest.param(m, id=m.what, marks=() if m.what in IN_THE_GATE else SHOWN_ELSEWHERE)
        for m in MISTAKES
    ],
)
def test_a_mistake_is_told_in_a_sentence_that_says_what_to_do(
    mistake: Mistake,
    local_cluster: CommandLine,
    tensorflow: Callable[[str], str],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text(mistake.text)
    python = tensorflow(NEWEST) if mistake.tensorflow else "python3"
    name = re.sub(r"[^a-z0-9]+", "-", mistake.what.lower())[:40].strip("-")
    service = {
        "name": name,
        "strategy": "independent",
        "job_url": "code",
        "job_name": "train",
        "python": python,
        **mistake.service,
    }
    sections = {"worker": {"count": 1, **SMALL}, **mistake.sections}
    options = write_options(tmp_path, service=service, **sections)
    began = time.monotonic()
    ended = local_cluster.ask("run", options, "--yes")
    seconds = time.monotonic() - began
    sentence = ended.out[ended.out.index("The job ") :].split("\n\nThe last lines of")[0].strip()
    print(f"\n{mistake.what} | {seconds:.1f} s | {ended.code} | {sentence}")
    record_property("seconds", round(seconds, 1))
    assert ended.code == mistake.code, ended.out
    assert [each for each in mistake.says if each not in sentence] == [], ended.out
    assert ended.out.count("Traceback (most recent call last)") <= 1
