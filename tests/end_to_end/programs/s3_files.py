"""``s3_trainer`` without TensorFlow: a worker that saves files as it does. Usage: MARKS.

Data, index, then the state file by a rename. Every line of them tells its step, so a mixture of two
is noticed at once. ``saves``, ``restored`` and ``finish`` below MARKS are as there.
"""

import itertools
import json
import os
import socket
import sys
import time
from pathlib import Path

STEPS_PER_SAVE = 10
marks, folder = Path(sys.argv[1]), Path(os.environ["CHECKPOINT_DIR"])
config = json.loads(os.environ["TF_CONFIG"])
address = config["cluster"]["worker"][config["task"]["index"]]
# Others of the gang wait until it listens.
server = socket.create_server(("", int(address.rpartition(":")[2])))


def note(name: str, *words: object) -> None:
    with (marks / name).open("a") as file:
        file.write(" ".join(map(str, words)) + "\n")


def files_of(step: int) -> dict[Path, str]:
    name = f"ckpt-{step}"
    return {
        folder / f"{name}.data-00000-of-00001": f"data of {step}\n" * 100_000,
        folder / f"{name}.index": f"index of {step}\n",
    }


def save(step: int) -> None:
    for path, text in files_of(step).items():
        path.write_text(text)
    state = folder / "checkpoint.tmp0"
    state.write_text(f'model_checkpoint_path: "ckpt-{step}"\n')
    state.replace(folder / "checkpoint")
    for path in files_of(step - 3 * STEPS_PER_SAVE):
        path.unlink(missing_ok=True)


def restore() -> int:
    state = folder / "checkpoint"
    step = int(state.read_text().split('"')[1].rpartition("-")[2]) if state.exists() else 0
    assert not step or all(path.read_text() == text for path, text in files_of(step).items())
    note("restored", os.environ["TASK_NAME"], step)
    return step


for step in itertools.count(restore() + STEPS_PER_SAVE, STEPS_PER_SAVE):
    time.sleep(0.1)
    if config["task"]["index"] == 0:
        save(step)
        note("saves", time.time(), step)
    print(f"step {step}", flush=True)
    if (marks / "finish").exists() and step >= int((marks / "finish").read_text()):
        break
