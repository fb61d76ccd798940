"""A member of a job without TensorFlow: leaves marks that tell what ran, and when twice at once.

Usage: member.py MARKS. It holds a lock for its task while it lives, listens as TensorFlow would,
fails once as worker-1 when ``MARKS/fail`` appears, and ends as worker-0 when ``MARKS/finish`` does.
"""

import fcntl
import json
import os
import socket
import sys
import time
from pathlib import Path

marks = Path(sys.argv[1])
task = os.environ["TASK_NAME"]
lock = (marks / f"{task}.lock").open("w")
with (marks / f"{task}.starts").open("a") as starts:
    starts.write(f"{os.getpid()} epoch {os.environ['TF_EPOCH']}\n")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    (marks / f"{task}.twice").touch()
    sys.exit("another attempt of this task runs")

config = json.loads(os.environ["TF_CONFIG"])
address = config["cluster"][config["task"]["type"]][config["task"]["index"]]
server = socket.create_server(("", int(address.rpartition(":")[2])))

step = 0
while not ((marks / "finish").exists() and task == "worker-0"):
    step += 1
    print(f"step {step}", flush=True)
    if task == "worker-1" and not (marks / "failed").exists() and (marks / "fail").exists():
        (marks / "failed").touch()
        sys.exit(1)
    time.sleep(0.1)
