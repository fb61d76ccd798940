"""A training without TensorFlow, as fast as processes can be, that tests kill many hundred times.

Usage: trainer.py MARKS STEPS. It behaves as a ParameterServerStrategy does where it matters: ps
and workers serve for ever, the chief talks to every ps in each step and ends with an
UnavailableError when one is gone. The chief adds up its step numbers, saves every ``SAVE_STEPS``
steps into the shared checkpoint directory, and writes down at each start how many steps it lost.
"""

import fcntl
import json
import os
import socket
import sys
import time
from pathlib import Path

SAVE_STEPS = 20
marks, last_step = Path(sys.argv[1]), int(sys.argv[2])
task = os.environ["TASK_NAME"]
(marks / f"{task}.pid").write_text(str(os.getpid()))
lock = (marks / f"{task}.lock").open("w")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    (marks / f"{task}.twice").touch()
    sys.exit("another attempt of this task trains")
config = json.loads(os.environ["TF_CONFIG"])
cluster, me = config["cluster"], config["task"]


def endpoint(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def serve() -> None:
    """Echo whatever comes, one client after the other: there is one chief."""
    server = socket.create_server(("", endpoint(cluster[me["type"]][me["index"]])[1]))
    while True:
        client, _ = server.accept()
        with client:
            try:
                while data := client.recv(64):
                    client.sendall(data)
            except OSError:
                continue


def connect(address: str) -> socket.socket:
    """Wait for a peer for as long as it takes, and for its answers, as TensorFlow's chief does."""
    while True:
        try:
            connection = socket.create_connection(endpoint(address), timeout=2)
        except OSError:
            time.sleep(0.02)
        else:
            connection.settimeout(None)
            return connection


def lost(restored: int) -> None:
    """Write down how far the chief before us had come beyond what we start from."""
    highest = marks / "highest"
    before = int(highest.read_text() or 0) if highest.exists() else 0
    with (marks / "lost").open("a") as file:
        file.write(f"{max(before - restored, 0)}\n")


def train() -> None:
    saved = Path(os.environ["CHECKPOINT_DIR"]) / "state.json"
    state = json.loads(saved.read_text()) if saved.exists() else {"step": 0, "sum": 0}
    servers = [connect(address) for address in cluster["ps"]]
    lost(state["step"])
    highest = (marks / "highest").open("w")
    while state["step"] < last_step or not (marks / "finish").exists():
        try:
            for server in servers:
                server.sendall(b"step")
                if server.recv(64) != b"step":
                    raise OSError("closed")
        except OSError as error:
            sys.exit(f"tensorflow.python.framework.errors_impl.UnavailableError: {error}")
        state = {"step": state["step"] + 1, "sum": state["sum"] + state["step"] + 1}
        os.pwrite(highest.fileno(), b"%012d" % state["step"], 0)
        if state["step"] % SAVE_STEPS == 0:
            partial = saved.with_suffix(f".{os.getpid()}")
            partial.write_text(json.dumps(state))
            partial.rename(saved)
            print(f"step {state['step']}", flush=True)
        time.sleep(0.005)
    (marks / "result").write_text(json.dumps(state))


train() if me["type"] == "chief" else serve()
